package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/admission-gateway/gateway/internal/identity/identitytest"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// jwtOf is the configuration of an issuer: claims become users by expressions.
func jwtOf(i *identitytest.Issuer) *apiserver.JWTAuthenticator {
	return &apiserver.JWTAuthenticator{
		Issuer: apiserver.Issuer{URL: i.URL, CertificateAuthority: i.CA, Audiences: []string{"gateway", "other"},
			AudienceMatchPolicy: apiserver.AudienceMatchPolicyMatchAny},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Expression: "'oidc:' + claims.sub"},
			Groups:   apiserver.PrefixedClaimOrExpression{Expression: "claims.?teams.orValue([])"},
			UID:      apiserver.ClaimOrExpression{Claim: "uid"},
			Extra:    []apiserver.ExtraMapping{{Key: "example.com/tenant", ValueExpression: "claims.?tenant.orValue('')"}},
		},
		ClaimValidationRules: []apiserver.ClaimValidationRule{
			{Expression: "claims.?hd.orValue('') != 'elsewhere.example.com'", Message: "another domain"}},
		UserValidationRules: []apiserver.UserValidationRule{{Expression: "!user.username.startsWith('oidc:system:')",
			Message: "reserved"}},
	}
}

// newTest makes authenticators, whose issuers are ready.
func newTest(t testing.TB, o Options) *Authenticators {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	for _, m := range a.methods {
		if j, ok := m.token.(*jwt); ok {
			testutil.Eventually(t, "the keys of the issuer are read",
				func() bool { return j.library.HealthCheck() == nil })
		}
	}
	return a
}

var client = netip.MustParseAddr("192.0.2.1")

func bearing(token string) *Request {
	return &Request{Now: time.Now(), Authorization: []byte("Bearer " + token), Client: client, Peer: client}
}

// outcome is a user, or the client's error.
func outcome(p *Principal, err error) any {
	var refusal *Refusal
	var own *status.Error
	switch {
	case err == nil:
		return p.User
	case errors.As(err, &refusal):
		return refusal.Status().ErrStatus.Code
	case errors.As(err, &own):
		return own.ErrStatus.Code
	}
	return err
}

const (
	unauthorized    = int32(401)
	tooManyRequests = int32(429)
	unavailable     = int32(503)
)

func TestJWT(t *testing.T) {
	one, two, stranger := identitytest.NewIssuer(t), identitytest.NewIssuer(t), identitytest.NewIssuer(t)
	a := newTest(t, Options{Methods: []Method{{JWT: jwtOf(one)}, {JWT: jwtOf(two)}}, AllowAnonymous: true,
		Tokens: TokenOptions{Failures: 1000, Burst: 1000}})
	hour := time.Now().Add(time.Hour).Unix()
	for _, tt := range []struct {
		name, token string
		want        any
	}{
		{
			"one issuer", one.Token(map[string]any{"sub": "kim", "uid": "42", "teams": []string{"a", "b"},
				"tenant": "blue"}),
			User{Name: "oidc:kim", UID: "42", Groups: []string{"a", "b", AuthenticatedGroup},
				Extra: map[string][]string{"example.com/tenant": {"blue"}}},
		},
		{"another issuer", two.Token(map[string]any{"sub": "lee", "uid": "7"}),
			User{Name: "oidc:lee", UID: "7", Groups: []string{AuthenticatedGroup}}},
		{"another audience that counts",
			two.Token(map[string]any{"sub": "lee", "uid": "7", "aud": []string{"x", "other"}}),
			User{Name: "oidc:lee", UID: "7", Groups: []string{AuthenticatedGroup}}},
		{
			"id of the token", two.Token(map[string]any{"sub": "lee", "uid": "7", "jti": "one"}),
			User{Name: "oidc:lee", UID: "7", Groups: []string{AuthenticatedGroup},
				Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=one"}}},
		},
		{"an issuer that nobody configured", stranger.Token(map[string]any{"sub": "kim", "uid": "1"}), unauthorized},
		{"the issuer of another's key", strings.Join([]string{
			parts(one.Token(map[string]any{"sub": "kim", "uid": "1"}))[0],
			parts(one.Token(map[string]any{"sub": "kim", "uid": "1"}))[1],
			parts(two.Token(map[string]any{"sub": "kim", "uid": "1"}))[2],
		}, "."), unauthorized},
		{"another audience", one.Token(map[string]any{"sub": "kim", "uid": "1", "aud": "elsewhere"}), unauthorized},
		{"no audience", one.Token(map[string]any{"sub": "kim", "uid": "1", "aud": nil}), unauthorized},
		{"expired", one.Token(map[string]any{"sub": "kim", "uid": "1", "exp": time.Now().Add(-time.Minute).Unix()}),
			unauthorized},
		{"never expires", one.Token(map[string]any{"sub": "kim", "uid": "1", "exp": nil}), unauthorized},
		{"not yet valid", one.Token(map[string]any{"sub": "kim", "uid": "1", "nbf": hour}), unauthorized},
		{"without the claim of the name", one.Token(map[string]any{"uid": "1"}), unauthorized},
		{"without the claim of the UID", one.Token(map[string]any{"sub": "kim"}), unauthorized},
		{"a rule about claims", one.Token(map[string]any{"sub": "kim", "uid": "1", "hd": "elsewhere.example.com"}),
			unauthorized},
		{"a rule about the user", one.Token(map[string]any{"sub": "system:masters", "uid": "1"}), unauthorized},
		{"a key that nobody knows", one.Forged(t, "0", map[string]any{"sub": "kim", "uid": "1"}), unauthorized},
		{"not signed", parts(one.Token(nil))[0] + "." + parts(one.Token(nil))[1] + ".", unauthorized},
		{"alg none", "eyJhbGciOiJub25lIn0." + parts(one.Token(map[string]any{"sub": "kim", "uid": "1"}))[1] + ".",
			unauthorized},
		{"no JWT", "secret", unauthorized},
		{"empty", "", unauthorized},
		{"two tokens", "a b", unauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // asked and remembered
				p, err := a.Identify(bearing(tt.token))
				if got := outcome(p, err); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
		})
	}
}

