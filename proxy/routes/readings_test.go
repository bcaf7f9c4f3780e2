package routes

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/readings/readingstest"
	"github.com/admission-gateway/gateway/internal/routing"
)

const (
	nowhere = -1 // no route takes the path
	refused = -2 // servers may read the path as one that is routed in another way
)

// TestAmbiguous has tables of routes, and for paths the number of the line that takes them.
func TestAmbiguous(t *testing.T) {
	for _, table := range []struct {
		routes string
		paths  map[string]int
	}{
		{ // two prefixes
			"any /pub\nany /admin",
			map[string]int{
				"/pub/../admin": refused, "/pub/%2e%2e/admin": refused, "/pub/.%2E/admin": refused,
				"/pub/..%2fadmin": refused, "/pub/..%5cadmin": refused,
				`/pub\..\admin`: refused, `/pub/..\admin`: refused, "/pub//../admin": refused,
				"/pub/./../admin": refused, "/pub/..;/admin": refused, "/pub/..;x/admin": refused,
				"/pub/.;/../admin": refused, "/pub/x/../../admin": refused, "/pub/%252e%252e/admin": refused,
				"/pub/%2e%2e%2fadmin": refused, "/pub/%252e%252e%252fadmin": refused,
				"/pub/..%3b/admin": refused, "/pub/..%00/admin": refused, "/pub/..%20/admin": refused,
				"/pub/%c0%ae%c0%ae/admin": refused, "/pub/%EF%BC%8E./admin": refused,
				"//admin": refused, "//pub": refused, "/%61dmin": refused, "/%2561dmin": refused, "/admin;x": refused,
				"/admin%3bx": refused, `/admin\x`: refused, "/admin%5cx": refused,
				"/admin%2f": refused, "/admin%00": refused, "/admin%20": refused, "/admin.": refused,
				"/admin#x": refused, "/admin%23x": refused, "/admin%3fx": refused, "//x/admin": refused,
				"/x/../admin": refused, "/x/..;/pub": refused, "/./pub": refused, "/pub/..": refused,
				"/pub/../x": refused, "/pub/..%2f": refused,
				"/pub": 0, "/pub/": 0, "/pub/x": 0, "/pub/./x": 0, "/pub/x/../y": 0, "/pub/x%2fy": 0,
				"/pub/@scope%2fname": 0, "/pub//x": 0, "/pub/a;v=1": 0, "/pub/%61": 0,
				`/pub/a\b`: 0, "/pub/a%5cb": 0, "/pub/%252f": 0, "/pub/a%20b": 0, "/pub/../pub/x": 0,
				"/pub/caf%c3%a9": 0, "/pub/x.": 0, "/pub/a#b": 0, "/pub/..a": 0,
				"/x": nowhere, "/x%20y": nowhere, "/x/../y": nowhere, "//x": nowhere, "/ADMIN": nowhere,
				"/pub.json": nowhere, "/PUB/%2e": nowhere, "/": nowhere, "/%2e%2e/": nowhere,
			},
		},
		{ // a catch-all decides nothing
			"any /",
			map[string]int{"/pub/../admin": 0, "//x": 0, "/%": 0, "/a;b/..;/%252e%252e/": 0, "/pkg/@scope%2fname": 0,
				strings.Repeat("/%2541", 2000): 0},
		},
		{ // unless it is for some hosts, methods or headers alone, which a path does not change
			"a.example /\n*.example / GET\nany / x:1",
			map[string]int{"/pub/../admin": nowhere, "//x": nowhere},
		},
		{ // with others it does
			"any /\nany /admin\nany =/exact",
			map[string]int{
				"/pkg/@scope%2fname": 0, "/a/../b": 0, "/a//b": 0, "/a/../admin": refused, "/admin/..": refused,
				"/admin/../x": refused, "/admin/./x": 1, "/admin/x%2fy": 1,
				"/exact": 2, "/exact/": 0, "/exact/.": refused, "//exact": refused, "/exact;a": refused,
				"/exac%74": refused, "/exact/x%20y": 0, "/exact%2fx": 0,
				strings.Repeat("/%2541", 8000): refused,
			},
		},
		{ // of one rule with several matches all paths lead to the same
			"any /a\nany /b\nany =/c",
			map[string]int{"/a/../b": refused, "/a/%2e": 0},
		},
		{ // expressions are held against paths as clients spell them
			"any /\nany ~/users/[a-zA-Z0-9%]+\nany ~/pkg/@[a-z]+%2[fF][a-z]+",
			map[string]int{
				"/users/a%20b": 1, "/users/%61": 1, "/users/x/../y": refused, "/users/a%2fb": refused,
				"/users/a%7Eb": refused, "/users/a;b": refused, "/%75sers/a": refused,
				"/pkg/@scope%2fname": refused, // what decodes the slash is routed elsewhere
			},
		},
		{ // a route whose own path servers read in different ways takes it as it is written
			"any /\nany /caf%c3%a9\nany /x;v=1\nany =/zone/example.org.",
			map[string]int{
				"/caf%c3%a9": 1, "/caf%c3%a9/a%20b": 1, "/caf%C3%A9": refused, "/x;v=1": 2, "/x;v=1/y%20z": 2, "/x": 0,
				"/x;v=2": refused, "/zone/example.org.": 3, "/zone/example.org": 0,
				"/x;v=1/../caf%c3%a9": refused,
			},
		},
		{ // and it counts less than one that is written so
			"any /\nany /x;v=1\nany /x",
			map[string]int{"/x;v=1": refused, "/x": 2, "/x/a%20": 2},
		},
		{ // hosts and methods are compared as ever
			"gw.example /pub\nany /admin\ngw.example /admin POST",
			map[string]int{"/pub/../admin": refused, "/pub/../x": refused, "/pub/a%2fb": 0},
		},
	} {
		tree, err := New(parsed(table.routes))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range table.paths {
			got, found, err := tree.Find(&Request{Host: []byte("gw.example"), Target: path + "?q=/../x",
				Head: &message.Head{Method: []byte("DELETE")}})
			switch {
			case errors.As(err, new(*AmbiguousError)):
				got = refused
			case !found:
				got = nowhere
			}
			if got != want {
				t.Errorf("%.80s among\n%s\nis taken by line %d (%.200v), want %d", path, table.routes, got, err, want)
			}
		}
	}
}

