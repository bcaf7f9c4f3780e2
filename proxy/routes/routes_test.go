package routes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// scanned is the rule itself: named hosts before any host, longer prefixes before shorter ones, and the first of
// the configuration among equals.
type scanned struct {
	host, prefix string
	number       int
}

func scan(all []scanned, host, path string) (int, bool) {
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b scanned) int {
		return cmp.Or(cmp.Compare(min(len(b.host), 1), min(len(a.host), 1)), cmp.Compare(len(b.prefix), len(a.prefix)))
	})
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		host = host[:i]
	}
	for _, r := range ordered {
		under := strings.HasPrefix(path, r.prefix) && (len(path) == len(r.prefix) || r.prefix == "" || path[len(r.prefix)] == '/')
		if under && (r.host == "" || strings.EqualFold(host, r.host)) {
			return r.number, true
		}
	}
	return 0, false
}

func TestFind(t *testing.T) {
	var tree Tree[string]
	for _, r := range [][2]string{{"", ""}, {"", "/api"}, {"", "/api/v1"}, {"Shop.example.com", "/api"}, {"[::1]", "/six"}, {"", "/api"}} {
		tree.Add(r[0], r[1], r[0]+" "+r[1])
	}
	for _, test := range []struct{ host, path, want string }{
		{"", "/", " "},
		{"", "*", " "},
		{"", "/apis", " "},
		{"", "/api", " /api"},
		{"", "/api/", " /api"},
		{"", "/api/v10", " /api"},
		{"", "/api/v1/pods", " /api/v1"},
		{"shop.example.com", "/api/v1", "Shop.example.com /api"},
		{"SHOP.example.com:8443", "/api/v1", "Shop.example.com /api"},
		{"shop.example.com", "/other", " "},
		{"shop.example.com.", "/api", " /api"},
		{"[::1]:80", "/six/a", "[::1] /six"},
		{"[::1]", "/six", "[::1] /six"},
	} {
		if got, found := tree.Find([]byte(test.host), test.path); !found || got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.host, test.path, got, test.want)
		}
	}
	if got, found := new(Tree[string]).Find(nil, "/"); found {
		t.Errorf("a tree without routes found %q", got)
	}
}

// TestFindDoesNotAllocate: every request asks.
func TestFindDoesNotAllocate(t *testing.T) {
	var tree Tree[*int]
	tree.Add("shop.example.com", "/api/v1", new(int))
	host := []byte("shop.example.com:443")
	if n := testing.AllocsPerRun(100, func() { tree.Find(host, "/api/v1/orders/7") }); n != 0 {
		t.Errorf("Find allocates %v times", n)
	}
}

// FuzzFind: the tree finds what a look at every route in its order finds.
func FuzzFind(f *testing.F) {
	f.Add("|/a /b a.example|/a A.example|/a/b", "a.example:80", "/a/b/c")
	f.Add("| x|/a//b |/a/", "X", "/a//b/")
	f.Add("|/a", "", "*")
	f.Fuzz(func(t *testing.T, routes, host, path string) {
		var tree Tree[int]
		var all []scanned
		for i, r := range strings.Fields(routes) {
			host, prefix, _ := strings.Cut(r, "|")
			if prefix != "" && prefix[0] != '/' || strings.Contains(host, ":") {
				continue // which no configuration has
			}
			tree.Add(host, prefix, i)
			all = append(all, scanned{host, prefix, i})
		}
		got, found := tree.Find([]byte(host), path)
		if want, wanted := scan(all, host, path); got != want || found != wanted {
			t.Errorf("%s %s among %s: got %s, want %s", host, path, routes, fmt.Sprint(got, found), fmt.Sprint(want, wanted))
		}
	})
}
