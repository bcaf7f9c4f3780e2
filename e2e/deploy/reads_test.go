package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// keeping are policies about stored objects: what has the label 'keep' stays as it is.
const keeping = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, DELETE], resources: [pods, pods/eviction]}
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [configmaps]}
  validations:
  - expression: "oldObject == null || !('keep' in oldObject.metadata.?labels.orValue({}))"
    messageExpression: "oldObject.metadata.name + ' is kept'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep}
spec: {policyName: keep, validationActions: [Deny]}
`

// writerRoles let nobody read: 'writer' may write ConfigMaps, 'drainer' evict Pods, and 'collector' delete collections of them.
const writerRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writer}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: drainer}
rules: [{apiGroups: [""], resources: [pods/eviction], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: collector}
rules: [{apiGroups: [""], resources: [pods], verbs: [deletecollection]}]
`

// A sender asks as a client.
type sender struct {
	t     *testing.T
	base  string
	token string
}

// ask returns the code of an answer, and the message of a Status.
func (s sender) ask(method, path, contentType, body string) (code int, message string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := insecure.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var status struct{ Kind, Message string }
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		message = status.Message
	}
	return answer.StatusCode, message
}

// insecure takes whoever answers for the server.
var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// grant gives the user 'gateway' the least role for a configuration and policies, as `gateway check --rbac` prints it.
func (c *cluster) grant(t *testing.T, config, policies string) (role string) {
	t.Helper()
	command := exec.Command(gateway, "check", "--rbac", "--config", config, policies)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.must(t, string(out), "apply", "-f", "-")
	if _, bound := c.kubectl(t, "", "get", "clusterrolebinding", "admission-gateway"); !bound {
		c.must(t, "", "create", "clusterrolebinding", "admission-gateway", "--clusterrole=admission-gateway", "--user=gateway")
	}
	return string(out)
}

// may waits until the authorizer of the server knows whether the user 'gateway' may do something.
func (c *cluster) may(t *testing.T, is bool, verb, resource string) {
	t.Helper()
	eventually(t, fmt.Sprintf("may %s %s: %t", verb, resource, is), func() bool {
		out, _ := c.kubectl(t, "", "auth", "can-i", verb, resource, "--as=gateway", "--all-namespaces")
		return strings.Contains(out, "yes") == is
	})
}

