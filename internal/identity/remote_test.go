package identity

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/client-go/transport"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/status"
)

// lines are header lines after their prefix.
type lines [][2]string

func (l lines) Each(yield func(name, value []byte)) {
	for _, one := range l {
		yield([]byte(one[0]), []byte(one[1]))
	}
}

// judge returns the answer of Kubernetes' authenticator about a request.
func kubernetesUser(t *testing.T, a authenticator.Request, r *http.Request) *User {
	t.Helper()
	response, ok, err := group.NewAuthenticatedGroupAdder(a).AuthenticateRequest(r)
	if err != nil || !ok {
		return nil
	}
	u := userOf(response.User)
	return &u
}

// same compares users as their readers do: what is not there is empty.
func same(a, b *User) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.UID == b.UID && reflect.DeepEqual(append([]string{}, a.Groups...),
		append([]string{}, b.Groups...)) &&
		(len(a.Extra) == 0 && len(b.Extra) == 0 || reflect.DeepEqual(a.Extra, b.Extra))
}

// Headers of a proxy mean what they mean to kube-apiserver.
func TestRequestHeader(t *testing.T) {
	kubernetes, err := headerrequest.New([]string{"X-Remote-User"}, []string{"X-Remote-Uid"},
		[]string{"X-Remote-Group"}, []string{"X-Remote-Extra-"})
	if err != nil {
		t.Fatal(err)
	}
	networks, err := ParseTrustedProxies([]string{"192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	m := &remote{HeaderOptions{Networks: networks}}
	for _, l := range []lines{
		nil,
		{{"User", "kim"}},
		{{"User", ""}, {"Group", "a"}},
		{{"Group", "system:masters"}, {"Uid", "1"}},
		{{"User", "kim"}, {"Uid", "1"}, {"Group", "a"}, {"Group", ""}, {"group", "b"}, {"Group", "a"}},
		{{"User", "kim"}, {"Group", "system:unauthenticated"}},
		{{"User", "kim"}, {"Group", "system:authenticated"}, {"Group", "b"}},
		{{"User", "system:anonymous"}},
		{{"User", "kim"}, {"Extra-Scopes", "read"}, {"extra-scopes", "write"}, {"Extra-Example.com%2fa%41", ""},
			{"Extra-bad%2", "x"}, {"Extra-%e4", "y"}, {"Extra-", "z"}},
		{{"User", "kim"}, {"Groups", "a"}, {"User-Name", "lee"}, {"Extra", "a"}},
		{{"User", "k\xc3\xadm"}, {"Group", "a,b"}},
	} {
		r := &http.Request{Header: http.Header{}}
		for _, one := range l {
			key := http.CanonicalHeaderKey("X-Remote-" + one[0])
			r.Header[key] = append(r.Header[key], one[1])
		}
		want := kubernetesUser(t, kubernetes, r)
		p, err := m.present(&Request{Peer: client, Client: client, Remote: l})
		if err != nil {
			t.Fatal(err)
		}
		var got *User
		if p != nil {
			got = &p.User
		}
		if !same(got, want) {
			t.Errorf("%v: got %+v, want %+v", l, got, want)
		}
		if p, err := m.present(&Request{Peer: client.Next(), Client: client, Remote: l}); p != nil || err != nil {
			t.Errorf("%v: of a peer that is not trusted: %v, %v", l, p, err)
		}
	}
}

// What two readers of a proxy's headers could read in two ways is refused, before any other
// authenticator is asked. Other peers' headers name no user.
func TestAmbiguousRequestHeader(t *testing.T) {
	networks, err := ParseTrustedProxies([]string{"192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Methods: []Method{{RequestHeader: &HeaderOptions{Networks: networks}},
		{ClientCertificate: true}}, AllowAnonymous: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const (
		twice = "the request has the header 'X-Remote-User' more than once"
		named = "the header 'Connection' must not name headers 'X-Remote-…': the proxy would not tell all of the user"
	)
	for _, tt := range []struct {
		name    string
		headers lines
		named   bool
		want    string
	}{
		{"two users", lines{{"User", "kim"}, {"User", "lee"}}, false, twice},
		{"one user twice", lines{{"User", "kim"}, {"Group", "a"}, {"USER", "kim"}}, false, twice},
		{"one of them is empty", lines{{"user", ""}, {"User", "kim"}}, false, twice},
		{"two uids", lines{{"User", "kim"}, {"Uid", "1"}, {"uid", "2"}}, false,
			"the request has the header 'X-Remote-Uid' more than once"},
		{"Connection names what is left out", lines{{"User", "kim"}}, true, named},
		{"Connection names all", nil, true, named},
	} {
		_, err := a.Identify(&Request{Peer: client, Client: client, Remote: tt.headers, RemoteNamed: tt.named})
		var answer *status.Error
		if !errors.As(err, &answer) || answer.ErrStatus.Code != 400 || answer.ErrStatus.Message != tt.want {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if p, err := a.Identify(&Request{Peer: client.Next(), Client: client, Remote: tt.headers,
			RemoteNamed: tt.named}); err != nil || p.Name != AnonymousName {
			t.Errorf("%s: of a peer that is not trusted: %v, %v", tt.name, p, err)
		}
	}
}

// What a backend reads of the headers that it gets is the user.
func TestUserIsRead(t *testing.T) {
	kubernetes, err := headerrequest.New([]string{"X-Remote-User"}, []string{"X-Remote-Uid"},
		[]string{"X-Remote-Group"}, []string{"X-Remote-Extra-"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []User{
		{Name: "kim"},
		Anonymous(),
		{Name: "kím 'x', \"y\"", UID: "4 2", Groups: []string{"a b", "system:authenticated"}},
		{Name: "kim", Groups: []string{AuthenticatedGroup}, Extra: map[string][]string{
			"example.com/Reason": {"on call", ""}, "a%b c:d": {"1", "2"}, "ä": {"x"}, "plain": {"y"},
			"authentication.kubernetes.io/credential-id": {"JTI=1"},
		}},
	} {
		p := NewPrincipal(u)
		for prefix, add := range map[string]func([]byte) ([]byte, error){"X-Remote-": p.AppendRemote,
			"Impersonate-": p.AppendImpersonate} {
			text, err := add(nil)
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			var l lines
			for _, line := range splitLines(text) {
				key := http.CanonicalHeaderKey(line[0])
				header[key] = append(header[key], line[1])
				l = append(l, [2]string{line[0][len(prefix):], line[1]})
			}
			if prefix == "X-Remote-" {
				if got := kubernetesUser(t, kubernetes, &http.Request{Header: header}); !same(got, named(u)) {
					t.Errorf("Kubernetes reads %+v of %q", got, text)
				}
				continue
			}
			got, err := Impersonated(l)
			if err != nil || !same(&got, named(u)) {
				t.Errorf("got %+v of %q", got, text)
			}
		}
	}
	// The same as Kubernetes' own client sends, if that sends all.
	u := User{Name: "kim", UID: "1", Groups: []string{"a", "b"},
		Extra: map[string][]string{"example.com/reason": {"x", "y"}, "a b": {"z"}}}
	seen := http.Header{}
	client := transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: u.Name, UID: u.UID,
		Groups: u.Groups, Extra: u.Extra}, roundTripper(func(r *http.Request) {
		seen = r.Header
	}))
	r, err := http.NewRequest(http.MethodGet, "http://backend", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.RoundTrip(r)
	text, _ := NewPrincipal(u).AppendImpersonate(nil)
	got := http.Header{}
	for _, line := range splitLines(text) {
		key := http.CanonicalHeaderKey(line[0])
		got[key] = append(got[key], line[1])
	}
	canonical := http.Header{}
	for name, values := range seen {
		canonical[http.CanonicalHeaderKey(name)] = values
	}
	if !reflect.DeepEqual(got, canonical) {
		t.Errorf("got %v, Kubernetes tells %v", got, canonical)
	}
}

func named(u User) *User {
	u = known(u)
	return &u
}

type roundTripper func(*http.Request)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("not sent")
}

func splitLines(text []byte) (all [][2]string) {
	for len(text) > 0 {
		var one [2]string
		i := indexOf(text, ": ")
		j := indexOf(text, "\r\n")
		one[0], one[1] = string(text[:i]), string(text[i+2:j])
		all, text = append(all, one), text[j+2:]
	}
	return all
}

func indexOf(text []byte, s string) int {
	for i := range text {
		if len(text)-i >= len(s) && string(text[i:i+len(s)]) == s {
			return i
		}
	}
	return -1
}

// A user that headers cannot express is sent to no backend.
func TestUntold(t *testing.T) {
	const sentence = "the user has a %s with characters that no header can carry, so that the backend cannot be told who asks"
	for _, tt := range []struct {
		u    User
		what string
	}{
		{User{Name: "kim\r\nX-Remote-Group: system:masters"}, "name"},
		{User{Name: "kim\nImpersonate-Group: system:masters"}, "name"},
		{User{Name: "kim\x00"}, "name"},
		{User{Name: " admin"}, "name"},
		{User{Name: "admin\t"}, "name"},
		{User{Name: "kim", UID: "1\x7f"}, "UID"},
		{User{Name: "kim", Groups: []string{"a", "b\r"}}, "group"},
		{User{Name: "kim", Extra: map[string][]string{"a": {"b", "c "}}}, "extra attribute"},
	} {
		p := NewPrincipal(tt.u)
		text, err := p.AppendRemote(nil)
		other, otherErr := p.AppendImpersonate(nil)
		want := sentenceOf(sentence, tt.what)
		if len(text)+len(other) > 0 || err == nil || err.Error() != want || otherErr == nil ||
			otherErr.Error() != want {
			t.Errorf("%+v: %q, %q, %v", tt.u, text, other, err)
		}
	}
	// Keys of attributes are encoded, whatever is in them.
	text, err := NewPrincipal(User{Name: "kim", Extra: map[string][]string{"a\r\nX: y": {"b"}}}).AppendRemote(nil)
	if want := "X-Remote-User: kim\r\nX-Remote-Extra-a%0D%0A%58%3A%20y: b\r\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v", text, err)
	}
}

func sentenceOf(format, what string) string {
	return format[:len("the user has a ")] + what + format[len("the user has a %s"):]
}

func TestImpersonated(t *testing.T) {
	for _, tt := range []struct {
		l    lines
		want User
	}{
		{lines{{"Group", "a"}}, User{}},
		{lines{{"User", ""}, {"Group", "a"}}, User{}},
		{lines{{"User", "system:serviceaccount:team-a:builder"}, {"Group", ""}}, User{}}, // to it that is a group
		{lines{{"User", "kim"}}, User{Name: "kim", Groups: []string{AuthenticatedGroup}}},
		{lines{{"User", "system:anonymous"}}, Anonymous()},
		{lines{{"User", "system:serviceaccount:team-a:builder"}}, User{
			Name:   "system:serviceaccount:team-a:builder",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team-a", AuthenticatedGroup},
		}},
		{lines{{"User", "system:serviceaccount:team-a:builder"}, {"Group", "a"}},
			User{Name: "system:serviceaccount:team-a:builder", Groups: []string{"a", AuthenticatedGroup}}},
	} {
		if got, err := Impersonated(tt.l); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: got %+v, %v", tt.l, got, err)
		}
	}
	for _, l := range []lines{{{"User", "kim"}, {"user", "lee"}}, {{"User", ""}, {"User", "kim"}},
		{{"User", "kim"}, {"Uid", "1"}, {"Uid", "1"}}} {
		if got, err := Impersonated(l); err == nil {
			t.Errorf("%v: got %+v", l, got)
		}
	}
}

// shown returns a connection on which the client has shown certificates to a listener with the authority.
func shown(t *testing.T, a *credentialstest.Authority, pairs ...credentialstest.Pair) *Connection {
	t.Helper()
	c := &Connection{}
	for _, one := range pairs {
		leaf, err := x509.ParseCertificate(one.TLS(t).Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		c.Shown = append(c.Shown, leaf)
	}
	c.Chain = func() ([]*x509.Certificate, error) {
		if len(c.Shown) == 0 {
			return nil, nil
		}
		chains, err := c.Shown[0].Verify(x509.VerifyOptions{Roots: a.Pool(),
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return nil, err
		}
		return chains[0], nil
	}
	return c
}

// Client certificates mean what they mean to kube-apiserver, UIDs in them too.
func TestClientCertificate(t *testing.T) {
	authority, other := credentialstest.NewAuthority(t, "clients"), credentialstest.NewAuthority(t, "others")
	uid := func(values ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, v := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames,
					pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: v})
			}
		}
	}
	kubernetes := x509request.New(x509.VerifyOptions{Roots: authority.Pool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, x509request.CommonNameUserConversion)
	for _, tt := range []struct {
		name string
		c    *Connection
		want string // the user's name, or "401", or "anonymous"
	}{
		{"none", shown(t, authority), "anonymous"},
		{"name and groups", shown(t, authority, authority.Client(t, "kim", []string{"a", "b"})), "kim"},
		{"UID", shown(t, authority, authority.Client(t, "kim", nil, uid("42"))), "kim"},
		{"two UIDs", shown(t, authority, authority.Client(t, "kim", nil, uid("42", "43"))), "401"},
		{"no name", shown(t, authority, authority.Client(t, "", []string{"a"})), "anonymous"},
		{"another authority", shown(t, authority, other.Client(t, "kim", nil)), "401"},
		{"expired", shown(t, authority, authority.Client(t, "kim", nil, credentialstest.Expired)), "401"},
		{"of a server", shown(t, authority, authority.Server(t, []string{"localhost"})), "401"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTest(t, Options{Methods: []Method{{ClientCertificate: true}}, AllowAnonymous: true})
			for range 2 {
				p, err := a.Identify(&Request{Now: time.Now(), Peer: client, Connection: tt.c})
				got := "401"
				switch {
				case err == nil && p.IsAnonymous():
					got = "anonymous"
				case err == nil:
					got = p.Name
				case outcome(p, err) != unauthorized:
					t.Errorf("got %v", err)
				}
				if got != tt.want {
					t.Errorf("got %s, want %s (%v)", got, tt.want, err)
				}
				want := kubernetesUser(t, kubernetes,
					&http.Request{TLS: &tls.ConnectionState{PeerCertificates: tt.c.Shown}})
				if want != nil && !same(&p.User, want) {
					t.Errorf("got %+v, Kubernetes %+v", p.User, want)
				}
				if (want != nil) != (got != "401" && got != "anonymous") {
					t.Errorf("got %s, Kubernetes %+v", got, want)
				}
			}
		})
	}
}

