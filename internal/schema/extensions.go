package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// ExtensionPrefix is how the gateway's own keywords of schemas begin. Any other keyword that begins
// so is an error: nothing that an author asks for goes unenforced in silence.
const ExtensionPrefix = "x-admission-gateway-"

// The gateway's own keywords.
const (
	DerivedDefaultKey = ExtensionPrefix + "default"
	keywordImmutable  = ExtensionPrefix + "immutable"
	keywordUnion      = ExtensionPrefix + "union"
)

// Extensions holds the keywords for one value, and for the values in it, that Kubernetes' types
// have no place for. It is read beside these and given to [CompileCRD] and [Compile] with them.
type Extensions struct {
	// Types are the JSON types of which the value has one, if Kubernetes' types have no place for them; empty for all
	// others.
	Types []string
	// Default is how the value is computed if it is not set; nil if it is not.
	Default *DerivedDefault
	// Immutable says that the value may not change once it is set.
	Immutable bool
	// Unions are sets of members; at most one member of each may be set.
	Unions []Union

	// Properties, Items and Additional are for the values in this one.
	Properties map[string]*Extensions
	Items      *Extensions
	Additional *Extensions

	path *field.Path // of the schema, for findings
}

// At are the extensions of a schema that stands at path.
func At(path *field.Path) *Extensions { return &Extensions{path: path} }

// DerivedDefault is the keyword x-admission-gateway-default: a default that is computed from the object itself.
type DerivedDefault struct {
	// Expression is CEL and gives the value. It reads `self`, the object that the field is in, and `object`, the whole.
	Expression string
	// When is CEL and reports whether there is a default at all; empty means always.
	When string

	order int // in which the file declares the defaults
}

// Union is the keyword x-admission-gateway-union.
type Union struct {
	// Discriminator is the member, a string, that says which of Members is set; empty if there is
	// none.
	Discriminator string
	Members       []UnionMember

	path *field.Path
}

// UnionMember is a member of a Union.
type UnionMember struct {
	// Field is its name.
	Field string
	// Value is the discriminator's when the member is set.
	Value string
	// Optional says that the member may be left out though the discriminator has its value.
	Optional bool

	path *field.Path
}

// ReadExtensions reads the gateway's own keywords of a schema, which stands at path in its file,
// and of those in it. The result is nil if there are none.
func ReadExtensions(root document.Node, path *field.Path) (*Extensions, field.ErrorList) {
	r := &ExtensionReader{}
	return r.tree(root, path), r.Errors
}

// An ExtensionReader reads keywords one by one, for schemas whose form is not Kubernetes'. The zero value is ready.
type ExtensionReader struct {
	// Errors are the faults of the keywords read so far.
	Errors field.ErrorList

	defaults int
}

// Keyword reads a member of the schema at path into e if it is one of the gateway's own keywords.
func (r *ExtensionReader) Keyword(e *Extensions, m document.Node, path *field.Path) {
	key := m.Key()
	if !strings.HasPrefix(key, ExtensionPrefix) {
		return
	}
	e.path = path
	path = path.Child(key)
	switch key {
	case DerivedDefaultKey:
		e.Default = r.derived(m, path)
	case keywordImmutable:
		e.Immutable = r.truth(m, path)
	case keywordUnion:
		if m.Kind() != document.Array {
			e.Unions = r.union(e.Unions, m, path)
			return
		}
		each(m, func(i int, u document.Node) { e.Unions = r.union(e.Unions, u, path.Index(i)) })
	default:
		r.refuse(path, "must be one of the keywords '"+DerivedDefaultKey+"', '"+keywordImmutable+"' and '"+keywordUnion+
			"'")
	}
}

// each visits the items of a list, or the members of an object, with their positions.
func each(n document.Node, visit func(int, document.Node)) {
	i := 0
	for m := n.First(); m.Valid(); m = m.Next() {
		visit(i, m)
		i++
	}
}

// subschemas visits the schemas in a schema, with the keyword that each stands in and the name of a property.
func subschemas(n document.Node, path *field.Path,
	visit func(sub document.Node, path *field.Path, keyword, name string)) {
	for m := n.First(); m.Valid(); m = m.Next() {
		switch key := m.Key(); key {
		case "properties":
			each(m, func(_ int, p document.Node) { visit(p, path.Child(key).Key(p.Key()), key, p.Key()) })
		case "allOf", "anyOf", "oneOf":
			each(m, func(i int, b document.Node) { visit(b, path.Child(key).Index(i), key, "") })
		case "items", "additionalProperties", "not":
			visit(m, path.Child(key), key, "")
		}
	}
}

