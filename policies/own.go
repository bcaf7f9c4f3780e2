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
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// crds are the definitions of the gateway's own kinds.
//
//go:embed crds/*.yaml
var crds embed.FS

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

// readOwn reads an object of one of the gateway's own kinds: it is defaulted and validated by the gateway's own engine,
// with the kind's CustomResourceDefinition, as any object of a client would be.
func readOwn(f *findings, o *manifest.Object, into any) bool {
	if !f.Read(schemaDecoder.Check(o, into)) {
		return false
	}
	schemas, err := ownSchemas()
	if err != nil {
		f.At(o, Error, "", "cannot be checked, because the definition of its kind is broken: %v", err)
		return false
	}
	d := o.Document().Clone()
	defer d.Release()
	if metadata, _ := d.Root().Get("metadata"); o.Namespace != "" {
		namespace, _ := metadata.Get("namespace")
		d.Remove(namespace) // named has warned of it
	}
	s := schemas[o.Kind]
	defaults.Apply(d, s)
	if !isValidOwn(f, o, s, d) {
		return false
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(d.AppendTo(nil), into); err != nil {
		f.At(o, Error, "", "must be decodable: %v", err)
		return false
	}
	return true
}

func isValidOwn(f *findings, o *manifest.Object, s *schema.Schema, d *document.Document) bool {
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	result := s.Validate(frame, d.Root(), document.Node{})
	for _, err := range result.Errors {
		if err.Field != "" && err.Field != "<nil>" {
			// that rules were left out says nothing once everything else is mended
			f.Fields(o, Error, field.ErrorList{err})
		}
	}
	if result.More > 0 {
		f.At(o, Error, "", "and %d more", result.More)
	}
	var fault *cel.Error
	if errors.As(result.Err, &fault) {
		f.At(o, Error, "", "%s", fmt.Sprint(fault))
	}
	return result.Valid()
}

// policyTest takes a test, which says nothing of requests in service.
func (l *loader) policyTest(*manifest.Object, *testcase.Test) {}

// ReadTests returns the tests among the objects of a file. The findings concern them alone.
func ReadTests(objects []*manifest.Object) (tests []testcase.Test, from []*manifest.Object, found []Finding) {
	var f findings
	for _, o := range objects {
		group, _ := o.GroupVersion()
		if group != ownGroup || o.Kind != "PolicyTest" {
			continue
		}
		var t testcase.Test
		if readOwn(&f, o, &t) {
			tests, from = append(tests, t), append(from, o)
		}
	}
	return tests, from, f.Found
}

// JSONSchemas returns the schemas of the gateway's own kinds in the form that editors read, by kind.
func JSONSchemas() (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	names, err := fs.Glob(crds, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := fs.ReadFile(crds, name)
		if err != nil {
			return nil, err
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema map[string]any }
				}
			}
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, v := range crd.Spec.Versions {
			s := v.Schema.OpenAPIV3Schema
			s["$schema"], s["title"] = "http://json-schema.org/draft-07/schema#", crd.Spec.Names.Kind
			properties, _ := s["properties"].(map[string]any)
			properties["apiVersion"] = map[string]any{"const": crd.Spec.Group + "/" + v.Name}
			properties["kind"] = map[string]any{"const": crd.Spec.Names.Kind}
			s["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
			closeObjects(s)
			all[crd.Spec.Names.Kind] = s
		}
	}
	return all, nil
}

// closeObjects has a schema refuse fields that it does not have, as the decoder of files does.
func closeObjects(s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	if _, isMap := s["additionalProperties"]; len(properties) > 0 && !isMap &&
		s["x-kubernetes-preserve-unknown-fields"] != true {
		s["additionalProperties"] = false
	}
	for _, p := range properties {
		if p, ok := p.(map[string]any); ok {
			closeObjects(p)
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if of, ok := s[keyword].(map[string]any); ok {
			closeObjects(of)
		}
	}
}
