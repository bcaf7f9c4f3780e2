package identity

import (
	"net/netip"
	"testing"
)

// TestForwarded: RFC 7239's own examples, what proxies send, and what clients make up.
func TestForwarded(t *testing.T) {
	trusted, err := ParseTrustedProxies([]string{"10.0.0.0/8", "2001:db8:1::/48"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, peer  string
		lines       []string
		client      string
		proto, host string
	}{
		{"no header", "10.1.2.3", nil, "10.1.2.3", "", ""},
		{"untrusted peer", "198.51.100.1", []string{"for=203.0.113.9;proto=https"}, "198.51.100.1", "", ""},
		{"one proxy", "10.1.2.3", []string{"for=203.0.113.9;proto=https;by=10.1.2.3;host=shop.example.com"},
			"203.0.113.9", "https", "shop.example.com"},
		{"names in any case", "10.1.2.3", []string{"For=203.0.113.9; PROTO=http"}, "203.0.113.9", "http", ""},
		{"IPv6 with a port", "10.1.2.3", []string{`for="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::17", "", ""},
		{"IPv6 without quotes", "2001:db8:1::5", []string{"for=[2001:db8:cafe::17]"}, "2001:db8:cafe::17", "", ""},
		{"an obfuscated port", "10.1.2.3", []string{`for="203.0.113.9:_a1"`}, "203.0.113.9", "", ""},
		{"escapes", "10.1.2.3", []string{`for="203\.0.113.9";host="shop\.example.com:8443"`}, "203.0.113.9", "",
			"shop.example.com:8443"},
		{"what the client made up is to the left", "10.1.2.3",
			[]string{"for=1.1.1.1;proto=ftp, for=203.0.113.9;proto=https"}, "203.0.113.9", "https", ""},
		{"two proxies, several lines", "10.1.2.3",
			[]string{"for=1.1.1.1", "for=203.0.113.9;proto=https, for=10.9.9.9;proto=http"}, "203.0.113.9", "https",
			""},
		{"a comma and a semicolon in quotes", "10.1.2.3", []string{`ext="a,b;for=1.1.1.1";for=203.0.113.9`},
			"203.0.113.9", "", ""},
		{"obfuscated", "10.1.2.3", []string{"for=203.0.113.9, for=_hidden;proto=https"}, "10.1.2.3", "https", ""},
		{"unknown behind a proxy", "10.1.2.3", []string{"for=unknown, for=10.0.0.2"}, "10.0.0.2", "", ""},
		{"without for", "10.1.2.3", []string{"for=1.1.1.1, proto=https"}, "10.1.2.3", "https", ""},
		{"empty elements", "10.1.2.3", []string{", for=203.0.113.9,, ", ""}, "203.0.113.9", "", ""},
		{"all trusted", "10.1.2.3", []string{"for=10.0.0.1, for=10.0.0.2"}, "10.0.0.1", "", ""},
	} {
		got, err := trusted.Forwarded(netip.MustParseAddr(tt.peer), tt.lines...)
		want := Origin{Client: netip.MustParseAddr(tt.client), Proto: tt.proto, Host: tt.host}
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", tt.name, got, err, want)
		}
	}
	for _, line := range []string{
		`for="203.0.113.9`, `for=`, `for`, `=1`, `for=1.1.1.1 proto=http`, `for="1.1.1.1"x`, `for="a\`,
		`for=1.1.1.1;for=2.2.2.2`, `for="", for=1.1.1.1`,
		`for=1.1.1.1;proto="a b"`, `for=1.1.1.1;host="a/b"`, `f(r=1`, "for=1.1.1.1;proto=https\x00", `for = 1.1.1.1`,
		`proto=1x`,
	} {
		if got, err := trusted.Forwarded(netip.MustParseAddr("10.1.2.3"), line); err != ErrForwarded {
			t.Errorf("%q: got %v, %v", line, got, err)
		}
	}
}

// FuzzForwarded: whatever the client's own lines say, they are an error, or the client is the one that a trusted proxy
// appended.
func FuzzForwarded(f *testing.F) {
	f.Add("for=203.0.113.9, for=10.0.0.1", `for="`)
	f.Add(`for="[::1]:_x";proto=https`, `;,=`)
	trusted, err := ParseTrustedProxies([]string{"10.0.0.0/8"})
	if err != nil {
		f.Fatal(err)
	}
	peer, seen := netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("203.0.113.9")
	f.Fuzz(func(t *testing.T, first, last string) {
		got, err := trusted.Forwarded(peer, first, last)
		if err == nil && (!got.Client.IsValid() || got.Client.Is4In6() || got.Client.Zone() != "" ||
			!isScheme(got.Proto) || !isAuthority(got.Host)) {
			t.Errorf("got %v", got)
		}
		got, err = trusted.Forwarded(peer, first, last+", for=203.0.113.9")
		if err == nil && got.Client != seen {
			t.Errorf("got %v, want %v", got, seen)
		}
	})
}
