package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/e2e/testutil"
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

// writerRoles grant no reads: 'writer' may write ConfigMaps, 'drainer' evict Pods, and 'collector' delete collections
// of them.
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
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
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
		c.must(t, "", "create", "clusterrolebinding", "admission-gateway", "--clusterrole=admission-gateway",
			"--user=gateway")
	}
	return string(out)
}

// may waits until the authorizer of the server knows whether the user 'gateway' may do something in all namespaces.
func (c *cluster) may(t *testing.T, is bool, what authorizationv1.ResourceAttributes) {
	t.Helper()
	review := inJSON(&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "gateway",
		ResourceAttributes: &what}})
	eventually(t, fmt.Sprintf("may %v: %t", &what, is), func() bool {
		code, body := ask(t, "of-root", "POST", c.url+"/apis/authorization.k8s.io/v1/subjectaccessreviews",
			"application/json", string(review))
		var answer authorizationv1.SubjectAccessReview
		if err := json.Unmarshal([]byte(body), &answer); err != nil || code != http.StatusCreated {
			t.Fatalf("a review is answered %d %s", code, body)
		}
		return answer.Status.Allowed == is
	})
}

// Controllers with their stock roles, which let them delete Pods and not get them, delete, delete collections and evict
// under a policy about the stored object, however the backend learns who asks. What the server refuses natively stays
// refused in its words.
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
	c := startCluster(t, "--requestheader-client-ca-file="+filepath.Join(dir, "proxies.crt"),
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-")
	c.must(t, writerRoles, "apply", "-f", "-")
	c.must(t, "", "create", "namespace", "team-a")
	c.must(t, "", "create", "serviceaccount", "default", "--namespace=team-a")
	for _, name := range []string{"writer", "drainer", "collector"} {
		c.must(t, "", "create", "serviceaccount", name, "--namespace=team-a")
		c.must(t, "", "create", "clusterrolebinding", name, "--clusterrole="+name, "--serviceaccount=team-a:"+name)
	}
	controllers := []string{"replicaset-controller", "job-controller", "daemon-set-controller", "pod-garbage-collector",
		"namespace-controller", "node-controller"}
	for _, name := range controllers {
		c.must(t, "", "create", "serviceaccount", name, "--namespace=kube-system")
	}
	const pods, maps = "/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/configmaps"
	create := func(path, object string) {
		t.Helper()
		if code, body := ask(t, "of-root", "POST", c.url+path, "application/json", object); code != http.StatusCreated {
			t.Fatalf("%s is answered %d %s", object, code, body)
		}
	}
	pod := func(name string, labels string) {
		t.Helper()
		create(pods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":%s},`+
			`"spec":{"automountServiceAccountToken":false,"containers":[{"name":"a","image":"a"}]}}`, name, labels))
	}
	for _, way := range []struct{ name, upstream, identity string }{
		{"Pass", "", ""},
		{"Impersonate", ", credentials: Impersonate",
			"identity: {authenticators: [{tokenReview: {upstream: cluster}}]}\n"},
		{"FrontProxy", ", credentials: FrontProxy",
			"identity: {authenticators: [{tokenReview: {upstream: cluster}}]}\n"},
	} {
		t.Run(way.name, func(t *testing.T) {
			certificate := ""
			if way.name == "FrontProxy" {
				certificate = fmt.Sprintf(", certFile: %s, keyFile: %s", filepath.Join(dir, "front.crt"),
					filepath.Join(dir, "front.key"))
			}
			listen, admin, config := testutil.FreeAddress(t), testutil.FreeAddress(t),
				filepath.Join(t.TempDir(), "gateway.yaml")
			write(t, config, fmt.Sprintf("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: %s\nadmin: {listen: %s}\n%s"+
				"upstreams: [{name: cluster, endpoints: [%q], dialect: Kubernetes, tokenFile: %s, tls: {insecureSkipTLSVerify: true%s}%s}]\npolicies: [%s]\n",
				listen, admin, way.identity, c.url, filepath.Join(dir, "token"), certificate, way.upstream,
				filepath.Join(dir, "policies.yaml")))
			c.grant(t, config, filepath.Join(dir, "policies.yaml"))
			c.may(t, true, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"})
			start(t, answers("http://"+admin+"/readyz"), filepath.Join(t.TempDir(), "log"), gateway, "serve",
				"--config", config)
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
				create(maps, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":%s}}`,
					name, labels))
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
					if wantCode == http.StatusForbidden && (code != wantCode || message != want) ||
						wantCode != http.StatusForbidden && code == http.StatusForbidden {
						t.Errorf("%s: %s %s: %d %s\nnative %d %s", name, r.method, r.path, code, message, wantCode,
							want)
					}
				}
			}
			collectors := map[string]string{"namespace-controller": "kube-system", "collector": "team-a"}
			for name, namespace := range collectors {
				here, _ := through(namespace, name)
				pod("one", `{"of":"all"}`)
				pod("two", `{"of":"all"}`)
				code, message := here.ask("DELETE",
					pods+"?labelSelector=of%3Dall&fieldSelector=metadata.namespace%3Dteam-a", "", "")
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
				{"PATCH", "/settings", "application/json-patch+json",
					`[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`},
				{"PATCH", "/settings?fieldManager=m&force=true", "application/apply-patch+yaml", settings},
				{"DELETE", "/settings", "", ""},
			} {
				code, message := here.ask(r.method, maps+r.path, r.contentType, r.body)
				is("who may not read: "+r.method, 200, "", code, message)
				path := strings.Replace(r.path, "settings", "fixed", 1)
				code, message = here.ask(r.method, maps+path, r.contentType,
					strings.ReplaceAll(r.body, "settings", "fixed"))
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

// everything is of policies that ask for all that the gateway's own account may be asked to do.
const everything = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: stored}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}
    - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments/scale]}
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [serviceaccounts]}
  validations: [{expression: "!('keep' in oldObject.metadata.?labels.orValue({}))", message: is kept}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: stored}
