package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// authority is an API server that knows who may do what. It lets alice do nothing, and boss everything; writer may
// update but not create, eraser all but read; the gateway's own account may ask about others.
type authority struct {
	*httptest.Server

	mu      sync.Mutex
	asked   []string // "METHOD PATH by USER", of reviews "review USER VERB RESOURCE", in their order
	failing int      // the code of all reviews, if set
	refused int      // the code of all that the gateway's own account reads, if set
	named   string   // how the last request of that account is named
	hang    chan struct{}
	objects map[string]string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{objects: map[string]string{
		"/api/v1/namespaces/team-a/configmaps/limits":     `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"limits","namespace":"team-a"},"data":{"max":"5"}}`,
		"/apis/apps/v1/namespaces/team-a/deployments/web": deploymentText,
		"/apis/apps/v1/namespaces/team-a/deployments":     `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{},"items":[` + deploymentText + `]}`,
	}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

const deploymentText = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"team-a","uid":"u1","resourceVersion":"7"},"spec":{"replicas":1}}`

// userOf is whom the server takes a client for.
func userOf(r *http.Request) (string, bool) {
	name, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !shown:
		return identity.AnonymousName, true
	case name == "gateways-own" && r.Header.Get("Impersonate-User") != "":
		return r.Header.Get("Impersonate-User"), true
	}
	return name, slices.Contains([]string{"alice", "boss", "writer", "eraser", "gateways-own"}, name)
}

func permits(name, verb string) bool {
	return name == "boss" || name == "gateways-own" || name == "writer" && verb != "create" || name == "eraser" &&
		verb != "get" && verb != "list"
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if hasNoDiscovery(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	name, known := userOf(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, text string) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
	if !known {
		a.asked = append(a.asked, r.Method+" "+r.URL.Path+" by nobody")
		answer(http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
		return
	}
	if kind, review := strings.CutPrefix(r.URL.Path, "/apis/authorization.k8s.io/v1/"); review ||
		r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
		a.review(kind, name, body, answer)
		return
	}
	a.asked = append(a.asked, strings.TrimSuffix(r.Method+" "+r.URL.RequestURI(), "?")+" by "+name)
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
		"GET": "get"}[r.Method]
	if r.URL.Path == inTeamA && verb == "delete" {
		verb = "deletecollection"
	}
	if !permits(name, verb) {
		answer(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server's own refusal","reason":"Forbidden","code":403}`)
		return
	}
	object, found := a.objects[r.URL.Path]
	if name == "gateways-own" {
		a.named = r.Header.Get("X-Request-Id") + " " + r.Header.Get("Traceparent") + r.Header.Get("Impersonate-User")
	}
	switch {
	case a.refused != 0 && name == "gateways-own":
		answer(a.refused, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" is forbidden: `+
			`User \"system:serviceaccount:gateway:gateway\" cannot get resource \"deployments\"","code":%d}`, a.refused))
	case r.URL.Path == "/version":
		answer(http.StatusOK, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
	case r.Method != http.MethodGet:
		answer(http.StatusOK, deploymentText)
	case !found:
		answer(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not found","reason":"NotFound","code":404}`)
	default:
		answer(http.StatusOK, object)
	}
}

// review answers a review of one of the three kinds.
func (a *authority) review(kind, name string, body []byte, answer func(int, string)) {
	if hang := a.hang; hang != nil {
		a.mu.Unlock()
		<-hang
		a.mu.Lock()
	}
	var review authorizationv1.SubjectAccessReview
	_ = json.Unmarshal(body, &review)
	about := name
	if kind == "subjectaccessreviews" {
		about = review.Spec.User
	}
	asked := "who is " + about
	if at := review.Spec.ResourceAttributes; at != nil {
		asked = fmt.Sprintf("may %s %s %s", about, at.Verb, at.Resource)
		if at.Subresource != "" {
			asked += "/" + at.Subresource
		}
	}
	a.asked = append(a.asked, asked+" by "+name)
	switch {
	case a.failing != 0:
		answer(a.failing, `{}`)
	case kind == "subjectaccessreviews" && name != "gateways-own" || name == identity.AnonymousName:
		answer(http.StatusForbidden, `{}`)
	case strings.HasPrefix(asked, "who is "):
		answer(http.StatusCreated, fmt.Sprintf(`{"kind":"SelfSubjectReview","status":{"userInfo":{"username":%q}}}`,
			name))
	case permits(about, review.Spec.ResourceAttributes.Verb):
		answer(http.StatusCreated, fmt.Sprintf(`{"kind":%q,"status":{"allowed":true}}`, review.Kind))
	default:
		answer(http.StatusCreated, fmt.Sprintf(`{"kind":%q,"status":{"allowed":false,"reason":"no role"}}`,
			review.Kind))
	}
}

