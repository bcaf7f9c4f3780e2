package proxy

import (
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// hiddenPolicies reads the stored object, parameters and a collection, and repeats what it reads.
const hiddenPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: growth}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: ["", example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [gadgets, secrets]}]
  variables:
  - {name: most, expression: "params.data.most"}
  validations:
  - expression: "oldObject == null || oldObject.spec.owner == object.spec.owner"
    messageExpression: "'belongs to ' + oldObject.spec.owner"
  - expression: "variables.most != 'x'"
  - expression: "!has(object.stringData) || object.stringData.password.startsWith('short')"
    messageExpression: "'not ' + object.stringData.password"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: growth}
spec: {policyName: growth, validationActions: [Warn], paramRef: {name: limits, namespace: team-a, parameterNotFoundAction: Deny}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: team-a}
data: {most: value-of-params}
---
apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: mark}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [gadgets]}]
  defaults:
  - {field: spec.was, valueExpression: "oldObject.spec.owner"}
`

// explainedBy starts a gateway in front of a Kubernetes backend, and returns its address, and how
// many requests that change something have reached the backend.
func explainedBy(t *testing.T, values string) (address string, writes *atomic.Int32) {
	t.Helper()
	writes = new(atomic.Int32)
	backend := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Admission-Explain") != "" {
			t.Error("the header reached the backend")
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/gadgets/g1"):
			_, _ = w.Write([]byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g1","namespace":"team-a","uid":"u","resourceVersion":"7"},"spec":{"owner":"value-of-stored"}}`))
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}`))
		default:
			writes.Add(1)
			_, _ = w.Write([]byte(`{}`))
		}
	})
	dir := t.TempDir()
	testutil.WriteFile(t, dir+"/hidden.yaml", hiddenPolicies)
	words := []string{"kubernetes", "identity=Allow"}
	if values != "" {
		words = append(words, "explain="+values)
	}
	return startGateway(t, gatewayFor(t, dir, backend, words)), writes
}

// serveBackend serves on loopback up to the end of the test.
func serveBackend(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handler}
	go func() { _ = s.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

func explainRaw(t *testing.T, address, method, path, body string) (text string) {
	t.Helper()
	answer := exchangeRaw(t, address, []byte(method+" "+path+" HTTP/1.1\r\nHost: a\r\nX-Remote-User: kim\r\nX-Remote-Group: team-a\r\nX-Admission-Explain: 1\r\n"+
		"Connection: close\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+
		body))
	_, text, _ = strings.Cut(string(answer), "\r\n\r\n")
	return text
}

// TestExplanationsHide explains an update of another object's values, and a Secret: values of the stored
// object, of parameters and of Secrets are not in the explanations unless they may be.
func TestExplanationsHide(t *testing.T) {
	const (
		gadget = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g1","resourceVersion":"7"},"spec":{"owner":"value-of-request"}}`
		secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s1"},"stringData":{"password":"value-of-secret"},"data":{"key":"dmFsdWUtb2YtZGF0YQ=="}}`
	)
	for _, test := range []struct {
		values, method, path, body string
		has, hasNot                []string
	}{
		{"Digests", "PUT", "/apis/example.com/v1/namespaces/team-a/gadgets/g1", gadget,
			[]string{"value-of-request", `"decision": "Admitted"`, "(string "},
			[]string{`"value-of-stored`, `\"value-of-stored`, "value-of-params"}},
		{"Shown", "PUT", "/apis/example.com/v1/namespaces/team-a/gadgets/g1", gadget,
			[]string{"value-of-request", "value-of-stored", "value-of-params", `"decision": "Admitted"`},
			[]string{"(string "}},
		{"Digests", "POST", "/api/v1/namespaces/team-a/secrets", secret,
			[]string{`"decision": "Admitted"`, "(withheld: it may show a Secret)"},
			[]string{"not (hidden)", "value-of-secret", "value-of-data", "dmFsdWUtb2YtZGF0YQ", "value-of-params"}},
		{"Shown", "POST", "/api/v1/namespaces/team-a/secrets", secret,
			[]string{`"decision": "Admitted"`, "value-of-params"},
			[]string{"value-of-secret", "value-of-data", "dmFsdWUtb2YtZGF0YQ"}},
	} {
		t.Run(test.values+" "+test.path, func(t *testing.T) {
			address, writes := explainedBy(t, test.values)
			text := explainRaw(t, address, test.method, test.path, test.body)
			for _, has := range test.has {
				if !strings.Contains(text, has) {
					t.Errorf("the story does not have %q", has)
				}
			}
			for _, not := range test.hasNot {
				if strings.Contains(text, not) {
					t.Errorf("the story has %q", not)
				}
			}
			if n := writes.Load(); n != 0 {
				t.Errorf("%d writes reached the backend", n)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// TestExplanationsAreBounded explains a request about which there is more to say than fits.
func TestExplanationsAreBounded(t *testing.T) {
	address, _ := explainedBy(t, "Shown")
	members := make([]string, 20_000)
	for i := range members {
		members[i] = `"m` + strconv.Itoa(i) + `":"` + strings.Repeat("x", 40) + `"`
	}
	body := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g1","resourceVersion":"7"},"spec":{"owner":"a",` + strings.Join(members, ",") + `}}`
	text := explainRaw(t, address, "PUT", "/apis/example.com/v1/namespaces/team-a/gadgets/g1", body)
	var s explanation.Explanation
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if len(text) > 2<<20 {
		t.Errorf("the story has %d bytes", len(text))
	}
	if len(s.Sent) != 1 || !s.Sent[0].IsCut || s.Sent[0].Bytes < len(body) ||
		!regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(s.Sent[0].SHA256) {
		t.Errorf("sent: %d messages", len(s.Sent))
	}
}

// TestExplanationsNeedLeave asks a gateway that allows explanations to no user: nothing reaches the
// backend.
func TestExplanationsNeedLeave(t *testing.T) {
	address, writes := explainedBy(t, "")
	for _, path := range []string{"/apis/example.com/v1/namespaces/team-a/gadgets", "/undescribed",
		"/api/v1/namespaces/team-a/pods/p/exec?command=ls"} {
		text := explainRaw(t, address, "POST", path,
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g1"}}`)
		const want = "the configuration does not let the client ask for explanations by the header 'X-Admission-Explain'"
		if !strings.Contains(text, want) || writes.Load() != 0 {
			t.Errorf("%s: %s; %d writes", path, text, writes.Load())
		}
	}
}
