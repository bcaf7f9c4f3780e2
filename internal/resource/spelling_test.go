package resource

import (
	"math/rand/v2"
	"net/url"
	pathpkg "path"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/readings/readingstest"
)

var (
	slashes         = regexp.MustCompile(`/+`)
	formatExtension = regexp.MustCompile(`\.[^./?]+$`)
	suffixPattern   = regexp.MustCompile(`\.[A-Za-z]+$`)
	pathParameters  = regexp.MustCompile(`;[^/]*`)
)

// servers are how servers make the path that they route by of the path in a request. Each is a model of the
// documented behaviour of the servers that it names, at its most lenient setting.
var servers = map[string]func(string) string{
	"nginx": func(p string) string { // merge_slashes on; locations are matched after decoding
		return pathpkg.Clean(mergeSlashes(decoded(p, 1)))
	},
	"nginx before a server that decodes again": func(p string) string {
		return pathpkg.Clean(mergeSlashes(decoded(p, 2)))
	},
	"Node, WHATWG URL": func(p string) string { // dots also encoded, '\' is '/'
		p = strings.NewReplacer(`\`, "/", "%2e", ".", "%2E", ".").Replace(p)
		return pathpkg.Clean(p)
	},
	"Express": func(p string) string { // neither case nor a slash at the end counts; parameters are decoded
		return strings.TrimSuffix(strings.ToLower(decoded(strings.ReplaceAll(p, "//", "/"), 1)), "/")
	},
	"WSGI (Django, Flask)": func(p string) string {
		// PATH_INFO is decoded; '$' of regular expressions lets a newline follow
		return strings.TrimSuffix(strings.TrimSuffix(mergeSlashes(decoded(p, 1)), "\n"), "/")
	},
	"Rails": func(p string) string { // Journey: slashes merged, none at the end, encoding in upper case, (.:format)
		p = strings.TrimSuffix(mergeSlashes(decoded(p, 1)), "/")
		return formatExtension.ReplaceAllString(p, "")
	},
	"Rack::MethodOverride behind a cut": func(p string) string {
		p, _, _ = strings.Cut(decoded(p, 1), "?")
		return strings.TrimSuffix(p, "/")
	},
	"Tomcat and Spring": func(p string) string {
		// ';name=value' is cut before decoding, suffix patterns, a slash at the end
		p = pathParameters.ReplaceAllString(strings.ReplaceAll(p, `\`, "/"), "")
		p = strings.TrimSuffix(pathpkg.Clean(mergeSlashes(decoded(p, 1))), "/")
		return suffixPattern.ReplaceAllString(p, "")
	},
	"Jetty, decoding before it cuts": func(p string) string {
		return pathpkg.Clean(pathParameters.ReplaceAllString(decoded(p, 1), ""))
	},
	"IIS": func(p string) string { // case, blanks and dots at the end, '\', double decoding, %uXXXX
		p = strings.ToLower(strings.ReplaceAll(readings.Decode(readings.Decode(p, readings.Everything),
			readings.Everything), `\`, "/"))
		parts := strings.Split(pathpkg.Clean(mergeSlashes(p)), "/")
		for i := range parts {
			parts[i] = strings.TrimRight(parts[i], " .")
		}
		return strings.Join(parts, "/")
	},
	"a server in C": func(p string) string { // the string ends at NUL
		p, _, _ = strings.Cut(decoded(p, 1), "\x00")
		return p
	},
	"a server that folds Unicode": func(p string) string { return fold(decoded(p, 1)) },
	"PHP's front controllers": func(p string) string {
		return strings.TrimPrefix(mergeSlashes(decoded(p, 1)), "/index.php")
	},
}

func decoded(p string, times int) string {
	for range times {
		if d, err := url.PathUnescape(p); err == nil {
			p = d
		}
	}
	return p
}

func mergeSlashes(p string) string { return slashes.ReplaceAllString(p, "/") }

// describedPaths are templates as regular expressions. Below a collection whose other paths are denied all is
// described.
var describedPaths = regexp.MustCompile(`^(/shop/search|/shop/users/[^/]+/ban|/v3/kv/put|/vault/secrets(/.*)?|/shop/users|/shop/users/[^/]+|/shop/users/[^/]+/status|/v1\.2/reports/|/v1\.2/reports|` +
	`/apis/apps/[^/]+/deployments|/apis/apps/[^/]+/namespaces/[^/]+/deployments(/[^/]+(/[^/]+)?)?|/apis/apps/[^/]+/deployments/[^/]+)$`)

// postedPaths are the ones of them that POST is described for.
var postedPaths = regexp.MustCompile(`^(/shop/search|/shop/users/[^/]+/ban|/vault/secrets(/.*)?|/shop/users|/v1\.2/reports/|/v1\.2/reports|/v3/kv/put|` +
	`/apis/apps/[^/]+/deployments|/apis/apps/[^/]+/namespaces/[^/]+/deployments(/[^/]+(/[^/]+)?)?|/apis/apps/[^/]+/deployments/[^/]+|/shop/users/stop)$`)

func spelledAPI(t testing.TB) *Plain {
	operation := func(plural, name string, verb Verb, path string) *Resource {
		return &Resource{Group: "shop", Version: "v1", Names: Names{Kind: "Kind", Plural: plural}, Envelope: Bare,
			Paths:     []string{path},
			Operation: &Operation{Subresource: name, Method: "POST", Verb: verb}}
	}
	r, err := NewRegistry([]*Resource{
		{Group: "shop", Version: "v1", Names: Names{Kind: "User", Plural: "users"}, Envelope: Bare,
			Subresources: Subresources{Status: true}, Paths: []string{"/shop/users", "/shop/users/{name}"}},
		{Group: "shop", Version: "v1", Names: Names{Kind: "Report", Plural: "reports"}, Envelope: Bare,
			Paths: []string{"/v1.2/reports/"}},
		{Group: "shop", Version: "v1", Names: Names{Kind: "Secret", Plural: "secrets"}, Envelope: Bare,
			Subresources: Subresources{OtherPaths: OtherPathsDeny},
			Paths:        []string{"/vault/secrets", "/vault/secrets/{name}"}},
		operation("users", "search", VerbCreate, "/shop/search"),
		operation("users", "ban", VerbCreate, "/shop/users/{name}/ban"),
		operation("users", "stop", VerbCreate, "/shop/users/stop"), operation("kv", "", VerbUpdate, "/v3/kv/put"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewPlain(r, NamedResources{Resources: []schema.GroupResource{{Group: "apps", Resource: "deployments"}}},
		View{LeadsTo: anyPath, Reaches: anyPath})
}

// spell changes how a path is spelled, at one place.
func spell(r *rand.Rand, p string) string {
	at := r.IntN(len(p))
	insert := func(what ...string) string { return p[:at] + what[r.IntN(len(what))] + p[at:] }
	switch r.IntN(9) {
	case 0:
		if p[at] == '%' || r.IntN(2) == 0 {
			return p[:at] + "%" + string([]byte{hexOf(p[at] >> 4), hexOf(p[at] & 15)}) + p[at+1:]
		}
		return p[:at] + "%25" + string([]byte{hexOf(p[at] >> 4), hexOf(p[at] & 15)}) + p[at+1:]
	case 1:
		if c := p[at]; 'a' <= c && c <= 'z' {
			return p[:at] + strings.ToUpper(string(c)) + p[at+1:]
		}
		return p
	case 2:
		return insert("/", "//", `\`, "%2F", "%5C", "%5c")
	case 3:
		return insert("/.", "/..", "/x/..", "/%2e", "/%2E%2e", "/./", "/.;x/")
	case 4:
		return insert(";", ";a=b", ";jsessionid=1", "%3B")
	case 5:
		return p + []string{"/", ".json", ".xml", "%20", ".", "%00", "%00.png", "%0A", "%0a", "%3F", "%23", "%09",
			".json/", "//"}[r.IntN(14)]
	case 6:
		return insert("%20", "%00", "%C2%AD", "%E2%80%8B", "%EF%BB%BF")
	case 7:
		return strings.NewReplacer("s", "%C5%BF").Replace(p)
	}
	return "/index.php" + p
}

func hexOf(n byte) byte { return "0123456789ABCDEF"[n] }

// No spelling of a described path passes as undescribed, whichever server reads it.
func TestSpellings(t *testing.T) {
	api := spelledAPI(t)
	described := []string{"/shop/users", "/shop/users/5", "/shop/users/5/status", "/v1.2/reports/",
		"/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/x/deployments/y",
		"/shop/search", "/shop/users/stop", "/shop/users/5/ban", "/v3/kv/put", "/vault/secrets", "/vault/secrets/5",
		"/vault/secrets/5/versions/2"}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	reached := map[string]int{}
	for range 60_000 {
		p := described[r.IntN(len(described))]
		for range 1 + r.IntN(3) {
			if r.IntN(3) == 0 {
				p = readingstest.Misspell(r, p)
			} else {
				p = spell(r, p)
			}
		}
		checkSpelling(t, api, p, reached)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for server := range servers {
		if reached[server] < 100 {
			t.Errorf("%s: only %d spellings reach a described path", server, reached[server])
		}
	}
}

func checkSpelling(t testing.TB, api *Plain, p string, reached map[string]int) {
	if p[0] != '/' {
		return // no server takes such a target
	}
	info, _, err := api.Resolve("POST", []byte(p))
	paths := describedPaths
	if info.IsOtherMethod {
		paths = postedPaths
	}
	for server, read := range servers {
		if !paths.MatchString(read(p)) {
			continue
		}
		reached[server]++
		if err == nil && !info.IsResource {
			t.Errorf("%s reads %q as %q, which is described, and it passes as undescribed", server, p, read(p))
		}
	}
	if err != nil || info.IsResource || !targets.MatchString(p) {
		return
	}
	for server, read := range readingstest.Servers {
		if text, is := read(p); is && paths.MatchString(text) {
			t.Errorf("%s reads %q as %q, which is described, and it passes as undescribed", server, p, text)
		}
	}
}

// targets are the paths that the gateway takes at all.
var targets = regexp.MustCompile(`^/([^\x00-\x20\x7f?%]|%[0-9A-Fa-f]{2})*$`)

func FuzzSpelling(f *testing.F) {
	f.Add("/shop/%75sers;x/..%2fusers//5")
	f.Add("/v1.2/reports%00/")
	f.Add("/%2561pis/apps/v1/deployments")
	f.Add("/shop/%c0%af../users")
	f.Add("/shop/%u0075sers")
	f.Add("//host/shop/users")
	f.Add(`/\\host\shop/users`)
	f.Add("/shop/users;/x")
	api := spelledAPI(f)
	f.Fuzz(func(t *testing.T, p string) {
		if p != "" {
			checkSpelling(t, api, p, map[string]int{})
			sameLook(t, api, "POST", p)
		}
	})
}

// A path with a slash at the end, or without the one that it is described with, is the described one.
func TestSlashAtTheEnd(t *testing.T) {
	api := spelledAPI(t)
	for _, target := range []string{"/shop/users/", "/shop/users", "/shop/users/5/", "/v1.2/reports", "/v1.2/reports/",
		"/shop/users/5/status/"} {
		if info, r, err := api.Resolve("GET", []byte(target)); err != nil || r == nil || !info.IsResource ||
			info.Path != target {
			t.Errorf("%s: got %+v, %v, %v", target, info, r, err)
		}
	}
}

// What cannot be taken for a described path passes, however it is spelled.
func TestUndescribed(t *testing.T) {
	api := spelledAPI(t)
	for _, target := range []string{
		"/", "/shop", "/shop/", "/shop/user", "/shop/users/5/activate", "/shop/users/5/activate/", "/api",
		"/api/v1/query_range", "/api/v1.2/x",
		"/apis", "/apis/apps/v1", "/api/v1/user/repos", "/API/v1/x", "/a%2Fb", "/a;b", "//", "/x//y", "/x/../y",
		"/.well-known/x", "/é", "/%", "/%zz",
		"/shop/customers/../orders", "/v1.2/", "/v1.2/report", "/x?_method=DELETE&;&%zz",
		"/api/collections/_superusers/auth-with-password",
		"/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w", "/shop/users/5/status/history",
		"/apis/apps/v1/statefulsets/x",
	} {
		for _, method := range []string{"GET", "POST", "PURGE", "OPTIONS"} {
			info, r, err := api.Resolve(method, []byte(target))
			path, query, _ := strings.Cut(target, "?")
			verb, other := VerbNamed(strings.ToLower(method)), ""
			if verb == VerbOther {
				other = method
			}
			if want := (Info{Verb: verb, OtherMethod: other, IsUndescribed: true, Path: path,
				Query: query}); err != nil || r != nil || info != want || info.VerbName() != strings.ToLower(method) {
				t.Errorf("%s %s: %+v, %v, %v, want %+v", method, target, info, r, err, want)
			}
		}
	}
}

// A described path has to be spelled as it is described.
func TestSpelledOtherwise(t *testing.T) {
	api := spelledAPI(t)
	for target, want := range map[string]string{
		"/shop/Users":               "the path '/shop/Users' is not spelled as the path of a resource that it could be taken for",
		"/shop/%75sers":             "the request path must not contain '%75': a character that needs no encoding may not be encoded",
		"/shop/users;v=1":           "the request target must not contain ';'",
		"/shop//users":              "the request path must not contain '//'",
		"/shop/users.json":          "the path '/shop/users.json' is not spelled as the path of a resource that it could be taken for",
		"/x/../shop/users":          "the request path must not contain '.' or '..' as a segment, encoded or not",
		"/shop/users/a%2Fb":         "the request path must not contain '%2F'",
		"/index.php/shop/users":     "the path '/index.php/shop/users' is not spelled as the path of a resource that it could be taken for",
		"/shop/Search":              "the path '/shop/Search' is not spelled as the path of a resource that it could be taken for",
		"/v3/kv//put":               "the request path must not contain '//'",
		"/vault/Secrets/5/versions": "the path '/vault/Secrets/5/versions' is not spelled as the path of a resource that it could be taken for",
		"/apis/Apps/v1/deployments": "the path '/apis/Apps/v1/deployments' is not spelled as the path of a resource that it could be taken for",
	} {
		_, _, err := api.Resolve("GET", []byte(target))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", target, err, want)
		}
	}
}

func BenchmarkUndescribed(b *testing.B) {
	api := spelledAPI(b)
	target := []byte("/api/collections/posts/records/abc123?page=1")
	b.ReportAllocs()
	for b.Loop() {
		if info, _, err := api.Resolve("GET", target); err != nil || !info.IsUndescribed {
			b.Fatal(info, err)
		}
	}
}

func anyPath(string) bool { return true }
