package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/admission-gateway/gateway/internal/identity/identitytest"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

func TestBearer(t *testing.T) {
	for value, want := range map[string]struct {
		token  string
		bearer bool
	}{
		"":                  {"", false},
		"Basic a2lt":        {"", false},
		"Bearerabc":         {"", false},
		"Bear abc":          {"", false},
		"Bearer abc":        {"abc", true},
		"bEARER abc":        {"abc", true},
		" Bearer abc ":      {"abc", true},
		"Bearer":            {"", true},
		"Bearer ":           {"", true},
		"Bearer  abc":       {"", true},
		"Bearer abc def":    {"", true},
		"Bearer a\tb":       {"", true},
		"Bearer\tabc":       {"", false},
		"Bearer abc, def":   {"", true},
		"Bearer abc,Bearer": {"abc,Bearer", true},
	} {
		if token, bearer := bearerOf([]byte(value)); string(token) != want.token || bearer != want.bearer {
			t.Errorf("%q: got %q, %v", value, token, bearer)
		}
	}
	if token, bearer := bearerOf([]byte("Bearer " + strings.Repeat("a", maxToken+1))); len(token) > 0 || !bearer {
		t.Error("a token of any size")
	}
}

// server is an API server that answers TokenReviews.
type server struct {
	asked  atomic.Int64
	answer func(r *authenticationv1.TokenReview) (code int, body string, err error)
}

func (s *server) post(_ context.Context, body []byte) (int, []byte, error) {
	s.asked.Add(1)
	var r authenticationv1.TokenReview
	if err := json.Unmarshal(body, &r); err != nil {
		return 0, nil, err
	}
	code, answer, err := s.answer(&r)
	return code, []byte(answer), err
}

func reviewed(review string) (int, string, error) {
	return 201, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":` + review + `}`, nil
}

func TestTokenReview(t *testing.T) {
	known := `{"authenticated":true,"user":{"username":"system:serviceaccount:team-a:builder","uid":"7","groups":["system:serviceaccounts"],"extra":{"authentication.kubernetes.io/pod-name":["p"]}}%s}`
	builder := User{
		Name: "system:serviceaccount:team-a:builder", UID: "7",
		Groups: []string{"system:serviceaccounts", AuthenticatedGroup},
		Extra:  map[string][]string{"authentication.kubernetes.io/pod-name": {"p"}},
	}
	for _, tt := range []struct {
		name      string
		audiences []string
		code      int
		body      string
		err       error
		want      any
		again     int64 // how often the server is asked by two requests
	}{
		{name: "known", body: fmt.Sprintf(known, ""), want: builder, again: 1},
		{name: "the group is there already", body: `{"authenticated":true,"user":{"username":"a","groups":["system:authenticated"]}}`, want: User{Name: "a", Groups: []string{AuthenticatedGroup}}, again: 1},
		{name: "the anonymous user", body: `{"authenticated":true,"user":{"username":"system:anonymous","groups":["system:unauthenticated"]}}`, want: Anonymous(), again: 1},
		{name: "unknown", body: `{"authenticated":false}`, want: unauthorized, again: 1},
		{name: "unknown, with a reason", body: `{"authenticated":false,"error":"the token has expired"}`,
			want: unauthorized, again: 1},
		{name: "no name", body: `{"authenticated":true,"user":{"username":""}}`, want: unauthorized, again: 1},
		{name: "nothing said", body: `{}`, want: unauthorized, again: 1},
		{name: "an audience of ours", audiences: []string{"gateway", "b"},
			body: fmt.Sprintf(known, `,"audiences":["b"]`), want: builder, again: 1},
		{name: "another audience", audiences: []string{"gateway"}, body: fmt.Sprintf(known, `,"audiences":["b"]`),
			want: unauthorized, again: 1},
		{name: "a server that knows no audiences", audiences: []string{"gateway"}, body: fmt.Sprintf(known, ""),
			want: unauthorized, again: 1},
		{name: "the gateway may not ask", code: 403, body: `{}`, want: unavailable, again: 2},
		{name: "the server fails", code: 500, body: `{}`, want: unavailable, again: 2},
		{name: "the server cannot be reached", err: errors.New("no route"), want: unavailable, again: 2},
		{name: "the server is too slow", err: status.Timeout("the backend is too slow", 3), want: unavailable,
			again: 2},
		{name: "an answer that is none", code: 200, body: "<html>", want: unavailable, again: 2},
		{name: "an answer of another kind", code: 200, body: `{"kind":"Status","status":{"authenticated":true}}`,
			want: unavailable, again: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{answer: func(r *authenticationv1.TokenReview) (int, string, error) {
				if r.Spec.Token != "secret" || !reflect.DeepEqual(r.Spec.Audiences, tt.audiences) ||
					r.Kind != "TokenReview" || r.APIVersion != "authentication.k8s.io/v1" {
					t.Errorf("asked %+v", r)
				}
				if tt.code != 0 || tt.err != nil {
					return tt.code, tt.body, tt.err
				}
				return reviewed(tt.body)
			}}
			a := newTest(t,
				Options{Methods: []Method{{TokenReview: &ReviewOptions{Post: s.post, Audiences: tt.audiences}}},
					AllowAnonymous: true})
			for range 2 {
				p, err := a.Identify(bearing("secret"))
				if got := outcome(p, err); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
			if s.asked.Load() != tt.again {
				t.Errorf("asked %d times", s.asked.Load())
			}
		})
	}
}

