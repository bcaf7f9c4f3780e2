package mutation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/document"
)

// The conditions of path tests.
const (
	conditionExists = "MustExist"
	conditionAbsent = "MustNotExist"
)

// The operations of a ModifySet; empty means merge.
const (
	operationMerge = "merge"
	operationPrune = "prune"
)

// mutated are the operations on objects that mutators change.
const mutated = admission.Create | admission.Update

// A Compiler compiles mutators.
type Compiler struct {
	// Resources returns the resources that serve a kind.
	Resources match.Resources
}

// Assign compiles an Assign.
func (c Compiler) Assign(a *Assign) (*Mutator, field.ErrorList) {
	p := field.NewPath("spec")
	m := c.begin("Assign", a.Name)
	m.location(p, a.Spec.Location)
	m.outsideMetadata(p)
	m.keepsKey(p)
	m.value(p.Child("parameters", "assign"), &a.Spec.Parameters.Assign)
	m.itemValue(p.Child("parameters", "assign"))
	m.pathTests(p, a.Spec.Parameters.PathTests)
	return m.end(p, a.Spec.ApplyTo, &a.Spec.Match)
}

// AssignMetadata compiles an AssignMetadata.
func (c Compiler) AssignMetadata(a *AssignMetadata) (*Mutator, field.ErrorList) {
	p := field.NewPath("spec")
	m := c.begin("AssignMetadata", a.Name)
	m.location(p, a.Spec.Location)
	if len(m.path) > 0 && !isLabelOrAnnotation(m.path) {
		m.refuse(p.Child("location"), a.Spec.Location, "must be `metadata.labels.KEY` or `metadata.annotations.KEY`")
	}
	value := p.Child("parameters", "assign")
	m.value(value, &a.Spec.Parameters.Assign)
	if constant, ok := m.setter.(assign); ok && isGiven(a.Spec.Parameters.Assign.Value) &&
		constant.value.Kind() != document.String {
		m.refuse(value.Child("value"), field.OmitValueType{}, "must be a string, not "+
			constant.value.Kind().WithArticle())
	}
	m.mutator.tests = make([]condition, len(m.path))
	if len(m.path) > 0 {
		m.mutator.tests[len(m.path)-1] = mustNotExist
	}
	m.setMatch(p.Child("match"), &a.Spec.Match)
	m.rules = a.Spec.Match.Rules(mutated, c.Resources)
	return m.result()
}

// ModifySet compiles a ModifySet.
func (c Compiler) ModifySet(s *ModifySet) (*Mutator, field.ErrorList) {
	p := field.NewPath("spec")
	m := c.begin("ModifySet", s.Name)
	m.location(p, s.Spec.Location)
	m.outsideMetadata(p)
	m.endsAtField(p)
	parameters := p.Child("parameters")
	if operation := s.Spec.Parameters.Operation; operation != "" {
		m.errs = append(m.errs, vapmatch.OneOf(operation, parameters.Child("operation"), operationMerge,
			operationPrune)...)
	}
	m.setter = modifySet{values: listOf(s.Spec.Parameters.Values.FromList),
		prune: s.Spec.Parameters.Operation == operationPrune}
	m.pathTests(p, s.Spec.Parameters.PathTests)
	return m.end(p, s.Spec.ApplyTo, &s.Spec.Match)
}

// AssignImage compiles an AssignImage.
func (c Compiler) AssignImage(a *AssignImage) (*Mutator, field.ErrorList) {
	p := field.NewPath("spec")
	m := c.begin("AssignImage", a.Name)
	m.location(p, a.Spec.Location)
	m.outsideMetadata(p)
	m.endsAtField(p)
	m.keepsKey(p)
	parts := assignImage{a.Spec.Parameters.AssignDomain, a.Spec.Parameters.AssignPath, a.Spec.Parameters.AssignTag}
	if parameter, err := parts.check(); err != nil {
		at := p.Child("parameters")
		if parameter != "" {
			at = at.Child(parameter)
		}
		m.refuse(at, field.OmitValueType{}, err.Error())
	}
	m.setter = parts
	m.pathTests(p, a.Spec.Parameters.PathTests)
	return m.end(p, a.Spec.ApplyTo, &a.Spec.Match)
}

// compiling is a mutator that is being compiled.
type compiling struct {
	*Mutator
	mutator  *Mutator
	compiler Compiler
	errs     field.ErrorList
}

func (c Compiler) begin(kind, name string) *compiling {
	m := &Mutator{kind: kind, name: name}
	compiled := &compiling{Mutator: m, mutator: m, compiler: c}
	if len(name) > maxName {
		compiled.refuse(field.NewPath("metadata", "name"), name,
			fmt.Sprintf("must be at most %d characters long", maxName))
	}
	return compiled
}

