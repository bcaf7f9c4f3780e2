package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel/reach"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// The ids of a review's findings.
const (
	NeverFails  = "never-fails"
	NeverPasses = "never-passes"
	NeverMet    = "never-met"
	Shadowed    = "shadowed-condition"
	Repeated    = "repeated-rule"
	Unused      = "unused"
)

// Review finds what compiles and still cannot be meant: rules that no object can break, or that none can keep, conditions
// that others imply, and names that nothing uses. Files and objects that cannot be read are left out: the loader has
// found them.
func Review(files []source.File) []finding.Finding {
	r := &reviewer{kinds: map[schema.GroupResource]*reach.Shape{}}
	var objects []*manifest.Object
	for _, f := range files {
		if f.Role != source.Objects {
			continue
		}
		read, _ := manifest.Read(f.Name, f.Data)
		objects = append(objects, read...)
	}
	for _, o := range objects {
		r.schemas(o)
	}
	for _, o := range objects {
		if strings.HasSuffix(o.Kind, "AdmissionPolicy") {
			r.policy(o)
		}
	}
	r.unusedStates(objects)
	return r.Found
}

// reviewer collects what is found.
type reviewer struct {
	finding.List
	// kinds has the shape of the objects of each resource that one version of a file describes.
	kinds map[schema.GroupResource]*reach.Shape
}

func (r *reviewer) found(o *manifest.Object, rule, path, format string, args ...any) {
	r.At(o, finding.Warning, path, format, args...)
	r.Found[len(r.Found)-1].Rule = rule
}

// decode reads an object without its checks, which the loader has made.
func decode[T any](o *manifest.Object) (into T, ok bool) {
	return into, json.Unmarshal(o.JSON, &into) == nil
}

// apiResource has the parts of an APIResource that are looked at.
type apiResource struct {
	Spec struct {
		Group  string
		Names  struct{ Plural string }
		Schema struct {
			OpenAPIV3Schema *apiextensionsv1.JSONSchemaProps `json:"openAPIV3Schema"`
		}
	}
}

// schemas reviews the rules of schemas, and keeps what they describe.
func (r *reviewer) schemas(o *manifest.Object) {
	switch o.Kind {
	case "CustomResourceDefinition":
		crd, ok := decode[apiextensionsv1.CustomResourceDefinition](o)
		if !ok {
			return
		}
		for i, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			r.schema(o, fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), v.Schema.OpenAPIV3Schema)
			r.kinds[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = nil
			if len(crd.Spec.Versions) == 1 {
				r.kinds[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = shapeOf(v.Schema.OpenAPIV3Schema)
			}
		}
	case "APIResource":
		a, ok := decode[apiResource](o)
		if !ok || a.Spec.Schema.OpenAPIV3Schema == nil {
			return
		}
		r.schema(o, "spec.schema.openAPIV3Schema", a.Spec.Schema.OpenAPIV3Schema)
		r.kinds[schema.GroupResource{Group: a.Spec.Group, Resource: a.Spec.Names.Plural}] = shapeOf(a.Spec.Schema.OpenAPIV3Schema)
	}
}

