package readings

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/readings/readingstest"
)

// of returns the readings of a path, the path itself among them, and whether there are more.
func of(p string) (all []string, isFull bool) {
	all = []string{p}
	isFull = Any(p, func(reading string) bool {
		all = append(all, reading)
		return false
	})
	return all, isFull
}

func TestPlain(t *testing.T) {
	for p, want := range map[string]bool{
		"/": true, "": true, "/a": true, "/a/b/c/": true, "/.well-known/x": true, "/a.b/c..d": true, "/a/...b": true,
		"/v1/users/a+b,c=d;": false, "/v1/users/a+b,c=d@e:f!$&'()*": true,
		"/a//": false, "//": false, "//a": false, "/a/.": false, "/a/..": false, "/./a": false, "/../a": false,
		"/a./b": false, "/a.": false, "/a%20b": false,
		`/a\b`: false, "/a;b": false, "/a#b": false, "/caf\xc3\xa9": false,
	} {
		if IsPlain(p) != want {
			t.Errorf("IsPlain(%q) is %v", p, !want)
		}
	}
	// Each byte at each place, alone and in pairs, among bytes that carry and borrow.
	for _, other := range []string{"a", ".", "-", "0"} {
		for at := range 24 {
			for _, odd := range []string{"%", `\`, ";", "#", "\x80", "\xff", "//", "./", "/", ".a", "/.", "/.a", "$",
				"<", "\"", "0/", "-/", ":"} {
				text := "/" + strings.Repeat(other, at) + odd + strings.Repeat("a", 20-min(at, 20))
				if got, want := IsPlain(text), isPlainFrom(text, 0) && !strings.HasSuffix(text, "."); got != want {
					t.Fatalf("IsPlain(%q) is %v", text, got)
				}
			}
		}
	}
}

// TestReadings: the complete readings of paths, in the order in which they are looked at.
func TestReadings(t *testing.T) {
	for p, want := range map[string][]string{
		"/a/b":               nil,
		"/pkg/@scope%2fname": {"/pkg/@scope/name"},
		"/caf%C3%A9":         nil, // which cannot be sent otherwise
		"/caf%c3%a9":         {"/caf%C3%A9"},
		"/a%20b":             nil,
		"/a%2fb%20":          {"/a/b%20", "/a/b%20", "/a/b", "/a%2fb"},
		"/pub/../admin":      {"/admin"},
		"/pub/./x":           {"/pub/x"},
		"/pub/..;/admin":     {"/pub/../admin", "/pub/..", "/admin", "/"},
		"/pub/%252e%252e/x":  {"/pub/%2e%2e/x", "/pub/../x", "/x"},
		"//host/admin":       {"/host/admin", "/admin"},
		`/pub\..\x`:          {"/pub/../x", "/x"},
		"/v1.":               {"/v1"},
		"/admin#x":           {"/admin%23x", "/admin"},
		"/%25u0061dmin":      {"/admin"},
		"/a%c0%afb":          {"/a%C0%AFb", "/a/b"},
		"/a%EF%BC%8Fb":       {"/a/b"},
		"/admin%00.png":      {"/admin"},
		"/a/../../..":        {"/"},
	} {
		got, isFull := of(p)
		if isFull || !slices.Equal(got[1:], want) {
			t.Errorf("the readings of %q are %q (too many: %v), want %q", p, got[1:], isFull, want)
		}
	}
	for _, p := range []string{"/%" + strings.Repeat("25", 200) + "41",
		"/a;b//c%2F..%5Cd%00;e%3Bf%20/./g/.%2e;x/%252f%255c//%23y%3Fz", strings.Repeat("/%2541", 16_000)} {
		if _, isFull := of(p); !isFull {
			t.Errorf("%.60q has few readings", p)
		}
	}
}

// isTarget reports whether the gateway takes a path at all.
func isTarget(p string) bool {
	return targets.MatchString(p)
}

var targets = regexp.MustCompile(`^/([^\x00-\x20\x7f?%]|%[0-9A-Fa-f]{2})*$`)

// canonical returns one form of all paths that differ in how a byte is encoded that no server decodes in them: no route
// tells them apart.
func canonical(path string) string {
	for {
		next := encodedPercent.ReplaceAllString(path, "%$1")
		if next == path {
			return encoded.ReplaceAllStringFunc(path, strings.ToUpper)
		}
		path = next
	}
}

var encodedPercent, encoded = regexp.MustCompile(`%25([0-9A-Fa-f]{2})`), regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// has reports whether a path is among the readings of another.
func has(all []string, text string) bool {
	text = canonical(readingstest.Spell(text))
	return slices.ContainsFunc(all, func(reading string) bool { return canonical(reading) == text })
}

// checkServers compares the readings of a path with what servers make of it.
func checkServers(t testing.TB, p string, read map[string]int) {
	all, isFull := of(p)
	for name, server := range readingstest.Servers {
		text, is := server(p)
		if !is {
			continue
		}
		if text == "" || text[0] != '/' {
			text = "/" + text
		}
		if text != p {
			read[name]++
		}
		if !isFull && !has(all, text) {
			t.Errorf("%s reads %q as %q, which is not among %q", name, p, text, all)
		}
	}
}

// TestServers: whatever a server makes of a path is a reading of it.
func TestServers(t *testing.T) {
	paths := []string{"/", "/pub", "/admin", "/pub/x/y", "/admin/users/5", "/caf%C3%A9/a%20b"}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	read, full, total := map[string]int{}, 0, 10_000
	for range total {
		p := paths[r.IntN(len(paths))]
		for range 1 + r.IntN(4) {
			p = readingstest.Misspell(r, p)
		}
		if !isTarget(p) {
			continue
		}
		checkServers(t, p, read)
		if _, isFull := of(p); isFull {
			full++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for name := range readingstest.Servers {
		if read[name] < 100 && name != "Express" {
			t.Errorf("%s reads only %d paths in another way", name, read[name])
		}
	}
	t.Logf("%d of %d paths have too many readings", full, total)
	if full > total/100 {
		t.Errorf("%d of %d paths have too many readings", full, total)
	}
}

func FuzzServers(f *testing.F) {
	for _, p := range []string{"/pub/..%2fadmin", `/pub\..;x/%2e%2E/`, "//x/%252e%252e;/a%00b", "/a#b/../c",
		"/%u002e./%c0%ae"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if isTarget(p) {
			checkServers(t, p, map[string]int{})
		}
	})
}

// TestGo: net/http itself reads paths as the readings say.
func TestGo(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	var served string
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { served = r.URL.Path })
	read := 0
	for range 20_000 {
		p := "/pub/x/admin"
		for range 1 + r.IntN(3) {
			p = readingstest.Misspell(r, p)
		}
		if !isTarget(p) {
			continue
		}
		request, err := http.ReadRequest(
			bufio.NewReader(strings.NewReader("GET " + p + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			continue // which Go refuses
		}
		all, isFull := of(p)
		for _, text := range []string{request.URL.Path, path.Clean(request.URL.Path),
			path.Clean("/" + strings.ReplaceAll(request.URL.Path, `\`, "/"))} {
			if text != p {
				read++
			}
			if !isFull && !has(all, text) && !has(all, text+"/") {
				t.Fatalf("Go reads %q as %q, which is not among %q", p, text, all)
			}
		}
		served = ""
		mux.ServeHTTP(discard{}, request)
		if served != "" && !isFull && !has(all, served) {
			t.Fatalf("ServeMux serves %q as %q, which is not among %q", p, served, all)
		}
	}
	if read < 10_000 {
		t.Errorf("Go reads only %d paths in another way", read)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func BenchmarkIsPlain(b *testing.B) {
	for b.Loop() {
		if !IsPlain("/v1/tenants/team-a/parcels/p1.2") {
			b.Fatal("not plain")
		}
	}
}

func BenchmarkAny(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if Any("/pkg/@scope%2fname", func(string) bool { return false }) {
			b.Fatal("too many readings")
		}
	}
}

func BenchmarkAnyHostile(b *testing.B) {
	b.ReportAllocs()
	p := "/a;b//c%2F..%5Cd%00;e%3Bf%20/./g/.%2e;x/%252f%255c//%23y%3Fz" + strings.Repeat("/%41", 1000)
	for b.Loop() {
		if !Any(p, func(string) bool { return false }) {
			b.Fatal("few readings")
		}
	}
}
