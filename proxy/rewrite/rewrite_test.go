package rewrite

import (
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	strip, add, swap, base := New("/shop", "", "", "b:1"), New("", "/v2", "", "b:1"),
		New("/shop", "/v2/api", "", "b:1"), New("/shop", "/base/shop", "", "b:1")
	for _, tt := range []struct {
		rules        *Rules
		target, want string // an empty one is refused
	}{
		{strip, "/shop", "/"},
		{strip, "/shop?a=1", "/?a=1"},
		{strip, "/shop/users/1?a=..", "/users/1?a=.."},
		{strip, "/shop/a%2Fb", "/a%2Fb"},
		{strip, "/shop/a..b/..c", "/a..b/..c"},
		{strip, "/shop//evil.example.com/x", ""},
		{strip, `/shop/\evil.example.com/x`, ""},
		{strip, "/shop/../admin", ""},
		{strip, "/shop/%2e%2e/admin", ""},
		{strip, "/shop/a%2F..%2F..%2Fadmin", ""},
		{strip, "/shop/..%5Cadmin", ""},
		{strip, "/shop/..;x=1/admin", ""},
		{strip, "/shop/%252e%252e/admin", ""},
		{strip, "/shop/%25252525252e", ""},
		{strip, "*", "*"},
		{add, "/", "/v2/"},
		{add, "/users", "/v2/users"},
		{add, "/..", ""},
		{swap, "/shop", "/v2/api"},
		{swap, "/shop/users", "/v2/api/users"},
		{base, "/shop/users", "/base/shop/users"},
		{New("/a", "/a", "h", "b"), "/a/../b", "/a/../b"}, // nothing of the path is rewritten
	} {
		got, err := tt.rules.AppendTarget(nil, []byte(tt.target))
		if string(got) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s → %s: got %q, %v, want %q", tt.target, tt.rules.To, got, err, tt.want)
		}
	}
	if New("/a", "/a", "", "b") != nil {
		t.Error("a route that changes nothing has rules")
	}
	if got := testing.AllocsPerRun(100, func() { _, _ = strip.AppendTarget(room[:0], shopUsers) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

var room, shopUsers = make([]byte, 0, 64), []byte("/shop/users/1?a=b")

func TestForwardedPrefix(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"/shop", "", "X-Forwarded-Prefix: /shop\r\n"},
		{"/shop", "/v2", "X-Forwarded-Prefix: /shop\r\n"},
		{"/shop", "/v2/shop", ""}, // the backend sees it
		{"", "/v2", ""},
	} {
		if got := string(New(tt.from, tt.to, "", "b").Forwarded); got != tt.want {
			t.Errorf("%q to %q: got %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	strip, add, swap := New("/shop", "", "b.internal", "b.internal:9000"), New("", "/v2", "", "b.internal:9000"),
		New("/shop", "/v2", "", "b.internal:9000")
	for _, tt := range []struct {
		rules       *Rules
		value, want string
	}{
		{strip, "/users/1", "/shop/users/1"},
		{strip, "/", "/shop/"},
		{strip, "/?a=1", "/shop/?a=1"},
		{strip, "users/1", "users/1"},
		{strip, "http://b.internal/users/1", "/shop/users/1"},
		{strip, "HTTP://B.internal:9000/users/1#x", "/shop/users/1#x"},
		{strip, "//b.internal/users", "/shop/users"},
		{strip, "https://gw/users/1", "https://gw/shop/users/1"},
		{strip, "https://other.example.com/users", "https://other.example.com/users"},
		{strip, "mailto:a@b//c", "mailto:a@b//c"},
		{add, "/v2/users/1", "/users/1"},
		{add, "/v2", "/"},
		{add, "/v2?a", "/?a"},
		{add, "/v20/users", "/v20/users"},
		{add, "/login", "/login"}, // no request of this route leads there
		{add, "http://b.internal:9000/v2/users", "/users"},
		{add, "http://b.internal:9000/login", "http://b.internal:9000/login"},
		{New("/a", "/a", "b.internal", "b"), "http://b.internal/x", "http://b.internal/x"},
		{New("/a", "/a", "b.internal", "b"), "http://b.internal/a/x", "/a/x"},
		{add, "http://gw/v2/users", "http://gw/users"},
		{swap, "/v2/users", "/shop/users"},
	} {
		if got := tt.rules.Location(tt.value, "gw"); got != tt.want {
			t.Errorf("%s of %s: got %s, want %s", tt.value, tt.rules.To, got, tt.want)
		}
	}
	for _, tt := range []struct {
		rules       *Rules
		value, want string
	}{
		{strip, "a=1; Path=/; HttpOnly", "a=1; Path=/shop; HttpOnly"},
		{strip, "a=1; path=/users", "a=1; path=/shop/users"},
		{strip, "a=1; HttpOnly", "a=1; HttpOnly"},
		{strip, "a=Path=/x; Secure", "a=Path=/x; Secure"},
		{add, "a=1; Path=/v2", "a=1; Path=/"},
		{add, "a=1; Path=/", "a=1; Path=/"},
		{add, "a=1; Path=/v2/users", "a=1; Path=/users"},
		{swap, "a=1; Path=/; Secure", "a=1; Path=/shop; Secure"},
		{swap, "a=1; Path=/other", "a=1; Path=/other"},
	} {
		if got := tt.rules.Cookie(tt.value); got != tt.want {
			t.Errorf("%s of %s: got %s, want %s", tt.value, tt.rules.To, got, tt.want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("/shop/a/../b")
	f.Fuzz(func(t *testing.T, path string) {
		got, err := New("/shop", "/base", "", "b").AppendTarget(nil, []byte("/shop/"+path))
		if err == nil && !strings.HasPrefix(string(got), "/base/") {
			t.Errorf("%q became %q", path, got)
		}
	})
}

// TestOwn: a backend that names itself is not shown, on a route that does not rewrite.
func TestOwn(t *testing.T) {
	for value, want := range map[string]string{
		"http://127.0.0.1:9000/users/1?a=b#c":   "/users/1?a=b#c",
		"https://127.0.0.1:9000/users":          "/users",
		"HTTP://B.internal:9000/users":          "/users",
		"//b.internal:9000/users":               "/users",
		"http://b.internal:9000":                "/",
		"http://b.internal:9000?a":              "/?a",
		"http://b.internal:9000//evil.example/": "http://b.internal:9000//evil.example/",
		"http://b.internal/users":               "http://b.internal/users",
		"http://gw/users":                       "http://gw/users",
		"/users/1":                              "/users/1",
		"users?next=http://b.internal:9000/":    "users?next=http://b.internal:9000/",
		"ftp://b.internal:9000/users":           "ftp://b.internal:9000/users",
	} {
		if got := Own(value, "gw", []string{"127.0.0.1:9000", "b.internal:9000"}); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
	if got := Own("http://gw/users", "gw", []string{"gw"}); got != "http://gw/users" {
		t.Errorf("the host that the client asked for: got %s", got)
	}
}