func parts(token string) []string { return strings.Split(token, ".") }

// New keys are looked up when a token names one. The key of a token that is remembered does not
// matter until it is forgotten.
func TestJWTKeysRotate(t *testing.T) {
	issuer := identitytest.NewIssuer(t)
	a := newTest(t, Options{Methods: []Method{{JWT: jwtOf(issuer)}},
		Tokens: TokenOptions{FailureTTL: time.Millisecond, Failures: 6000, Burst: 1000}})
	kim := User{Name: "oidc:kim", UID: "1", Groups: []string{AuthenticatedGroup}}
	claims := map[string]any{"sub": "kim", "uid": "1"}
	for published := 1; published <= 3; published++ {
		token := issuer.Token(claims)
		// The library gives its result once more to a caller at the very end of a reading.
		testutil.Eventually(t, "a token of the published keys is taken", func() bool {
			p, err := a.Identify(bearing(token))
			return reflect.DeepEqual(outcome(p, err), kim)
		})
		issuer.Rotate(t, published)
	}
	// However many tokens name unknown keys, the issuer is asked once a second.
	before := issuer.Asked()
	start := time.Now()
	var all sync.WaitGroup
	for i := range 50 {
		forged := issuer.Forged(t, "made-up", map[string]any{"sub": "kim", "uid": i})
		all.Go(func() {
			if p, err := a.Identify(bearing(forged)); outcome(p, err) != unauthorized {
				t.Errorf("got %v", outcome(p, err))
			}
		})
	}
	all.Wait()
	if asked, most := issuer.Asked()-before, 2+int(time.Since(start)/keysPeriod); asked > most {
		t.Errorf("the issuer was asked %d times in %v", asked, time.Since(start))
	}
}