// take returns what was asked since the last call.
func (a *authority) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.asked = nil }()
	return strings.Join(a.asked, "\n")
}

func (a *authority) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// guarded starts a gateway with the policies in front of the server. Lines of the configuration
// follow, first the lines of the upstream.
func guarded(t *testing.T, a *authority, policyText, upstream, lines string) string {
	t.Helper()
	return guardedLogging(t, a, policyText, upstream, lines, slog.New(slog.DiscardHandler))
}

// guardedLogging is guarded with a log.
func guardedLogging(t *testing.T, a *authority, policyText, upstream, lines string, log *slog.Logger) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		return testutil.WriteFile(t, filepath.Join(dir, name), text)
	}
	c, err := config.Load(write("gateway.yaml",
		"apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
			"upstreams: [{name: main, endpoints: ['"+a.URL+"'], dialect: Kubernetes, "+
			strings.ReplaceAll(upstream, "OWN", "tokenFile: "+write("token", "gateways-own"))+"}]\n"+lines),
		config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	set := policiestest.LoadFiles(t, write("policies.yaml", policyText))
	g := newTestGateway(t, c, func() *policies.Set { return set })
	g.log = log
	g.states.Start(g)
	return "http://" + startGateway(t, g)
}

// policy is a ValidatingAdmissionPolicy with its binding.
func policy(name, spec, binding string) string {
	return "\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n" + spec +
		"\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\nspec: {policyName: " + name + ", " + binding + "}"
}

func rule(operations, resources string) string {
	return "  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [" + operations + "], resources: [" + resources + "]}]}\n"
}

const deny = "validationActions: [Deny]"

// secrets are policies whose every word alice must not learn: they say 'secret'.
var secrets = policy("secret-size", rule("CREATE, UPDATE", "deployments")+
	"  matchConditions: [{name: size, expression: 'object.metadata.name != \"params\" && object.metadata.name != \"warned\"'}]\n"+
	"  validations: [{expression: 'object.spec.replicas <= 5', message: secret}]", deny) +
	policy("secret-transition", rule("UPDATE, DELETE", "deployments")+
		"  validations: [{expression: 'oldObject.spec.replicas > 5', message: secret}]", deny) +
	policy("secret-scale", rule("UPDATE", "deployments/scale, deployments/status")+
		"  validations: [{expression: 'false', message: secret}]", deny) +
	policy("secret-exec", rule("CONNECT", "pods/exec")+"  validations: [{expression: 'false', message: secret}]",
		deny) +
	policy("secret-params", "  failurePolicy: Ignore\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n"+
		strings.Replace(rule("CREATE", "deployments"), "}]", ", resourceNames: [params]}]", 1)+
		"  validations: [{expression: 'object.spec.replicas <= int(params.data.max)', messageExpression: \"'secret ' + params.data.max\"}]",
		deny+", paramRef: {name: limits, parameterNotFoundAction: Deny}") +
	policy("secret-authorizer", "  failurePolicy: Ignore\n"+rule("CREATE", "deployments")+
		"  matchConditions: [{name: may, expression: 'object.metadata.name == \"authorizer\"'}]\n"+
		"  validations: [{expression: \"authorizer.group('').resource('pods').check('create').allowed()\", message: secret}]", deny) +
	policy("secret-warning", rule("CREATE", "deployments")+"  matchConditions: [{name: warned, expression: 'object.metadata.name == \"warned\"'}]\n"+
		"  validations: [{expression: 'false', message: secret}]", "validationActions: [Warn]") + `
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: secret-label}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [statefulsets]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/secret'}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: secret-label}
spec: {policyName: secret-label}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {secret: {type: integer, maximum: 5}}}
`