// A proxy is one by its certificate: of authorities for proxies, or by its name among the
// certificates of clients.
func TestProxyByCertificate(t *testing.T) {
	clients, proxies := credentialstest.NewAuthority(t, "clients"), credentialstest.NewAuthority(t, "proxies")
	verify := func(shown []*x509.Certificate, now time.Time) ([]*x509.Certificate, error) {
		chains, err := shown[0].Verify(x509.VerifyOptions{Roots: proxies.Pool(), CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return nil, err
		}
		return chains[0], nil
	}
	for _, tt := range []struct {
		name string
		o    HeaderOptions
		c    *Connection
		want bool
	}{
		{"of the authority for proxies", HeaderOptions{Verify: verify},
			shown(t, clients, proxies.Client(t, "front-proxy", nil)), true},
		{"with one of the names", HeaderOptions{Verify: verify, Names: []string{"x", "front-proxy"}},
			shown(t, clients, proxies.Client(t, "front-proxy", nil)), true},
		{"with another name", HeaderOptions{Verify: verify, Names: []string{"x"}},
			shown(t, clients, proxies.Client(t, "front-proxy", nil)), false},
		{"of a client with that name", HeaderOptions{Verify: verify, Names: []string{"front-proxy"}},
			shown(t, clients, clients.Client(t, "front-proxy", nil)), false},
		{"expired", HeaderOptions{Verify: verify},
			shown(t, clients, proxies.Client(t, "front-proxy", nil, credentialstest.Expired)), false},
		{"by name among clients", HeaderOptions{Names: []string{"front-proxy"}},
			shown(t, clients, clients.Client(t, "front-proxy", nil)), true},
		{"another among clients", HeaderOptions{Names: []string{"front-proxy"}},
			shown(t, clients, clients.Client(t, "kim", nil)), false},
		{"by name, of another authority", HeaderOptions{Names: []string{"front-proxy"}},
			shown(t, clients, proxies.Client(t, "front-proxy", nil)), false},
		{"no authority and no name", HeaderOptions{}, shown(t, clients, clients.Client(t, "front-proxy", nil)), false},
		{"no certificate", HeaderOptions{Verify: verify}, shown(t, clients), false},
		{"no TLS", HeaderOptions{Verify: verify}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTest(t,
				Options{Methods: []Method{{ClientCertificate: true}, {RequestHeader: &tt.o}, {ClientCertificate: true}},
					AllowAnonymous: true})
			b := newTest(t, Options{Methods: []Method{{RequestHeader: &tt.o}}, AllowAnonymous: true})
			now := time.Now()
			p, err := b.Identify(&Request{Now: now, Peer: client, Connection: tt.c, Remote: lines{{"User", "lee"}}})
			if err != nil || (p.Name == "lee") != tt.want {
				t.Errorf("got %v, %v", p, err)
			}
			// A certificate that is good for another method does not make the request one that is refused.
			if p, err := a.Identify(&Request{Now: now, Peer: client, Connection: tt.c,
				Remote: lines{{"User", "lee"}}}); tt.want &&
				(err != nil || p.Name != "lee" && p.Name != "front-proxy") {
				t.Errorf("with other methods: %v, %v", p, err)
			}
		})
	}
}

