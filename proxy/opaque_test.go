package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// A shownServer is an API server that records its requests, and answers dry runs with an object.
type shownServer struct {
	*httptest.Server
	mu    sync.Mutex
	code  int    // of the answers to dry runs
	shown string // in them
	got   []string
	body  string // of the last request, but for dry runs
}

func newShownServer(t *testing.T) *shownServer {
	t.Helper()
	s := &shownServer{code: http.StatusCreated}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *shownServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	s.got = append(s.got, strings.TrimSpace(fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Content-Type"),
		" ", r.Header.Get("Content-Encoding"))))
	switch {
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"38","gitVersion":"v1.38.0"}`)
	case strings.Contains(r.URL.RawQuery, "dryRun=All"):
		if r.Header.Get("Accept") != "application/json" {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.WriteHeader(s.code)
		_, _ = io.WriteString(w, s.shown)
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, s.shown)
	default:
		s.body = string(body)
		_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1"}`)
	}
}

func (s *shownServer) take() (got, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got, body = strings.Join(s.got, "\n"), s.body
	s.got, s.body = nil, ""
	return got, body
}

// ofLater is a pod as a client of a later Kubernetes sends it: with a field that is not known yet.
func ofLater(t *testing.T, metadata metav1.ObjectMeta) string {
	t.Helper()
	var b bytes.Buffer
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metadata}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(pod, &b); err != nil {
		t.Fatal(err)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(b.Bytes()[4:]); err != nil {
		t.Fatal(err)
	}
	envelope.Raw = append(envelope.Raw, lengthy(15, "new")...)
	raw, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(raw)
}

func inCBORBody(t *testing.T, o any) string {
	t.Helper()
	b, err := direct.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return "\xd9\xd9\xf7" + string(b)
}

const protobufType = "application/vnd.kubernetes.protobuf"

// TestUnread: a body that no rule reads passes as it came, whatever it is (RES-7).
func TestUnread(t *testing.T) {
	server := newShownServer(t)
	url := "http://" + startGateway(t,
		gatewayFor(t, policiestest.Write(t, smallPods), strings.TrimPrefix(server.URL, "http://"),
			[]string{"kubernetes"}))
	const secrets = "/api/v1/namespaces/team-a/secrets"
	for _, c := range []struct{ about, method, path, contentType, encoding, body string }{
		{"protobuf of a later version", "POST", secrets, protobufType, "", ofLater(t, metav1.ObjectMeta{Name: "p"})},
		{"protobuf that is none", "PUT", secrets + "/a", protobufType, "", "k8s\x00\xff\xff"},
		{"protobuf of a kind that nobody knows", "POST", "/apis/example.com/v9/things", protobufType, "", "k8s\x00"},
		{"CBOR", "POST", secrets, "application/cbor", "", inCBORBody(t, map[string]any{"a": 1})},
		{"CBOR to apply", "PATCH", secrets + "/a", "application/apply-patch+cbor", "",
			inCBORBody(t, map[string]any{"a": 1})},
		{"CBOR that is none", "POST", secrets, "application/cbor", "", "\xff"},
		{"XML", "POST", secrets, "application/xml", "", "<a/>"},
		{"a type with a parameter", "POST", secrets, "application/json;profile=x", "", "{}"},
		{"a patch of a new type", "PATCH", secrets + "/a", "application/new-patch", "", "x"},
		{"JSON with a key twice", "POST", secrets, "application/json", "", `{"a":1,"a":2}`},
		{"no type", "POST", secrets, "", "", `{"a":1}`},
		{"nothing", "POST", secrets, "application/json", "", ""},
		{"an encoding", "POST", secrets, "application/json", "zstd", "\x28\xb5\x2f\xfd"},
		{"a subresource", "PUT", "/api/v1/namespaces/team-a/pods/p/status", protobufType, "",
			ofLater(t, metav1.ObjectMeta{Name: "p"})},
		{"another operation", "DELETE", "/api/v1/namespaces/team-a/pods/p", "application/cbor", "",
			inCBORBody(t, map[string]any{"kind": "DeleteOptions"})},
		{"options of a later version", "DELETE", "/api/v1/namespaces/team-a/pods/p", protobufType, "",
			ofLater(t, metav1.ObjectMeta{Name: "p"})},
		{"options that cannot be read", "DELETE", "/api/v1/namespaces/team-a/pods", "application/xml", "", "<a/>"},
		{"a path of no resource", "POST", "/login", "application/x-www-form-urlencoded", "", "user=a"},
	} {
		code, answer := sendBody(t, c.method, url+c.path, c.contentType, c.encoding, c.body)
		got, body := server.take()
		got = strings.TrimPrefix(got, "GET /version\n") // options may ask for a dry run
		if want := strings.TrimSpace(fmt.Sprint(c.method, " ", c.path, " ", c.contentType, " ",
			c.encoding)); code != 200 || got != want || body != c.body {
			t.Errorf("%s: answered %d %s\nsent %s %q\nwant %s %q", c.about, code, answer, got, body, want, c.body)
		}
	}
}

