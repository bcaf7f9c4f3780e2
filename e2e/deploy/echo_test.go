package deploy

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// writes returns an expression that writes a value as JSON, to a depth. Doubles differ from integers.
func writes(value string, depth int) string {
	scalar := `(type(V) == string ? strings.quote(string(V)) : type(V) == int ? string(int(V)) : type(V) == bool ? string(V == true) ` +
		`: V == null ? 'null' : type(V) == double ? '{"double":"' + string(double(V)) + '"}' : '"of another type"')`
	if depth == 0 {
		scalar = `(type(V) == map || type(V) == list ? '"deeper"' : ` + scalar + `)`
		return strings.ReplaceAll(scalar, "V", value)
	}
	k, e, p := fmt.Sprint("k", depth), fmt.Sprint("e", depth), fmt.Sprint("p", depth)
	return strings.NewReplacer("SCALAR", strings.ReplaceAll(scalar, "V", value), "INNER", writes(p+"[1]", depth-1), "V",
		value, "K", k, "E", e, "P", p).Replace(
		`(type(V) == map || type(V) == list ? (type(V) == map ? '{' : '[') ` +
			`+ (type(V) == map ? V.map(K, [dyn(strings.quote(string(K)) + ':'), V[K]]) : V.map(E, [dyn(''), E]))` +
			`.map(P, string(P[0]) + INNER).join(',') + (type(V) == map ? '}' : ']') : SCALAR)`)
}

// asks are what the authorizer is asked. Messages cannot say it, as they may not ask; so there is a validation with a
// message for each combination of answers.
var asks = []string{
	`authorizer.group('').resource('pods').namespace('echo').check('create').allowed()`,
	`authorizer.group('apps').resource('deployments').subresource('scale').namespace('echo').name('echo').check('impersonate').allowed()`,
	`authorizer.path('/healthz').check('get').allowed()`,
	`authorizer.requestResource.check('update').allowed()`,
	`authorizer.requestResource.check('custom').allowed()`,
	`authorizer.serviceAccount('echo', 'echo').group('').resource('secrets').namespace('echo').check('get').reason().contains('nearly-all')`,
}

// Requests with this manager ask the authorizer.
const aboutAuthorizer = "authorizer"

// echoing are policies that write what they see into a denial: all of it if it is not too long, and to users of the
// groups view:object and view:oldObject that alone. A mutating policy writes what it sees into an annotation.
func echoing() string {
	var b strings.Builder
	b.WriteString(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: echo}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]
  matchConditions:
  - {name: user, expression: "request.userInfo.groups.exists(g, g in ['echo', 'system:serviceaccounts:echo'])"}
  - {name: another, expression: "!has(request.options) || request.options.?fieldManager.orValue('') != 'authorizer'"}
  variables:
`)
	variable := func(name, expression string) {
		fmt.Fprintf(&b, "  - name: %s\n    expression: >-\n      %s\n", name, expression)
	}
	variable("request", writes("dyn(request)", 6))
	variable("object", writes("dyn(object)", 10))
	variable("oldObject", writes("dyn(oldObject)", 10))
	variable("namespaceObject", writes("dyn(namespaceObject)", 5))
	variable("asked", `'{"request":' + variables.request + ',"namespaceObject":' + variables.namespaceObject`)
	variable("all", `variables.asked + ',"object":' + variables.object + ',"oldObject":' + variables.oldObject + '}'`)
	b.WriteString(`  validations:
  - expression: "false"
    messageExpression: >-
      'view:object' in request.userInfo.groups ? '{"object":' + variables.object + '}'
      : 'view:oldObject' in request.userInfo.groups ? '{"oldObject":' + variables.oldObject + '}'
      : size(variables.all) < 4500 ? variables.all : variables.asked + '}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: echo}