spec: {policyName: stored, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: by-name}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [cronjobs]}]}
  validations: [{expression: "object.metadata.name != params.data.refused", message: is refused}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: by-name}
spec: {policyName: by-name, validationActions: [Deny], paramRef: {name: parameters, namespace: team-a, parameterNotFoundAction: Deny}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: by-label}
spec:
  paramKind: {apiVersion: v1, kind: LimitRange}
  matchConstraints: {resourceRules: [{apiGroups: [networking.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [ingresses]}]}
  validations: [{expression: "object.metadata.name != params.metadata.name", message: is refused}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: by-label}
spec: {policyName: by-label, validationActions: [Deny], paramRef: {selector: {matchLabels: {for: policies}}, parameterNotFoundAction: Deny}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: by-namespace}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [limitranges]}]}
  validations: [{expression: "namespaceObject.metadata.name != 'team-a'", message: is refused}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: by-namespace}
spec: {policyName: by-namespace, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: StateSource
metadata: {name: classes}
spec: {upstream: cluster, resource: {apiVersion: scheduling.k8s.io/v1, resource: priorityclasses, kind: PriorityClass}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: by-state}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [policy], apiVersions: [v1], operations: [CREATE], resources: [poddisruptionbudgets]}]}
  validations: [{expression: "state.classes.size() == 0", message: is refused}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: by-state}
