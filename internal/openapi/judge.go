package openapi

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/jsonschema"
	"github.com/admission-gateway/gateway/internal/schema"
)

// schemas returns the compiler of the document's schemas.
func (d *Document) schemas() *jsonschema.Compiler {
	if d.compiler == nil {
		dialect := jsonschema.OpenAPI30
		if d.v31 {
			dialect = jsonschema.OpenAPI31
		}
		d.compiler = jsonschema.NewCompiler(d.root, dialect, func(f jsonschema.Finding) {
			d.report.add(Finding{Path: Place(f.At), Message: f.Message, Error: f.Error, Gap: f.Gap, Unmet: f.Unmet})
		})
	}
	return d.compiler
}

// Compile compiles the schema as package schema does.
func (s *Schema) Compile(o schema.Options) (compiled *schema.Schema, warnings, errs field.ErrorList) {
	if s.isForgotten {
		s.remember()
	}
	o.Extensions, o.Judge, o.Plain, o.DefaultsNull, o.Untyped = s.Extensions, s.Judge, s.Plain, s.options.overNull, s.isUntyped && s.Judge != nil
	if s.Props == nil {
		return schema.Judged(s.Judge, s.isList), nil, nil
	}
	return schema.Compile(s.Props, o)
}

// reduce drops the translation if the judge alone says something of values.
func (s *Schema) reduce() {
	if s != nil && s.Plain && s.options.of.isOnlyJudged() {
		s.Props, s.Extensions, s.origins = nil, nil, nil
	}
}

// forget drops the translation until it is needed again.
func (s *Schema) forget() {
	if s != nil && s.Props != nil {
		s.Props, s.Extensions, s.origins, s.isForgotten = nil, nil, nil, true
	}
}

// remember translates the schema again. What is to be said of it was said the first time.
func (s *Schema) remember() {
	said := s.doc.report
	s.doc.report = newReport()
	again := s.doc.translate(s.node, s.options, nil)
	s.doc.report = said
	s.Props, s.Extensions, s.origins, s.isForgotten = again.Props, again.Extensions, again.origins, false
}

// judge makes what says which values of a schema are right; nil for the schemas that Kubernetes
// publishes, which are read as it reads them.
func (d *Document) judge(n document.Node, o translation) *schema.Judge {
	if o.kubernetes {
		return nil
	}
	made := d.schemas().Compile(n)
	if o.envelope {
		made = made.Except("kind", "apiVersion", "metadata")
	}
	return &schema.Judge{Schema: made, Use: o.of.use()}
}

// use is what the values of a purpose are to a judge.
func (p purpose) use() jsonschema.Use {
	switch p {
	case ofAnswers, ofResponses:
		return jsonschema.Answers
	case ofPatches:
		return jsonschema.Patched
	}
	return jsonschema.Requests
}
