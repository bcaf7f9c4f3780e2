package openapi

import (
	"bytes"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// Schema is a schema of a document for a purpose.
type Schema struct {
	// Defaults reports whether there are any.
	Defaults bool
	// Unfilled are the fields with a default that is left to the API; nil if there are none.
	Unfilled *cel.Unfilled
	// Owned says what is readOnly; nil if nothing is.
	Owned *contract.Members
	// Hidden says what is writeOnly; nil if nothing is.
	Hidden *contract.Members

	doc      *Document
	node     document.Node
	as       translation
	model    *schema.Model
	check    *graph.Schema // nil for the schemas that Kubernetes publishes, which are read as it reads them
	use      graph.Use
	isNative bool // there are keywords of Kubernetes' own, or of the gateway's
}

// schemas returns the compiler of the document's schemas.
func (d *Document) schemas() *graph.Compiler {
	if d.compiler == nil {
		dialect := graph.OpenAPI30
		if d.v31 {
			dialect = graph.OpenAPI31
		}
		d.compiler = graph.NewCompiler(d.root, dialect, func(f graph.Finding) {
			d.report.add(Finding{Path: Place(f.At), Message: f.Message, Error: f.Error, Gap: f.Gap, Unmet: f.Unmet})
		})
	}
	return d.compiler
}

// schemaOf returns a schema for a purpose; nil if it is one of Kubernetes' that is neither of an object nor of a list.
func (d *Document) schemaOf(n document.Node, as translation) *Schema {
	if ref, found := n.Get("$ref"); found && !d.v31 {
		if to, err := d.resolve(ref.Str()); err == nil {
			n = to
		}
	}
	key := schemaKey{n.Index(), as}
	if s, found := d.made[key]; found {
		return s
	}
	if d.made == nil {
		d.made = map[schemaKey]*Schema{}
	}
	d.made[key] = d.newSchema(n, as)
	return d.made[key]
}

// newSchema is schemaOf for a schema that may be changed.
func (d *Document) newSchema(n document.Node, as translation) *Schema {
	s := &Schema{doc: d, node: n, as: as}
	if !as.kubernetes {
		s.check, s.use = d.schemas().Compile(n), as.of.use()
		if as.envelope {
			s.check = s.check.Except("kind", "apiVersion", "metadata")
		}
	}
	if s.isValue() {
		s.model = d.valueModelOf(n, as)
		return s
	}
	s.model = d.modelOf(n, as)
	if as.kubernetes && !s.model.Is("object") && (as.envelope || !s.model.Is("array")) {
		if len(s.model.Types) > 0 {
			d.report.warn(n, "must be of type object; the schema is not enforced")
		}
		return nil
	}
	s.summarise()
	return s
}

// isValue reports whether nothing is asked of the schema but which values are valid.
func (s *Schema) isValue() bool { return s.as.of.isOnlyChecked() && s.doc.isPlain() }

// isPlain reports whether the document has no keywords of Kubernetes or the gateway.
func (d *Document) isPlain() bool {
	if !d.isScanned {
		raw := d.root.Raw()
		d.isScanned, d.hasNative = true, bytes.Contains(raw, []byte("x-kubernetes-")) ||
			bytes.Contains(raw, []byte(schema.ExtensionPrefix))
	}
	return !d.hasNative
}

// summarise finds out what the models of a schema say together.
func (s *Schema) summarise() {
	models := s.model.Reachable()
	for i, m := range models {
		s.Defaults = s.Defaults || i > 0 && m.Default.Valid()
		for _, p := range m.Parts {
			if s.doc.isPlain() {
				break
			}
			for k := p.First(); k.Valid(); k = k.Next() {
				key := k.Key()
				s.isNative = s.isNative || isNative(key)
				s.Defaults = s.Defaults || key == schema.DerivedDefaultKey && s.as.of != ofResponses
			}
		}
	}
	s.Owned = markedIn(models, func(p *schema.ModelProperty) bool { return p.IsOwned })
	s.Hidden = markedIn(models, func(p *schema.ModelProperty) bool { return p.IsHidden })
	if s.as.unfilled {
		s.Unfilled = cel.NewUnfilled(s.left())
	}
	if s.isDeclared() {
		s.declare(s.doc.report)
	}
}

// isDeclared reports whether Kubernetes' own form of the schema is needed.
func (s *Schema) isDeclared() bool { return s.isNative || s.as.kubernetes }

// IsList reports whether the schema is one of lists.
func (s *Schema) IsList() bool { return s != nil && s.model.Is("array") }

// Compile compiles the schema as package schema does.
func (s *Schema) Compile(o schema.Options) (compiled *schema.Schema, warnings, errs field.ErrorList) {
	o.Check, o.Use, o.DefaultsNull = s.check, s.use, s.as.overNull
	if s.isDeclared() {
		o.Declared, o.Extensions = s.declare(newReport()) // what is to be said of it was said before
	}
	switch {
	case s.as.kubernetes:
		return schema.Compile(o.Declared, o)
	case !s.isNative && s.as.of.isOnlyChecked():
		any := *schema.Anything
		if s.IsList() {
			any.Types, any.IsInferred = s.model.Types, true
		}
		return schema.CompileModel(&any, o)
	}
	return schema.CompileModel(s.model, o)
}

// Without returns the schema without the defaults at the paths, each of a schema as [Schema.Where] takes it.
func (s *Schema) Without(paths map[string]bool) *Schema {
	for path := range paths {
		m, rest := s.at(path)
		if rest == "" && m.Default.Valid() {
			s.doc.modeler(s.as).drop(m)
		}
	}
	return s
}

// Where finds the place in the document of a path that an error of Compile names.
func (s *Schema) Where(path string) string {
	m, rest := s.at(path)
	at := s.node
	if m != s.model && len(m.Parts) > 0 {
		at = m.Parts[0]
	}
	if rest == "" {
		return Place(at)
	}
	return strings.TrimPrefix(Place(at)+"."+rest, ".")
}

// at finds the model at a path, and the rest of the path, which is within its schema.
func (s *Schema) at(path string) (m *schema.Model, rest string) {
	m = s.model
	for {
		in, rest := step(m, path)
		if in == nil {
			return m, path
		}
		m, path = in, rest
	}
}

// step finds the model at the first step of a path; nil if the step leads to none.
func step(m *schema.Model, path string) (in *schema.Model, rest string) {
	cut := func(step string) bool {
		var found bool
		if rest, found = strings.CutPrefix(path, step); !found || rest != "" && rest[0] != '.' && rest[0] != '[' {
			return false
		}
		rest = strings.TrimPrefix(rest, ".")
		return true
	}
	for i := range m.Properties {
		if cut("properties[" + m.Properties[i].Name + "]") {
			return m.Properties[i].Model, rest
		}
	}
	if m.Items != nil && cut("items") {
		return m.Items, rest
	}
	if m.Others != nil && cut("additionalProperties") {
		return m.Others, rest
	}
	return nil, ""
}

// ForPatches returns the schema of objects that result from patches.
func (s *Schema) ForPatches() *Schema {
	if s == nil || s.Hidden == nil {
		return s
	}
	as := s.as
	as.of = ofPatches
	return s.doc.schemaOf(s.node, as)
}

// markedIn finds the properties with a mark; nil if there are none. The first model is the whole value's.
func markedIn(models []*schema.Model, isMarked func(*schema.ModelProperty) bool) *contract.Members {
	made := map[*schema.Model]*contract.Members{} // of the models that have any, or lead to one that does
	for isChanged := true; isChanged; {
		isChanged = false
		for i := len(models) - 1; i >= 0; i-- {
			m := models[i]
			if made[m] != nil {
				continue
			}
			has := false
			for j := range m.Properties {
				p := &m.Properties[j]
				has = has || isMarked(p) || made[p.Model] != nil
			}
			if has || m.Items != nil && made[m.Items] != nil || others(m) != nil && made[others(m)] != nil {
				made[m], isChanged = &contract.Members{}, true
			}
		}
	}
	for m, marked := range made {
		properties := slices.Clone(m.Properties)
		slices.SortFunc(properties, func(a, b schema.ModelProperty) int { return strings.Compare(a.Name, b.Name) })
		for i := range properties {
			switch p := &properties[i]; {
			case isMarked(p):
				marked.SetMember(p.Name, true, nil)
			case made[p.Model] != nil:
				marked.SetMember(p.Name, false, made[p.Model])
			}
		}
		if m.Items != nil {
			marked.SetItems(made[m.Items])
		}
		if of := others(m); of != nil {
			marked.SetOthers(made[of])
		}
	}
	return made[models[0]]
}

// others is the model of the members of a map.
func others(m *schema.Model) *schema.Model {
	if len(m.Properties) > 0 {
		return nil
	}
	return m.Others
}