spec: {policyName: by-state, validationActions: [Deny]}
`

// The printed role suffices for all that policies and configuration ask for, and each of its rules is needed: without
// it something is refused, and the answer or the log names the rule.
func TestPrintedRole(t *testing.T) {
	c, dir := commonCluster(t), t.TempDir()
	write(t, filepath.Join(dir, "token"), "of-gateway")
	write(t, filepath.Join(dir, "policies.yaml"), everything)
	c.must(t, "", "create", "namespace", "team-a")
	c.must(t, "", "create", "serviceaccount", "default", "--namespace=team-a")
	c.must(t, "", "create", "configmap", "parameters", "--from-literal=refused=a", "--namespace=team-a")
	c.must(t, `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a","namespace":"team-a","labels":{"for":"policies"}},"spec":{"limits":[]}}`, "create", "-f", "-")
	c.must(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team-a","labels":{"keep":"yes"}}}`, "create", "-f", "-")
	c.must(t, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","namespace":"team-a","labels":{"keep":"yes"}}}`, "create", "-f", "-")
	c.must(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"team-a","labels":{"keep":"yes"}},"spec":{"replicas":1,`+
		`"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`, "create", "-f", "-")

	// features are requests of an administrator, or anonymous ones, each with the answer that it has if the account
	// lacks nothing.
	object := func(version, kind, spec string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"team-a"},"spec":%s}`, version, kind, spec)
	}
	features := []struct {
		method, path, body string
		nobody             bool
		code               int
		says               string
	}{
		{"DELETE", "/api/v1/namespaces/team-a/configmaps/a", "", false, 422, "is kept"},
		{"DELETE", "/api/v1/namespaces/team-a/configmaps", "", false, 422, "is kept"},
		{"PUT", "/apis/apps/v1/namespaces/team-a/deployments/a/scale",
			object("autoscaling/v1", "Scale", `{"replicas":1}`), false, 200, ""},
		{"PUT", "/api/v1/namespaces/team-a/serviceaccounts/a",
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}}`, false, 422, "is kept"},
		{"POST", "/apis/batch/v1/namespaces/team-a/cronjobs", object("batch/v1", "CronJob", `{}`), false, 422,
			"is refused"},
		{"POST", "/apis/networking.k8s.io/v1/namespaces/team-a/ingresses",
			object("networking.k8s.io/v1", "Ingress", `{}`), false, 422, "is refused"},
		{"POST", "/api/v1/namespaces/team-a/limitranges", object("v1", "LimitRange", `{"limits":[]}`), false, 422,
			"is refused"},
		{"POST", "/apis/policy/v1/namespaces/team-a/poddisruptionbudgets",
			object("policy/v1", "PodDisruptionBudget", `{}`), false, 422, "is refused"},
		// Of a PUT that names no uid policies have to know whether it creates the object.
		{"PUT", "/apis/batch/v1/namespaces/team-a/cronjobs/a", object("batch/v1", "CronJob", `{}`), false, 422,
			"is refused"},
		{"PUT", "/apis/networking.k8s.io/v1/namespaces/team-a/ingresses/a",
			object("networking.k8s.io/v1", "Ingress", `{}`), false, 422, "is refused"},
		{"PUT", "/api/v1/namespaces/team-a/limitranges/a?dryRun=All", object("v1", "LimitRange", `{"limits":[]}`),
			false, 200, ""},
		{"PUT", "/apis/policy/v1/namespaces/team-a/poddisruptionbudgets/a",
			object("policy/v1", "PodDisruptionBudget", `{}`), false, 422, "is refused"},
		{"DELETE", "/api/v1/namespaces/team-a/configmaps/a", "", true, 403,
			`User "system:anonymous" cannot delete resource "configmaps"`},
	}
	const configuration = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: %s\nadmin: {listen: %s}\n" +
		"identity: {authenticators: [{tokenReview: {upstream: cluster}}], anonymous: Allow}\n" +
		"upstreams: [{name: cluster, endpoints: [%q], dialect: Kubernetes, tokenFile: %s, tls: {insecureSkipTLSVerify: true}, events: Record}]\npolicies: [%s]\n"
	// play runs all features by a gateway of its own, and returns what is not as it should be, and the log.
	play := func(t *testing.T, lacksOne bool) (wrong []string, log string) {
		t.Helper()
		listen, admin, own := testutil.FreeAddress(t), testutil.FreeAddress(t), t.TempDir()
		config, file := filepath.Join(own, "gateway.yaml"), filepath.Join(own, "log")
		write(t, config, fmt.Sprintf(configuration, listen, admin, c.url, filepath.Join(dir, "token"),
			filepath.Join(dir, "policies.yaml")))
		start(t, answers("http://"+admin+"/readyz"), file, gateway, "serve", "--config", config)
		for _, f := range features {
			client := sender{t, "http://" + listen, "of-root"}
			if f.nobody {
				client.token = ""
			}
			code, message := client.ask(f.method, f.path, "application/json", f.body)
			if code != f.code || !strings.Contains(message, f.says) {
				wrong = append(wrong, fmt.Sprintf("%s %s: %d %s", f.method, f.path, code, message))
			}
		}
		eventually(t, "an Event of a denial, or what the account lacks", func() bool {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			log = string(text)
			if lacksOne {
				return strings.Contains(log, "lacks a right")
			}
			var events corev1.EventList
			get(t, c, "/api/v1/namespaces/team-a/events", &events)
			return len(events.Items) > 0
		})
		return wrong, log
	}
	config := filepath.Join(dir, "gateway.yaml")
	write(t, config, fmt.Sprintf(configuration, "127.0.0.1:0", "127.0.0.1:0", c.url, filepath.Join(dir, "token"),
		filepath.Join(dir, "policies.yaml")))
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(c.grant(t, config, filepath.Join(dir, "policies.yaml"))), &role); err != nil {
		t.Fatal(err)
	}
	c.may(t, true, authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps"})
	if wrong, log := play(t, false); len(wrong) > 0 || strings.Contains(log, "lacks a right") {
		t.Fatalf("with the whole role:\n%s\n%s", strings.Join(wrong, "\n"), log)
	}
	for _, one := range singles(role.Rules) {
		verb, resource := one.Verbs[0], one.Resources[0]
		if resource == "events" && verb == "patch" {
			continue // of a denial that comes again
		}
		t.Run(verb+" "+strings.ReplaceAll(resource, "/", " "), func(t *testing.T) {
			left := role.DeepCopy()
			left.Rules = slices.DeleteFunc(singles(role.Rules),
				func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, one) })
			if code, body := ask(t, "of-root", "PUT", c.url+"/apis/rbac.authorization.k8s.io/v1/clusterroles/"+
				left.Name, "application/json", string(inJSON(left))); code != http.StatusOK {
				t.Fatalf("the role is answered %d %s", code, body)
			}
			asked := authorizationv1.ResourceAttributes{Verb: verb, Group: one.APIGroups[0]}
			asked.Resource, asked.Subresource, _ = strings.Cut(resource, "/")
			if len(one.ResourceNames) > 0 {
				asked.Name = one.ResourceNames[0]
			}
			c.may(t, false, asked)
			wrong, log := play(t, true)
			rule := fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%q]}", one.APIGroups[0], resource, verb)
			if len(wrong) == 0 && resource != "events" && verb != "watch" {
				t.Errorf("nothing fails without %s", rule)
			}
			if !strings.Contains(strings.Join(wrong, "\n")+strings.ReplaceAll(log, `\"`, `"`), rule) {
				t.Errorf("nothing names %s:\n%s\n%s", rule, strings.Join(wrong, "\n"), log)
			}
		})
	}
}

