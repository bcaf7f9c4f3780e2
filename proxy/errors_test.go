package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestErrorsPass: errors of a plain API reach clients whole, however large they are and however they are framed, and
// with a HEAD without a body.
func TestErrorsPass(t *testing.T) {
	page := strings.Repeat("<p>no</p>\n", 100_000)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, page)
		}
	}))
	defer backend.Close()
	file := "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: notes}\nspec:\n  version: v1\n" +
		"  names: {plural: notes, kind: Note}\n  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}\n  fields: {status: state}\n"
	dir := policiestest.Write(t, file)
	address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
	for _, path := range []string{"/v1/notes/n1", "/other"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch,
			http.MethodDelete} {
			t.Run(method+" "+path, func(t *testing.T) {
				r, err := http.NewRequest(method, "http://"+address+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if method == http.MethodPut || method == http.MethodPatch {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
					r.Header.Set("Content-Type",
						map[string]string{http.MethodPut: "application/json",
							http.MethodPatch: "application/merge-patch+json"}[method])
				}
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = answer.Body.Close() }()
				body, err := io.ReadAll(answer.Body)
				if err != nil {
					t.Fatal(err)
				}
				want := page
				if method == http.MethodHead {
					want = ""
				}
				if answer.StatusCode != http.StatusServiceUnavailable || string(body) != want ||
					answer.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
					len(answer.Header["Set-Cookie"]) != 2 ||
					answer.Header.Get("Retry-After") != "Fri, 31 Dec 1999 23:59:59 GMT" {
					t.Errorf("got %d %v with %d bytes, want %d", answer.StatusCode, answer.Header, len(body), len(want))
				}
			})
		}
	}
}

// TestErrorsKeepTheirHeaders: an error of a Kubernetes backend that the gateway writes as a Status, as it came or as an
// answer to what the gateway asks before a write, has the header fields still that say whose decision it is and what
// may become of it.
func TestErrorsKeepTheirHeaders(t *testing.T) {
	kept := map[string][]string{
		"X-Kubernetes-Pf-Flowschema-Uid": {"91c44886"}, "X-Kubernetes-Pf-Prioritylevel-Uid": {"70e54816"},
		"Audit-Id": {"a1"}, "Retry-After": {"7"},
		"Cache-Control": {"no-cache, private"}, "X-Content-Type-Options": {"nosniff"},
		"Www-Authenticate": {"Bearer", `Basic realm="api"`},
	}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		}
		for name, values := range kept {
			w.Header()[name] = values
		}
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	}))
	defer backend.Close()
	dir := policiestest.Write(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: same-name}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [configmaps]}]}
  validations: [{expression: "oldObject.metadata.name != 'kept'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: same-name}
spec: {policyName: same-name, validationActions: [Deny]}
`)
	address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), []string{"kubernetes"}))
	for _, one := range []struct{ method, path, body string }{
		{"GET", "configmaps/c1", ""}, {"DELETE", "configmaps/c1", ""}, {"DELETE", "configmaps", ""},
		{"PUT", "configmaps/c1", `{"metadata":{"name":"c1"}}`},
		{"PATCH", "configmaps/c1", "{}"}, {"DELETE", "secrets/s1", ""}, {"POST", "secrets", "{}"},
	} {
		r, err := http.NewRequest(one.method, "http://"+address+"/api/v1/namespaces/default/"+one.path,
			strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type",
			map[bool]string{true: "application/merge-patch+json", false: "application/json"}[one.method == "PATCH"])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), `"kind":"Status"`) {
			t.Errorf("%s %s is answered %d %s", one.method, one.path, answer.StatusCode, body)
		}
		for name, want := range kept {
			if got := answer.Header[name]; !slices.Equal(got, want) {
				t.Errorf("%s %s: %s is %q, want %q", one.method, one.path, name, got, want)
			}
		}
	}
}
