package deploy

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

const refusingPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: names}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps, secrets]}]}
  validations: [{expression: "!object.metadata.name.startsWith('bad-')", messageExpression: "'no object may have the data ' + string(object.?data.a.orValue('none'))"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: names}
spec: {policyName: names, validationActions: [Deny]}
`

// With events: Record a kube-apiserver has Events about what policies refuse, which the gateway's own account records:
// one series for what is refused again and again. Who may not write makes none, a dry run makes none, and data of
// Secrets is in none.
func TestEvents(t *testing.T) {
	c, dir := commonCluster(t), t.TempDir()
	c.must(t, "", "create", "namespace", "refusals")
	c.must(t, "", "create", "namespace", "gateways")
	t.Setenv("POD_NAMESPACE", "gateways")
	t.Setenv("POD_NAME", "gateway-0")
	write(t, filepath.Join(dir, "token"), "of-gateway\n")
	write(t, filepath.Join(dir, "policies.yaml"), refusingPolicy)
	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	write(t, filepath.Join(dir, "gateway.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+listen+`
admin: {listen: `+admin+`}
upstreams:
- {name: cluster, endpoints: [`+c.url+`], dialect: Kubernetes, tls: {insecureSkipTLSVerify: true}, tokenFile: token, events: Record}
routes: [{pathPrefix: /, upstream: cluster}]
policies: [policies.yaml]
`)
	c.grant(t, filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "policies.yaml"))
	c.may(t, true, authorizationv1.ResourceAttributes{Verb: "patch", Group: "events.k8s.io", Resource: "events"})
	start(t, answers("http://"+admin+"/readyz"), filepath.Join(dir, "log"), gateway, "serve", "--config",
		filepath.Join(dir, "gateway.yaml"))
	create := func(token, resource, kind, name, query string, code int) {
		t.Helper()
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q},"data":{"a":"cGxhaW4="}}`, kind, name)
		r, err := http.NewRequest("POST", "http://"+listen+"/api/v1/namespaces/refusals/"+resource+query,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != code {
			t.Fatalf("%s of %s by %s is answered %s, want %d", name, resource, token, answer.Status, code)
		}
	}
	recorded := func(namespace string) string {
		var list eventsv1.EventList
		get(t, c, "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", &list)
		var lines []string
		for _, e := range list.Items {
			count := int32(1)
			if e.Series != nil {
				count = e.Series.Count
			}
			lines = append(lines, fmt.Sprintf("%s %s %s by %s, %s %s %s/%s, %d times: %s", e.Type, e.Reason, e.Action,
				e.ReportingController,
				e.Regarding.APIVersion, e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name, count, e.Note))
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	becomes := func(want ...string) {
		t.Helper()
		got := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the events are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
		})
		eventually(t, "the events are recorded", func() bool {
			got = recorded("refusals")
			return got == strings.Join(want, "\n")
		})
	}
	line := func(kind, name string, times int, note string) string {
		return fmt.Sprintf("Warning AdmissionDenied create by admission-gateway.io/gateway, v1 %s refusals/%s, %d times: %s", kind, name, times, note)
	}
	const denied = "ValidatingAdmissionPolicy 'names' with binding 'names' denied request: no object may have the data cGxhaW4="
	create("of-stranger", "configmaps", "ConfigMap", "bad-stranger", "", 403)
	create("of-root", "configmaps", "ConfigMap", "bad-dry", "?dryRun=All", 422)
	create("of-root", "configmaps", "ConfigMap", "good", "", 201)
	create("of-root", "configmaps", "ConfigMap", "bad-one", "", 422)
	becomes(line("ConfigMap", "bad-one", 1, denied))
	create("of-root", "configmaps", "ConfigMap", "bad-one", "", 422)
	becomes(line("ConfigMap", "bad-one", 2, denied))
	create("of-root", "secrets", "Secret", "bad-secret", "", 422)
	becomes(line("ConfigMap", "bad-one", 2, denied), line("Secret", "bad-secret", 1, "(withheld)"))
	write(t, filepath.Join(dir, "policies.yaml"), strings.Replace(refusingPolicy, "validations:", "validation:", 1))
	eventually(t, "refused files are recorded", func() bool {
		const about = "Warning PoliciesRejected Load by admission-gateway.io/gateway, v1 Pod gateways/gateway-0, "
		got := recorded("gateways")
		return strings.HasPrefix(got, about) &&
			strings.Contains(got, filepath.Join(dir, "policies.yaml")+":5:1: spec.validations: Required value")
	})
}
