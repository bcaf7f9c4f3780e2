// Package identitytest has what tests of identity need: an issuer of JWTs as it is in the world.
package identitytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// Issuer is an issuer of JWTs: a TLS server with the metadata and keys that OpenID Connect has an issuer publish.
type Issuer struct {
	// URL is the issuer's, CA the PEM of the authority of its server.
	URL, CA string

	server *httptest.Server
	mu     sync.Mutex
	keys   []*ecdsa.PrivateKey // published, the last one signs
	first  int                 // the number of the first
	asked  int
	broken bool
	traces []string
}

// NewIssuer starts an issuer with one key, which lasts until the test ends.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// Start starts an issuer with one key, which lasts until Close.
func Start() (*Issuer, error) {
	i := &Issuer{}
	i.server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	i.URL = i.server.URL
	i.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw}))
	return i, i.rotate(1)
}

// Close ends the issuer.
func (i *Issuer) Close() { i.server.Close() }

// Traceparents are the traceparent headers that the issuer received.
func (i *Issuer) Traceparents() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.traces)
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.traces = append(i.traces, r.Header["Traceparent"]...)
	if i.broken {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	case "/keys":
		i.asked++
		keys := []map[string]string{}
		for n, k := range i.keys {
			point, err := k.PublicKey.Bytes()
			if err != nil {
				panic(err)
			}
			keys = append(keys, map[string]string{
				"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": fmt.Sprint(i.first + n),
				"x": encode(point[1:33]), "y": encode(point[33:]),
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
	default:
		http.NotFound(w, r)
	}
}

// Rotate makes a new key, which signs from now on, and publishes the last so many.
func (i *Issuer) Rotate(t testing.TB, published int) {
	t.Helper()
	if err := i.rotate(published); err != nil {
		t.Fatal(err)
	}
}

func (i *Issuer) rotate(published int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, key)
	for len(i.keys) > published {
		i.keys = i.keys[1:]
		i.first++
	}
	return nil
}

// Break has the issuer answer everything with an error, or no longer.
func (i *Issuer) Break(broken bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.broken = broken
}

// Asked is how often the keys were asked for.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Token signs claims. iss, aud ("gateway") and exp (an hour from now) are added if they are
// missing.
func (i *Issuer) Token(claims map[string]any) string {
	i.mu.Lock()
	key, id := i.keys[len(i.keys)-1], fmt.Sprint(i.first+len(i.keys)-1)
	i.mu.Unlock()
	return sign(key, id, i.URL, claims)
}

// Forged is a token as Token makes it, signed with an unknown key and named so.
func (i *Issuer) Forged(t testing.TB, kid string, claims map[string]any) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return sign(key, kid, i.URL, claims)
}

func sign(key *ecdsa.PrivateKey, id, issuer string, claims map[string]any) string {
	all := map[string]any{"iss": issuer, "aud": "gateway", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	header, err := json.Marshal(map[string]string{"alg": "ES256", "kid": id})
	if err != nil {
		panic(err)
	}
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	text := encode(header) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		panic(err)
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encode(signature[:])
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
