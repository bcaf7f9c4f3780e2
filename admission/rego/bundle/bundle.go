// Package bundle reads bundles of Open Policy Agent: archives of modules, data and a manifest, which
// may be signed.
//
// OPA's own library verifies signatures, checks modules and manifests, and applies deltas. This package
// unpacks the archives and reads their data itself, so that both are bounded by the files and the memory
// that they take before they take them, and gives the bundle the form in which package rego compiles it.
package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/admission-gateway/gateway/admission/rego"
)

// A Bundle has the content of an archive. It is immutable and safe for concurrent use.
type Bundle struct {
	// Revision is the one in the manifest; it may be empty.
	Revision string
	// Sum is the SHA-256 of all that the bundle was made of, in hex.
	Sum string

	modules  []rego.Module
	data     rego.Value
	manifest opa.Manifest
	delta    *opa.Bundle // nil if the bundle is not one
}

// Read reads an archive. A bundle without modules and data but with a patch is a delta. Memory is
// reserved before it is used; what the bundle itself holds stays asked for until its holder gives
// it back.
func Read(archive []byte, o Options) (_ *Bundle, err error) {
	defer recovered(&err)
	files, err := unpack(archive, &o)
	if err != nil {
		return nil, err
	}
	weight, err := o.weigh(files, o.Signing != nil)
	if err != nil {
		return nil, err
	}
	if !o.take(weight) {
		return nil, errNoMemory
	}
	version := ast.RegoV1
	if o.V0 {
		version = ast.RegoV0
	}
	// The reader leaves the data to dataOf, which makes less of it, and asks for it as it grows.
	reader := opa.NewCustomReader(&loader{files}).
		WithBundleName(o.Name).
		WithRegoVersion(version).
		WithSizeLimitBytes(o.MaxBytes).
		WithLazyLoadingMode(true).
		WithBundleVerificationConfig(o.Signing.config())
	read, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("must be a bundle of OPA: %w", err)
	}
	if len(read.WasmModules) > 0 {
		return nil, errors.New("must not hold policies in WebAssembly, which the gateway does not run")
	}
	sum := sha256.Sum256(archive)
	b := &Bundle{Revision: read.Manifest.Revision, Sum: hex.EncodeToString(sum[:]), manifest: read.Manifest}
	if read.Type() == opa.DeltaBundleType {
		b.delta = &read
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
	read = opa.Bundle{}
	o.giveBack(weight)
	if b.data, err = dataOf(files, *b.manifest.Roots, &o); err != nil {
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

// FilePrefix begins the names of files in bundles.
const FilePrefix = "bundle:"

func moduleOf(bundle string, m *opa.ModuleFile) rego.Module {
	return rego.Module{
		File:   FilePrefix + bundle + "/" + strings.TrimPrefix(m.Path, "/"),
		Source: m.Raw,
		Tests:  strings.HasSuffix(strings.ToLower(m.Path), "_test.rego"),
	}
}

// IsDelta reports whether the bundle says only what changes in the data of the one before.
func (b *Bundle) IsDelta() bool { return b.delta != nil }

// Modules are the modules, in the order of their names.
func (b *Bundle) Modules() []rego.Module { return b.modules }

// Data is the document data.
func (b *Bundle) Data() rego.Value { return b.data }

// Patched returns the bundle with the changes of a delta, which was read by the same options. The bundle itself stays
// as it is.
func (b *Bundle) Patched(delta *Bundle, o Options) (_ *Bundle, err error) {
	defer recovered(&err)
	text, err := b.data.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	// The text, the values that the store works on, and the text that it makes of them.
	weight := 2*len(text) + jsonWeight(text)
	if !o.take(weight) {
		return nil, errNoMemory
	}
	defer o.giveBack(weight)
	if text, err = patch(text, b.manifest, delta.delta); err != nil {
		return nil, fmt.Errorf("the delta cannot be applied: %w", err)
	}
	patched := *b
	if patched.data, err = readData(&entry{path: "data.json", text: text}, "", *b.manifest.Roots, &o); err != nil {
		return nil, err
	}
	patched.Revision, patched.manifest.Revision = delta.Revision, delta.Revision
	sum := sha256.Sum256([]byte(b.Sum + delta.Sum))
	patched.Sum = hex.EncodeToString(sum[:])
	return &patched, nil
}

// patch applies a delta to data, as OPA does in its store.
func patch(text []byte, manifest opa.Manifest, delta *opa.Bundle) ([]byte, error) {
	ctx := context.Background()
	var before map[string]any
	if err := util.UnmarshalJSON(text, &before); err != nil {
		return nil, err
	}
	_, hadSystem := before[system]
	store := inmem.NewFromObjectWithOpts(before, inmem.OptRoundTripOnWrite(false))
	err := storage.Txn(ctx, store, storage.WriteParams, func(txn storage.Transaction) error {
		if err := opa.WriteManifestToStore(ctx, store, txn, bundleName, manifest); err != nil {
			return err
		}
		err := opa.Activate(&opa.ActivateOpts{
			Ctx: ctx, Store: store, Txn: txn, TxnCtx: storage.NewContext(), Compiler: ast.NewCompiler(),
			Metrics: metrics.New(), Bundles: map[string]*opa.Bundle{bundleName: delta},
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
		text, err = json.Marshal(withoutSystem(hadSystem, data))
		return err
	})
	return text, err
}

// bundleName is the bundle's name in the store that deltas are applied in.
const bundleName = "patched"

// system is the path at which OPA stores what it knows of bundles.
const system = "system"

// withoutSystem takes out what OPA notes of bundles in the data.
func withoutSystem(had bool, data map[string]any) map[string]any {
	made, _ := data[system].(map[string]any)
	delete(made, "bundles")
	delete(made, "modules")
	if !had && len(made) == 0 {
		delete(data, system)
	}
	return data
}