// The first that knows a token decides; if one fails, what another knows still counts, and
// otherwise the token is undecided.
func TestMethodsTogether(t *testing.T) {
	issuer := identitytest.NewIssuer(t)
	s := &server{answer: func(r *authenticationv1.TokenReview) (int, string, error) {
		switch r.Spec.Token {
		case "down":
			return 500, "", nil
		case "secret":
			return reviewed(`{"authenticated":true,"user":{"username":"by review"}}`)
		}
		return reviewed(`{"authenticated":false}`)
	}}
	review := Method{TokenReview: &ReviewOptions{Post: s.post}}
	second := Method{TokenReview: &ReviewOptions{Post: func(_ context.Context, body []byte) (int, []byte, error) {
		code, answer, err := reviewed(fmt.Sprintf(`{"authenticated":%t,"user":{"username":"by the second"}}`,
			bytes.Contains(body, []byte("second")) || bytes.Contains(body, []byte("down"))))
		return code, []byte(answer), err
	}}}
	local, err := ParseTrustedProxies([]string{"192.0.2.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	proxy := Method{RequestHeader: &HeaderOptions{Networks: local}}
	jwt := Method{JWT: jwtOf(issuer)}
	remote := lines{{"User", "by header"}}
	for _, tt := range []struct {
		name, token string
		methods     []Method
		remote      Headers
		want        any
	}{
		{"a token of the server alone", "secret", []Method{jwt, review}, nil, "by review"},
		{"a JWT of an issuer", issuer.Token(map[string]any{"sub": "kim", "uid": "1"}), []Method{review, jwt}, nil,
			"oidc:kim"},
		{"nobody knows it", "other", []Method{jwt, review}, nil, unauthorized},
		{"one cannot tell, another knows", "down", []Method{review, second}, nil, "by the second"},
		{"one cannot tell, no other knows", "down", []Method{jwt, review}, nil, unavailable},
		{"headers come first", "secret", []Method{proxy, review}, remote, "by header"},
		{"headers come last", "secret", []Method{review, proxy}, remote, "by review"},
		{"headers between tokens", "second", []Method{review, proxy, second}, remote, "by header"},
		{"headers after a token that is not valid", "other", []Method{review, proxy}, remote, "by header"},
		{"headers while nobody can tell of the token", "down", []Method{review, proxy}, remote, "by header"},
		{"no headers between tokens", "second", []Method{review, proxy, second}, nil, "by the second"},
		{"a token where no method is about tokens", "secret", []Method{proxy}, nil, AnonymousName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTest(t, Options{Methods: tt.methods, AllowAnonymous: true})
			for range 2 {
				r := bearing(tt.token)
				r.Remote = tt.remote
				p, err := a.Identify(r)
				got := outcome(p, err)
				if u, ok := got.(User); ok {
					got = u.Name
				}
				if got != tt.want {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			}
		})
	}
}

func TestWithoutCredentials(t *testing.T) {
	for allow, want := range map[bool]any{true: Anonymous(), false: unauthorized} {
		a := newTest(t, Options{Methods: []Method{{TokenReview: &ReviewOptions{}}, {ClientCertificate: true}},
			AllowAnonymous: allow})
		for _, authorization := range []string{"", "Basic a2lt"} {
			p, err := a.Identify(&Request{Now: time.Now(), Authorization: []byte(authorization), Client: client})
			if got := outcome(p, err); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: got %v, want %v", authorization, got, want)
			}
			var refusal *Refusal
			if errors.As(err, &refusal) && refusal.Challenge() != `Bearer realm="admission-gateway"` {
				t.Errorf("challenged by %s", refusal.Challenge())
			}
		}
	}
}

// A token that many requests bring at the same time is asked about once.
func TestTokenIsAskedAboutOnce(t *testing.T) {
	goOn := make(chan struct{})
	s := &server{answer: func(*authenticationv1.TokenReview) (int, string, error) {
		<-goOn
		return reviewed(`{"authenticated":true,"user":{"username":"kim"}}`)
	}}
	a := newTest(t, Options{Methods: []Method{{TokenReview: &ReviewOptions{Post: s.post}}}})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if p, err := a.Identify(bearing("secret")); err != nil || p.Name != "kim" {
				t.Errorf("got %v, %v", p, err)
			}
		})
	}
	testutil.Eventually(t, "the server is asked", func() bool { return s.asked.Load() > 0 })
	close(goOn)
	all.Wait()
	if s.asked.Load() != 1 {
		t.Errorf("asked %d times", s.asked.Load())
	}
}