// A key that the issuer has withdrawn does not count once the keys were read again, whether or not a token named
// another one.
func TestJWTKeyIsWithdrawn(t *testing.T) {
	issuer := identitytest.NewIssuer(t)
	o := jwtOf(issuer)
	a := newTest(t, Options{Methods: []Method{{JWT: o}}})
	verifier := a.methods[0].token.(*jwt)
	token := issuer.Token(map[string]any{"sub": "kim", "uid": "1"})
	verify := func() error {
		_, _, err := verifier.verify(context.Background(), token, nil)
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	issuer.Rotate(t, 1)
	if err := verify(); err != nil {
		t.Errorf("the keys were read again: %v", err)
	}
	issuer.Break(true)
	verifier.refresh(context.Background(), o)
	if err := verify(); err != nil {
		t.Errorf("while the issuer is down: %v", err)
	}
	issuer.Break(false)
	testutil.Eventually(t, "the issuer answers again", func() bool {
		verifier.refresh(context.Background(), o)
		err := verify()
		return err != nil && !errors.Is(err, errUnavailable)
	})
}

// An issuer that cannot be asked is no reason to take a token for invalid, and none to let it pass (503).
func TestJWTIssuerDown(t *testing.T) {
	issuer := identitytest.NewIssuer(t)
	a := newTest(t, Options{Methods: []Method{{JWT: jwtOf(issuer)}}, AllowAnonymous: true,
		Tokens: TokenOptions{FailureTTL: time.Millisecond}})
	claims := map[string]any{"sub": "kim", "uid": "1"}
	known := issuer.Token(claims)
	if _, err := a.Identify(bearing(known)); err != nil {
		t.Fatal(err)
	}
	issuer.Break(true)
	issuer.Rotate(t, 1)
	fresh := issuer.Token(claims)
	testutil.Eventually(t, "a token whose key is not known cannot be checked", func() bool { // as above
		p, err := a.Identify(bearing(fresh))
		return outcome(p, err) == unavailable
	})
	if _, err := a.Identify(bearing(known)); err != nil {
		t.Errorf("a token that is remembered: %v", err)
	}
	issuer.Break(false)
	testutil.Eventually(t, "the new key is known", func() bool {
		_, err := a.Identify(bearing(fresh))
		return err == nil
	})

	down := identitytest.NewIssuer(t)
	down.Break(true)
	b, err := New(Options{Methods: []Method{{JWT: jwtOf(down)}}, AllowAnonymous: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if p, err := b.Identify(bearing(down.Token(claims))); outcome(p, err) != unavailable {
		t.Errorf("an issuer that was never up: %v", outcome(p, err))
	}
	if p, err := b.Identify(bearing("not of that issuer")); outcome(p, err) != unauthorized {
		t.Errorf("a token of nobody: %v", outcome(p, err))
	}
}

// A token is forgotten when it expires, whatever it is remembered for.
func TestJWTExpires(t *testing.T) {
	issuer := identitytest.NewIssuer(t)
	a := newTest(t, Options{Methods: []Method{{JWT: jwtOf(issuer)}}})
	expires := time.Now().Add(30 * time.Minute)
	r := bearing(issuer.Token(map[string]any{"sub": "kim", "uid": "1", "exp": expires.Unix()}))
	if _, err := a.Identify(r); err != nil {
		t.Fatal(err)
	}
	id := only(t, a.tokens)
	if result, found := a.tokens.recall(&id, time.Now().Add(DefaultTTL+time.Second).UnixNano()); found != stale {
		t.Errorf("remembered after a minute: %v", result)
	}
	soon := time.Now().Add(2 * time.Second)
	a = newTest(t, Options{Methods: []Method{{JWT: jwtOf(issuer)}}})
	if _, err := a.Identify(
		bearing(issuer.Token(map[string]any{"sub": "kim", "uid": "1", "exp": soon.Unix()}))); err != nil {
		t.Fatal(err)
	}
	id = only(t, a.tokens)
	if result, found := a.tokens.recall(&id, soon.UnixNano()); found != stale {
		t.Errorf("remembered after it expired: %v", result)
	}
	for exp, want := range map[string]int64{`{"exp":17e8}`: 1700000000, `{"exp":1700000000.9}`: 1700000000,
		`{"exp":1e300}`: 1<<32 - 1, `{"exp":"1"}`: 1, `{}`: 1, `[`: 1} {
		if got := expiryOf("." + base64.RawURLEncoding.EncodeToString([]byte(exp)) + ".").Unix(); got != want {
			t.Errorf("%s: got %d", exp, got)
		}
	}
}

// only is the one valid token that is remembered, which is forgotten with it.
func only(t *testing.T, tokens *tokens) tokenID {
	t.Helper()
	for i := range tokens.shards {
		for _, id := range tokens.shards[i].valid.Keys() {
			return id
		}
	}
	t.Fatal("no token is remembered")
	return tokenID{}
}

func TestClosedAuthenticatorsEnd(t *testing.T) {
	down := identitytest.NewIssuer(t)
	ctx, cancel := context.WithCancel(context.Background())
	j, err := newJWT(ctx, jwtOf(down), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, _, err := j.verify(ctx, down.Token(map[string]any{"sub": "kim", "uid": "1"}), nil); err == nil ||
		!errors.Is(err, errUnavailable) {
		t.Errorf("got %v", err)
	}
}

// foundLate is a library whose issuer is found while it refuses a token because it was not.
type foundLate struct{ found bool }

func (f *foundLate) AuthenticateToken(context.Context, string) (*authenticator.Response, bool, error) {
	f.found = true
	return nil, false, errors.New("oidc: authenticator not initialized")
}

func (f *foundLate) HealthCheck() error {
	if f.found {
		return nil
	}
	return errors.New("oidc: authenticator not initialized")
}

// A token that comes while its issuer is looked up is not called invalid, which would be remembered.
func TestIssuerIsFoundMeanwhile(t *testing.T) {
	j := &jwt{&foundLate{}, &issuer{}}
	if _, _, err := j.verify(t.Context(), "a.b.c", nil); !errors.Is(err, errUnavailable) {
		t.Errorf("the error is %v, want that the issuer is not available", err)
	}
	if _, _, err := j.verify(t.Context(), "a.b.c", nil); err == nil || errors.Is(err, errUnavailable) {
		t.Errorf("once the issuer is found the error is %v, want the library's", err)
	}
}
