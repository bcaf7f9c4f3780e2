package routes

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/routing"
)

// scan is the rule itself: it looks at every entry in the order in which they count.
func scan(all []Entry[int], r *Request) (int, bool) {
	path, query, _ := strings.Cut(r.Target, "?")
	ordered := slices.Clone(all)
	hostRank := func(e Entry[int]) int {
		switch {
		case e.Host == "":
			return 0
		case strings.HasPrefix(e.Host, "*"):
			return len(e.Host)
		}
		return 1 << 20
	}
	kindRank := func(e Entry[int]) int {
		return map[routing.PathKind]int{routing.PathExact: 2, routing.PathExpression: 1,
			routing.PathPrefix: 0}[e.Match.Path.Kind]
	}
	pathLength := func(e Entry[int]) int {
		if e.Match.Path.Kind == routing.PathPrefix {
			return len(strings.TrimSuffix(e.Match.Path.Value, "/"))
		}
		return len(e.Match.Path.Value)
	}
	slices.SortStableFunc(ordered, func(a, b Entry[int]) int {
		return cmp.Or(
			cmp.Compare(hostRank(b), hostRank(a)), cmp.Compare(kindRank(b), kindRank(a)),
			cmp.Compare(pathLength(b), pathLength(a)),
			cmp.Compare(min(len(b.Match.Method), 1), min(len(a.Match.Method), 1)),
			cmp.Compare(distinct(b.Match.Headers, strings.ToLower), distinct(a.Match.Headers, strings.ToLower)),
			cmp.Compare(distinct(b.Match.Query, strings.Clone), distinct(a.Match.Query, strings.Clone)),
		)
	})
	host := string(r.Host)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		host = host[:i]
	}
	for _, e := range ordered {
		if e.Listener == r.Listener && isOfHost(e.Host, host) && isOfPath(&e.Match.Path, path) &&
			(e.Match.Method == "" || e.Match.Method == string(r.Head.Method)) && hasHeaders(e.Match.Headers, r.Head) &&
			hasParameters(e.Match.Query, query) {
			return e.Route, true
		}
	}
	return 0, false
}

func distinct(all []routing.ValueMatch, key func(string) string) int {
	names := map[string]bool{}
	for _, v := range all {
		names[key(v.Name)] = true
	}
	return len(names)
}

func isOfHost(pattern, host string) bool {
	end, isEnd := strings.CutPrefix(strings.ToLower(pattern), "*")
	host = strings.ToLower(host)
	return pattern == "" || isEnd && len(host) > len(end) && strings.HasSuffix(host, end) || !isEnd && host == end
}

func isOfPath(m *routing.PathMatch, path string) bool {
	switch m.Kind {
	case routing.PathExact:
		return path == m.Value
	case routing.PathExpression:
		return matchesWhole(m.Value, path)
	}
	prefix := strings.TrimSuffix(m.Value, "/")
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || prefix == "" || path[len(prefix)] == '/')
}

func matchesWhole(expression, text string) bool {
	return regexp.MustCompile(`\A(?:` + expression + `)\z`).MatchString(text)
}

func isValue(m *routing.ValueMatch, text string) bool {
	return m.IsExpression && matchesWhole(m.Value, text) || !m.IsExpression && m.Value == text
}

func hasHeaders(all []routing.ValueMatch, head *message.Head) bool {
	seen := map[string]bool{}
	for i := range all {
		if name := strings.ToLower(all[i].Name); !seen[name] {
			seen[name] = true
			var lines []string
			for _, l := range head.Headers() {
				if strings.EqualFold(string(l.Name), name) {
					lines = append(lines, string(l.Value))
				}
			}
			if lines == nil || !isValue(&all[i], strings.Join(lines, ",")) {
				return false
			}
		}
	}
	return true
}

