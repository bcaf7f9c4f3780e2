package bundle

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/admission-gateway/gateway/admission/rego"
)

// A Key verifies signatures.
type Key struct {
	// Algorithm is the only one that the key is for, such as RS256.
	Algorithm string
	// Text is a public key or a certificate in PEM, or the secret of an HMAC.
	Text string
	// Scope is the scope that signatures by the key must have, if Signing has none.
	Scope string
}

// Validate returns what is wrong with the key; nil if it can verify signatures.
func (k Key) Validate() error {
	if k.Algorithm == "" || k.Text == "" {
		return errors.New("must have an algorithm and a text")
	}
	if strings.HasPrefix(k.Algorithm, "HS") {
		return nil
	}
	block, _ := pem.Decode([]byte(k.Text))
	if block == nil {
		return errors.New("must be a public key or a certificate in PEM")
	}
	var err error
	switch block.Type {
	case "RSA PUBLIC KEY":
		_, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "PUBLIC KEY":
		_, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "CERTIFICATE":
		_, err = x509.ParseCertificate(block.Bytes)
	default:
		err = fmt.Errorf("must be a public key or a certificate, not '%s'", block.Type)
	}
	return err
}

// Signing says how bundles must be signed.
type Signing struct {
	// Keys are the keys by their names. A bundle without a signature by one of them is refused.
	Keys map[string]Key
	// KeyID names the only key that counts; empty: the signature names one of Keys.
	KeyID string
	// Scope is the scope that the signature must have; empty: the one of its key.
	Scope string
	// Exclude are patterns of files that the signature need not have.
	Exclude []string
}

// Options say how bundles are read.
type Options struct {
	// Name is the bundle's name in messages.
	Name string
	// Signing is how it must be signed; nil: it must not be.
	Signing *Signing
	// V0 reads modules as OPA before 1.0 did, unless the manifest says their version.
	V0 bool
	// MaxBytes bounds the unpacked files together, MaxFiles their number.
	MaxBytes int64
	MaxFiles int
	// Memory bounds what is taken to decode them; nil sets no bound.
	Memory rego.Memory
}

// config is the signing in the form of OPA's library; nil without one.
func (s *Signing) config() *opa.VerificationConfig {
	if s == nil {
		return nil
	}
	keys := make(map[string]*opa.KeyConfig, len(s.Keys))
	for name, k := range s.Keys {
		keys[name] = &opa.KeyConfig{Key: k.Text, Algorithm: k.Algorithm, Scope: k.Scope}
	}
	return opa.NewVerificationConfig(keys, s.KeyID, s.Scope, s.Exclude)
}

// errNoMemory is the error if there is no memory for a bundle.
var errNoMemory = errors.New("takes more memory to decode than is left of `limits.bodiesInFlightBytes`; " +
	"a bundle of less data takes less, and so does one that is not signed")

// take asks for memory.
func (o *Options) take(bytes int) bool { return o.Memory == nil || o.Memory.Grow(bytes) }

// giveBack gives memory back.
func (o *Options) giveBack(bytes int) {
	if o.Memory != nil {
		o.Memory.Shrink(bytes)
	}
}