const (
	inTeamA     = "/apis/apps/v1/namespaces/team-a/deployments"
	tooMany     = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":9}}`
	tooManyPut  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","uid":"u1","resourceVersion":"7"},"spec":{"replicas":9}}`
	scaleTo     = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":9}}`
	forbiddenIn = `deployments.apps is forbidden: User "alice" cannot create resource "deployments" in API group "apps" in the namespace "team-a": no role`
)

// said is the code of an answer, and the message of a Status.
func said(t *testing.T, method, url, contentType, body string, header ...string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var s struct{ Message string }
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	for _, w := range answer.Header.Values("Warning") {
		s.Message += " (" + w + ")"
	}
	return strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", s.Message))
}

// TestUntold: findings of policies and schemas are hidden from clients that may not make the
// request. The server is asked for that only if there is a finding to hide, and nothing is read for
// a client whose permission is known.
func TestUntold(t *testing.T) {
	const asAlice, asBoss, asWriter = "Authorization: Bearer alice", "Authorization: Bearer boss",
		"Authorization: Bearer writer"
	a := newAuthority(t)
	url := guarded(t, a, secrets, "OWN", "")
	for _, c := range []struct {
		name, method, path, contentType, body, as string
		want, asked                               string
	}{
		{"an object that is admitted: the server authorizes it", "POST", inTeamA, "application/json",
			strings.Replace(tooMany, "9", "3", 1), asAlice,
			"403 the server's own refusal", "POST " + inTeamA + " by alice"},
		{"a create", "POST", inTeamA, "application/json", tooMany, asAlice, "403 " + forbiddenIn,
			"may alice create deployments by alice\nwho is alice by alice"},
		{"again", "POST", inTeamA, "application/json", tooMany, asAlice, "403 " + forbiddenIn, ""},
		{"parameters, by a policy that may fail", "POST", inTeamA, "application/json",
			strings.Replace(tooMany, `"web"`, `"params"`, 1), asAlice, "403 " + forbiddenIn, ""},
		{"an authorizer, by a policy that may fail", "POST", inTeamA, "application/json",
			strings.Replace(tooMany, `"web"},"spec":{"replicas":9`, `"authorizer"},"spec":{"replicas":1`, 1), asAlice,
			"403 " + forbiddenIn, ""},
		{"parameters, for who may", "POST", inTeamA, "application/json",
			strings.Replace(tooMany, `"web"`, `"params"`, 1), asBoss,
			`422 deployments.apps "params" is forbidden: ValidatingAdmissionPolicy 'secret-params' with binding 'secret-params' denied request: secret 5`,
			"GET /api/v1/namespaces/team-a/configmaps/limits by gateways-own\nmay boss create deployments by boss"},
		{"a warning", "POST", inTeamA, "application/json", strings.Replace(tooMany, `"web"`, `"warned"`, 1), asAlice,
			"403 the server's own refusal", "POST " + inTeamA + " by alice"},
		{"a warning, for who may", "POST", inTeamA, "application/json",
			strings.Replace(tooMany, `"web"`, `"warned"`, 1), asBoss,
			`200  (299 - "Validation failed for ValidatingAdmissionPolicy 'secret-warning' with binding 'secret-warning': secret")`, "POST " + inTeamA + " by boss"},
		{"a dry run", "POST", inTeamA + "?dryRun=All", "application/json", tooMany, asAlice, "403 " + forbiddenIn, ""},
		{"in another namespace", "POST", strings.Replace(inTeamA, "team-a", "team-b", 1), "application/json", tooMany,
			asAlice,
			"403 " + strings.Replace(forbiddenIn, "team-a", "team-b", 1), "may alice create deployments by alice"},
		{"an update, whose stored object the gateway reads by its own account", "PUT", inTeamA + "/web",
			"application/json", tooManyPut, asAlice,
			`403 deployments.apps "web" is forbidden: User "alice" cannot update resource "deployments" in API group "apps" in the namespace "team-a": no role`,
			"GET " + inTeamA + "/web by gateways-own\nmay alice update deployments by alice"},
		{"an update that creates", "PUT", inTeamA + "/new", "application/json",
			strings.Replace(tooMany, `"web"`, `"new"`, 1), asWriter,
			`403 deployments.apps "new" is forbidden: User "writer" cannot create resource "deployments" in API group "apps" in the namespace "team-a": no role`,
			"GET " + inTeamA + "/new by gateways-own\nmay writer update deployments by writer\nmay writer create deployments by writer\nwho is writer by writer"},
		{"a scale", "PUT", inTeamA + "/web/scale", "application/json", scaleTo, asAlice,
			`403 deployments.apps "web" is forbidden: User "alice" cannot update resource "deployments/scale" in API group "apps" in the namespace "team-a": no role`,
			"may alice update deployments/scale by alice"},
		{"a status", "PUT", inTeamA + "/web/status", "application/json", tooManyPut, asAlice,
			`403 deployments.apps "web" is forbidden: User "alice" cannot update resource "deployments/status" in API group "apps" in the namespace "team-a": no role`,
			"may alice update deployments/status by alice"},
		{"a patch, about which the server is asked in any case", "PATCH", inTeamA + "/web",
			"application/merge-patch+json", `{"spec":{"replicas":9}}`, asAlice,
			"403 the server's own refusal", "GET /version by alice\nPATCH " + inTeamA + "/web?dryRun=All by alice"},
		{"a patch, for who may", "PATCH", inTeamA + "/web", "application/merge-patch+json", `{"spec":{"replicas":9}}`,
			asBoss,
			`422 deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'secret-transition' with binding 'secret-transition' denied request: secret`,
			"PATCH " + inTeamA + "/web?dryRun=All by boss\nGET " + inTeamA + "/web by gateways-own"},
		{"a deletion", "DELETE", inTeamA + "/web", "", "", asAlice,
			`403 deployments.apps "web" is forbidden: User "alice" cannot delete resource "deployments" in API group "apps" in the namespace "team-a": no role`,
			"GET " + inTeamA + "/web by gateways-own\nmay alice delete deployments by alice"},
		{"a deletion of all, about which the server is asked in any case", "DELETE", inTeamA, "", "", asAlice,
			"403 the server's own refusal", "DELETE " + inTeamA +
				"?fieldSelector=metadata.name%3Dadmission-gateway.io.nobody by alice"},
		{"exec", "POST", "/api/v1/namespaces/team-a/pods/p1/exec?command=sh", "", "", asAlice,
			`403 pods "p1" is forbidden: User "alice" cannot create resource "pods/exec" in API group "" in the namespace "team-a": no role`,
			"may alice create pods/exec by alice"},
		{"exec by GET", "GET", "/api/v1/namespaces/team-a/pods/p1/exec?command=sh", "", "", asAlice,
			`403 pods "p1" is forbidden: User "alice" cannot get resource "pods/exec" in API group "" in the namespace "team-a": no role`,
			"may alice get pods/exec by alice"},
		{"a mutating policy that fails", "POST", "/apis/apps/v1/namespaces/team-a/statefulsets", "application/json",
			`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"web"}}`, asAlice,
			`403 statefulsets.apps is forbidden: User "alice" cannot create resource "statefulsets" in API group "apps" in the namespace "team-a": no role`,
			"may alice create statefulsets by alice"},
		{"a schema", "POST", "/apis/example.com/v1/widgets", "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"secret":6}}`, asAlice,
			`403 widgets.example.com is forbidden: User "alice" cannot create resource "widgets" in API group "example.com" at the cluster scope: no role`,
			"may alice create widgets by alice"},
		{"fields that a schema does not have", "POST", "/apis/example.com/v1/widgets?fieldValidation=Strict", "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"public":6}}`, asAlice,
			`403 widgets.example.com is forbidden: User "alice" cannot create resource "widgets" in API group "example.com" at the cluster scope: no role`, ""},
		{"what no file is about", "POST", "/api/v1/namespaces/team-a/secrets", "application/json", `{`, asAlice,
			"403 the server's own refusal", "POST /api/v1/namespaces/team-a/secrets by alice"},
		{"an anonymous client", "POST", inTeamA, "application/json", tooMany, "",
			`403 deployments.apps is forbidden: User "system:anonymous" cannot create resource "deployments" in API group "apps" in the namespace "team-a": no role`,
			"may system:anonymous create deployments by gateways-own"},
		{"credentials that are nobody's", "POST", inTeamA, "application/json", tooMany, "Authorization: Bearer stolen",
			"401 Unauthorized",
			"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews by nobody"},
		{"again", "POST", inTeamA, "application/json", tooMany, "Authorization: Bearer stolen", "401 Unauthorized", ""},
	} {
		a.take()
		got := said(t, c.method, url+c.path, c.contentType, c.body, nonEmpty(c.as)...)
		if asked := a.take(); got != c.want || asked != c.asked {
			t.Errorf("%s:\ngot  %s\nwant %s\nasked\n%s\nwant\n%s", c.name, got, c.want, asked, c.asked)
		}
		if strings.Contains(got, "secret") && c.as != asBoss {
			t.Errorf("%s: told %s", c.name, got)
		}
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// TestUntoldByServiceAccount: for users that the gateway names to the backend, and for clients
// without credentials, its own account asks.
func TestUntoldByServiceAccount(t *testing.T) {
	const identified = "identity: {anonymous: Allow, authenticators: [{requestHeader: {addresses: [127.0.0.0/8]}}]}\n"
	denied := `422 deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'secret-size' with binding 'secret-size' denied request: secret`
	for _, c := range []struct {
		name, upstream, lines string
		header                []string
		failing               int
		want, asked           string
	}{
		{"who is told of", "OWN, credentials: Impersonate", identified, []string{"X-Remote-User: alice"}, 0,
			"403 " + forbiddenIn, "may alice create deployments by gateways-own"},
		{"who may", "OWN, credentials: Impersonate", identified, []string{"X-Remote-User: boss"}, 0, denied,
			"may boss create deployments by gateways-own"},
		{"the client of a proxy that shows the backend nothing", "OWN", identified, []string{"X-Remote-User: alice"}, 0,
			"403 " + strings.Replace(forbiddenIn, "alice", "system:anonymous", 1),
			"may system:anonymous create deployments by gateways-own"},
		{"a failing server", "OWN, credentials: Impersonate", identified, []string{"X-Remote-User: alice"}, 500, denied,
			"may alice create deployments by gateways-own"},
		{"an account that may not ask", "OWN, credentials: Impersonate", identified, []string{"X-Remote-User: alice"},
			403, denied, "may alice create deployments by gateways-own"},
		{"no account", "credentials: Pass", "", nil, 0, denied, ""},
		{"no account, but credentials", "credentials: Pass", "", []string{"Authorization: Bearer alice"}, 0,
			"403 " + forbiddenIn, "may alice create deployments by alice\nwho is alice by alice"},
		{"a server that lets no client ask", "credentials: Pass", "", []string{"Authorization: Bearer alice"}, 403,
			denied, "may alice create deployments by alice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAuthority(t)
			a.set(func() { a.failing = c.failing })
			url := guarded(t, a, secrets, c.upstream, c.lines)
			got := said(t, "POST", url+inTeamA, "application/json", tooMany, c.header...)
			if asked := a.take(); got != c.want || asked != c.asked {
				t.Errorf("got  %s\nwant %s\nasked\n%s\nwant\n%s", got, c.want, asked, c.asked)
			}
			for range 3 {
				if c.failing != 500 {
					said(t, "POST", url+inTeamA, "application/json", tooMany, c.header...)
				}
			}
			if asked := a.take(); asked != "" {
				t.Errorf("asked again: %s", asked)
			}
		})
	}
}

// TestUntoldInTime: a client's ?timeout= bounds the review too; the denial is then sent as if no
// server could be asked.
func TestUntoldInTime(t *testing.T) {
	a := newAuthority(t)
	a.hang = make(chan struct{})
	defer close(a.hang)
	url := guarded(t, a, secrets, "OWN", "")
	got := said(t, "POST", url+inTeamA+"?timeout=300ms", "application/json", tooMany, "Authorization: Bearer alice")
	if !strings.HasPrefix(got, "422 ") {
		t.Errorf("got %s", got)
	}
}