// However many invalid tokens an address sends, and however fast, the server is asked about few of
// them (429). Tokens of other addresses are asked about, and what is remembered is answered.
func TestInvalidTokensDoNotAmplify(t *testing.T) {
	s := &server{answer: func(r *authenticationv1.TokenReview) (int, string, error) {
		return reviewed(fmt.Sprintf(`{"authenticated":%t,"user":{"username":"kim"}}`, r.Spec.Token == "secret"))
	}}
	issuer := identitytest.NewIssuer(t)
	a := newTest(t, Options{Methods: []Method{{JWT: jwtOf(issuer)}, {TokenReview: &ReviewOptions{Post: s.post}}},
		Tokens: TokenOptions{Failures: 6, Burst: 5}})
	if _, err := a.Identify(bearing("secret")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var answers [600]atomic.Int64
	for i := range 2000 {
		all.Go(func() {
			p, err := a.Identify(bearing(fmt.Sprint("made-up-", i)))
			code, _ := outcome(p, err).(int32)
			answers[code].Add(1)
		})
	}
	all.Wait()
	if asked := s.asked.Load() - 1; asked > 5+maxReviews || answers[429].Load() < 2000-5-maxReviews {
		t.Errorf("asked %d times, refused %d requests", asked, answers[429].Load())
	}
	_, err := a.Identify(bearing("another"))
	if err == nil || err.Error() != "the client's address sent too many bearer tokens that are not valid: try again after 10 seconds" && !strings.Contains(err.Error(), "try again after") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Identify(bearing("secret")); err != nil {
		t.Errorf("a token that is remembered: %v", err)
	}
	// One that was valid is no made-up one when it has to be asked about again, and one of an issuer needs no server.
	later := bearing("secret")
	later.Now = later.Now.Add(time.Hour)
	id := only(t, a.tokens)
	shard := &a.tokens.shards[id[0]%tokenShards]
	result, _ := shard.valid.Get(id)
	result.until = 1
	shard.valid.Add(id, result)
	if _, err := a.Identify(later); err != nil {
		t.Errorf("a token that was valid: %v", err)
	}
	if p, err := a.Identify(bearing(issuer.Token(map[string]any{"sub": "lee", "uid": "1"}))); err != nil ||
		p.Name != "oidc:lee" {
		t.Errorf("a JWT: %v", err)
	}
	r := bearing("secret-that-is-new")
	r.Client = netip.MustParseAddr("192.0.2.2")
	if p, err := a.Identify(r); outcome(p, err) != unauthorized {
		t.Errorf("another address: %v", outcome(p, err))
	}
}

// Made-up tokens push out no valid one, and what is remembered of them is bounded.
func TestTokensAreBounded(t *testing.T) {
	s := &server{answer: func(r *authenticationv1.TokenReview) (int, string, error) {
		return reviewed(fmt.Sprintf(`{"authenticated":%t,"user":{"username":"kim"}}`, r.Spec.Token == "secret"))
	}}
	a := newTest(t, Options{Methods: []Method{{TokenReview: &ReviewOptions{Post: s.post}}},
		Tokens: TokenOptions{Entries: 64, Failures: 60_000, Burst: 100_000}})
	if _, err := a.Identify(bearing("secret")); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if p, err := a.Identify(bearing(fmt.Sprint("made-up-", i))); outcome(p, err) != unauthorized {
			t.Fatal(outcome(p, err))
		}
	}
	asked := s.asked.Load()
	if _, err := a.Identify(bearing("secret")); err != nil || s.asked.Load() != asked {
		t.Errorf("the valid token was forgotten: %v", err)
	}
	total := 0
	for i := range a.tokens.shards {
		total += a.tokens.shards[i].invalid.Len() + a.tokens.shards[i].valid.Len()
	}
	if total > 2*64 {
		t.Errorf("%d tokens are remembered", total)
	}
}