// maxName is how long the name of a mutator may be.
const maxName = 63

func (m *compiling) refuse(path *field.Path, value any, why string) {
	m.errs = append(m.errs, field.Invalid(path, value, why))
}

func (m *compiling) result() (*Mutator, field.ErrorList) {
	if len(m.errs) > 0 {
		return nil, m.errs
	}
	return m.Mutator, nil
}

// end compiles what Assign, ModifySet and AssignImage end with.
func (m *compiling) end(p *field.Path, to []ApplyTo, matches *match.Spec) (*Mutator, field.ErrorList) {
	m.setMatch(p.Child("match"), matches)
	m.applyTo(p.Child("applyTo"), to, matches)
	return m.result()
}

func (m *compiling) setMatch(p *field.Path, s *match.Spec) {
	var errs field.ErrorList
	m.match, errs = match.Compile(s, p)
	m.errs = append(m.errs, errs...)
	m.about = s.Rules(mutated, m.compiler.Resources)
}

func (m *compiling) location(p *field.Path, text string) {
	path, err := parsePath(text)
	switch {
	case err != nil:
		m.refuse(p.Child("location"), text, err.Error())
		return
	case len(path) == 0:
		m.errs = append(m.errs, field.Required(p.Child("location"), "must be the path of the field that is changed"))
		return
	case len(path) > maxSteps:
		m.refuse(p.Child("location"), text, fmt.Sprintf("must have at most %d steps", maxSteps))
		return
	}
	m.path = path
}

// maxSteps leaves room for the value within the depth that objects may have.
const maxSteps = document.DefaultDepth / 2

func (m *compiling) outsideMetadata(p *field.Path) {
	if len(m.path) > 0 && m.path[0].name == "metadata" {
		m.refuse(p.Child("location"), textOf(m.path), "must not lead into the metadata, which AssignMetadata changes")
	}
}

func (m *compiling) endsAtField(p *field.Path) {
	if len(m.path) > 0 && m.path[len(m.path)-1].list {
		m.refuse(p.Child("location"), textOf(m.path), "must not end at an item of a list")
	}
}

// keepsKey refuses to change the key of an item.
func (m *compiling) keepsKey(p *field.Path) {
	n := len(m.path)
	if n < 2 || !m.path[n-2].list {
		return
	}
	if m.path[n-1].name == m.path[n-2].name {
		m.refuse(p.Child("location"), textOf(m.path), "must not lead to the key of an item, which cannot be changed")
	}
}

func isLabelOrAnnotation(path []step) bool {
	return len(path) == 3 && !path[1].list && !path[2].list && path[0].name == "metadata" &&
		(path[1].name == "labels" || path[1].name == "annotations")
}

// value compiles the value that is assigned.
func (m *compiling) value(p *field.Path, a *AssignField) {
	m.setter = assign{}
	given := 0
	for _, is := range []bool{isGiven(a.Value), a.FromMetadata != nil, isGiven(a.ExternalData)} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		m.refuse(p, field.OmitValueType{}, "must set one of `value` and `fromMetadata`")
	case isGiven(a.ExternalData):
		m.refuse(p.Child("externalData"), field.OmitValueType{},
			"must not be set: the gateway asks no providers of external data")
	case a.FromMetadata != nil:
		m.errs = append(m.errs, vapmatch.OneOf(a.FromMetadata.Field, p.Child("fromMetadata", "field"), "name",
			"namespace")...)
		m.setter = copyMetadata{namespace: a.FromMetadata.Field == "namespace"}
	default:
		d, err := document.Parse(a.Value, document.Limits{Depth: document.DefaultDepth - maxSteps})
		if err != nil {
			m.refuse(p.Child("value"), field.OmitValueType{}, err.Error())
			return
		}
		m.setter = assign{d.Root()}
	}
}

func isGiven(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// itemValue checks the value of a location that ends at an item.
func (m *compiling) itemValue(p *field.Path) {
	if len(m.path) == 0 || !m.path[len(m.path)-1].list {
		return
	}
	last := &m.path[len(m.path)-1]
	constant, ok := m.setter.(assign)
	switch {
	case last.each:
		m.refuse(field.NewPath("spec", "location"), textOf(m.path), "must not end at every item of a list")
	case !ok:
		m.refuse(p.Child("fromMetadata"), field.OmitValueType{},
			"must not be set for an item of a list, which is an object")
	case constant.value.Valid() && constant.value.Kind() != document.Object:
		m.refuse(p.Child("value"), field.OmitValueType{}, "must be an object, as items with keys are, not "+
			constant.value.Kind().WithArticle())
	case constant.value.Valid() && !last.selects(constant.value):
		m.refuse(p.Child("value"), field.OmitValueType{},
			fmt.Sprintf("must have the key of the location, %s: %s", last.name, last.key()))
	}
}

// listOf makes a list of JSON values, which were read before.
func listOf(values []json.RawMessage) document.Node {
	raw := []byte{'['}
	for i, value := range values {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, value...)
	}
	d, err := document.Parse(append(raw, ']'), document.Limits{})
	if err != nil {
		d, _ = document.Parse([]byte("[]"), document.Limits{})
	}
	return d.Root()
}

