package resource

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// issuesAPI is an ordinary API whose files describe objects with several variables, an object without a collection,
// operations, and every path below one of the collections.
func issuesAPI(t testing.TB) *Plain {
	t.Helper()
	bare := func(plural string, paths ...string) *Resource {
		return &Resource{Group: "forge.example.com", Version: "v1", Names: Names{Kind: "Kind", Plural: plural},
			Envelope: Bare, Paths: paths}
	}
	operation := func(plural, name, method string, verb Verb, path string) *Resource {
		r := bare(plural, path)
		r.Operation = &Operation{Subresource: name, Method: method, Verb: verb}
		return r
	}
	me := bare("me", "/me")
	me.Singleton, me.Subresources = true, Subresources{Other: []string{"avatar"}}
	issues := bare("issues", "/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/issues/{name}")
	issues.Written.Routes = []string{"/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/issues/{number}"}
	users := bare("users", "/users", "/users/{name}")
	users.Subresources.OtherPaths = OtherPathsDeny
	crd := &Resource{Group: "lab.example.com", Version: "v1", Names: Names{Kind: "Gizmo", Plural: "gizmos"}}
	r, err := NewRegistry([]*Resource{
		me, issues, users, crd,
		operation("users", "bulk", "POST", VerbCreate, "/users/bulk"),
		operation("users", "activate", "POST", VerbCreate, "/users/{name}/activate"),
		operation("users", "activate", "DELETE", VerbUpdate, "/users/{name}/activate"),
		operation("users", "", "POST", VerbUpdate, "/users/{name}"),
		operation("kv", "", "PUT", VerbCreate, "/v3/kv/put"),
		bare("documents", "/{db}/docs", "/{db}/docs/{name}"),
		bare("attachments", "/{a}/{b}/{c}/{d}/{name}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewPlain(r, NamedResources{}, View{LeadsTo: anyPath, Reaches: anyPath})
}

// How requests resolve by templates with further variables, objects without a collection, and
// operations.
func TestTemplates(t *testing.T) {
	api := issuesAPI(t)
	for _, tt := range []struct{ method, target, want string }{
		{"GET", "/repos/octo/hello%20world/issues",
			"list issues route=/repos/{owner}/{repo}/issues owner=octo repo=hello%20world"},
		{"POST", "/repos/octo/hello/issues", "create issues route=/repos/{owner}/{repo}/issues owner=octo repo=hello"},
		{"PATCH", "/repos/octo/hello/issues/7", "patch issues name=7 route=/repos/{owner}/{repo}/issues/{number} owner=octo repo=hello number=7"},
		{"POST", "/repos/octo/hello/issues/7", "undescribed"},
		{"GET", "/repos/octo/hello/issues/7/labels", "undescribed"},
		{"GET", "/repos/octo/hello/issues/", "list issues route=/repos/{owner}/{repo}/issues owner=octo repo=hello"},

		{"GET", "/me", "get me route=/me"},
		{"PUT", "/me", "update me route=/me"},
		{"PATCH", "/me", "patch me route=/me"},
		{"DELETE", "/me", "delete me route=/me"},
		{"POST", "/me", "undescribed"},
		{"OPTIONS", "/me", "options me route=/me"},
		{"PUT", "/me/avatar", "update me/avatar route=/me"},
		{"PUT", "/me/other", "undescribed"},
		{"PUT", "/ME", "404"},

		{"POST", "/users/bulk", "create users/bulk route=/users/bulk"},
		{"PUT", "/users/bulk", "update users name=bulk route=/users/{name} name=bulk"},
		{"POST", "/users/7/activate", "create users/activate name=7 route=/users/{name}/activate name=7"},
		{"DELETE", "/users/7/activate", "update users/activate name=7 route=/users/{name}/activate name=7"},
		{"PUT", "/users/7/activate", "405"},
		{"GET", "/users/7/activate", "405"},
		{"OPTIONS", "/users/7/activate", "options users/activate name=7 route=/users/{name}/activate name=7"},
		{"POST", "/users/7/Activate", "404"},
		{"POST", "/users/7", "update users name=7 route=/users/{name} name=7"},
		{"GET", "/users/7/friends", "404"},
		{"GET", "/Users/7/friends", "404"},
		{"PUT", "/v3/kv/put", "create kv route=/v3/kv/put"},
		{"POST", "/v3/kv/put", "undescribed"},
		{"POST", "/v3/kv/range", "undescribed"},

		{"PUT", "/db/docs/1", "update documents name=1 route=/{db}/docs/{name} db=db name=1"},
		{"PUT", "/apis/lab.example.com/v1/gizmos/g", "update gizmos name=g route="},
		{"PUT", "/apis/lab.example.com/v1/gismos/g", "update attachments name=g route=/{a}/{b}/{c}/{d}/{name} a=apis b=lab.example.com c=v1 d=gismos name=g"},
	} {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			if got := summary(t, api, tt.method, tt.target); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func summary(t *testing.T, api *Plain, method, target string) string {
	info, _, err := api.Resolve(method, []byte(target))
	switch {
	case err != nil:
		return fmt.Sprint(statusOf(t, err).Code)
	case info.IsUndescribed:
		return "undescribed"
	}
	var b strings.Builder
	b.WriteString(info.Verb.String() + " " + info.Resource)
	if info.Subresource != "" {
		b.WriteString("/" + info.Subresource)
	}
	if info.Name != "" {
		b.WriteString(" name=" + info.Name)
	}
	b.WriteString(" route=" + info.Route)
	for name, raw := range info.Parameters {
		b.WriteString(" " + name + "=" + raw)
	}
	return b.String()
}

// The path of an object that is created has what the path of its collection has.
func TestExpand(t *testing.T) {
	info, _, err := issuesAPI(t).Resolve(http.MethodPost, []byte("/repos/octo/hello%20world/issues"))
	if err != nil {
		t.Fatal(err)
	}
	got := info.Expand([]byte("x"), "/v2/{namespace}/{repo}/{owner}/{nobody}/{name}.json", "team", "7")
	if want := "x/v2/team/hello%20world/octo//7.json"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An API server's own paths are not taken for paths of a template that begins with a variable.
func TestVariableFirst(t *testing.T) {
	r, err := NewRegistry([]*Resource{{Version: "v1", Names: Names{Kind: "A", Plural: "as"},
		Subresources: Subresources{OtherPaths: OtherPathsDeny}, Paths: []string{"/{x}/{y}", "/{x}/{y}/{name}"}}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"/a/b/c": "as", "/api/v1/pods": "pods", "/api/v1": "",
		"/apis/apps/v1/deployments": "deployments"} {
		if info, _, err := r.Resolve("GET", []byte(target)); err != nil || info.Resource != want {
			t.Errorf("%s: got %q, %v", target, info.Resource, err)
		}
	}
	if _, _, err := r.Resolve("GET", []byte("/a/b/c/d")); err == nil {
		t.Error("/a/b/c/d is not refused")
	}
}

// A segment begins with a semicolon only if a document says so of its variable, and the name has it.
func TestMatrix(t *testing.T) {
	books := &Resource{
		Version: "v1", Names: Names{Plural: "books", Kind: "Book"}, Envelope: Bare, Namespaced: true,
		Paths:   []string{"/shops/{namespace}/books", "/shops/{namespace}/books/{name}"},
		Written: Written{Routes: []string{"/shops/{shop}/books", "/shops/{shop}/books/{id}"}, Matrix: []string{"id"}},
	}
	r, err := NewRegistry([]*Resource{books}, &Documented{Template: "/shops/{shop}/open", Method: "POST"})
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	plain := NewPlain(r, NamedResources{}, View{LeadsTo: all, Reaches: all})
	const refused = "the request target must not contain ';'"
	for _, test := range []struct{ request, registry, plain string }{
		{"GET /shops/a/books/;id=5", "get ;id=5", "get ;id=5"},
		{"PUT /shops/a/books/;id=5;id=6", "update ;id=5;id=6", "update ;id=5;id=6"},
		{"GET /shops/a/books/;id=%35", "the request path must not contain '%35': a character that needs no encoding may not be encoded", "the request path must not contain '%35': a character that needs no encoding may not be encoded"},
		{"GET /shops/a/books/5", "get 5", "get 5"},
		{"GET /shops/a/books/5;id=5", refused, refused},
		{"GET /shops/;shop=a/books/;id=5", refused, refused},
		{"POST /shops/;shop=a/books", refused, refused},
		{"GET /shops/a/;books/;id=5", refused, "undescribed"},
		{"GET /shops/a/books/;id=5/pages", refused, refused},
		{"POST /shops/;shop=a/open", refused, "undescribed"},
		{"GET /;id=5", refused, "undescribed"},
		{"GET /other/;id=5", refused, "undescribed"},
	} {
		method, target, _ := strings.Cut(test.request, " ")
		for of, want := range map[Resolver]string{r: test.registry, plain: test.plain} {
			info, res, err := of.Resolve(method, []byte(target))
			got := info.Verb.String() + " " + info.Name
			switch {
			case err != nil:
				got = err.Error()
			case res == nil:
				got = "undescribed"
			}
			if got != want {
				t.Errorf("%T: %s: got %s, want %s", of, test.request, got, want)
			}
		}
	}
}
