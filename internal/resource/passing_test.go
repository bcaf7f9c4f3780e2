package resource

import (
	"errors"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/status"
)

// Paths that an API documents beside its resources pass, by the methods that it documents, and nothing else does.
func TestPassing(t *testing.T) {
	pet := &Resource{Group: "pets.example.com", Version: "v1", Names: Names{Kind: "Pet", Plural: "pets"}, Envelope: Bare, Namespaced: true,
		Paths: []string{"/v1/{namespace}/{shelf}/pets", "/v1/{namespace}/{shelf}/pets/{name}"}}
	r, err := NewRegistry([]*Resource{pet},
		Passing{Template: "/v1/{store}/{shelf}/pets/search", Methods: []string{"GET", "POST"}},
		Passing{Template: "/v1/{store}/{shelf}/pets/{id}/feed", Methods: []string{"POST"}},
		Passing{Template: "/v1/{store}/{shelf}/pets/{id}/feed", Methods: []string{"DELETE"}},
		Passing{Template: "/v1/{store}/{shelf}/pets/{id}:cancel", Methods: []string{"POST"}},
		Passing{Template: "/v1/{store}/{shelf}/pets/{first}-{last}.json", Methods: []string{"PUT"}},
		Passing{Template: "/v1/{store}/{shelf}/pets/{id}", Methods: []string{"PUT"}},
		Passing{Template: "/v1/reports/", Methods: []string{"POST"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		request string
		verb    string // of the resource; empty if the request passes
		name    string
		refused int32
	}{
		{"GET /v1/a/b/pets/search", "", "", 0},
		{"HEAD /v1/a/b/pets/search", "", "", 0},
		{"POST /v1/a/b/pets/search", "", "", 0},
		{"PUT /v1/a/b/pets/search", "update", "search", 0},
		{"DELETE /v1/a/b/pets/search", "delete", "search", 0},
		{"POST /v1/a/b/pets/7/feed", "", "", 0},
		{"DELETE /v1/a/b/pets/7/feed", "", "", 0},
		{"PUT /v1/a/b/pets/7/feed", "", "", 404},
		{"POST /v1/a/b/pets/7/feed/", "", "", 400},
		{"POST /v1/a/b/pets/7/feed/more", "", "", 404},
		{"POST /v1/a/b/pets/7:cancel", "", "", 0},
		{"POST /v1/a/b/pets/:cancel", "", "", 405},
		{"PUT /v1/a/b/pets/7:cancel", "update", "7:cancel", 0},
		{"PUT /v1/a/b/pets/x-y.json", "", "", 0},
		{"PUT /v1/a/b/pets/-y.json", "update", "-y.json", 0},
		{"PUT /v1/a/b/pets/x-.json", "update", "x-.json", 0},
		{"PUT /v1/a/b/pets/7", "update", "7", 0}, // the resource goes before
		{"POST /v1/a/b/pets", "create", "", 0},
		{"POST /v1/a/b/p%65ts/7/feed", "", "", 400},
		{"POST /v1/reports/", "", "", 0},
		{"POST /v1/reports", "", "", 0},
	} {
		method, target, _ := strings.Cut(c.request, " ")
		info, res, err := r.Resolve(method, []byte(target))
		var code int32
		var refusal *status.Error
		if errors.As(err, &refusal) {
			code = refusal.ErrStatus.Code
		}
		if code != c.refused || code == 0 && (info.IsResource != (c.verb != "") || c.verb != "" && (res != pet || info.Verb.String() != c.verb || info.Name != c.name || info.Namespace != "a")) {
			t.Errorf("%s: got %+v, %v, %v", c.request, info, res, err)
		}
	}
	for _, template := range []string{"", "/", "pets", "/pets//x", "/pets/{", "/pets/}x", "/pets/{}", "/pets/{a{b}", "/a?b", strings.Repeat("/a", 15)} {
		if _, err := NewRegistry(nil, Passing{Template: template}); err == nil {
			t.Errorf("'%s' was taken", template)
		}
	}
}

// Subresources that are declared may be created and connected to, as the subresources of
// undescribed resources.
func TestConnectedSubresources(t *testing.T) {
	r, err := NewRegistry([]*Resource{{Version: "v1", Names: Names{Kind: "Pod", Plural: "pods"}, Namespaced: true, Subresources: Subresources{Status: true, Other: []string{"eviction", "exec", "proxy"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{
		"POST /api/v1/namespaces/a/pods/p/eviction":            "create",
		"POST /api/v1/namespaces/a/pods/p/exec?command=sh":     "create",
		"GET /api/v1/namespaces/a/pods/p/exec?command=sh":      "get",
		"DELETE /api/v1/namespaces/a/pods/p/proxy/some/where/": "delete",
		"POST /api/v1/namespaces/a/pods/p/status":              "",
		"POST /api/v1/namespaces/a/pods/p/other":               "",
		"POST /api/v1/namespaces/a/pods/p":                     "",
		"DELETE /api/v1/namespaces/a/pods/p/status":            "",
	} {
		method, target, _ := strings.Cut(request, " ")
		info, _, err := r.Resolve(method, []byte(target))
		if err != nil {
			info.Verb = VerbOther
		}
		if info.Verb.String() != want {
			t.Errorf("%s: got '%s', %v; want '%s'", request, info.Verb, err, want)
		}
	}
}