func sendBody(t *testing.T, method, url, contentType, encoding, body string) (code int, answer string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": contentType, "Content-Encoding": encoding,
		"Accept": protobufType + ", */*"} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// TestOfLaterKubernetes: an object that a policy matches, and that the gateway cannot read, is
// judged by the server's reading of it, and sent as it came; what cannot be judged so is refused
// with what to do (RES-7).
func TestOfLaterKubernetes(t *testing.T) {
	const pods, mutates = "/api/v1/namespaces/team-a/pods", `
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: changes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [services]}]}
  validations: [{expression: "oldObject.metadata.labels.a == object.metadata.labels.a", message: "may not change"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: changes}
spec: {policyName: changes, validationActions: [Deny]}
`
	server := newShownServer(t)
	url := "http://" + startGateway(t,
		gatewayFor(t, policiestest.Write(t, smallPods+mutates), strings.TrimPrefix(server.URL, "http://"),
			[]string{"kubernetes"}))
	named, versioned := metav1.ObjectMeta{Name: "p"}, metav1.ObjectMeta{Name: "p", ResourceVersion: "7", UID: "u"}
	shown := func(name string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name +
			`","namespace":"team-a","uid":"u","resourceVersion":"7","labels":{"a":"b"}}}`
	}
	const field15 = "it must not have a field 15, which this version of the gateway does not know"
	const services = "/api/v1/namespaces/team-a/services/p"
	for _, c := range []struct {
		about, method, path string
		metadata            metav1.ObjectMeta
		code                int
		shown               string
		want                int
		answer              string
		asked               string // of the server, but for its version
	}{
		{"what is admitted", "POST", pods, named, 201, shown("p"), 200, "", "POST " + pods + "?dryRun=All TYPE\nPOST " +
			pods + " TYPE"},
		{"what is denied", "POST", pods, named, 201, shown("bad"), 422, "may not be bad",
			"POST " + pods + "?dryRun=All TYPE"},
		{"what the server refuses", "POST", pods, named, 409,
			`{"kind":"Status","apiVersion":"v1","message":"is there"}`, 409, "is there",
			"POST " + pods + "?dryRun=All TYPE"},
		{"an update", "PUT", pods + "/p", versioned, 200, shown("p"), 200, "",
			"PUT " + pods + "/p?dryRun=All TYPE\nPUT " + pods + "/p TYPE"},
		{"an update that is compared", "PUT", services, versioned, 200, shown("p"), 200, "", "PUT " + services +
			"?dryRun=All TYPE\nGET " + services + "\nPUT " + services + " TYPE"},
		{"an update of no version", "PUT", pods + "/p", named, 200, "", 400, field15 + ". Policies or schemas are about the object: the body must name the `metadata.resourceVersion` that it replaces, or be JSON, or the gateway must be upgraded", ""},
		{"an eviction", "POST", pods + "/p/eviction", named, 201,
			`{"kind":"Status","apiVersion":"v1","status":"Success"}`, 400,
			"the backend cannot show what it makes of it", "POST " + pods + "/p/eviction?dryRun=All TYPE"},
		{"what policies change", "POST", "/api/v1/namespaces/team-a/configmaps", named, 201, shown("p"), 400,
			"be JSON, for policies may change the object", ""},
		{"what cannot be read", "POST", pods, named, 201, "[]", 502, "must be a JSON object",
			"POST " + pods + "?dryRun=All TYPE"},
	} {
		server.mu.Lock()
		server.code, server.shown = c.code, c.shown
		server.mu.Unlock()
		sent := ofLater(t, c.metadata)
		code, answer := sendBody(t, c.method, url+c.path, protobufType, "", sent)
		got, body := server.take()
		got = strings.TrimPrefix(got, "GET /version\n")
		if code != c.want || !strings.Contains(answer, c.answer) ||
			got != strings.ReplaceAll(c.asked, "TYPE", protobufType) || code == 200 && body != sent {
			t.Errorf("%s: answered %d %s\nsent %s %q\nwant %d %s", c.about, code, answer, got, body, c.want, c.asked)
		}
	}
	ordinary := newOrdinaryAPI(t)
	before := "http://" + startGateway(t,
		gatewayFor(t, policiestest.Write(t, smallPods), strings.TrimPrefix(ordinary.URL, "http://"),
			[]string{"kubernetes"}))
	if code, answer := sendBody(t, "POST", before+pods, protobufType, "", ofLater(t, named)); code != 502 ||
		!strings.Contains(answer, "has not proved to be a Kubernetes API server") {
		t.Errorf("before what is no API server it is answered %d %s", code, answer)
	}
	if _, written := ordinary.counts(); len(written) > 0 {
		t.Errorf("an ordinary API was sent %v", written)
	}
}

