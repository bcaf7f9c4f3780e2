package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const auditPolicyHead = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

func TestAuditPolicy(t *testing.T) {
	set, findings := Load([]string{testutil.WriteFiles(t, map[string]string{"a.yaml": auditPolicyHead + `
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  resources: [{group: shop, resources: [orders]}]
- level: Metadata
`})})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for group, want := range map[string]audit.Level{"shop": audit.RequestResponse, "apps": audit.Metadata} {
		i := &resource.Info{Verb: resource.VerbCreate, IsResource: true, Group: group, Resource: "orders"}
		if got := set.Audit().Decide(i, &identity.User{}); got.Level != want || got.Has(audit.RequestReceived) {
			t.Errorf("%s: %v", group, got)
		}
	}
	if empty().Audit() != nil {
		t.Error("an empty set records")
	}
}

// TestAuditPolicyFindings: what kube-apiserver finds in a Policy is said with its line.
func TestAuditPolicyFindings(t *testing.T) {
	for _, c := range []struct{ name, files, want string }{
		{"no rules", auditPolicyHead + "rules: []",
			"a.yaml:3: rules: Required value: a policy without rules records nothing"},
		{"level", auditPolicyHead + "rules:\n- level: All", `a.yaml:4: rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse"`},
		{"two", auditPolicyHead + "rules: [{level: None}]\n---\n" + auditPolicyHead + "rules: [{level: None}]",
			"a.yaml:6: kind: must be the only audit Policy; another one is in DIR/a.yaml:2"},
		{"version", "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: []",
			"a.yaml:1: apiVersion: must be 'audit.k8s.io/v1', not 'audit.k8s.io/v1beta1'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.files})
			var got []string
			for _, f := range Check([]string{dir}) {
				got = append(got, strings.ReplaceAll(strings.TrimPrefix(f.String(), dir+"/"), dir, "DIR"))
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}

// TestAuditPolicyWithoutPlace: rules without a place for events, and a place without rules, are found.
func TestAuditPolicyWithoutPlace(t *testing.T) {
	rules := testutil.WriteFiles(t, map[string]string{"a.yaml": auditPolicyHead + "rules: [{level: Metadata}]"})
	none := testutil.WriteFiles(t,
		map[string]string{"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}"})
	for _, c := range []struct {
		dir   string
		sinks []string
		want  string
	}{
		{rules, nil, ""}, {rules, []string{"log"}, ""}, {none, []string{}, ""},
		{rules, []string{}, "a.yaml:2: kind: warning: an audit Policy has no effect unless `telemetry.audit` of the configuration says where events go"},
		{none, []string{"log"}, "the configuration: telemetry.audit: warning: no request is recorded: there is no audit Policy (audit.k8s.io/v1) among the policy files"},
	} {
		var got []string
		for _, f := range CheckFor([]string{c.dir}, Gateway{AuditSinks: c.sinks, SharedLimits: true}) {
			got = append(got, strings.TrimPrefix(f.String(), c.dir+"/"))
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), c.want)
		}
	}
}
