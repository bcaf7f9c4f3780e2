package resource

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/status"
)

// documentedAPI is an ordinary API with objects, and with operations of a document that are no verbs of them.
func documentedAPI(t testing.TB) *Plain {
	t.Helper()
	pet := &Resource{Group: "pets.example.com", Version: "v1", Names: Names{Kind: "Pet", Plural: "pets"},
		Envelope: Bare, Namespaced: true,
		Slashes: Slashes{AreEncoded: true},
		Paths:   []string{"/v1/{namespace}/{shelf}/pets", "/v1/{namespace}/{shelf}/pets/{name}"},
		Methods: Methods{Collection: NewMethodSet("GET", "POST"), Item: NewMethodSet("GET", "PUT")}}
	graph := &Resource{Group: "pets.example.com", Version: "v1", Names: Names{Kind: "Query", Plural: "queries"},
		Envelope: Bare,
		Paths:    []string{"/graphql"}, Operation: &Operation{Method: "POST", Verb: VerbCreate}}
	held := func(method, template string) *Documented {
		return &Documented{Method: method, Template: template, IsHeld: true, Slashes: Slashes{AreEncoded: true}}
	}
	as := func(d *Documented, trailing TrailingSlash, areEncoded bool) *Documented {
		d.Slashes = Slashes{trailing, areEncoded}
		return d
	}
	r, err := NewRegistry([]*Resource{pet, graph},
		held("GET", "/"),
		held("GET", "/v1/{store}/{shelf}/pets/search"),
		held("POST", "/v1/{store}/{shelf}/pets/{id}/feed"),
		held("DELETE", "/v1/{store}/{shelf}/pets/{id}/feed"),
		held("POST", "/v1/{store}/{shelf}/pets/{id}"),
		held("PUT", "/v1/{store}/{shelf}/pets/{id}"), // which the resource has
		held("POST", "/v1/{store}/{shelf}/pets/{id}:cancel"),
		held("PUT", "/v1/{store}/{shelf}/pets/{first}-{last}.json"),
		held("GET", "/django/"), held("POST", "/django/{id}/run/"),
		held("GET", "/both"), held("GET", "/both/"),
		as(held("GET", "/moved/"), RedirectSlash, true),
		as(held("GET", "/apart/{id}"), DistinctSlash, false),
		&Documented{Method: "GET", Template: "/open/{id}"},
	)
	if err != nil {
		t.Fatal(err)
	}
	return NewPlain(r, NamedResources{}, View{LeadsTo: anyPath, Reaches: anyPath})
}