// TestCBOR: CBOR is judged as JSON, and sent as it came; what policies change of it is sent as JSON (RES-7).
func TestCBOR(t *testing.T) {
	const pods, maps, labels = "/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/configmaps", `
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: options}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]}
  validations: [{expression: "request.options.?propagationPolicy != optional.of('Orphan')", message: "may not orphan"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: options}
spec: {policyName: options, validationActions: [Deny]}
`
	object := func(kind, name string, more ...string) map[string]any {
		o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
		for i := 0; i < len(more); i += 2 {
			o[more[i]] = more[i+1]
		}
		return o
	}
	read := object("Pod", "p") // as clients send back what they have read
	read["metadata"] = map[string]any{"name": "p", "uid": "u", "resourceVersion": "7"}
	server := newShownServer(t)
	g := gatewayFor(t, policiestest.Write(t, smallPods+labels), strings.TrimPrefix(server.URL, "http://"),
		[]string{"kubernetes"})
	url := "http://" + startGateway(t, g)
	for _, c := range []struct {
		about, method, path, contentType string
		body                             any
		want                             int
		answer                           string
		sentAs, sent                     string // "" is as it came
	}{
		{"what is admitted", "POST", pods, "application/cbor", object("Pod", "p"), 200, "", "application/cbor", ""},
		{"what is denied", "POST", pods, "application/cbor", object("Pod", "bad"), 422, "may not be bad", "", ""},
		{"an update", "PUT", pods + "/p", "application/cbor", read, 200, "", "application/cbor", ""},
		{"what contradicts the URL", "PUT", pods + "/q", "application/cbor", object("Pod", "p"), 400,
			"does not match the name on the URL", "", ""},
		{"what policies change", "POST", maps, "application/cbor", object("ConfigMap", "p"), 200, "", "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p","labels":{"a":"b"}}}`},
		{"what is applied", "PATCH", pods + "/p?fieldManager=m", "application/apply-patch+cbor", object("Pod", "p"),
			200, "",
			"application/apply-patch+yaml",
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","resourceVersion":"7"}}`},
		{"what is applied, and policies change", "PATCH", maps + "/p?fieldManager=m", "application/apply-patch+cbor",
			object("ConfigMap", "p"), 200, "",
			"application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p","labels":{"a":"b"},"resourceVersion":"7"}}`},
		{"options of a deletion", "DELETE", pods + "/p", "application/cbor",
			object("DeleteOptions", "", "propagationPolicy", "Background"), 200, "",
			"application/json", `{"apiVersion":"v1","kind":"DeleteOptions","metadata":{"name":""},"propagationPolicy":"Background","preconditions":{"resourceVersion":"7"}}`},
		{"options that are denied", "DELETE", pods + "/p", "application/cbor",
			object("DeleteOptions", "", "propagationPolicy", "Orphan"), 422, "may not orphan", "", ""},
		{"another patch", "PATCH", pods + "/p", "application/merge-patch+cbor", object("Pod", "p"), 415,
			"application/apply-patch+yaml", "", ""},
		{"with a parameter", "POST", pods, "application/cbor;charset=utf-8", object("Pod", "p"), 415, "", "", ""},
		{"a number as key", "POST", pods, "application/cbor", map[int]int{1: 1}, 400,
			"the keys of maps must be strings", "", ""},
	} {
		server.mu.Lock()
		server.code, server.shown = 200,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","resourceVersion":"7"}}`
		server.mu.Unlock()
		sent := inCBORBody(t, c.body)
		code, answer := sendBody(t, c.method, url+c.path, c.contentType, "", sent)
		got, body := server.take()
		if c.sent != "" {
			sent = c.sent
		}
		if code != c.want || !strings.Contains(answer, c.answer) || code == 200 &&
			(body != sent || !strings.HasSuffix(got, " "+c.sentAs)) || code != 200 && body != "" {
			t.Errorf("%s: answered %d %s\nsent %s %q\nwant %d %q", c.about, code, answer, got, body, c.want, sent)
		}
	}
	if n := g.BodyBytesInFlight(); n != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestUnreadIsRecorded: the audit log has the object of a body that passes as it came, if the gateway can read it.
