package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestErrorsPass: errors of an ordinary API reach clients whole, however large they are and however they are framed, and
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
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			t.Run(method+" "+path, func(t *testing.T) {
				r, err := http.NewRequest(method, "http://"+address+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if method == http.MethodPut || method == http.MethodPatch {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
					r.Header.Set("Content-Type", map[string]string{http.MethodPut: "application/json", http.MethodPatch: "application/merge-patch+json"}[method])
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
				if answer.StatusCode != http.StatusServiceUnavailable || string(body) != want || answer.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
					len(answer.Header["Set-Cookie"]) != 2 || answer.Header.Get("Retry-After") != "Fri, 31 Dec 1999 23:59:59 GMT" {
					t.Errorf("got %d %v with %d bytes, want %d", answer.StatusCode, answer.Header, len(body), len(want))
				}
			})
		}
	}
}