// schema reviews the rules of a schema and of the schemas in it.
func (r *reviewer) schema(o *manifest.Object, path string, s *apiextensionsv1.JSONSchemaProps) {
	roots := map[string]*reach.Shape{"self": shapeOf(s)}
	texts := map[string]int{}
	for i, rule := range s.XValidations {
		at := fmt.Sprintf("%s.x-kubernetes-validations[%d].rule", path, i)
		r.rule(o, at, rule.Rule, nil, roots)
		r.repeated(o, at, rule.Rule, i, texts)
	}
	for name, property := range s.Properties {
		r.schema(o, path+".properties["+name+"]", &property)
	}
	if s.Items != nil && s.Items.Schema != nil {
		r.schema(o, path+".items", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		r.schema(o, path+".additionalProperties", s.AdditionalProperties.Schema)
	}
}

// rule reviews an expression that has to be true.
func (r *reviewer) rule(o *manifest.Object, path, text string, conditions []string, roots map[string]*reach.Shape) {
	if strings.TrimSpace(text) == "false" {
		return // what it denies is denied on purpose
	}
	switch outcome := reach.Given(text, conditions, roots); {
	case !outcome.CanBeTrue:
		r.found(o, NeverPasses, path, "can never be true%s: every object is refused", because(outcome))
	case !outcome.CanBeFalse && !outcome.CanFail:
		r.found(o, NeverFails, path, "can never be false%s: no object is refused", because(outcome))
	}
}

func because(o reach.Outcome) string {
	if len(o.Because) == 0 {
		return ""
	}
	return ", for " + strings.Join(o.Because, " and ")
}

// repeated finds an expression that stood before.
func (r *reviewer) repeated(o *manifest.Object, path, text string, i int, seen map[string]int) {
	text = strings.TrimSpace(text)
	if first, twice := seen[text]; twice {
		r.found(o, Repeated, path, "is the rule with the index %d again", first)
		return
	}
	seen[text] = i
}

// policy has the parts of an admission policy that are looked at.
type policy struct {
	Spec struct {
		MatchConstraints struct {
			ResourceRules []struct{ APIGroups, Operations, Resources []string }
		}
		MatchConditions []struct{ Name, Expression string }
		Variables       []struct{ Name, Expression string }
		Validations     []struct{ Expression string }
	}
}

func (r *reviewer) policy(o *manifest.Object) {
	p, ok := decode[policy](o)
	if !ok {
		return
	}
	roots := map[string]*reach.Shape{"object": r.shown(&p)}
	var conditions []string
	for i, c := range p.Spec.MatchConditions {
		at := fmt.Sprintf("spec.matchConditions[%d].expression", i)
		r.condition(o, at, c.Expression, conditions, roots)
		conditions = append(conditions, c.Expression)
	}
	texts := map[string]int{}
	for i, v := range p.Spec.Validations {
		at := fmt.Sprintf("spec.validations[%d].expression", i)
		r.rule(o, at, v.Expression, conditions, roots)
		r.repeated(o, at, v.Expression, i, texts)
	}
	for i, v := range p.Spec.Variables {
		if !r.isUsed(o, "variables."+v.Name) {
			r.found(o, Unused, fmt.Sprintf("spec.variables[%d].name", i), "no expression uses the variable '%s'", v.Name)
		}
	}
}

// condition reviews a condition given the previous ones, which all have to be met.
func (r *reviewer) condition(o *manifest.Object, path, text string, before []string, roots map[string]*reach.Shape) {
	for i, b := range before {
		if strings.TrimSpace(b) == strings.TrimSpace(text) {
			r.found(o, Shadowed, path, "is the condition with the index %d again", i)
			return
		}
	}
	switch outcome := reach.Given(text, before, roots); {
	case !outcome.CanBeTrue:
		why := because(outcome)
		if len(before) > 0 && reach.Of(text, roots).CanBeTrue {
			why = " where the conditions before it are met"
		}
		r.found(o, NeverMet, path, "can never be true%s, so that the policy never runs", why)
	case !outcome.CanBeFalse && !outcome.CanFail:
		if len(before) > 0 && reach.Of(text, roots).CanBeFalse {
			r.found(o, Shadowed, path, "decides nothing: it is true wherever the conditions before it are")
			return
		}
		r.found(o, Shadowed, path, "decides nothing: it is always true%s", because(outcome))
	}
}

// shown returns the shape of the value that a policy sees as `object`; the zero shape if that is
// not one known kind.
func (r *reviewer) shown(p *policy) *reach.Shape {
	var shape *reach.Shape
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				s := r.kinds[schema.GroupResource{Group: group, Resource: name}]
				if s == nil || shape != nil && shape != s || slices.Contains(rule.Operations, "DELETE") || slices.Contains(rule.Operations, "*") {
					return &reach.Shape{}
				}
				shape = s
			}
		}
	}
	if shape == nil {
		return &reach.Shape{}
	}
	return shape
}

// isUsed reports whether an expression of the object has the name.
func (r *reviewer) isUsed(o *manifest.Object, name string) bool {
	for rest := string(o.JSON); ; {
		_, after, found := strings.Cut(rest, name)
		if !found {
			return false
		}
		if after == "" || !isLetter(after[0]) {
			return true
		}
		rest = after
	}
}

func isLetter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unusedStates finds collections that no expression reads.
func (r *reviewer) unusedStates(objects []*manifest.Object) {
	if !slices.ContainsFunc(objects, func(o *manifest.Object) bool { return strings.HasSuffix(o.Kind, "Policy") }) {
		return // their readers are in other files
	}
	for _, o := range objects {
		group, _ := o.GroupVersion()
		if o.Kind != "StateSource" || group != "admission-gateway.io" {
			continue
		}
		used := slices.ContainsFunc(objects, func(by *manifest.Object) bool {
			return by != o && r.isUsed(by, "state."+o.Name) || by != o && r.isUsed(by, o.Name)
		})
		if !used {
			r.found(o, Unused, "metadata.name", "no expression reads `state.%s`, so that the collection is read for nothing", o.Name)
		}
	}
}

// ReviewChecks describes what a review finds.
func ReviewChecks() []finding.Check {
	return []finding.Check{
		{ID: NeverFails, Why: "A rule that no object can break does nothing: perhaps a bound or a side is mistaken."},
		{ID: NeverPasses, Why: "A rule that no object can keep refuses everything."},
		{ID: NeverMet, Why: "A policy whose conditions contradict each other, or the schema, never runs."},
		{ID: Shadowed, Why: "A condition that is true wherever the others are decides nothing."},
		{ID: Repeated, Why: "A rule that stands twice is judged twice."},
		{ID: Unused, Why: "What no expression reads is perhaps spelled otherwise where it is meant."},
	}
}