// Who waits as long as the answer says may try again, and who was forgotten among very many addresses has no new
// allowance.
func TestFailures(t *testing.T) {
	f := newFailures(60, 3)
	now := f.start
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for range 3 {
		if err := f.allow(a, now); err != nil {
			t.Fatal(err)
		}
		f.add(a, now)
	}
	if err := f.allow(a, now); err == nil || err.Error() != "the client's address sent too many bearer tokens that are not valid: try again after 1 second" {
		t.Errorf("got %v", err)
	}
	if err := f.allow(b, now); err != nil {
		t.Error(err)
	}
	if err := f.allow(a, now.Add(time.Second)); err != nil {
		t.Error(err)
	}
	// A /64 is one client.
	for i := range 3 {
		f.add(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1)), now)
	}
	if f.allow(netip.MustParseAddr("2001:db8::ffff"), now) == nil {
		t.Error("another address of the /64 may go on")
	}
	if err := f.allow(netip.MustParseAddr("2001:db8:0:1::1"), now); err != nil {
		t.Error(err)
	}

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 1_000_000 {
		f.add(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if f.taken.Len() > maxAddresses || after.HeapAlloc > before.HeapAlloc+16<<20 {
		t.Errorf("%d addresses are known, %d bytes", f.taken.Len(), after.HeapAlloc-before.HeapAlloc)
	}
	for range 3 {
		f.add(netip.MustParseAddr("203.0.113.1"), now)
	}
	if f.allow(a, now) == nil {
		t.Error("an address that was forgotten may go on")
	}
}

// BenchmarkIdentify measures a token that is remembered, and an address that sends no credentials.
func BenchmarkIdentify(b *testing.B) {
	issuer := identitytest.NewIssuer(b)
	a := newTest(b, Options{Methods: []Method{{ClientCertificate: true}, {JWT: jwtOf(issuer)}}, AllowAnonymous: true,
		Tokens: TokenOptions{TTL: time.Hour}})
	for name, r := range map[string]*Request{
		"token": bearing(issuer.Token(map[string]any{"sub": "kim", "uid": "1",
			"teams": []string{"team-a", "team-b"}, "email": "kim@example.com", "name": strings.Repeat("k", 500)})),
		"anonymous": {Now: time.Now(), Client: client},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(r.Authorization)))
			for b.Loop() {
				if _, err := a.Identify(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestIdentifyAllocatesNothing(t *testing.T) {
	s := &server{answer: func(*authenticationv1.TokenReview) (int, string, error) {
		return reviewed(`{"authenticated":true,"user":{"username":"kim"}}`)
	}}
	a := newTest(t, Options{Methods: []Method{{TokenReview: &ReviewOptions{Post: s.post}}},
		Tokens: TokenOptions{ReviewTTL: time.Hour}})
	r := bearing("secret")
	if n := testing.AllocsPerRun(100, func() { _, _ = a.Identify(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