// TestDocumented: the operations of a document that are no verbs of a resource are found by method and path, however
// their paths are spelled. Other methods are the API's own.
func TestDocumented(t *testing.T) {
	api := documentedAPI(t)
	for request, want := range map[string]string{
		"GET /":                               "documented GET /",
		"GET //":                              "400",
		"GET /v1/a/b/pets/search":             "documented GET /v1/{store}/{shelf}/pets/search",
		"HEAD /v1/a/b/pets/search":            "documented GET /v1/{store}/{shelf}/pets/search",
		"PUT /v1/a/b/pets/search":             "update pets name=search",
		"POST /v1/a/b/pets/7/feed":            "documented POST /v1/{store}/{shelf}/pets/{id}/feed",
		"DELETE /v1/a/b/pets/7/feed":          "documented DELETE /v1/{store}/{shelf}/pets/{id}/feed",
		"PUT /v1/a/b/pets/7/feed":             "other method of /v1/{store}/{shelf}/pets/{id}/feed",
		"POST /v1/a/b/pets/7/feed/":           "documented POST /v1/{store}/{shelf}/pets/{id}/feed",
		"POST /v1/a/b/pets/7/feed/more":       "undescribed",
		"POST /v1/a/b/pets/7/Feed":            "404",
		"POST /v1/a/b/pets/7/f%65ed":          "400",
		"POST /v1/a/b/pets/7:cancel":          "documented POST /v1/{store}/{shelf}/pets/{id}:cancel",
		"POST /v1/a/b/pets/:cancel":           "documented POST /v1/{store}/{shelf}/pets/{id}",
		"PUT /v1/a/b/pets/7:cancel":           "update pets name=7:cancel",
		"PUT /v1/a/b/pets/x-y.json":           "documented PUT /v1/{store}/{shelf}/pets/{first}-{last}.json",
		"PUT /v1/a/b/pets/-y.json":            "update pets name=-y.json",
		"PUT /v1/a/b/pets/7":                  "update pets name=7",
		"PUT /v1/a/b/pets/7/":                 "update pets name=7",
		"POST /v1/a/b/pets/7":                 "documented POST /v1/{store}/{shelf}/pets/{id}",
		"DELETE /v1/a/b/pets/7":               "other method of pets",
		"PROPFIND /v1/a/b/pets/7":             "other method of pets",
		"OPTIONS /v1/a/b/pets/7":              "options pets name=7",
		"DELETE /v1/a/b/pets":                 "other method of pets",
		"POST /v1/a/b/pets/":                  "create pets",
		"GET /graphql":                        "other method",
		"POST /graphql":                       "create queries",
		"GET /django":                         "documented GET /django/",
		"GET /django/":                        "documented GET /django/",
		"POST /django/7/run":                  "documented POST /django/{id}/run/",
		"GET /both":                           "documented GET /both",
		"GET /both/":                          "documented GET /both/",
		"GET /moved/":                         "documented GET /moved/",
		"GET /moved":                          "documented GET /moved/ redirected",
		"GET /apart/7":                        "documented GET /apart/{id}",
		"GET /apart/7/":                       "undescribed",
		"GET /apart/a%2Fb":                    "400",
		"GET /apart/%7E":                      "400",
		"GET /open/7":                         "unchecked GET /open/{id}",
		"GET /open/a%2Fb":                     "undescribed",
		"POST /v1/a/b/pets/x%2Fy":             "documented POST /v1/{store}/{shelf}/pets/{id}",
		"PUT /v1/a/b/pets/x%2Fy":              "update pets name=x/y",
		"PUT /v1/a/b/pets/%2F":                "update pets name=/",
		"PUT /v1/a/b/pets/100%25":             "update pets name=100%",
		"PUT /v1/a/b/pets/%7Ex":               "update pets name=~x",
		"PUT /v1/a/b/pets/x%252Fy":            "400",
		"PUT /v1/a/b/pets/x%25%32Fy":          "400",
		"PUT /v1/a/b/pets/x%2F..":             "400",
		"PUT /v1/a/b/pets/x%2F%2e%2E%2fy":     "400",
		"PUT /v1/a/b/pets/%2Fx":               "400",
		"PUT /v1/a/b/pets/x%2F%2Fy":           "400",
		"PUT /v1/a/b/pets/x%5Cy":              "400",
		"PUT /v1/a/b/pets/x%00y":              "400",
		"PUT /v1/a/b%2Fpets/7":                "400",
		"POST /v1/a/b/pets/7%2Ffeed":          "documented POST /v1/{store}/{shelf}/pets/{id}",
		"GET /v1/a/b/pets/search?x=1;y=2":     "400",
		"GET /v1/a/b/pets/search?_method=PUT": "400",
	} {
		method, target, _ := strings.Cut(request, " ")
		info, res, err := api.Resolve(method, []byte(target))
		var got string
		var refusal *status.Error
		switch {
		case errors.As(err, &refusal):
			got = fmt.Sprint(refusal.ErrStatus.Code)
		case info.IsOtherMethod:
			got = "other method"
			if res != nil {
				got += " of " + res.Names.Plural
			} else if info.Template != "" && info.Template != "/graphql" {
				got += " of " + info.Template
			}
		case info.Documented != nil:
			got = map[bool]string{true: "unchecked ", false: "documented "}[info.IsUndescribed] +
				info.Documented.Method + " " + info.Route
			if info.IsRedirected {
				got += " redirected"
			}
		case info.IsUndescribed:
			got = "undescribed"
		default:
			got = info.Verb.String() + " " + info.Resource
			if info.Name != "" {
				got += " name=" + info.Name
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	if got, want := Allowed(api, []byte("/v1/a/b/pets/7"), "DELETE", isDescribed),
		"GET, HEAD, POST, PUT, OPTIONS"; got != want {
		t.Errorf("allowed are %s, want %s", got, want)
	}
}

// TestTemplatesOfDocuments: what no request can have is no template, and the reason says which part it is.
func TestTemplatesOfDocuments(t *testing.T) {
	for template, want := range map[string]string{
		"/": "", "/a/{b}": "", "/a/{b}.{c}/": "",
		"":                       "path '' must begin with '/'",
		"pets":                   "path 'pets' must begin with '/'",
		"/pets//x":               "path '/pets//x' must be one that a request can have: the request path must not contain '//'",
		"/pets/{":                "path '/pets/{' must have a name in each pair of braces",
		"/pets/}x":               "path '/pets/}x' must have a name in each pair of braces",
		"/pets/{}":               "path '/pets/{}' must have a name in each pair of braces",
		"/pets/{a{b}":            "path '/pets/{a{b}' must have a name in each pair of braces",
		"/a?b":                   "path '/a?b' must not contain '?': what follows it is the query, whose parameters are in `parameters`",
		"/oauth2/token#refresh":  "path '/oauth2/token#refresh' must not contain '#': what follows it is a fragment, and clients send none",
		"/a%2Fb":                 "path '/a%2Fb' must be written without percent-encoding, and without ';' before a segment",
		strings.Repeat("/a", 15): "path '" + strings.Repeat("/a", 15) + "' must have at most 14 segments",
	} {
		got := ""
		if err := CheckTemplate(template); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("'%s': got %q, want %q", template, got, want)
		}
	}
}

// Subresources that are declared may be created and connected to, as the subresources of
// undescribed resources.
func TestConnectedSubresources(t *testing.T) {
	r, err := NewRegistry([]*Resource{{Version: "v1", Names: Names{Kind: "Pod", Plural: "pods"}, Namespaced: true,
		Subresources: Subresources{Status: true, Other: []string{"eviction", "exec", "proxy"}}}})
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