// tree reads a schema; it returns nil for one without keywords.
func (r *ExtensionReader) tree(n document.Node, path *field.Path) *Extensions {
	e := &Extensions{path: path}
	each(n, func(_ int, m document.Node) { r.Keyword(e, m, path) })
	subschemas(n, path, func(sub document.Node, path *field.Path, keyword, name string) {
		switch keyword {
		case "properties":
			if in := r.tree(sub, path); in != nil {
				e.SetProperty(name, in)
			}
		case "items":
			e.Items = r.tree(sub, path)
		case "additionalProperties":
			e.Additional = r.tree(sub, path)
		default:
			r.forbid(sub, path, keyword)
		}
	})
	if e.Empty() {
		return nil
	}
	return e
}

// SetProperty sets the extensions of the member with the name.
func (e *Extensions) SetProperty(name string, of *Extensions) {
	if e.Properties == nil {
		e.Properties = map[string]*Extensions{}
	}
	e.Properties[strings.Clone(name)] = of
}

// Empty reports whether nothing is said.
func (e *Extensions) Empty() bool {
	return e == nil || len(e.Types) == 0 && e.Default == nil && !e.Immutable && len(e.Unions) == 0 &&
		e.Properties == nil && e.Items == nil && e.Additional == nil
}

// forbid refuses keywords in a schema that only asks whether a value fits: there is neither default
// nor old value.
func (r *ExtensionReader) forbid(n document.Node, path *field.Path, keyword string) {
	each(n, func(_ int, m document.Node) {
		if strings.HasPrefix(m.Key(), ExtensionPrefix) {
			r.Errors = append(r.Errors, field.Forbidden(path.Child(m.Key()), "may not be set below '"+keyword+"'"))
		}
	})
	subschemas(n, path, func(sub document.Node, path *field.Path, _, _ string) { r.forbid(sub, path, keyword) })
}

// reads are the functions that read the members of an object, by name.
type reads map[string]func(document.Node, *field.Path)

func (r *ExtensionReader) derived(n document.Node, path *field.Path) *DerivedDefault {
	r.defaults++
	d := &DerivedDefault{order: r.defaults}
	known := reads{
		"expression": func(m document.Node, path *field.Path) { d.Expression = r.text(m, path) },
		"when":       func(m document.Node, path *field.Path) { d.When = r.text(m, path) },
	}
	if !r.object(n, path, known, "expression") || d.Expression == "" {
		return nil
	}
	return d
}

func (r *ExtensionReader) union(to []Union, n document.Node, path *field.Path) []Union {
	u := Union{path: path}
	known := reads{
		"discriminator": func(m document.Node, path *field.Path) { u.Discriminator = r.text(m, path) },
		"members": func(m document.Node, path *field.Path) {
			if m.Kind() != document.Array || m.Len() == 0 {
				r.refuse(path, "must be a list of at least one name, or of objects with `field`")
				return
			}
			each(m, func(i int, n document.Node) { u.Members = append(u.Members, r.unionMember(n, path.Index(i))) })
		},
	}
	if !r.object(n, path, known, "members") {
		return to
	}
	return append(to, u)
}

func (r *ExtensionReader) unionMember(n document.Node, path *field.Path) UnionMember {
	u := UnionMember{path: path}
	known := reads{
		"field":    func(m document.Node, path *field.Path) { u.Field = r.text(m, path) },
		"value":    func(m document.Node, path *field.Path) { u.Value = r.text(m, path) },
		"optional": func(m document.Node, path *field.Path) { u.Optional = r.truth(m, path) },
	}
	if n.Kind() == document.String {
		u.Field = r.text(n, path)
	} else {
		r.object(n, path, known, "field")
	}
	if u.Value == "" && u.Field != "" {
		first, size := utf8.DecodeRuneInString(u.Field)
		u.Value = string(unicode.ToUpper(first)) + u.Field[size:]
	}
	return u
}

// object reads the members of an object. Each must be known, and the required one must be there.
func (r *ExtensionReader) object(n document.Node, path *field.Path, known reads, required string) bool {
	if n.Kind() != document.Object {
		r.refuse(path, "must be an object with `"+required+"`")
		return false
	}
	each(n, func(_ int, m document.Node) {
		at := path.Child(m.Key())
		if read, found := known[m.Key()]; found {
			read(m, at)
			return
		}
		r.Errors = append(r.Errors, field.Forbidden(at, "unknown field"))
	})
	if _, found := n.Get(required); !found {
		r.Errors = append(r.Errors, field.Required(path.Child(required), ""))
		return false
	}
	return true
}

func (r *ExtensionReader) text(n document.Node, path *field.Path) string {
	if n.Kind() != document.String || strings.TrimSpace(n.Str()) == "" {
		r.refuse(path, "must be a string that is not empty")
		return ""
	}
	return strings.Clone(n.Str())
}

func (r *ExtensionReader) truth(n document.Node, path *field.Path) bool {
	if n.Kind() != document.Bool {
		r.refuse(path, "must be 'true' or 'false'")
	}
	return n.Bool()
}

func (r *ExtensionReader) refuse(path *field.Path, message string) {
	r.Errors = append(r.Errors, field.Invalid(path, wording.Omitted, message))
}