// A proxy's certificate is looked at again: authorities go, and certificates expire.
func TestProxyIsLookedAtAgain(t *testing.T) {
	proxies := credentialstest.NewAuthority(t, "proxies")
	var verdict error
	asked := 0
	m := &remote{HeaderOptions{Verify: func(shown []*x509.Certificate, _ time.Time) ([]*x509.Certificate, error) {
		asked++
		return shown, verdict
	}}}
	c := shown(t, proxies, proxies.Client(t, "front-proxy", nil))
	now := time.Now()
	for range 3 {
		if !m.isProxy(c, now) {
			t.Error("not a proxy")
		}
	}
	verdict = errors.New("gone")
	if asked != 1 || !m.isProxy(c, now.Add(proxyTTL-1)) || m.isProxy(c, now.Add(proxyTTL)) ||
		m.isProxy(c, now.Add(proxyTTL)) || asked != 2 {
		t.Errorf("looked at %d times", asked)
	}
}

// FuzzUserIsRead checks that a user is either not sent at all or read by Kubernetes unchanged, and
// never in more lines than there are.
func FuzzUserIsRead(f *testing.F) {
	kubernetes, err := headerrequest.New([]string{"X-Remote-User"}, []string{"X-Remote-Uid"},
		[]string{"X-Remote-Group"}, []string{"X-Remote-Extra-"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("kim", "42", "admins", "example.com/Reason", "on call")
	f.Add("kim\r\nX-Remote-Group: system:masters", " ", "a\tb", "a\r\nb", "c ")
	f.Fuzz(func(t *testing.T, name, uid, group, key, value string) {
		u := User{Name: name, UID: uid, Groups: []string{group}, Extra: map[string][]string{key: {value}}}
		text, err := NewPrincipal(u).AppendRemote(nil)
		if err != nil {
			if len(text) > 0 {
				t.Fatalf("told %q with an error", text)
			}
			return
		}
		r, err := http.ReadRequest(
			bufio.NewReader(io.MultiReader(strings.NewReader("GET / HTTP/1.1\r\nHost: a\r\n"), bytes.NewReader(text),
				strings.NewReader("\r\n"))))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		response, ok, err := kubernetes.AuthenticateRequest(r)
		if err != nil || !ok {
			if name != "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if group == "" {
			u.Groups = nil
		}
		if got := userOf(response.User); !same(&got, &u) {
			t.Fatalf("%q is read as %+v, not %+v", text, got, u)
		}
	})
}
