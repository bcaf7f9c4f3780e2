package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestRoles: `gateway check --rbac` prints the least roles that files and configuration need, with what needs each
// rule, and says what no role can give.
func TestRoles(t *testing.T) {
	const dir = "testdata/rbac/"
	got := run("check", "--rbac", "--config", dir+"gateway.yaml", dir+"policies.yaml")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for name, text := range map[string]string{dir + "roles.yaml": got.stdout, dir + "notes.txt": got.stderr} {
		if os.Getenv("UPDATE_ROLES") != "" {
			testutil.WriteFile(t, name, text)
		}
		if want, err := os.ReadFile(name); err != nil || text != string(want) {
			t.Errorf("got\n%s\nwant %s (%v)\n%s", text, name, err, want)
		}
	}
	for text := range strings.SplitSeq(got.stdout, "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil || role.Kind != "ClusterRole" ||
			role.APIVersion != "rbac.authorization.k8s.io/v1" || len(role.Rules) == 0 {
			t.Errorf("%v: %+v\n%s", err, role, text)
		}
	}
}

// TestRoleOfWildcards: a policy for everything that reads stored objects needs a role that reads
// everything, which is said.
func TestRoleOfWildcards(t *testing.T) {
	const everything = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: everything}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: RESOURCES}]}
  validations: [{expression: "oldObject == null || oldObject.metadata.name != 'kept'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everything}
spec: {policyName: everything, validationActions: [Deny]}
`
	config := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
		"upstreams: [{name: cluster, endpoints: ['https://cluster.example'], dialect: Kubernetes, tokenFile: token}]\n")
	for resources, want := range map[string]struct {
		rule  string
		warns bool
	}{
		"['*/*']":       {"  - apiGroups: [\"*\"]\n    resources: [\"*\"]\n    verbs: [get, list]\n", true},
		"['*']":         {"  - apiGroups: [\"*\"]\n    resources: [\"*\"]\n    verbs: [get, list]\n", true},
		"['*/scale']":   {"  - apiGroups: [\"*\"]\n    resources: [\"*/scale\"]\n    verbs: [get]\n", false},
		"['widgets/*']": {"  - apiGroups: [\"*\"]\n    resources: [widgets]\n    verbs: [get, list]\n", false},
	} {
		got := run("check", "--rbac", "--config", config,
			write(t, "policies.yaml", strings.Replace(everything, "RESOURCES", resources, 1)))
		if got.code != 0 || !strings.Contains(got.stdout, want.rule) {
			t.Errorf("%s: %+v\nwant\n%s", resources, got, want.rule)
		}
		if warns := strings.Contains(got.stderr, "warning: upstream 'cluster': the account may get every resource of the API group '*', Secrets too"); warns != want.warns {
			t.Errorf("%s: warns: %t: %s", resources, warns, got.stderr)
		}
	}
}

// TestRolesNeedAConfiguration: which upstreams there are the configuration alone says, and files with errors have no
// role.
func TestRolesNeedAConfiguration(t *testing.T) {
	broken := write(t, "broken.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: a}\nspec: {upstream: none, path: /a}\n")
	config := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
		"upstreams: [{name: cluster, endpoints: ['https://cluster.example'], dialect: Kubernetes, tokenFile: token}]\n")
	plain := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: shop, endpoints: ['https://shop.example']}]\n")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{broken}, 2, "--rbac: name the configuration with --config"},
		{[]string{"--config", config, broken}, 1, "1 error"},
		{[]string{"--config", plain}, 2, "--rbac: the configuration must have an upstream of the dialect Kubernetes"},
	} {
		got := run(append([]string{"check", "--rbac"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.says) || strings.Contains(got.stdout, "ClusterRole") {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}

// TestRoleOfWatch: the role of a gateway that watches a cluster has what its kinds need, and the Lease.
func TestRoleOfWatch(t *testing.T) {
	file := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nkubernetes: {watch: {lease: {namespace: infra, name: lease}}}\n")
	policies := write(t, "p.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
	got := run("check", "--rbac", "--config", file, policies)
	cluster, lease, found := strings.Cut(got.stdout, "---\n")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(cluster), &role); err != nil || !found {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, want := range []string{"gatewayclasses", "secrets", "endpointslices", "ingresses/status",
		"backendtlspolicies/status"} {
		if !slices.ContainsFunc(role.Rules,
			func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, want) }) {
			t.Errorf("the role has no right to %s:\n%s", want, cluster)
		}
	}
	for _, want := range []string{"namespace: infra", "resourceNames: [lease]", "verbs: [get, update]"} {
		if !strings.Contains(lease, want) {
			t.Errorf("the role of the Lease has no %q:\n%s", want, lease)
		}
	}
}
