package identity

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestAnonymous(t *testing.T) {
	u := Anonymous()
	if want := (User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}); !reflect.DeepEqual(u,
		want) || !u.IsAnonymous() {
		t.Errorf("got %+v", u)
	}
	if n := testing.AllocsPerRun(10, func() { u = Anonymous() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if u := (User{Name: "kim"}); u.IsAnonymous() {
		t.Error("kim is not anonymous")
	}
}

// The rows on X-Forwarded-For in the list of hostile input: an untrusted peer
// is the client whatever it says, and from a trusted one the walk goes right
// to left.
func TestClient(t *testing.T) {
	trusted, err := ParseTrustedProxies([]string{"10.0.0.0/8", "192.0.2.7", "2001:db8:1::/48", "::ffff:172.16.0.0/108"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"no header", "198.51.100.1", nil, "198.51.100.1"},
		{"untrusted peer", "198.51.100.1", []string{"203.0.113.9"}, "198.51.100.1"},
		{"trusted peer without header", "10.1.2.3", nil, "10.1.2.3"},
		{"one proxy", "10.1.2.3", []string{"203.0.113.9"}, "203.0.113.9"},
		{"what the client made up is to the left", "10.1.2.3", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "10.1.2.3", []string{"1.1.1.1,203.0.113.9 ,\t192.0.2.7"}, "203.0.113.9"},
		{"several lines", "10.1.2.3", []string{"1.1.1.1", "203.0.113.9, 10.9.9.9", "192.0.2.7"}, "203.0.113.9"},
		{"all trusted", "10.1.2.3", []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.1"},
		{"no address", "10.1.2.3", []string{"203.0.113.9, unknown"}, "10.1.2.3"},
		{"no address behind a proxy", "10.1.2.3", []string{"203.0.113.9, _hidden, 10.0.0.2"}, "10.0.0.2"},
		{"empty entry", "10.1.2.3", []string{"203.0.113.9,"}, "10.1.2.3"},
		{"empty line", "10.1.2.3", []string{"203.0.113.9", ""}, "10.1.2.3"},
		{"with a port", "10.1.2.3", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"IPv6", "2001:db8:1::5", []string{"2001:db8:2::1"}, "2001:db8:2::1"},
		{"IPv6 in brackets", "2001:db8:1::5", []string{"[2001:db8:2::1]"}, "2001:db8:2::1"},
		{"IPv6 with a port", "2001:db8:1::5", []string{"[2001:db8:2::1]:443"}, "2001:db8:2::1"},
		{"mapped peer", "::ffff:10.1.2.3", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"mapped network", "172.17.0.1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"zone", "10.1.2.3", []string{"fe80::1%eth0"}, "fe80::1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := trusted.Client(netip.MustParseAddr(tt.peer), tt.lines...); got != netip.MustParseAddr(tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	var nobody TrustedProxies
	if got := nobody.Client(netip.MustParseAddr("10.1.2.3"), "203.0.113.9"); got != netip.MustParseAddr("10.1.2.3") {
		t.Errorf("nobody is trusted: got %s", got)
	}
}

func TestParseTrustedProxiesRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"10.0.0.0/33":        "'10.0.0.0/33' must be an IP address or a network such as '10.0.0.0/8'",
		"example.com":        "'example.com' must be an IP address or a network such as '10.0.0.0/8'",
		"fe80::1%eth0":       "'fe80::1%eth0' must be an IP address or a network such as '10.0.0.0/8'",
		"::ffff:10.0.0.0/95": "'::ffff:10.0.0.0/95' must be written as an IPv4 network",
	} {
		if _, err := ParseTrustedProxies([]string{s}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", s, err)
		}
	}
}

// Whatever the header says, the client is never one of the trusted proxies
// while an address outside of them was appended by one.
func FuzzClient(f *testing.F) {
	f.Add("203.0.113.9, 10.0.0.1", "1.1.1.1")
	f.Add(",,", "[::1]:1")
	trusted, err := ParseTrustedProxies([]string{"10.0.0.0/8"})
	if err != nil {
		f.Fatal(err)
	}
	peer := netip.MustParseAddr("10.1.2.3")
	f.Fuzz(func(t *testing.T, first, last string) {
		if got := trusted.Client(peer, first, last); !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Errorf("got %v", got)
		}
		// A trusted proxy appends what it sees: nothing to the left counts then.
		seen := netip.MustParseAddr("203.0.113.9")
		if got := trusted.Client(peer, first, last+", 203.0.113.9"); got != seen {
			t.Errorf("got %v, want %v", got, seen)
		}
	})
}

func BenchmarkClient(b *testing.B) {
	trusted, err := ParseTrustedProxies([]string{"10.0.0.0/8", "192.0.2.0/24"})
	if err != nil {
		b.Fatal(err)
	}
	peer := netip.MustParseAddr("10.1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		trusted.Client(peer, "1.1.1.1, 203.0.113.9, 10.0.0.9")
	}
}
