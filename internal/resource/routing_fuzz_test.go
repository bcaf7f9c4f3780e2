package resource

import (
	"strings"
	"testing"
)

// slowRoutes are the operations of routedAPI in the order in which a list walk tries them: plain segments before parts,
// parts before variables, at each segment.
var slowRoutes = []string{
	"GET /a/b", "POST /a/b/", "GET /a/b.{x}", "GET /a/{x}-{y}", "GET /a/{x}", "PUT /a/{x}/c", "GET /{x}/b",
	"DELETE /{x}/{y}/c", "GET /",
}

// routedAPI has operations of a document whose paths match the same requests in part.
func routedAPI(t testing.TB) *Plain {
	t.Helper()
	var all []*Documented
	for _, route := range slowRoutes {
		method, template, _ := strings.Cut(route, " ")
		all = append(all, &Documented{Method: method, Template: template, IsHeld: true})
	}
	r, err := NewRegistry(nil, all...)
	if err != nil {
		t.Fatal(err)
	}
	return NewPlain(r, NamedResources{}, View{LeadsTo: anyPath, Reaches: anyPath})
}

// slowly finds the operation of a request by walking the list of them; "" if there is none.
func slowly(method, path string) string {
	for _, route := range slowRoutes {
		of, template, _ := strings.Cut(route, " ")
		if of == method && slowMatch(strings.TrimSuffix(template, "/"), strings.TrimSuffix(path, "/")) {
			return route
		}
	}
	return ""
}

// slowMatch compares a template with a path, segment by segment.
func slowMatch(template, path string) bool {
	wanted, segments := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(segments) {
		return false
	}
	for i, w := range wanted {
		if !slowSegment(w, segments[i]) {
			return false
		}
	}
	return true
}

// slowSegment compares a segment with one of a template, whose variables stand for at least one character.
func slowSegment(wanted, s string) bool {
	before, rest, isVariable := strings.Cut(wanted, "{")
	if !isVariable {
		return wanted == s
	}
	_, after, _ := strings.Cut(rest, "}")
	s, found := strings.CutPrefix(s, before)
	for n := 1; found && n <= len(s); n++ {
		if slowSegment(after, s[n:]) {
			return true
		}
	}
	return false
}

// FuzzRouting compares the trie with a walk over the list of operations, for paths that every server reads in one way.
func FuzzRouting(f *testing.F) {
	for _, path := range []string{"/", "/a/b", "/a/b/", "/a/b.x", "/a/x-y", "/a/--", "/a/-", "/a/x/c", "/x/b", "/x/y/c",
		"/a/b/c/", "/a/b.", "/A/b", "/x/b/"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			f.Add(method, path)
		}
	}
	api := routedAPI(f)
	f.Fuzz(func(t *testing.T, method, path string) {
		if path == "" || path[0] != '/' || strings.Contains(path, "//") || methodOf(method) == methodOther ||
			method == "HEAD" || method == "OPTIONS" {
			return
		}
		for i := range len(path) {
			if c := path[i]; c != '/' && !isUnreserved(c) {
				return
			}
		}
		sameLook(t, api, method, path)
		info, _, err := api.Resolve(method, []byte(path))
		got, want := "", slowly(method, path)
		if info.Documented != nil {
			got = info.Documented.Method + " " + info.Documented.Template
		}
		if err == nil && got != want {
			t.Errorf("%s %s: got '%s', want '%s'", method, path, got, want)
		}
		if err != nil && want != "" && !strings.Contains(path, ".") {
			t.Errorf("%s %s is '%s', and is refused: %v", method, path, want, err)
		}
	})
}