// Controllers with their stock roles, which let them delete Pods and not get them, delete, delete collections and evict under a policy
// about the stored object, however the backend learns who asks. What the server refuses natively stays refused in its words.
func TestControllersUnderAPolicy(t *testing.T) {
	issuer, dir := newAuthority(t), t.TempDir()
	write(t, filepath.Join(dir, "proxies.crt"), encoded("CERTIFICATE", issuer.certificate.Raw))
	front := issuer.issue(t, "front", nil)
	key, err := x509.MarshalPKCS8PrivateKey(front.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "front.crt"), encoded("CERTIFICATE", front.Certificate[0]))
	write(t, filepath.Join(dir, "front.key"), encoded("PRIVATE KEY", key))
	write(t, filepath.Join(dir, "token"), "of-gateway")
	write(t, filepath.Join(dir, "policies.yaml"), keeping)
	c := startCluster(t, "--requestheader-client-ca-file="+filepath.Join(dir, "proxies.crt"), "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-uid-headers=X-Remote-Uid", "--requestheader-extra-headers-prefix=X-Remote-Extra-")
	c.must(t, writerRoles, "apply", "-f", "-")
	c.must(t, "", "create", "namespace", "team-a")
	c.must(t, "", "create", "serviceaccount", "default", "--namespace=team-a")
	for _, name := range []string{"writer", "drainer", "collector"} {
		c.must(t, "", "create", "serviceaccount", name, "--namespace=team-a")
		c.must(t, "", "create", "clusterrolebinding", name, "--clusterrole="+name, "--serviceaccount=team-a:"+name)
	}
	controllers := []string{"replicaset-controller", "job-controller", "daemon-set-controller", "pod-garbage-collector", "namespace-controller", "node-controller"}
	for _, name := range controllers {
		c.must(t, "", "create", "serviceaccount", name, "--namespace=kube-system")
	}
	pod := func(name string, labels string) {
		t.Helper()
		c.must(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"team-a","labels":%s},`+
			`"spec":{"automountServiceAccountToken":false,"containers":[{"name":"a","image":"a"}]}}`, name, labels), "create", "-f", "-")
	}
	const pods, maps = "/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/configmaps"
	for _, way := range []struct{ name, upstream, identity string }{
		{"Pass", "", ""},
		{"Impersonate", ", credentials: Impersonate", "identity: {authenticators: [{tokenReview: {upstream: cluster}}]}\n"},
		{"FrontProxy", ", credentials: FrontProxy", "identity: {authenticators: [{tokenReview: {upstream: cluster}}]}\n"},
	} {
		t.Run(way.name, func(t *testing.T) {
			certificate := ""
			if way.name == "FrontProxy" {
				certificate = fmt.Sprintf(", certFile: %s, keyFile: %s", filepath.Join(dir, "front.crt"), filepath.Join(dir, "front.key"))
			}
			listen, admin, config := freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "gateway.yaml")
			write(t, config, fmt.Sprintf("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: %s\nadmin: {listen: %s}\n%s"+
				"upstreams: [{name: cluster, endpoints: [%q], dialect: Kubernetes, tokenFile: %s, tls: {insecureSkipTLSVerify: true%s}%s}]\npolicies: [%s]\n",
				listen, admin, way.identity, c.url, filepath.Join(dir, "token"), certificate, way.upstream, filepath.Join(dir, "policies.yaml")))
			c.grant(t, config, filepath.Join(dir, "policies.yaml"))
			c.may(t, true, "get", "pods")
			start(t, answers("http://"+admin+"/readyz"), filepath.Join(t.TempDir(), "log"), gateway, "serve", "--config", config)
			through := func(namespace, account string) (gateway, native sender) {
				token := c.token(t, namespace, account)
				return sender{t, "http://" + listen, token}, sender{t, c.url, token}
			}
			is := func(what string, wantCode int, want string, code int, message string) {
				t.Helper()
				if code != wantCode || !strings.Contains(message, want) {
					t.Errorf("%s: %d %s, want %d %s", what, code, message, wantCode, want)
				}
			}
			pod("kept", `{"keep":"yes"}`)
			write := func(name, labels string) {
				c.must(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"team-a","labels":%s}}`, name, labels), "create", "-f", "-")
			}
			write("settings", `{}`)
			write("fixed", `{"keep":"yes"}`)
			for _, name := range controllers {
				here, native := through("kube-system", name)
				pod("gone", `{}`)
				code, message := here.ask("DELETE", pods+"/gone", "", "")
				is(name+" deletes a pod", 200, "", code, message)
				code, message = here.ask("DELETE", pods+"/gone", "", "")
				is(name+" deletes a pod that is gone", 404, `pods "gone" not found`, code, message)
				code, message = here.ask("DELETE", pods+"/kept", "", "")
				is(name+" deletes a pod that is kept", 422, "kept is kept", code, message)
				for _, r := range []struct{ method, path string }{
					{"DELETE", maps + "/settings?dryRun=All"}, {"DELETE", maps + "/fixed"}, {"DELETE", maps + "/none"},
					{"DELETE", pods + "?dryRun=All&labelSelector=none"}, {"GET", pods + "/kept"},
				} {
					wantCode, want := native.ask(r.method, r.path+and(r.path)+"dryRun=All", "", "")
					code, message := here.ask(r.method, r.path, "", "")
					if wantCode == http.StatusForbidden && (code != wantCode || message != want) || wantCode != http.StatusForbidden && code == http.StatusForbidden {
						t.Errorf("%s: %s %s: %d %s\nnative %d %s", name, r.method, r.path, code, message, wantCode, want)
					}
				}
			}
			collectors := map[string]string{"namespace-controller": "kube-system", "collector": "team-a"}
			for name, namespace := range collectors {
				here, _ := through(namespace, name)
				pod("one", `{"of":"all"}`)
				pod("two", `{"of":"all"}`)
				code, message := here.ask("DELETE", pods+"?labelSelector=of%3Dall&fieldSelector=metadata.namespace%3Dteam-a", "", "")
				is(name+" deletes a collection", 200, "", code, message)
				if left := c.must(t, "", "get", "pods", "--namespace=team-a", "-o", "name"); left != "pod/kept\n" {
					t.Errorf("%s has left %s", name, left)
				}
				code, message = here.ask("DELETE", pods, "", "")
				is(name+" deletes what is kept", 422, "kept is kept", code, message)
			}
			here, _ := through("team-a", "drainer")
			pod("evicted", `{}`)
			const eviction = `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"evicted","namespace":"team-a"}}`
			code, message := here.ask("POST", pods+"/evicted/eviction", "application/json", eviction)
			is("an eviction", 201, "", code, message)
			code, message = here.ask("DELETE", pods+"/kept", "", "")
			is("who may only evict deletes", 403, `cannot delete resource "pods"`, code, message)

			here, _ = through("team-a", "writer")
			const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a":"b"}}`
			for _, r := range []struct{ method, path, contentType, body string }{
				{"PUT", "/settings", "application/json", settings},
				{"PATCH", "/settings", "application/merge-patch+json", `{"data":{"a":"c"}}`},
				{"PATCH", "/settings", "application/json-patch+json", `[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`},
				{"PATCH", "/settings?fieldManager=m&force=true", "application/apply-patch+yaml", settings},
				{"DELETE", "/settings", "", ""},
			} {
				code, message := here.ask(r.method, maps+r.path, r.contentType, r.body)
				is("who may not read: "+r.method, 200, "", code, message)
				path := strings.Replace(r.path, "settings", "fixed", 1)
				code, message = here.ask(r.method, maps+path, r.contentType, strings.ReplaceAll(r.body, "settings", "fixed"))
				is("who may not read: "+r.method+" of what is kept", 422, "fixed is kept", code, message)
			}
			code, message = here.ask("GET", maps+"/fixed", "", "")
			is("who may not read reads", 403, `cannot get resource "configmaps"`, code, message)
			c.must(t, "", "delete", "pod/kept", "configmap/fixed", "--namespace=team-a", "--now", "--wait=true")
		})
	}
}

// and returns what begins another parameter of a target.
func and(target string) string {
	if strings.Contains(target, "?") {
		return "&"
	}
	return "?"
}