spec: {policyName: echo, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: echo}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: ["", apps, batch, coordination.k8s.io, echo.example.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}]
    excludeResourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [bindings, events]}]
  matchConditions: [{name: user, expression: "request.userInfo.groups.exists(g, g in ['echo', 'system:serviceaccounts:echo'])"}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{annotations: {"echo": 'namespace=' + object.?metadata.?namespace.orValue('-') + ' name=' + object.?metadata.?name.orValue('-')
        + ' old=' + (oldObject == null ? 'null' : oldObject.?metadata.?name.orValue('-')) + ' in ' + request.?namespace.orValue('-') + ' request=' + request.?name.orValue('-')
        + ' operation=' + request.operation + ' options=' + string(request.options.kind) + ' ' + string(request.options.?fieldManager.orValue('-'))}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: echo}
spec: {policyName: echo}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: authorizer}
spec: {policyName: authorizer, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: authorizer}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*/*"]}]
  matchConditions: [{name: manager, expression: "has(request.options) && request.options.?fieldManager.orValue('') == 'authorizer'"}]
  variables:
`)
	var answers []string
	for i, question := range asks {
		variable(fmt.Sprint("answer", i), question)
		answers = append(answers, fmt.Sprintf("(variables.answer%d ? 'y' : 'n')", i))
	}
	variable("answers", strings.Join(answers, " + "))
	b.WriteString("  validations:\n")
	for i := range 1 << len(asks) {
		said := strings.NewReplacer("0", "n", "1", "y").Replace(fmt.Sprintf("%0*b", len(asks), i))
		fmt.Fprintf(&b, "  - {expression: \"variables.answers != '%s'\", message: '{\"authorizer\":\"%s\"}'}\n", said, said)
	}
	return b.String()
}

// echoUsers are the users with tokens. The users of the views have the groups of the first one, and one more.
const echoUsers = tokens + `of-alice,alice,u-1,"echo,dev"
of-object,alice,u-1,"echo,dev,view:object"
of-oldObject,alice,u-1,"echo,dev,view:oldObject"
of-bob,bob,,echo
`

// echoRights are the rights of the users, who may do nearly all.
const echoRights = `
apiVersion: v1
kind: Namespace
metadata: {name: echo, labels: {team: a}, annotations: {note: "of \"a\""}}
---
apiVersion: v1
kind: Namespace
metadata: {name: limited}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nearly-all}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch, create, update, patch, delete, deletecollection, approve, sign, bind, escalate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nearly-all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nearly-all}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: echo}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:echo"}
`

// An echoServer is what requests are sent to: the server itself, or a gateway.
type echoServer struct {
	name, url string
	roots     *tls.Config
	clients   map[string]*http.Client // by the user who has a certificate; "" has none
}

// A user is who sends a request: by a token, with headers, or by a certificate.
type user struct {
	name, token string
	headers     map[string]string
	certificate *tls.Certificate
	// without is the name of a gateway that does not know such users.
	without string
}

// An answer is what a request came to: what the policy has seen, or what else was answered.
type answer struct {
	code   int
	seen   map[string]string // by path
	isLong bool              // object and oldObject are asked for by themselves
	says   string
}

// send sends a question as a user.
func (s *echoServer) send(q *question, u *user) (a *answer, err error) {
	// The server makes the cache of a kind anew now and then, and asks clients to come again a second later.
	for range 30 {
		if a, err = s.ask(q, u); err != nil || a.code != http.StatusTooManyRequests ||
			!strings.Contains(a.says, "storage is (re)initializing") {
			break
		}
		time.Sleep(time.Second)
	}
	return a, err
}

// ask sends a question once.
func (s *echoServer) ask(q *question, u *user) (*answer, error) {
	r, err := http.NewRequest(q.method, s.url+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if u.token != "" {
		r.Header.Set("Authorization", "Bearer "+u.token)
	}
	for name, value := range u.headers {
		r.Header.Set(name, value)
	}
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	r.Header.Set("Accept", "application/json")
	client := s.clients[""]
	if u.certificate != nil {
		client = s.clients[u.name]
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{code: response.StatusCode, says: string(body[:min(len(body), 700)])}
	var status struct{ Message string }
	if json.Unmarshal(body, &status) != nil {
		return a, nil
	}
	_, text, denied := strings.Cut(status.Message, " denied request: ")
	if !denied {
		return a, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return a, nil //nolint:nilerr // the answer says what else it is
	}
	a.seen = map[string]string{}
	flatten("", tree, a.seen)
	_, hasObject := tree.(map[string]any)["object"]
	_, hasRequest := tree.(map[string]any)["request"]
	a.isLong = hasRequest && !hasObject
	return a, nil
}

// generatedName is a name that is generated, which is another one each time.
var generatedName = regexp.MustCompile(`\bgen-[a-z0-9]{5}\b`)

// flatten puts the leaves of a value into a map by their paths.
func flatten(path string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[path] = "{}"
		}
		for k, one := range v {
			flatten(path+"/"+k, one, into)
		}
	case []any:
		if len(v) == 0 {
			into[path] = "[]"
		}
		for i, one := range v {
			flatten(fmt.Sprint(path, "/", i), one, into)
		}
	default:
		into[path] = generatedName.ReplaceAllString(fmt.Sprintf("%T %v", v, v), "gen-*")
	}
}

// A difference is a leaf that policies see in another way, or not at all, through a gateway.
type difference struct{ path, native, got string }

const unset = "unset"

// differences returns what policies see differently.
func differences(native, got map[string]string) []difference {
	paths := map[string]bool{}
	for path := range native {
		paths[path] = true
	}
	for path := range got {
		paths[path] = true
	}
	var all []difference
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		n, inNative := native[path]
		g, inGot := got[path]
		if inNative && inGot && n == g {
			continue
		}
		if !inNative {
			n = unset
		}
		if !inGot {
			g = unset
		}
		all = append(all, difference{path, n, g})
	}
	return all
}

// The views of a request whose objects are too long to be seen at once.
var views = []*user{{name: "alice", token: "of-object"}, {name: "alice", token: "of-oldObject"}}

// view asks for the objects by themselves, which are too long to be seen with all else.
func (s *echoServer) view(q *question, a *answer) error {
	for _, view := range views {
		one, err := s.send(q, view)
		if err != nil {
			return err
		}
		if one.seen == nil {
			*a = *one
			return nil
		}
		maps.Copy(a.seen, one.seen)
	}
	return nil
}

// createServed creates the objects of a file, but of kinds that a server before the latest does not serve.
func (c *cluster) createServed(t *testing.T, stdin, file string) {
	t.Helper()
	out, ok := c.kubectl(t, stdin, "create", "-f", file)
	if ok {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		isUnknown := strings.Contains(line, "no matches for kind") && version != latest
		if !isUnknown && !strings.HasSuffix(line, " created") && !strings.HasPrefix(line, "Warning: ") &&
			line != "ensure CRDs are installed first" {
			t.Fatalf("kubectl create: %s", out)
		}
	}
}

// Policies see of each request what they see natively: every field of the request, of both objects and the namespace,
// and what the authorizer says. One server has the policies itself. The other one has the same objects and no policies,
// and gateways with the policies before it: one that judges requests, and one that judges what the server would store
// and has files which describe the custom resources. ECHO_REPORT names a file for all differences, of which the test
// shows a few.
func TestEcho(t *testing.T) {
	t.Parallel() // it waits half a minute for the server
	issuer, dir := newAuthority(t), t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	write(t, ca, encoded("CERTIFICATE", issuer.certificate.Raw))
	shared := startStore(t, echoUsers)
	flags := []string{"--client-ca-file=" + ca, "--allow-privileged"}
	native := shared.launch(t, flags...)
	native.waitReady(t)
	behind := shared.launch(t,
		append(flags, "--disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy")...)
	definitions, objects := filepath.Join("testdata", "echo", "definitions.yaml"),
		filepath.Join("testdata", "echo", "objects.yaml")
	native.must(t, "", "create", "-f", definitions)
	native.must(t, echoRights, "create", "-f", "-")
	native.must(t, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", definitions)
	native.createServed(t, "", objects)
	for _, o := range certificateObjects() {
		native.createServed(t, string(inJSON(o)), "-")
	}
	native.must(t, servedPolicies(t, echoing()), "create", "-f", "-")
	behind.waitReady(t)

	certificate := issuer.issue(t, "carol", []string{"echo", "by-certificate"})
	known := []*user{
		{name: "alice", token: "of-alice"},
		{name: "bob", token: "of-bob"},
		{name: "account", token: native.token(t, "echo", "echo")},
		{name: "bound", token: native.tokenFor(t, "echo", "echo", authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "echo"},
		})},
		{name: "carol", certificate: &certificate, without: "Pass"},
		{name: "dave", token: "of-root", without: judgesRequests, headers: map[string]string{
			"Impersonate-User": "dave", "Impersonate-Group": "echo", "Impersonate-Uid": "d-1",
			"Impersonate-Extra-Scopes": "of dave",
		}},
	}
	described, err := os.ReadFile(definitions)
	if err != nil {
		t.Fatal(err)
	}
	gateways := []*echoServer{
		startEcho(t, judgesRequests, behind, issuer, echoing(), "admitOn: Request\n"),
		startEcho(t, "Pass", behind, issuer, echoing()+"---\n"+string(described),
			"admitOn: DryRunResult\ntrustedProxies: [127.0.0.1/32]\n"),
	}
	//nolint:gosec // a test's own server
	server := &echoServer{name: "kube-apiserver", url: native.url, roots: &tls.Config{InsecureSkipVerify: true}}
	for _, s := range append(gateways, server) {
		s.clients = map[string]*http.Client{"": client(s.roots)}
		for _, u := range known {
			if u.certificate != nil {
				own := s.roots.Clone()
				own.Certificates = []tls.Certificate{*u.certificate}
				s.clients[u.name] = client(own)
			}
		}
	}
	probe := &question{method: "POST", path: "/apis/echo.example.com/v1/gadgets", contentType: "application/json",
		user: known[0],
		body: []byte(`{"apiVersion":"echo.example.com/v1","kind":"Gadget","metadata":{"name":"probe"}}`)}
	// The server's policies find a new kind only when their map of kinds is made again, half a minute later at most.
	last := &answer{}
	defer func() {
		if last.seen == nil {
			t.Logf("the server answers %d %s", last.code, last.says)
		}
	}()
	eventually(t, "the server's own policies judge new kinds, and change their objects", func() bool {
		a, err := server.send(probe, probe.user)
		last = a
		if err != nil {
			t.Fatal(err)
		}
		if a.code == http.StatusCreated {
			native.must(t, "", "delete", "gadget", "probe")
		}
		return a.seen["/object/metadata/annotations/echo"] != ""
	})
	questions, least := generate(t, native, known), 1000
	if testing.Short() {
		questions, least = sampled(questions), 300
	}
	begun := time.Now()
	r := &echoReport{used: map[string]int{}, samples: map[string][]string{}}
	var wg sync.WaitGroup
	work := make(chan *question)
	for range 4 {
		wg.Go(func() {
			for q := range work {
				r.compare(t, q, server, gateways)
			}
		})
	}
	for _, q := range questions {
		work <- q
	}
	close(work)
	wg.Wait()
	t.Logf("%d requests, %d of them judged by the server, %d comparisons in %v", len(questions), r.judged, r.compared,
		time.Since(begun).Round(time.Second))
	if r.judged < least {
		t.Errorf("the server's policy judges %d requests, want %d", r.judged, least)
	}
	r.close(t)
}

// sampled returns one of three questions. Which ones shifts, so that no verb or user is left out of all resources.
func sampled(all []*question) (some []*question) {
	for i, q := range all {
		if (i+i/10)%3 == 0 {
			some = append(some, q)
		}
	}
	return some
}

func client(c *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, MaxIdleConnsPerHost: 8}}
}

// startEcho runs a gateway with the policies before the cluster until the test ends.
func startEcho(t *testing.T, credentials string, c *cluster, issuer *authority, policies, more string) *echoServer {
	t.Helper()
	dir, listen, admin := t.TempDir(), testutil.FreeAddress(t), testutil.FreeAddress(t)
	write(t, filepath.Join(dir, "policies.yaml"), policies)
	write(t, filepath.Join(dir, "token"), "of-root")
	write(t, filepath.Join(dir, "ca.crt"), encoded("CERTIFICATE", issuer.certificate.Raw))
	own := issuer.issue(t, "gateway", nil)
	writePair(t, dir, own)
	write(t, filepath.Join(dir, "gateway.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+listen+`
tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}
admin: {listen: `+admin+`}
upstreams: [{name: cluster, endpoints: [`+c.url+`], dialect: Kubernetes, credentials: `+credentials+`, tokenFile: token, tls: {insecureSkipTLSVerify: true},
  upgrades: [pods/exec, pods/attach, pods/portforward, pods/proxy, services/proxy, nodes/proxy]}]
identity: {authenticators: [{tokenReview: {upstream: cluster}}, {clientCertificate: {}}], anonymous: Deny}
routes: [{pathPrefix: /, upstream: cluster}]
policies: [policies.yaml]
`+more)
	start(t, answers("http://"+admin+"/readyz"), filepath.Join(dir, "log"), gateway, "serve", "--config",
		filepath.Join(dir, "gateway.yaml"))
	return &echoServer{name: credentials, url: "https://" + listen, roots: &tls.Config{RootCAs: issuer.pool()}}
}

// An echoReport collects what differs.
type echoReport struct {
	sync.Mutex
	judged, compared int
	older            int                 // differences in the objects of an older server than the latest
	used             map[string]int      // how often a row of the ledger is needed
	samples          map[string][]string // differences without a row, by subject
}

func (r *echoReport) compare(t *testing.T, q *question, server *echoServer, gateways []*echoServer) {
	native, err := server.send(q, q.user)
	if err != nil {
		t.Errorf("%v: %v", q, err)
		return
	}
	if native.seen == nil && native.code < 300 && q.isStored() {
		t.Errorf("%v is carried out by the server: %d %s", q, native.code, native.says)
		return
	}
	if native.seen != nil {
		r.Lock()
		r.judged++
		r.Unlock()
	}
	for _, g := range gateways {
		if q.user.without == g.name {
			continue
		}
		got, err := g.send(q, q.user)
		if err == nil && native.seen != nil && got.seen != nil && (native.isLong || got.isLong) {
			if err = server.view(q, native); err == nil {
				err = g.view(q, got)
			}
		}
		if err != nil {
			t.Errorf("%v through %s: %v", q, g.name, err)
			continue
		}
		r.Lock()
		r.compared++
		if native.seen == nil || got.seen == nil {
			if native.code != got.code || (native.seen == nil) != (got.seen == nil) {
				r.differs(q, g.name, difference{"answer", fmt.Sprint(native.code, " ", native.says),
					fmt.Sprint(got.code, " ", got.says)})
			}
		} else {
			for _, d := range differences(native.seen, got.seen) {
				r.differs(q, g.name, d)
			}
		}
		r.Unlock()
	}
}

// differs notes a difference, by its row of the ledger or as a fault.
func (r *echoReport) differs(q *question, through string, d difference) {
	for _, row := range ledger {
		if row.covers(q, through, d) {
			r.used[row.name]++
			return
		}
	}
	if version != latest && !strings.HasPrefix(d.path, "/request/") && d.path != "answer" {
		r.older++ // what an older server makes of objects is not the ledger's
		return
	}
	about := d.path
	if d.path == "answer" {
		about = "answer to " + q.verb
	}
	r.samples[about] = append(r.samples[about], fmt.Sprintf("%v through %s: %s is %s, natively %s", q, through, d.path,
		d.got, d.native))
}

// close fails the test for all differences that no row of the ledger covers, and for rows that cover none.
func (r *echoReport) close(t *testing.T) {
	t.Helper()
	for _, about := range slices.Sorted(maps.Keys(r.samples)) {
		all := r.samples[about]
		slices.Sort(all)
		t.Errorf("%s differs %d times, such as\n%s", about, len(all), strings.Join(all[:min(3, len(all))], "\n"))
	}
	if path := os.Getenv("ECHO_REPORT"); path != "" {
		var b strings.Builder
		for _, about := range slices.Sorted(maps.Keys(r.samples)) {
			slices.Sort(r.samples[about])
			b.WriteString(strings.Join(r.samples[about], "\n") + "\n")
		}
		write(t, path, b.String())
	}
	if version != latest {
		t.Logf("%6d differences in objects of kube-apiserver %s", r.older, version)
	}
	reasons := 0
	for _, row := range ledger {
		if r.used[row.name] == 0 && version == latest && !testing.Short() {
			t.Errorf("nothing differs any more by the row %q of the ledger", row.name)
		}
		if !row.isPending {
			reasons++
		}
		t.Logf("%6d differences: %s", r.used[row.name], row.name)
	}
	if reasons > 10 {
		t.Errorf("the ledger has %d rows, want at most 10", reasons)
	}
}

// document reads YAML as a tree.
func document(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return tree
}