func TestUnreadIsRecorded(t *testing.T) {
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, omitStages: [RequestReceived]}]\n"
	server, to := newShownServer(t), &keptEvents{}
	w := &watched{Gateway: gatewayFor(t, policiestest.Write(t, policy), strings.TrimPrefix(server.URL, "http://"),
		[]string{"kubernetes"})}
	log := audit.New(audit.Options{Mode: audit.Batch, QueueBytes: 1 << 20, Backoff: time.Second,
		MaxBackoff: time.Second}, audit.Waiting{Sink: to})
	w.observers.audit = &audit.Auditor{Log: log, MaxEvent: 100 << 10}
	w.address = startGateway(t, w.Gateway)
	var known bytes.Buffer
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "in-protobuf"}}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(pod, &known); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ contentType, body string }{
		{"application/json", `{"metadata":{"name":"in-json"}}`},
		{"application/yaml", "metadata: {name: in-yaml}\n"},
		{protobufType, known.String()},
		{"application/cbor", inCBORBody(t, map[string]any{"metadata": map[string]any{"name": "in-cbor"}})},
		{protobufType, ofLater(t, metav1.ObjectMeta{Name: "of-later"})},
		{"application/json", `{"metadata":{"name":"twice"},"metadata":{}}`},
		{"application/cbor", "\xff"},
		{"application/xml", "<a/>"},
	} {
		code, answer := sendBody(t, "POST", "http://"+w.address+"/api/v1/namespaces/team-a/pods", c.contentType, "",
			c.body)
		if _, body := server.take(); code != 200 || body != c.body {
			t.Errorf("%s: answered %d %s, sent %q", c.contentType, code, answer, body)
		}
	}
	got := w.events(t, to)
	for name, want := range map[string]int{`{"name":"in-json"}`: 1, `{"name":"in-yaml"}`: 1,
		`{"name":"in-protobuf"}`: 1, `{"name":"in-cbor"}`: 1, "of-later": 0, "twice": 0, `"requestObject":`: 4,
		`"verb":"create"`: 8} {
		if n := strings.Count(got, name); n != want {
			t.Errorf("%s is there %d times, want %d: %s", name, n, want, got)
		}
	}
}

// TestLaterUpdatesArePinned: an update that the gateway cannot read is sent as it came, so that it
// has to be pinned by what it says itself: by a version that is one, and, if policies match new
// objects, by the uid, for servers ignore the version of an object that they create.
func TestLaterUpdatesArePinned(t *testing.T) {
	server := newShownServer(t)
	url := "http://" + startGateway(t,
		gatewayFor(t, policiestest.Write(t, smallPods+policy("services", rule("UPDATE", "services")+
			"  validations: [{expression: 'oldObject.metadata.name == object.metadata.name'}]", deny)), strings.TrimPrefix(server.URL, "http://"), []string{"kubernetes"}))
	server.mu.Lock()
	server.code, server.shown = 200, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team-a","uid":"u","resourceVersion":"7"}}`
	server.mu.Unlock()
	for _, c := range []struct {
		plural, version string
		uid             types.UID
		want            int
	}{
		{"services", "7", "", 200},
		{"services", "0", "", 400},
		{"services", "00", "", 400},
		{"pods", "7", "u", 200},
		{"pods", "7", "", 400},
	} {
		sent := ofLater(t, metav1.ObjectMeta{Name: "p", ResourceVersion: c.version, UID: c.uid})
		if code, answer := sendBody(t, "PUT", url+"/api/v1/namespaces/team-a/"+c.plural+"/p", protobufType, "",
			sent); code != c.want {
			t.Errorf("%+v: got %d %s", c, code, answer)
		}
	}
}

// TestLaterTokens: what the server makes of a TokenRequest has a token that is good, even in a dry run. No policy sees
// it, and no log.
func TestLaterTokens(t *testing.T) {
	server := newShownServer(t)
	url := "http://" + startGateway(t,
		gatewayFor(t, policiestest.Write(t, policy("tokens", rule("CREATE", "serviceaccounts/token")+
			"  validations: [{expression: '!has(object.status)', messageExpression: 'string(object.status.token)'}]", deny)), strings.TrimPrefix(server.URL, "http://"), []string{"kubernetes"}))
	server.mu.Lock()
	server.shown = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{"name":"p","namespace":"team-a"},"status":{"token":"secret"}}`
	server.mu.Unlock()
	code, answer := sendBody(t, "POST", url+"/api/v1/namespaces/team-a/serviceaccounts/p/token", protobufType, "",
		ofLater(t, metav1.ObjectMeta{Name: "p"}))
	if got, _ := server.take(); code != 400 || strings.Contains(answer, "secret") ||
		!strings.Contains(answer, "must be JSON") || got != "" {
		t.Errorf("answered %d %s\nasked %s", code, answer, got)
	}
}