func hasParameters(all []routing.ValueMatch, query string) bool {
	seen := map[string]bool{}
	for i := range all {
		if seen[all[i].Name] {
			continue
		}
		seen[all[i].Name] = true
		found := false
		for pair := range strings.SplitSeq(query, "&") {
			name, text, _ := strings.Cut(pair, "=")
			if pair != "" && unescaped(name) == all[i].Name {
				found = isValue(&all[i], unescaped(text))
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// unescaped decodes as package url does, and what that refuses piece by piece.
func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	at := strings.IndexByte(text, '%')
	for _, n := range []int{3, 1} {
		if at+n <= len(text) {
			if plain, err := url.QueryUnescape(text[:at+n]); err == nil {
				return plain + unescaped(text[at+n:])
			}
		}
	}
	before, _ := url.QueryUnescape(text[:at])
	return before + "%" + unescaped(text[at+1:])
}

// parsed reads entries, one a line: HOST PATH [METHOD] [NAME:VALUE]… [NAME=VALUE]…, where a path has '=' before it if
// it is exact and '~' if it is an expression, and so has a value ('~' alone).
func parsed(text string) (all []Entry[int]) {
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		host, isOther := strings.CutPrefix(words[0], "1:")
		e := Entry[int]{Host: strings.TrimPrefix(host, "any"), Match: &routing.Match{}, Route: i}
		if isOther {
			e.Listener = 1
		}
		e.Match.Path = routing.PathMatch{Kind: routing.PathPrefix, Value: words[1]}
		switch words[1][0] {
		case '=':
			e.Match.Path = routing.PathMatch{Kind: routing.PathExact, Value: words[1][1:]}
		case '~':
			e.Match.Path = routing.PathMatch{Kind: routing.PathExpression, Value: words[1][1:]}
		}
		for _, word := range words[2:] {
			at := strings.IndexAny(word, ":=")
			if at < 0 {
				e.Match.Method = word
				continue
			}
			value, isExpression := strings.CutPrefix(word[at+1:], "~")
			in := &e.Match.Query
			if word[at] == ':' {
				in = &e.Match.Headers
			}
			*in = append(*in, routing.ValueMatch{Name: word[:at], Value: value, IsExpression: isExpression})
		}
		all = append(all, e)
	}
	return all
}

func request(t testing.TB, line string) *Request {
	t.Helper()
	words := strings.Fields(line)
	r := &Request{Host: []byte(strings.TrimPrefix(words[1], "-")), Target: words[2], Head: &message.Head{}}
	text := words[0] + " /x HTTP/1.1\r\nHost: x\r\n"
	for _, word := range words[3:] {
		if word == "listener-1" {
			r.Listener = 1
			continue
		}
		name, value, _ := strings.Cut(word, ":")
		text += name + ": " + value + "\r\n"
	}
	if err := r.Head.Parse([]byte(text+"\r\n"), &message.Options{}); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r
}

// TestFind has tables of routes, and for requests the number of the line that takes them; -1 is none.
func TestFind(t *testing.T) {
	for _, table := range []struct {
		routes   string
		requests map[string]int
	}{
		{ // prefixes by hosts, as the short form of the configuration has them
			"any /\nany /api\nany /api/v1\nShop.example.com /api\n[::1] /six\nany /api",
			map[string]int{
				"GET - /": 0, "GET - /apis": 0, "GET - *": 0, "GET - /api": 1, "GET - /api/": 1, "GET - /api/v10": 1,
				"GET - /api/v1/pods":           2,
				"GET shop.example.com /api/v1": 3, "GET SHOP.example.com:8443 /api/v1": 3,
				"GET shop.example.com /other": 0,
				"GET shop.example.com. /api":  1, "GET [::1]:80 /six/a": 4, "GET [::1] /six": 4,
			},
		},
		{ // the end of hosts
			"*.example.com /\n*.a.example.com /\nb.a.example.com /\n*.com /x\nany /y",
			map[string]int{
				"GET example.com /": -1, "GET .example.com /": -1, "GET x.example.com /": 0, "GET x.y.example.com /": 0,
				"GET a.example.com /":      0,
				"GET b.example.com.evil /": -1, "GET xexample.com /": -1, "GET c.a.example.com /": 1,
				"GET B.a.example.com:80 /": 2,
				"GET c.b.a.example.com /":  1, "GET q.org /y": 4, "GET other.com /x": 3, "GET example.com /x": 3,
			},
		},
		{ // the orders of Gateway API
			"any /match\nany =/match\nany /match/prefix\nany =/match/exact\nany /match/prefix/one\nany =/match/exact/one\nany /",
			map[string]int{
				"GET - /match/exact/one": 5, "GET - /match/exact": 3, "GET - /match": 1,
				"GET - /match/prefix/one/any": 4, "GET - /match/prefix/any": 2,
				"GET - /match/any": 0, "GET - /match/": 0, "GET - /any": 6, "GET - /match/exact/": 0,
			},
		},
		{ // headers, of which more count before fewer, and the first line of equal ones
			"any / version:one\nany / version:two\nany / version:two color:orange\nany / color:blue\nany / color:blue\nany / Color:~re.",
			map[string]int{
				"GET - / Version:one": 0, "GET - / version:two": 1, "GET - / version:two color:orange": 2,
				"GET - / version:two color:blue": 1,
				"GET - / color:orange":           -1, "GET - / color:blue": 3, "GET - / color:red": 5, "GET - / color:redd": -1,
				"GET - /":                      -1,
				"GET - / color:blue color:red": -1, "GET - / version:ONE": -1,
			},
		},
		{ // a value of several lines is one with commas
			"any / x:a,b\nany / y:~(a,)?b\nany / x:a",
			map[string]int{"GET - / x:a x:b": 0, "GET - / x:a,b": 0, "GET - / x:a x:c": -1, "GET - / y:a y:b": 1,
				"GET - / x:a": 2, "GET - / x:b x:a": -1},
		},
		{ // parameters
			"any / animal=whale\nany / animal=dolphin\nany / animal=dolphin color=blue\nany / ANIMAL=Whale\nany /path animal=whale\nany / n=~[0-9]+ a=b+c",
			map[string]int{
				"GET - /?animal=whale": 0, "GET - /?animal=dolphin": 1, "GET - /?color=blue&animal=dolphin": 2,
				"GET - /?ANIMAL=Whale":                3,
				"GET - /?animal=whale&animal=dolphin": 0, "GET - /?animal=whaledolphin": -1,
				"GET - /path?animal=whale": 4, "GET - /?color=blue": -1,
				"GET - /?%61nimal=wh%61le": 0, "GET - /?n=12&a=b%2Bc": 5, "GET - /?n=12&a=b+c": -1,
				"GET - /?n=1x&a=b%2bc": -1, "GET - /": -1, "GET - /?animal": -1,
			},
		},
		{ // what does not fit falls through to the next best, also to another host
			"a.example /v1 POST\n*.example /v1 GET x:1\nany /v1 GET\na.example =/v1 PUT\na.example / DELETE",
			map[string]int{
				"POST a.example /v1": 0, "PUT a.example /v1": 3, "DELETE a.example /v1": 4, "GET a.example /v1 x:1": 1,
				"GET a.example /v1": 2, "PATCH a.example /v1": -1,
				"PUT a.example /v1/": -1,
			},
		},
		{ // a method counts before headers, these before parameters
			"any / q=1 r=1 s=1\nany / h:1\nany / GET\nany / GET h:1",
			map[string]int{"GET - /?q=1&r=1&s=1": 2, "GET - /?q=1&r=1&s=1 h:1": 3, "POST - /?q=1&r=1&s=1 h:1": 1,
				"POST - /?q=1&r=1&s=1": 0, "POST - /": -1},
		},
		{ // expressions count between exact paths and prefixes, and are about whole paths
			"any /users\nany ~/users/[0-9]+\nany =/users/7\nany ~/users/[0-9]+/items/.*\nany ~/(users|groups)/x POST\nany ~.*/end",
			map[string]int{
				"GET - /users/5": 1, "GET - /users/7": 2, "GET - /users/5x": 0, "GET - /users/5/items/": 3,
				"GET - /users/5/items": 0, "GET - /groups/x": -1,
				"POST - /groups/x": 4, "GET - /users/end": 5, "GET - /a/b/end": 5, "GET - /end/": -1,
				"GET - /users/5/items/end": 3,
			},
		},
		{ // listeners are apart
			"any /a\n1:any /b\n1:x.example /",
			map[string]int{"GET - /a": 0, "GET - /b": -1, "GET - /b listener-1": 1, "GET x.example /a listener-1": 2,
				"GET x.example /a": 0},
		},
	} {
		tree, err := New(parsed(table.routes))
		if err != nil {
			t.Fatal(err)
		}
		for line, want := range table.requests {
			got, found, _ := tree.Find(request(t, line))
			if !found {
				got = -1
			}
			if got != want {
				t.Errorf("%s of\n%s\nis taken by line %d, want %d", line, table.routes, got, want)
			}
		}
	}
	if got, found, _ := new(Tree[int]).Find(request(t, "GET - /")); found {
		t.Errorf("a tree without routes found %d", got)
	}
}

func TestExpressionThatIsNone(t *testing.T) {
	for _, routes := range []string{"any ~/a(", "any / h:~[", "any / q=~*", "any ~/a)(?:b"} {
		if _, err := New(parsed(routes)); err == nil {
			t.Errorf("%s is compiled", routes)
		}
	}
}

// TestFindDoesNotAllocate: every request asks.
func TestFindDoesNotAllocate(t *testing.T) {
	tree, err := New(parsed("shop.example.com /api/v1 GET version:two a=b+c\n*.example.com ~/api/[a-z0-9/]+ x:~[0-9]+ n=~[0-9]+\nany /"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{
		"GET shop.example.com:443 /api/v1/orders/7?a=b%2Bc version:two": 0,
		"GET x.example.com /api/v1/orders?n=5 x:12":                     1, "POST shop.example.com /api": 2,
	} {
		r := request(t, line)
		if n := testing.AllocsPerRun(100, func() { _, _, _ = tree.Find(r) }); n != 0 {
			t.Errorf("%s: Find allocates %v times", line, n)
		}
		if got, _, _ := tree.Find(r); got != want {
			t.Errorf("%s is taken by %d, want %d", line, got, want)
		}
	}
}

// FuzzFind: the tree finds what a look at every route in its order finds.
func FuzzFind(f *testing.F) {
	f.Add("any /a\nany /b\na.example /a\nA.example /a/b", "GET a.example:80 /a/b/c")
	f.Add("*.x /\nx /\n*.a.x ~/[a-z]+/b POST\nany =//", "POST b.a.X /a/b x:1")
	f.Add("any / q=~.* h:1\nany / q=1\nany / h:~(1,)?2\n1:any /", "GET - /?q=%31&q=2 h:1 h:2")
	f.Add("any /a/ GET\nany /a h:1 H:2\nany ~/a/?\nany ~(?i)/A", "GET - /a/")
	f.Fuzz(func(t *testing.T, routes, line string) {
		words := strings.Fields(line)
		if len(words) < 3 || words[2] == "" || len(routes) > 2000 {
			t.Skip()
		}
		r := &Request{Host: []byte(words[1]), Target: words[2], Head: &message.Head{}}
		text := "GET /x HTTP/1.1\r\nHost: x\r\n"
		for _, word := range words[3:] {
			name, value, _ := strings.Cut(word, ":")
			text += name + ": " + value + "\r\n"
		}
		if r.Head.Parse([]byte(text+"\r\n"), &message.Options{Underscores: message.PassUnderscores}) != nil {
			t.Skip()
		}
		for _, l := range r.Head.Headers() {
			if l.Dropped {
				t.Skip() // which no route sees, and the rule below does
			}
		}
		all := parsed(routes)
		for i := range all {
			if e := &all[i]; e.Host != "" && strings.ContainsAny(e.Host, ":") || strings.HasPrefix(e.Host, "*") &&
				!strings.HasPrefix(e.Host, "*.") {
				t.Skip() // which no table has
			}
			if p := &all[i].Match.Path; p.Kind != routing.PathExpression && !strings.HasPrefix(p.Value, "/") {
				t.Skip()
			}
		}
		tree, err := New(all)
		if err != nil {
			t.Skip()
		}
		got, found, ambiguous := tree.Find(r)
		if ambiguous != nil {
			t.Skip()
		}
		if want, wanted := scan(all, r); got != want || found != wanted {
			t.Errorf("%s among\n%s\ngot %s, want %s", line, routes, fmt.Sprint(got, found), fmt.Sprint(want, wanted))
		}
	})
}

// BenchmarkFind: what a request costs among many routes.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		entries := make([]Entry[int], n)
		for i := range entries {
			entries[i] = Entry[int]{Host: fmt.Sprintf("h%d.example.com", i%1000),
				Match: &routing.Match{Path: routing.PathMatch{Value: fmt.Sprintf("/api/v%d", i/1000)}}, Route: i}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tree, err := New(entries)
			if err != nil {
				b.Fatal(err)
			}
			r := request(b, "GET h0.example.com /api/v0/orders/7")
			b.ReportAllocs()
			for b.Loop() {
				if _, found, _ := tree.Find(r); !found {
					b.Fatal("no route")
				}
			}
		})
		b.Run(fmt.Sprint("compile/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New(entries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