// singles takes rules apart into such with one resource and one verb.
func singles(rules []rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, r := range rules {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				one := r.DeepCopy()
				one.Resources, one.Verbs = []string{resource}, []string{verb}
				all = append(all, *one)
			}
		}
	}
	return all
}

// The role that deploy/ ships is the one that `gateway check --rbac` prints for what it ships, and no broader one.
func TestShippedRole(t *testing.T) {
	for name, text := range renderings(t) {
		shipped, has := objects(t, text)["ClusterRole gateway"]
		if !has {
			if strings.Contains(text, "kind: ClusterRole") {
				t.Errorf("%s has a role of another name", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			var want, got rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shipped.Object, &got); err != nil {
				t.Fatal(err)
			}
			dir := contained(t, text)
			out, err := exec.Command(gateway, "check", "--rbac", "--config",
				filepath.Join(dir, "config", "gateway.yaml"), filepath.Join(dir, "policies")).Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := yaml.UnmarshalStrict(out, &want); err != nil {
				t.Fatal(err)
			}
			order := func(a, b rbacv1.PolicyRule) int { return strings.Compare(a.String(), b.String()) }
			if a, b := slices.SortedFunc(slices.Values(singles(got.Rules)), order),
				slices.SortedFunc(slices.Values(singles(want.Rules)), order); !reflect.DeepEqual(a, b) {
				t.Errorf("the shipped role is\n%v\nwant\n%v", a, b)
			}
		})
	}
}
