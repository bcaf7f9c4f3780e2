// Package bundle reads bundles of Open Policy Agent: archives of modules, data and a manifest, which
// may be signed.
//
// OPA's own library reads the archives, verifies signatures and applies deltas. What this package
// adds are bounds for all of an archive, and the form in which package rego compiles it.
package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/document"
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
}

// A Bundle has the content of an archive. It is immutable and safe for concurrent use.
type Bundle struct {
	// Revision is the one in the manifest; it may be empty.
	Revision string
	// Sum is the SHA-256 of all that the bundle was made of, in hex.
	Sum string

	modules []rego.Module
	data    rego.Value
	read    opa.Bundle
}

// Read reads an archive. A bundle without modules and data but with a patch is a delta.
func Read(archive []byte, o Options) (_ *Bundle, err error) {
	defer recovered(&err)
	if err := measure(archive, o.MaxBytes, o.MaxFiles); err != nil {
		return nil, err
	}
	version := ast.RegoV1
	if o.V0 {
		version = ast.RegoV0
	}
	reader := opa.NewReader(bytes.NewReader(archive)).
		WithBundleName(o.Name).
		WithRegoVersion(version).
		WithSizeLimitBytes(o.MaxBytes).
		WithBundleVerificationConfig(o.Signing.config())
	read, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("must be a bundle of OPA: %w", err)
	}
	if len(read.WasmModules) > 0 {
		return nil, errors.New("must not hold policies in WebAssembly, which the gateway does not run")
	}
	sum := sha256.Sum256(archive)
	b := &Bundle{Revision: read.Manifest.Revision, Sum: hex.EncodeToString(sum[:]), read: read}
	if b.IsDelta() {
		return b, nil
	}
	for i := range read.Modules {
		m := moduleOf(o.Name, &read.Modules[i])
		if m.Version, err = read.RegoVersionForFile(read.Modules[i].RelativePath, version); err != nil {
			return nil, err
		}
		b.modules = append(b.modules, m)
	}
	slices.SortFunc(b.modules, func(a, b rego.Module) int { return strings.Compare(a.File, b.File) })
	if b.data, err = valueOf(read.Data); err != nil {
		return nil, err
	}
	return b, nil
}

// recovered makes an error of a panic in OPA's library: a server must not end the gateway by what it
// sends. It does not reach OPA's parser, which runs in goroutines of its own, and bounds its depth.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the bundle cannot be read: %v", p)
	}
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

// FilePrefix begins the names of files in bundles.
const FilePrefix = "bundle:"

func moduleOf(bundle string, m *opa.ModuleFile) rego.Module {
	return rego.Module{
		File:   FilePrefix + bundle + "/" + strings.TrimPrefix(m.Path, "/"),
		Source: m.Raw,
		Tests:  strings.HasSuffix(strings.ToLower(m.Path), "_test.rego"),
	}
}

// maxDataNodes bounds the values in a bundle's data, and maxDataDepth how deep they are nested.
const (
	maxDataNodes = 4 << 20
	maxDataDepth = 256
)

// valueOf makes a value of the data, with the gateway's bounds on JSON.
func valueOf(data map[string]any) (rego.Value, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return rego.Value{}, fmt.Errorf("the data: %w", err)
	}
	limits := document.Limits{Bytes: len(text), Depth: maxDataDepth, Nodes: maxDataNodes}
	d, err := document.Parse(text, limits)
	if err != nil {
		return rego.Value{}, fmt.Errorf("the data: %w", err)
	}
	defer d.Release()
	v, err := rego.ValueOf(d.Root())
	if err != nil {
		return rego.Value{}, fmt.Errorf("the data: %w", err)
	}
	return v, nil
}

// IsDelta reports whether the bundle says only what changes in the data of the one before.
func (b *Bundle) IsDelta() bool { return b.read.Type() == opa.DeltaBundleType }

// Modules are the modules, in the order of their names.
func (b *Bundle) Modules() []rego.Module { return b.modules }

// Data is the document data.
func (b *Bundle) Data() rego.Value { return b.data }

// Patched returns the bundle with the changes of a delta. The bundle itself stays as it is.
func (b *Bundle) Patched(delta *Bundle) (_ *Bundle, err error) {
	defer recovered(&err)
	ctx := context.Background()
	store := inmem.NewFromObject(b.read.Data) // a copy
	patched := *b
	err = storage.Txn(ctx, store, storage.WriteParams, func(txn storage.Transaction) error {
		if err := opa.WriteManifestToStore(ctx, store, txn, bundleName, b.read.Manifest); err != nil {
			return err
		}
		err := opa.Activate(&opa.ActivateOpts{
			Ctx: ctx, Store: store, Txn: txn, TxnCtx: storage.NewContext(), Compiler: ast.NewCompiler(),
			Metrics: metrics.New(), Bundles: map[string]*opa.Bundle{bundleName: &delta.read},
		})
		if err != nil {
			return err
		}
		all, err := store.Read(ctx, txn, storage.Path{})
		if err != nil {
			return err
		}
		data, ok := all.(map[string]any)
		if !ok {
			return errors.New("the data must be an object")
		}
		patched.read.Data = withoutSystem(b.read.Data, data)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the delta cannot be applied: %w", err)
	}
	if patched.data, err = valueOf(patched.read.Data); err != nil {
		return nil, err
	}
	patched.Revision, patched.read.Manifest.Revision = delta.Revision, delta.Revision
	sum := sha256.Sum256([]byte(b.Sum + delta.Sum))
	patched.Sum = hex.EncodeToString(sum[:])
	return &patched, nil
}

// bundleName is the bundle's name in the store that deltas are applied in.
const bundleName = "patched"

// withoutSystem takes out what OPA notes of bundles in the data.
func withoutSystem(before, after map[string]any) map[string]any {
	const system = "system"
	made, _ := after[system].(map[string]any)
	delete(made, "bundles")
	delete(made, "modules")
	if _, had := before[system]; !had && len(made) == 0 {
		delete(after, system)
	}
	return after
}
