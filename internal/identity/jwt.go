package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/admission-gateway/gateway/internal/outbound"
)

// jwt verifies the JWTs of one issuer: Kubernetes' own authenticator, which looks up the issuer's keys and evaluates
// the expressions of claims.
type jwt struct {
	library oidc.AuthenticatorTokenWithHealthCheck
	issuer  *issuer
}

func newJWT(ctx context.Context, o *apiserver.JWTAuthenticator, compiler authenticationcel.Compiler,
	over func(http.RoundTripper) http.RoundTripper) (*jwt, error) {
	var roots *x509.CertPool // nil is the system's
	if pem := o.Issuer.CertificateAuthority; pem != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(pem)) {
			return nil, errors.New("jwt: the certificate authority of the issuer must have at least one certificate in PEM")
		}
	}
	trusts := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client := outbound.New(outbound.Options{
		Timeout: issuerTimeout, MaxBytes: maxPublished, Redirects: true, Trace: over,
		TLS: func() *tls.Config { return trusts },
	})
	i := &issuer{base: client.Transport}
	client.Transport = i
	library, err := oidc.New(ctx, oidc.Options{
		JWTAuthenticator:     *o,
		Client:               client,
		Compiler:             compiler,
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
	})
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	j := &jwt{library, i}
	go j.refreshKeys(ctx, o)
	return j, nil
}

// keysAge is how old the keys of an issuer may be.
const keysAge = 5 * time.Minute

// refreshKeys has the keys read again from time to time: the library does so only for a token that names a key it does
// not know, and a key that the issuer has withdrawn would count until then.
func (j *jwt) refreshKeys(ctx context.Context, o *apiserver.JWTAuthenticator) {
	tick := time.NewTicker(keysAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.refresh(ctx, o)
		}
	}
}

// refresh has the library look for a key that there is not. Keys that cannot be read, or that the
// issuer said to keep for longer, leave the keys that were read before.
func (j *jwt) refresh(ctx context.Context, o *apiserver.JWTAuthenticator) {
	claims, err := json.Marshal(map[string]any{"iss": o.Issuer.URL, "aud": o.Issuer.Audiences,
		"exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	encode := base64.RawURLEncoding.EncodeToString
	_, _, _ = j.library.AuthenticateToken(ctx, encode([]byte(`{"alg":"ES256","kid":"none"}`))+"."+encode(claims)+"."+
		encode(make([]byte, 64)))
}

// verify implements verifier.
func (j *jwt) verify(ctx context.Context, token string, _ *bearer) (*User, time.Time, error) {
	// The issuer may be found while the library still refuses the token because it was not: such a
	// refusal must not be kept as one of the token.
	failures, unfound := j.issuer.failures.Load(), j.library.HealthCheck()
	response, ok, err := j.library.AuthenticateToken(ctx, token)
	switch {
	case err != nil && (unfound != nil || j.library.HealthCheck() != nil || j.issuer.failures.Load() != failures ||
		ctx.Err() != nil):
		return nil, time.Time{}, fmt.Errorf("%w: %w", errUnavailable, err)
	case err != nil || !ok:
		return nil, time.Time{}, err
	case response.User.GetName() == "":
		return nil, time.Time{}, errors.New("the token belongs to a user without a name")
	}
	u := userOf(response.User)
	return &u, expiryOf(token), nil
}

// expiryOf reads when a token expires that was verified; one that does not say expires at once.
func expiryOf(token string) time.Time {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	var claims struct {
		Expires float64 `json:"exp"`
	}
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(data, &claims) != nil || !(claims.Expires >= 1) {
		return time.Unix(1, 0)
	}
	return time.Unix(int64(min(claims.Expires, math.MaxUint32)), 0)
}
