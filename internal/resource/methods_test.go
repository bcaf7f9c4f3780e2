package resource

import (
	"net/http"
	"testing"

	"github.com/admission-gateway/gateway/internal/status"
)

// A path takes the methods that its file names, and the ones that are documented for it. Others are refused by an API
// server, and are an ordinary API's own at the paths of objects that are not of Kubernetes' form.
func TestMethods(t *testing.T) {
	books := &Resource{
		Version: "v1", Names: Names{Plural: "books", Kind: "Book"}, Paths: []string{"/books", "/books/{name}"},
		Envelope: Bare,
		Methods:  Methods{Collection: NewMethodSet("GET", "POST"), Item: NewMethodSet("PUT", "DELETE", "TRACE")},
	}
	shops := &Resource{
		Version: "v1", Names: Names{Plural: "shops", Kind: "Shop"}, Paths: []string{"/shops", "/shops/{name}"},
		Subresources: Subresources{Status: true}, Backend: Backend{Patch: PatchRefused},
	}
	registry, err := NewRegistry([]*Resource{books, shops}, &Documented{Template: "/books/{id}", Method: "POST"})
	if err != nil {
		t.Fatal(err)
	}
	for name, resolver := range map[string]Resolver{
		"Kubernetes": registry, "Plain": NewPlain(registry, NamedResources{}, View{LeadsTo: anyPath, Reaches: anyPath}),
	} {
		for path, want := range map[string]string{
			"/books":          "GET, HEAD, POST, OPTIONS",
			"/books/1":        "POST, PUT, DELETE, OPTIONS",
			"/shops":          "GET, HEAD, POST, DELETE, OPTIONS",
			"/shops/1":        "GET, HEAD, PUT, DELETE, OPTIONS",
			"/shops/1/status": "GET, HEAD, PUT, OPTIONS",
			"/other":          "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
		} {
			if got := Allowed(resolver, []byte(path), "", isDescribed); got != want {
				t.Errorf("%s: %s takes %s, want %s", name, path, got, want)
			}
		}
		if got, want := Allowed(resolver, []byte("/shops"), http.MethodPost, isDescribed),
			"GET, HEAD, DELETE, OPTIONS"; got != want {
			t.Errorf("%s: without POST /shops takes %s, want %s", name, got, want)
		}
		if info, res, err := resolver.Resolve(http.MethodGet, []byte("/books/1")); name == "Plain" {
			if err != nil || res != books || !info.IsUndescribed || !info.IsOtherMethod {
				t.Errorf("%s: got %+v, %v, %v", name, info, res, err)
			}
		} else {
			want := `get is not supported on resources of kind "books"`
			if refused, is := err.(*status.Error); !is || refused.ErrStatus.Code != http.StatusMethodNotAllowed ||
				refused.ErrStatus.Message != want || res != books {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		}
		info, res, err := resolver.Resolve(http.MethodPatch, []byte("/shops/1"))
		want := `patch is not supported on resources of kind "shops"`
		if refused, is := err.(*status.Error); !is || refused.ErrStatus.Message != want || res != shops ||
			info.IsOtherMethod {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// isDescribed reports whether files describe the method of a request.
func isDescribed(i *Info, _ *Resource) bool { return !i.IsOtherMethod }
