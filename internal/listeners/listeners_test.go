package listeners

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/credentials"
)

// secured is the TLS of a listener, which these tests make no connections by.
func secured() *credentials.Value[*credentials.Server] {
	return &credentials.Value[*credentials.Server]{}
}

func mustSet(t testing.TB, all ...*Listener) *Set {
	t.Helper()
	s, errs := New(all)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// took says by its name which listener takes a request, or why none does.
func took(s *Set, address, sni, host string) string {
	var made *Listener
	at := s.Socket(address)
	if at == nil {
		at = &Socket{address: address} // of a set before
	}
	if len(at.all) > 0 && at.HasTLS() {
		if made = at.Made(sni); made == nil {
			return "no name"
		}
	}
	l, taking := s.Take(at, made, sni != "", []byte(host))
	switch taking {
	case Misdirected:
		return "421"
	case Unknown:
		return "404"
	}
	return l.Name
}

// TestMisdirected has what Gateway API's conformance test of misdirected requests asks, and of isolated listeners of
// plain HTTP.
func TestMisdirected(t *testing.T) {
	at := []string{":443"}
	tls := mustSet(t,
		&Listener{Name: "any", Routes: 1, Addresses: at, TLS: secured()},
		&Listener{Name: "second", Routes: 2, Addresses: at, TLS: secured(), Hosts: []string{"second-example.org"}},
		&Listener{Name: "wild", Routes: 3, Addresses: at, TLS: secured(), Hosts: []string{"*.wildcard.org"}},
		&Listener{Name: "fourth", Routes: 4, Addresses: at, TLS: secured(),
			Hosts: []string{"fourth-example.wildcard.org"}},
	)
	at = []string{":80"}
	plain := mustSet(t,
		&Listener{Name: "any", Routes: 1, Addresses: at},
		&Listener{Name: "example", Routes: 2, Addresses: at, Hosts: []string{"*.example.com"}},
		&Listener{Name: "foo", Routes: 3, Addresses: at, Hosts: []string{"*.foo.example.com"}},
		&Listener{Name: "abc", Routes: 4, Addresses: at, Hosts: []string{"abc.foo.example.com"}},
	)
	for _, c := range []struct {
		set                      *Set
		address, sni, host, want string
	}{
		{tls, ":443", "example.org", "example.org", "any"},
		{tls, ":443", "example.org", "second-example.org", "421"},
		{tls, ":443", "example.org", "unknown-example.org", "any"},
		{tls, ":443", "second-example.org", "second-example.org", "second"},
		{tls, ":443", "SECOND-example.org", "second-example.ORG.:443", "second"},
		{tls, ":443", "second-example.org", "example.org", "421"},
		{tls, ":443", "second-example.org", "unknown-example.org", "421"},
		{tls, ":443", "third-example.wildcard.org", "third-example.wildcard.org", "wild"},
		{tls, ":443", "third-example.wildcard.org", "fith-example.wildcard.org:8443", "wild"},
		{tls, ":443", "third-example.wildcard.org", "fourth-example.wildcard.org", "421"},
		{tls, ":443", "third-example.wildcard.org", "second-example.org", "421"},
		{tls, ":443", "third-example.wildcard.org", "unknown-example.org", "421"},
		{tls, ":443", "fourth-example.wildcard.org", "fourth-example.wildcard.org", "fourth"},
		{tls, ":443", "fourth-example.wildcard.org", "fith-example.wildcard.org", "421"},
		{tls, ":443", "unknown-example.org", "example.org", "any"},
		{tls, ":443", "wildcard.org", "a.b.wildcard.org", "421"},
		{tls, ":443", "a.b.wildcard.org", "c.wildcard.org", "wild"},
		{tls, ":444", "", "example.org", "421"}, // the address is gone
		{plain, ":80", "", "bar.com", "any"},
		{plain, ":80", "", "", "any"},
		{plain, ":80", "", "example.com", "any"},
		{plain, ":80", "", "bar.example.com", "example"},
		{plain, ":80", "", "bar.foo.example.com:80", "foo"},
		{plain, ":80", "", "ABC.foo.example.com", "abc"},
		{plain, ":80", "", strings.Repeat("a", 300) + ".foo.example.com", "any"},
		{plain, ":80", "", "[::1]:80", "any"},
	} {
		if got := took(c.set, c.address, c.sni, c.host); got != c.want {
			t.Errorf("SNI %q and Host %q at %s: got %s, want %s", c.sni, c.host, c.address, got, c.want)
		}
	}
}

// TestWithoutName: a client that asks for no name may ask for any host if that gives nothing away, as probes by address
// do.
func TestWithoutName(t *testing.T) {
	one := func(name, certificate, clients string, hosts ...string) *Listener {
		return &Listener{Name: name, Addresses: []string{":443"}, TLS: secured(), Certificate: certificate,
			Clients: clients, Hosts: hosts}
	}
	probed := one("elsewhere", "c", "Request")
	probed.Addresses = []string{":8443"}
	for _, c := range []struct {
		name string
		set  *Set
		host string
		want string
	}{
		{"the one listener", mustSet(t, one("a", "x", "")), "10.0.0.1", "a"},
		{"one listener with hosts", mustSet(t, one("a", "x", "", "a.example")), "10.0.0.1", "404"},
		{"one listener with several certificates", mustSet(t, one("a", "", "")), "10.0.0.1", "a"},
		{"one that asks for certificates", mustSet(t, one("a", "x", "Require")), "10.0.0.1", "a"},
		{"two with one certificate", mustSet(t, one("a", "x", ""), one("b", "x", "", "b.example")), "b.example", "b"},
		{"two with two certificates", mustSet(t, one("a", "x", ""), one("b", "y", "", "b.example")), "b.example",
			"421"},
		{"two with several certificates", mustSet(t, one("a", "", ""), one("b", "", "", "b.example")), "b.example",
			"421"},
		{"two, of which the other asks for certificates",
			mustSet(t, one("a", "x", ""), one("b", "x", "Request", "b.example")), "b.example", "421"},
		{"two, of which the first asks for certificates",
			mustSet(t, one("a", "x", "Request"), one("b", "x", "", "b.example")), "b.example", "421"},
		{"two, and one elsewhere asks for certificates", mustSet(t, one("a", "x", ""), one("b", "x", "", "b.example"),
			probed), "b.example", "421"},
	} {
		if got := took(c.set, ":443", "", c.host); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestGuarded: no listener of the configuration serves the hosts of another one that asks for certificates of clients.
// Listeners of a table have routes of their own.
func TestGuarded(t *testing.T) {
	set := func(routes int) *Set {
		n := func(i int) int { return routes * i }
		return mustSet(t,
			&Listener{Name: "plain", Routes: n(1), Addresses: []string{":80"}},
			&Listener{Name: "to-https", Routes: n(2), Addresses: []string{":81"}, Redirect: &Redirect{308, 443}},
			&Listener{Name: "tls", Routes: n(3), Addresses: []string{":443"}, TLS: secured()},
			&Listener{Name: "named", Routes: n(4), Addresses: []string{":444"}, TLS: secured(),
				Hosts: []string{"safe.example", "x.example"}},
			&Listener{Name: "safe", Routes: n(5), Addresses: []string{":8443"}, TLS: secured(),
				Hosts: []string{"safe.example", "*.safe.example"}, Clients: "Require"},
		)
	}
	for _, c := range []struct{ address, sni, host, want, ofTable string }{
		{":80", "", "other.example", "plain", "plain"},
		{":80", "", "safe.example", "421", "plain"},
		{":80", "", "a.SAFE.example.", "421", "plain"},
		{":81", "", "safe.example", "to-https", "to-https"},
		{":443", "safe.example", "safe.example", "421", "tls"},
		{":443", "", "safe.example:8443", "421", "tls"},
		{":444", "safe.example", "safe.example", "named", "named"}, // which says so itself
		{":444", "x.example", "a.safe.example", "421", "404"},
		{":8443", "safe.example", "safe.example", "safe", "safe"},
		{":8443", "safe.example", "b.safe.example", "safe", "safe"},
		{":8443", "other.example", "safe.example", "no name", "no name"},
		{":8443", "", "safe.example", "safe", "safe"},
	} {
		for routes, want := range []string{c.want, c.ofTable} {
			if got := took(set(routes), c.address, c.sni, c.host); got != want {
				t.Errorf("SNI %q and Host %q at %s, of a table %v: got %s, want %s", c.sni, c.host, c.address,
					routes > 0, got, want)
			}
		}
	}
}

// TestNextSet: a connection goes on under other listeners if one of its name asks for the same certificates.
func TestNextSet(t *testing.T) {
	made := &Listener{Name: "a", Addresses: []string{":443"}, TLS: secured(), Clients: "Request ca.crt"}
	for _, c := range []struct {
		name string
		next *Listener
		want Taking
		kept bool
	}{
		{"the same", &Listener{Name: "a", Addresses: []string{":443"}, TLS: secured(), Clients: "Request ca.crt"},
			Taken, true},
		{"another name", &Listener{Name: "b", Addresses: []string{":443"}, TLS: secured(), Clients: "Request ca.crt"},
			Misdirected, false},
		{"other certificates", &Listener{Name: "a", Addresses: []string{":443"}, TLS: secured(),
			Clients: "Require ca.crt"}, Misdirected, false},
		{"no certificates", &Listener{Name: "a", Addresses: []string{":443"}, TLS: secured()}, Misdirected, false},
		{"no TLS", &Listener{Name: "a", Addresses: []string{":443"}}, Misdirected, false},
		{"another address", &Listener{Name: "a", Addresses: []string{":444"}, TLS: secured(),
			Clients: "Request ca.crt"}, Misdirected, false},
	} {
		s, before := mustSet(t, c.next), mustSet(t, made)
		if _, got := s.Take(before.Socket(":443"), made, true, []byte("a.example")); got != c.want ||
			s.Keeps(":443", made) != c.kept {
			t.Errorf("%s: got %v, kept %v", c.name, got, s.Keeps(":443", made))
		}
	}
	s := mustSet(t, made)
	if _, got := s.Take(s.Socket(":443"), nil, false, nil); got != Misdirected {
		t.Errorf("a connection without TLS is served by a listener with it: %v", got)
	}
}

// TestShared: listeners that cannot share an address are named, and the first one takes the requests.
func TestShared(t *testing.T) {
	s, errs := New([]*Listener{
		{Name: "a", Addresses: []string{":1"}}, {Name: "b", Addresses: []string{":1"}},
		{Name: "c", Addresses: []string{":1"}, TLS: secured()},
		{Name: "d", Addresses: []string{":1", ":2"}, Hosts: []string{"d.example", "*.d.example"}},
		{Name: "e", Addresses: []string{":1"}, Hosts: []string{"*.d.example"}},
	})
	want := "[the listener 'b' cannot take the host '' on the address ':1': 'a' does " +
		"the listener 'c' cannot share the address ':1' with 'a': one of them has TLS " +
		"the listener 'e' cannot take the host '*.d.example' on the address ':1': 'd' does]"
	if got := fmt.Sprint(errs); got != want {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(s.Addresses()); got != "[:1 :2]" {
		t.Errorf("got %s", got)
	}
	for host, want := range map[string]string{"x": "a", "d.example": "d", "y.d.example": "d"} {
		if got := took(s, ":1", "", host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}

// TestTakeDoesNotAllocate: each request asks.
func TestTakeDoesNotAllocate(t *testing.T) {
	s := mustSet(t, &Listener{Name: "a", Addresses: []string{":1"}, Hosts: []string{"*.example.com", "b.example.org"}},
		&Listener{Name: "b", Addresses: []string{":1"}})
	at, host := s.Socket(":1"), []byte("Shop.a.example.com.:443")
	if n := testing.AllocsPerRun(100, func() { s.Take(at, nil, false, host) }); n != 0 {
		t.Errorf("Take allocates %v times", n)
	}
}

// FuzzTake: the listener of a host is what a look at every host in the order of its length finds.
func FuzzTake(f *testing.F) {
	f.Add("a.example *.example *.b.example", "c.B.example:80")
	f.Add("*.a *.a.a a.a.a", "a.a.a.")
	f.Add("[::1] ::2", "[::2]:1")
	f.Fuzz(func(t *testing.T, names, host string) {
		var all []*Listener
		for i, name := range strings.Fields(names) {
			end := strings.TrimPrefix(name, "*.")
			if end == "" || strings.ToLower(name) != name || strings.Trim(end, ".[]") != end ||
				strings.HasPrefix(end, "*") {
				continue // which no configuration has
			}
			all = append(all, &Listener{Name: fmt.Sprint(i), Addresses: []string{":1"}, Hosts: []string{name}})
		}
		if len(all) == 0 {
			return
		}
		s, _ := New(all)
		name, ok := plain(make([]byte, 0, longestName), []byte(host))
		want, best := "404", -1
		for _, l := range all {
			n := -1
			if end, isWildcard := strings.CutPrefix(l.Hosts[0], "*."); isWildcard &&
				strings.HasSuffix(string(name), "."+end) {
				n = len(end)
			} else if !isWildcard && l.Hosts[0] == string(name) {
				n = 1000
			}
			if ok && n > best {
				want, best = l.Name, n
			}
		}
		if got := took(s, ":1", "", host); got != want {
			t.Errorf("%q among %q: got %s, want %s", host, names, got, want)
		}
	})
}
