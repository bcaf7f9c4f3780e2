package deploy

import (
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// comparing is a policy that compares updates with what is stored, and holds.
const comparing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: comparing}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [UPDATE], resources: ["*/*"]}]
  validations: [{expression: "object.metadata.name == oldObject.metadata.name"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: comparing}
spec: {policyName: comparing, validationActions: [Deny]}
`

// compared are the resources of the requests.
const compared = `
apiVersion: v1
kind: Namespace
metadata: {name: unversioned}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c1, namespace: unversioned}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d1, namespace: unversioned}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: e2e.example.com/v1
kind: Widget
metadata: {name: w1, namespace: unversioned}
spec: {replicas: 1}
`

// startBefore runs a gateway with policies before the cluster until the test ends, and returns its base URL.
func (c *cluster) startBefore(t *testing.T, policies string) string {
	t.Helper()
	dir, listen, admin := t.TempDir(), testutil.FreeAddress(t), testutil.FreeAddress(t)
	write(t, filepath.Join(dir, "policies.yaml"), policies)
	write(t, filepath.Join(dir, "token"), "of-root\n")
	write(t, filepath.Join(dir, "gateway.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+listen+`
admin: {listen: `+admin+`}
upstreams: [{name: cluster, endpoints: [`+c.url+`], dialect: Kubernetes, tls: {insecureSkipTLSVerify: true}, tokenFile: token}]
routes: [{pathPrefix: /, upstream: cluster}]
policies: [policies.yaml]
`)
	start(t, answers("http://"+admin+"/readyz"), filepath.Join(dir, "log"), gateway, "serve", "--config",
		filepath.Join(dir, "gateway.yaml"))
	return "http://" + listen
}

// ask sends one request as a user, and returns the code and the body of the answer.
func ask(t *testing.T, token, method, url, contentType, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	//nolint:gosec // a test's own server
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// A PUT which names no version is what the server makes of it: 422 for custom resources, and an update of other kinds.
func TestUpdateWithoutVersion(t *testing.T) {
	c := commonCluster(t)
	c.define(t, filepath.Join("..", "testdata", "crds.yaml"))
	c.must(t, compared, "create", "-f", "-")
	through := c.startBefore(t, comparing)
	for _, r := range []struct {
		path, contentType, body string
		code                    int
	}{
		{"/apis/e2e.example.com/v1/namespaces/unversioned/widgets/w1", "application/json", `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w1"},"spec":{"replicas":5}}`, 422},
		{"/apis/e2e.example.com/v1/namespaces/unversioned/widgets/w1", "", `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w1","resourceVersion":"0"},"spec":{"replicas":5}}`, 422},
		{"/apis/e2e.example.com/v1/namespaces/unversioned/widgets/w1/status", "application/json", `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w1"},"status":{"replicas":5}}`, 422},
		{"/api/v1/namespaces/unversioned/configmaps/c1", "application/json",
			`{"metadata":{"name":"c1"},"data":{"a":"c"}}`, 200},
		{"/api/v1/namespaces/unversioned/configmaps/c1", "",
			`{"metadata":{"name":"c1","resourceVersion":"0"},"data":{"a":"d"}}`, 200},
		{"/apis/apps/v1/namespaces/unversioned/deployments/d1/scale", "",
			`{"metadata":{"name":"d1"},"spec":{"replicas":4}}`, 200},
		{"/apis/e2e.example.com/v1/namespaces/unversioned/widgets/w1/scale", "", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"w1"},"spec":{"replicas":3}}`, 200},
	} {
		gotCode, got := ask(t, "of-root", "PUT", through+r.path, r.contentType, r.body)
		code, want := ask(t, "of-root", "PUT", c.url+r.path, r.contentType, r.body)
		if gotCode != code || code != r.code || code != 200 && got != want {
			t.Errorf("PUT %s %s is answered\n%d %s\nby the server\n%d %s", r.path, r.body, gotCode, got, code, want)
		}
	}
}
