package policies

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/schema"
)

// crds are the definitions of the gateway's own kinds.
//
//go:embed crds/*.yaml
var crds embed.FS

// CRDs are the CustomResourceDefinitions of the gateway's own kinds, one file each.
func CRDs() fs.FS { return crds }

// ownSchemas compiles the definitions of the gateway's own kinds, by kind.
var ownSchemas = sync.OnceValues(func() (map[string]*schema.Schema, error) {
	schemas := map[string]*schema.Schema{}
	err := fs.WalkDir(crds, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(crds, name)
		if err != nil {
			return err
		}
		objects, problems := manifest.Read(name, data)
		for _, o := range objects {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			problems = append(problems, schemaDecoder.Decode(o, crd)...)
			versions, _, errs := schema.CompileCRD(crd)
			if len(errs) > 0 {
				return errs.ToAggregate()
			}
			for _, v := range versions {
				schemas[crd.Spec.Names.Kind] = v.Schema
			}
		}
		for _, problem := range problems {
			return problem
		}
		return nil
	})
	return schemas, err
})

// own decodes an object of one of the gateway's own kinds: it is defaulted and validated by the gateway's own engine,
// with the kind's CustomResourceDefinition, as any object of a client would be.
func (l *loader) own(o *manifest.Object, into any) bool {
	if !l.read(schemaDecoder.Decode(o, into)) {
		return false
	}
	schemas, err := ownSchemas()
	if err != nil {
		l.at(o, Error, "", "cannot be checked, because the definition of its kind is broken: %v", err)
		return false
	}
	d, err := document.Parse(o.JSON, document.Limits{Bytes: 2 * manifest.MaxBytes, Depth: 1000})
	if err != nil {
		l.at(o, Error, "", "must be an object that can be read in one way only: %v", err)
		return false
	}
	defer d.Release()
	if metadata, _ := d.Root().Get("metadata"); o.Namespace != "" {
		namespace, _ := metadata.Get("namespace")
		d.Remove(namespace) // of which named has warned
	}
	s := schemas[o.Kind]
	defaults.Apply(d, s)
	if !l.validOwn(o, s, d) {
		return false
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(d.AppendTo(nil), into); err != nil {
		l.at(o, Error, "", "must be decodable: %v", err)
		return false
	}
	return true
}

func (l *loader) validOwn(o *manifest.Object, s *schema.Schema, d *document.Document) bool {
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	result := s.Validate(frame, d.Root(), document.Node{})
	for _, err := range result.Errors {
		if err.Field != "" && err.Field != "<nil>" { // that rules were left out says nothing once everything else is mended
			l.fields(o, Error, field.ErrorList{err})
		}
	}
	if result.More > 0 {
		l.at(o, Error, "", "and %d more", result.More)
	}
	var fault *cel.Error
	if errors.As(result.Err, &fault) {
		l.at(o, Error, "", "%s", fmt.Sprint(fault))
	}
	return result.Valid()
}
