package resource

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var factory = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// compare compares an accepted request with what Kubernetes reads from it.
func compare(t *testing.T, method, target string, got Info) {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatalf("%s %q is accepted, but net/url says %v", method, target, err)
	}
	if got.Path+"?"+got.Query != target && got.Path != target {
		t.Fatalf("%q became %q and %q", target, got.Path, got.Query)
	}
	if got.IsResource && got.APIPrefix == "" {
		return // a path template
	}
	want, err := factory.NewRequestInfo(&http.Request{Method: method, URL: u})
	if err != nil {
		t.Fatalf("%s %q is accepted, but Kubernetes says %v", method, target, err)
	}
	if got.IsResource != want.IsResourceRequest {
		t.Fatalf("%s %q: IsResource is %v", method, target, got.IsResource)
	}
	if !got.IsResource {
		return
	}
	name := want.Name
	if VerbNamed(want.Verb).Selects() {
		name = "" // Kubernetes takes it from the field selector
	}
	verb := VerbNamed(want.Verb)
	if method == http.MethodOptions {
		verb = VerbOptions
	}
	if got.Verb != verb || got.APIPrefix != want.APIPrefix || got.Group != want.APIGroup ||
		got.Version != want.APIVersion || got.Resource != want.Resource ||
		got.Subresource != want.Subresource || got.Namespace != want.Namespace || got.Name != name {
		t.Fatalf("%s %q:\ngot  %+v\nwant %+v", method, target, got, want)
	}
	compareOptions(t, target, got, want)
	// The segments in order are the path again.
	var b strings.Builder
	b.WriteString("/" + got.APIPrefix + "/" + got.APIVersion)
	if got.Namespace != "" && got.Resource != "namespaces" {
		b.WriteString("/namespaces/" + got.Namespace)
	}
	b.WriteString("/" + got.Resource)
	if got.Name != "" {
		b.WriteString("/" + got.Name)
	}
	if got.Subresource != "" {
		b.WriteString("/" + got.Subresource)
	}
	if got.Subresource == "proxy" {
		if !strings.HasPrefix(u.Path, b.String()) {
			t.Fatalf("%q reads as %q", target, b.String())
		}
	} else if u.Path != b.String() && !(got.Resource == "namespaces" && got.Namespace != got.Name) {
		t.Fatalf("%q reads as %q", target, b.String())
	}
}

var seeds = []string{
	"/apis/lab.example.com/v1/namespaces/team-a/widgets?watch=true",
	"/apis/lab.example.com/v1/namespaces/team-a/widgets/w1/status",
	"/api/v1/namespaces/team-a", "/api/v1/namespaces/team-a/finalize", "/api/v1/namespaces/team-a/pods/p1/proxy/x/y/",
	"/apis/apps/v1/namespaces/status/status",
	"/api/v1/namespaces/namespaces/namespaces/x", "/apis/lab.example.com/v1/gizmos/a%20b:c",
	"/api/v1/nodes?fieldSelector=metadata.name%3Dn1&watch=0&limit=1",
	"/v2/orders/o%20/status", "/v2/tenants/t/carts/c", "/api/stock/team-a/s1", "/", "/healthz/",
	"/api/v1/pods?watch=1&timeoutSeconds=3", "/a/%2e%2E/b", "/a%C3%A4?%",
	"/api/v1/watch/pods", "/apis/a.b/v1", "/%61pis/x/v1/y", "/api/v1/namespaces/status",
}

// RES-1: accepted Kubernetes paths are read as Kubernetes reads them.
func TestResolveAgainstKubernetes(t *testing.T) {
	r := testRegistry(t)
	accepted := 0
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, prefix := range []string{"/api/v1", "/apis/lab.example.com/v1", "/apis/apps/v1"} {
			for _, ns := range []string{"", "/namespaces/team-a", "/namespaces/status", "/namespaces"} {
				for _, rest := range []string{"", "/widgets", "/widgets/w1", "/gizmos/g1", "/pods/p1/log", "/status",
					"/finalize", "/namespaces/n1", "/widgets/a%20b", "/pods/p/proxy/x"} {
					for _, query := range []string{"", "?watch=true", "?watch=false&fieldSelector=a%3Db"} {
						target := prefix + ns + rest + query
						if info, _, err := r.Resolve(method, []byte(target)); err == nil {
							accepted++
							compare(t, method, target, info)
						}
					}
				}
			}
		}
	}
	if accepted < 800 {
		t.Errorf("only %d requests were accepted", accepted)
	}
}

// compareOptions compares the options of a CONNECT request with what kube-apiserver reads from path
// and query: the path as its getRequestOptions joins it, the query as apimachinery reads it.
func compareOptions(t *testing.T, target string, got Info, want *request.RequestInfo) {
	t.Helper()
	options, err := got.ConnectOptions()
	if got.Connect != (options != nil || err != nil) {
		t.Fatalf("%q: Connect is %v, the options are %v, %v", target, got.Connect, options, err)
	}
	if err != nil || options == nil {
		return
	}
	if got.Subresource == "proxy" {
		path := strings.Join(want.Parts[3:], "/")
		if len(path) > 0 && !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		if strings.HasSuffix(want.Path, "/") && !strings.HasSuffix(path, "/") {
			path += "/"
		}
		if has := reflect.ValueOf(options).Elem().FieldByName("Path").String(); has != path {
			t.Fatalf("%q: the path is %q, want %q", target, has, path)
		}
		return
	}
	query, _ := url.ParseQuery(got.Query)
	if o, ok := options.(*corev1.PodExecOptions); ok &&
		(!slices.Equal(o.Command, query["command"]) || o.Container != query.Get("container")) {
		t.Fatalf("%q: the options are %+v", target, o)
	}
}

// Resolve does not panic, and what it accepts Kubernetes reads in the same way.
func FuzzResolve(f *testing.F) {
	for _, s := range seeds {
		f.Add("GET", s)
		f.Add("POST", s)
		f.Add("DELETE", s)
	}
	r := testRegistry(f)
	f.Fuzz(func(t *testing.T, method, target string) {
		info, res, err := r.Resolve(method, []byte(target))
		if err != nil {
			s := statusOf(t, err)
			if s.Message == "" || s.Reason == "" || s.Code != 400 && s.Code != 404 && s.Code != 405 && s.Code != 422 {
				t.Fatalf("%s %q: %+v", method, target, s)
			}
			return
		}
		if res != nil && (res.Names.Plural != info.Resource || res.Group != info.Group || res.Version != info.Version) {
			t.Fatalf("%s %q: %+v is resource %s", method, target, info, res.GroupVersionResource())
		}
		compare(t, method, target, info)
	})
}

// RES-3: the quick checks are the library's.
func FuzzNamesAgainstKubernetes(f *testing.F) {
	for _, s := range []string{"", "a", "-a", "a-", "a.b", "a..b", ".a", "A", "a_b", strings.Repeat("a", 63),
		strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("a", 254), "ä", ".", "..", "a/b",
		"a%b", "..."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := isLabel(s), len(content.IsDNS1123Label(s)) == 0; got != want {
			t.Errorf("label %q: got %v", s, got)
		}
		if got, want := isSubdomain(s), len(content.IsDNS1123Subdomain(s)) == 0; got != want {
			t.Errorf("subdomain %q: got %v", s, got)
		}
		if got, want := checkName("name", s) == nil, len(content.IsPathSegmentName(s)) == 0; got != want {
			t.Errorf("name %q: got %v", s, got)
		}
	})
}