// TestAmbiguousRule: the matches of one rule are one decision.
func TestAmbiguousRule(t *testing.T) {
	all := parsed("any /a\nany /b")
	all[1].Route = 0
	tree, err := New(all)
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := tree.Find(&Request{Target: "/a/../b", Head: &message.Head{}}); !found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestAmbiguousWords(t *testing.T) {
	tree, err := New(parsed("any /pub\nany /admin"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/pub/../admin": "the path could be read as '/admin', which is routed in another way",
		"/pub/" + strings.Repeat("%252525252525252525", 30) +
			strings.Repeat(`;//%2f\`, 60): "the path can be read in too many ways",
	} {
		if _, _, err := tree.Find(&Request{Target: path, Head: &message.Head{}}); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v, want %s", path, err, want)
		}
	}
}

// checkDecision compares what a tree finds for a path with what it finds for the path as servers read it.
func checkDecision(t testing.TB, tree *Tree[int], routes, path string, outcomes map[int]int) {
	find := func(path string) int {
		route, found := tree.listeners[0].find(path, &search{head: &message.Head{}})
		if !found {
			return nowhere
		}
		return route
	}
	got, found, err := tree.Find(&Request{Target: path, Head: &message.Head{}})
	switch {
	case err != nil:
		got = refused
	case !found:
		got = nowhere
	}
	outcomes[min(got, 0)]++
	if raw := find(path); got != refused && got != raw {
		t.Errorf("%q among\n%s\nis taken by %d, and compared as it is by %d", path, routes, got, raw)
	}
	if got == refused {
		var ambiguous *AmbiguousError
		if errors.As(err, &ambiguous); ambiguous.Reading != "" && find(ambiguous.Reading) == find(path) {
			t.Errorf("%q among\n%s\nis refused, though %q leads to the same", path, routes, ambiguous.Reading)
		}
		if readings.IsPlain(path) {
			t.Errorf("%q is refused", path)
		}
		return
	}
	for name, server := range readingstest.Servers {
		read, is := server(path)
		if !is {
			continue
		}
		if !strings.HasPrefix(read, "/") {
			read = "/" + read
		}
		if of := find(readingstest.Spell(read)); of != got {
			t.Errorf("%q among\n%s\nis taken by %d, and %s reads it as %q, which %d takes", path, routes, got, name,
				read, of)
		}
	}
}

// TestDecisions: no server reads a path that passes as one that is routed in another way.
func TestDecisions(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	segments := []string{"", "/a", "/b", "/a/b", "/a/x", "/b/a", "/x", "/a/b/c", "/a.b", "/aa"}
	outcomes := map[int]int{}
	for range 600 {
		var routes []string
		for range 1 + r.IntN(4) {
			kind := []string{"", "", "=", "~"}[r.IntN(4)]
			value := segments[r.IntN(len(segments))]
			switch {
			case kind == "~":
				value += []string{"/[a-z]+", "(/.*)?", "/x/[^/]*"}[r.IntN(3)]
			case value == "":
				value = "/"
			}
			routes = append(routes, "any "+kind+value)
		}
		text := strings.Join(routes, "\n")
		tree, err := New(parsed(text))
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			path := []string{"/a", "/b/a", "/a/b/c", "/x/y", "/a/x/q"}[r.IntN(5)]
			for range 1 + r.IntN(3) {
				path = readingstest.Misspell(r, path)
			}
			if (&message.Head{}).Parse([]byte("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"), &message.Options{}) == nil {
				checkDecision(t, tree, text, path, outcomes)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, outcome := range []int{0, nowhere, refused} {
		if outcomes[outcome] < 500 {
			t.Errorf("only %d paths have the outcome %d: %v", outcomes[outcome], outcome, outcomes)
		}
	}
}

func FuzzDecisions(f *testing.F) {
	f.Add("/pub\n/admin", "/pub/..;/%61dmin")
	f.Add("/\n=/a/b\n~/a/[a-z]+", "/a//x/../b%2f")
	f.Add("/a\n/a/b", `/a\.\b#`)
	f.Fuzz(func(t *testing.T, routes, path string) {
		if !strings.HasPrefix(path, "/") ||
			strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '?' }) {
			t.Skip()
		}
		if (&message.Head{}).Parse([]byte("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"), &message.Options{}) != nil {
			t.Skip() // which the gateway refuses
		}
		var lines []string
		for line := range strings.SplitSeq(routes, "\n") {
			if value := strings.TrimLeft(line, "=~"); strings.HasPrefix(value, "/") && readings.IsPlain(value) &&
				!strings.ContainsAny(value, " \t") {
				lines = append(lines, "any "+line)
			}
		}
		text := strings.Join(lines, "\n")
		all := parsed(text)
		for i := range all {
			if p := &all[i].Match.Path; p.Kind != routing.PathExpression && !strings.HasPrefix(p.Value, "/") ||
				strings.ContainsAny(p.Value, "\r\v\f\u0085\u00a0") {
				t.Skip()
			}
			if p := &all[i].Match.Path; p.Kind == routing.PathExpression && strings.ContainsAny(p.Value, `[(.\?%`) {
				t.Skip() // which may tell apart how a byte is encoded
			}
		}
		tree, err := New(all)
		if err != nil || len(tree.listeners) == 0 {
			t.Skip()
		}
		checkDecision(t, tree, text, path, map[int]int{})
	})
}

// BenchmarkFindAmbiguous: what a path costs that has to be looked at in all of its readings.
func BenchmarkFindAmbiguous(b *testing.B) {
	tree, err := New(parsed("any /\nany /admin"))
	if err != nil {
		b.Fatal(err)
	}
	r := &Request{Target: "/pkg/@scope%2fname", Head: &message.Head{}}
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := tree.Find(r); !found || err != nil {
			b.Fatal(err)
		}
	}
}
