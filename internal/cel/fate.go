package cel

import (
	"errors"
	"regexp"
	"strings"

	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"github.com/google/cel-go/common"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// openTypes are the types of objects that may have members which their schema does not name.
type openTypes map[*apiservercel.DeclType]bool

// add adds the types within a type.
func (o openTypes) add(t *apiservercel.DeclType, s *spec.Schema) {
	switch {
	case t == nil || s == nil:
	case t.IsList() && s.Items != nil:
		o.add(t.ElemType, s.Items.Schema)
	case t.IsMap() && s.AdditionalProperties != nil:
		o.add(t.ElemType, s.AdditionalProperties.Schema)
	case t.IsObject() && t.Fields != nil:
		if (&openapi.Schema{Schema: s}).IsXPreserveUnknownFields() || s.AdditionalProperties != nil {
			o[t] = true
		}
		for name, field := range t.Fields {
			if property := propertyOf(s, name, field); property != nil {
				o.add(field.Type, property)
			}
		}
	}
}

// isClosed reports whether the objects at a path have no members but the ones of their schema. An empty name in a path
// is an item of a list, or a value of a map.
func (t *fieldTypes) isClosed(path []string) bool {
	at := t.decl
	for _, name := range path {
		switch {
		case at == nil:
			return false
		case name == "":
			at = at.ElemType
		default:
			field, found := at.Fields[name]
			if !found {
				return false
			}
			at = field.Type
		}
	}
	return at != nil && at.IsObject() && at.Fields != nil && !t.open[at]
}

// Lacks reports whether the objects surely have no field at a path, such as '.spec.size' and '.lines[*].count'.
func (t *ObjectType) Lacks(path string) bool {
	of := t.types()
	at := of.decl
	for _, step := range strings.Split(strings.ReplaceAll(path, Item, "."+Item), ".")[1:] {
		switch {
		case at == nil:
			return false
		case at.IsList() && step == Item, at.IsMap():
			at = at.ElemType
		case at.IsObject() && at.Fields != nil && step != Item:
			name, ok := apiservercel.Escape(step)
			if !ok {
				name = step
			}
			field, found := at.Fields[name]
			if !found {
				return !of.open[at]
			}
			at = field.Type
		default:
			return false
		}
	}
	return false
}

// Fate returns what is proved of an expression. An AlwaysErrs has the error, with its place in the expression.
func (c *TypeChecker) Fate(p *Parsed) (outcome.Fate, error) {
	v := c.verdict(p)
	if v.isJudged {
		return v.fate, v.why
	}
	v.isJudged = true
	if tree, _ := p.tree(); tree == nil {
		return outcome.AnyFate, nil
	}
	t := outcome.Types{Wrong: map[int64]string{}, Failing: c.failing}
	if c.env.object != nil {
		t.IsClosed = c.env.object.isClosed
	}
	if _, issues := c.check(p); issues != nil {
		for _, e := range issues.Errors() {
			t.Wrong[e.ExprID] = e.Message
		}
	}
	v.fate, v.why = p.fateOf(&t)
	return v.fate, v.why
}

// constantFate returns what is proved of an expression without any type: by the constants in it alone.
func (p *Parsed) constantFate() (outcome.Fate, error) {
	if !mayHaveFaults.MatchString(p.text) {
		return outcome.AnyFate, nil
	}
	if tree, _ := p.tree(); tree == nil {
		return outcome.AnyFate, nil
	}
	return p.fateOf(&outcome.Types{})
}

// mayHaveFaults matches expressions that divide by a constant, or have an index in a constant.
var mayHaveFaults = regexp.MustCompile(`[/%]\s*0|[\]}]\s*\[`)

// fateOf returns what is proved of an expression that can be parsed.
func (p *Parsed) fateOf(t *outcome.Types) (outcome.Fate, error) {
	tree, _ := p.tree()
	fate, at, why := t.Fate(tree.NativeRep().Expr())
	if fate != outcome.AlwaysErrs {
		return fate, nil
	}
	errs := common.NewErrors(tree.Source())
	errs.ReportErrorAtID(at, tree.NativeRep().SourceInfo().GetStartLocation(at), "%s", why)
	return fate, &CompileError{p.text, errs.ToDisplayString()}
}

// FailsAlways begins what is said of an expression that fails for every object.
const FailsAlways = "fails for every object"

// Prefixed returns the text of an error of a [TypeChecker], with a prefix before what is wrong.
func Prefixed(err error, prefix string) string {
	var e *CompileError
	if !errors.As(err, &e) {
		return prefix + err.Error()
	}
	return errorPlace.ReplaceAllString(e.Detail, "${1}"+strings.ReplaceAll(prefix, "$", "$$"))
}

// errorPlace matches the place at the beginning of an error.
var errorPlace = regexp.MustCompile(`(ERROR: <input>:\d+:\d+: )`)