func (m *compiling) pathTests(p *field.Path, tests []PathTest) {
	m.mutator.tests = make([]condition, len(m.path))
	absent := -1
	for i, t := range tests {
		at := p.Child("parameters", "pathTests").Index(i)
		path, err := m.subPath(t.SubPath)
		if err != nil {
			m.refuse(at.Child("subPath"), t.SubPath, err.Error())
			continue
		}
		is := mustExist
		switch t.Condition {
		case conditionExists:
		case conditionAbsent:
			is = mustNotExist
		default:
			m.errs = append(m.errs, vapmatch.OneOf(t.Condition, at.Child("condition"), conditionExists,
				conditionAbsent)...)
			continue
		}
		last := len(path) - 1
		switch {
		case m.mutator.tests[last] != anything && m.mutator.tests[last] != is:
			m.refuse(at, field.OmitValueType{}, fmt.Sprintf("must not ask that %s exists and that it does not",
				t.SubPath))
		case is == mustNotExist && (absent < 0 || last < absent):
			absent = last
		}
		m.mutator.tests[last] = is
	}
	for i := absent + 1; absent >= 0 && i < len(m.path); i++ {
		if m.mutator.tests[i] == mustExist {
			m.refuse(p.Child("parameters", "pathTests"), field.OmitValueType{},
				fmt.Sprintf("must not ask that %s exists in %s, which must not exist", textOf(m.path[:i+1]),
					textOf(m.path[:absent+1])))
		}
	}
}

// subPath reads the beginning of the location.
func (m *compiling) subPath(text string) ([]step, error) {
	path, err := parsePath(text)
	switch {
	case err != nil:
		return nil, err
	case len(path) == 0:
		return nil, errors.New("must be a beginning of the location")
	case len(path) > len(m.path) ||
		!slices.EqualFunc(path, m.path[:len(path)], func(a, b step) bool { return a.same(&b) }):
		return nil, errors.New("must be a beginning of the location '" + textOf(m.path) + "'")
	}
	return path, nil
}

// applyTo compiles the kinds, and the rules by which the mutator is found.
func (m *compiling) applyTo(p *field.Path, to []ApplyTo, matches *match.Spec) {
	if len(to) == 0 {
		m.errs = append(m.errs, field.Required(p, "must name the groups, versions and kinds of the objects"))
	}
	narrow := matches.Rules(mutated, m.compiler.Resources)[0]
	narrow.Labels = nil // which requests a mutator matches changes with the object
	for i, t := range to {
		at := p.Index(i)
		for name, list := range map[string][]string{"groups": t.Groups, "versions": t.Versions, "kinds": t.Kinds} {
			if len(list) == 0 {
				m.errs = append(m.errs, field.Required(at.Child(name), ""))
			}
		}
		operations := m.operations(at.Child("operations"), t.Operations)
		m.appliesTo = append(m.appliesTo, applies{t.Groups, t.Versions, t.Kinds, operations})
		narrow.Operations, narrow.Versions = operations, nil
		m.rules = append(m.rules, match.Rules(narrow, t.Groups, t.Kinds, m.compiler.Resources)...)
		m.addScopes(t, operations)
	}
}

func (m *compiling) addScopes(t ApplyTo, operations admission.Operation) {
	for _, operation := range []admission.Operation{admission.Create, admission.Update} {
		if operations&operation == 0 {
			continue
		}
		for _, group := range t.Groups {
			for _, version := range t.Versions {
				for _, kind := range t.Kinds {
					m.scopes = append(m.scopes,
						scope{apischema.GroupVersionKind{Group: group, Version: version, Kind: kind}, operation})
				}
			}
		}
	}
}

func (m *compiling) operations(p *field.Path, names []string) (set admission.Operation) {
	for i, name := range names {
		switch name {
		case "CREATE":
			set |= admission.Create
		case "UPDATE":
			set |= admission.Update
		case "*":
			if len(names) > 1 {
				m.refuse(p, names, "must not name other operations beside '*'")
			}
			set |= mutated
		default:
			m.errs = append(m.errs, field.NotSupported(p.Index(i), name, []string{"*", "CREATE", "UPDATE"}))
		}
		if slices.Contains(names[:i], name) {
			m.errs = append(m.errs, field.Duplicate(p.Index(i), name))
		}
	}
	if len(names) == 0 {
		return mutated
	}
	return set
}
