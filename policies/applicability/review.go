package applicability

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// Review finds what compiles and still cannot be meant: rules that no object can break, or that none can keep,
// conditions that others imply, and names that nothing uses.
func Review(objects []*manifest.Object) []finding.Finding {
	r := &reviewer{kinds: map[schema.GroupResource]*outcome.Shape{}, names: map[schema.GroupResource]string{}}
	for _, o := range objects {
		r.schemas(o)
	}
	for _, o := range objects {
		if group, _ := o.GroupVersion(); group == admissionRegistrationGroup || group == ownGroup {
			r.policy(o)
			r.references(o)
		}
	}
	r.unusedStates(objects)
	return r.Found
}

// reviewer collects what is found.
type reviewer struct {
	finding.List
	// kinds has the shape of the objects of each resource that one version of a file describes.
	kinds map[schema.GroupResource]*outcome.Shape
	// names has the kind of each resource that a file describes.
	names map[schema.GroupResource]string
}

func (r *reviewer) found(o *manifest.Object, rule, path, format string, args ...any) {
	r.By(rule, o, finding.Warning, path, format, args...)
}

// decode reads an object without its checks, which the loader has made.
func decode[T any](o *manifest.Object) (into T, ok bool) {
	return into, json.Unmarshal(o.JSON, &into) == nil
}

// apiResource has the parts of an APIResource that are looked at.
type apiResource struct {
	Spec struct {
		Group  string
		Names  struct{ Plural, Kind string }
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
		r.names[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = crd.Spec.Names.Kind
		for i, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			r.schema(o, fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), v.Schema.OpenAPIV3Schema)
			r.kinds[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = nil
			if len(crd.Spec.Versions) == 1 {
				r.kinds[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = shapeOf(
					v.Schema.OpenAPIV3Schema)
			}
		}
	case "APIResource":
		a, ok := decode[apiResource](o)
		if !ok {
			return
		}
		r.names[schema.GroupResource{Group: a.Spec.Group, Resource: a.Spec.Names.Plural}] = a.Spec.Names.Kind
		if a.Spec.Schema.OpenAPIV3Schema == nil {
			return
		}
		r.schema(o, "spec.schema.openAPIV3Schema", a.Spec.Schema.OpenAPIV3Schema)
		r.kinds[schema.GroupResource{Group: a.Spec.Group, Resource: a.Spec.Names.Plural}] = shapeOf(
			a.Spec.Schema.OpenAPIV3Schema)
	}
}

// schema reviews the rules of a schema and of the schemas in it.
func (r *reviewer) schema(o *manifest.Object, path string, s *apiextensionsv1.JSONSchemaProps) {
	roots := map[string]*outcome.Shape{"self": shapeOf(s)}
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
func (r *reviewer) rule(o *manifest.Object, path, text string, conditions []string, roots map[string]*outcome.Shape) {
	if strings.TrimSpace(text) == "false" {
		return // what it denies is denied on purpose
	}
	switch possible := outcome.Given(text, conditions, roots); {
	case !possible.CanBeTrue:
		r.found(o, neverPasses, path, "can never be true%s: every object is refused", because(possible))
	case !possible.CanBeFalse && !possible.CanFail:
		r.found(o, neverFails, path, "can never be false%s: no object is refused", because(possible))
	}
}

func because(o outcome.Outcome) string {
	if len(o.Because) == 0 {
		return ""
	}
	return ", for " + strings.Join(o.Because, " and ")
}

// repeated finds an expression that stood before.
func (r *reviewer) repeated(o *manifest.Object, path, text string, i int, seen map[string]int) {
	text = strings.TrimSpace(text)
	if first, twice := seen[text]; twice {
		r.found(o, repeatedRule, path, "is the rule with the index %d again", first)
		return
	}
	seen[text] = i
}

// policy has the parts of an admission policy that are looked at.
type policy struct {
	Spec struct {
		FailurePolicy    string
		MatchConstraints struct {
			ResourceRules []resourceRule
		}
		MatchConditions []struct{ Name, Expression string }
		Variables       []struct{ Name, Expression string }
		Validations     []struct{ Expression string }
	}
}

// resourceRule is a rule of a match block.
type resourceRule struct{ APIGroups, APIVersions, Operations, Resources []string }

func (r *reviewer) policy(o *manifest.Object) {
	p, ok := decode[policy](o)
	if !ok {
		return
	}
	roots := map[string]*outcome.Shape{"object": r.shown(&p)}
	if slices.Contains(p.operations(), "DELETE") {
		roots["object"] = &outcome.Shape{} // of a delete it is null
	}
	var conditions []string
	for i, c := range p.Spec.MatchConditions {
		at := fmt.Sprintf("spec.matchConditions[%d].expression", i)
		r.judge(o, &p, at, c.Expression, conditions, func() { r.condition(o, at, c.Expression, conditions, roots) })
		conditions = append(conditions, c.Expression)
	}
	texts := map[string]int{}
	for i, v := range p.Spec.Validations {
		at := fmt.Sprintf("spec.validations[%d].expression", i)
		r.judge(o, &p, at, v.Expression, conditions, func() { r.rule(o, at, v.Expression, conditions, roots) })
		r.repeated(o, at, v.Expression, i, texts)
	}
	for i, v := range p.Spec.Variables {
		at := fmt.Sprintf("spec.variables[%d].name", i)
		if !r.isUsed(o, "variables."+v.Name) {
			r.found(o, unused, at, "no expression uses the variable '%s'", v.Name)
		}
		for j := range i {
			if p.Spec.Variables[j].Name == v.Name {
				r.found(o, repeatedRule, at, "the variable with the index %d has the name '%s' too, and only the last one of them counts", j, v.Name)
				break
			}
		}
	}
}

// judge reviews an expression by the operations that its policy is about, and then as a whole if nothing was found.
func (r *reviewer) judge(o *manifest.Object, p *policy, path, text string, conditions []string, whole func()) {
	before := len(r.Found)
	request := r.request(p)
	for _, s := range outcome.Strays(text, map[string]*outcome.Shape{"object": r.shown(p), "oldObject": r.shown(p),
		"request": request}) {
		r.found(o, neverEqual, path, "compares with '%s', but `%s` is one of '%s'", s.Text, s.Path,
			strings.Join(s.Among, "', '"))
	}
	var failing []string
	var unset []string
	ran := 0
	for _, operation := range p.operations() {
		roots := r.seen(p, operation, request)
		if !r.runs(conditions, roots) {
			continue
		}
		ran++
		possible := outcome.Given(text, conditions, roots)
		if possible.AlwaysFails() {
			failing = append(failing, operation)
		}
		for _, path := range possible.Unset {
			if !slices.Contains(unset, path) {
				unset = append(unset, path)
			}
		}
	}
	if len(failing) > 0 {
		lacks := "`oldObject`"
		if failing[0] == "DELETE" {
			lacks = "`object`"
		}
		every := "every " + strings.Join(failing, " and ")
		if len(failing) == ran && len(failing) > 1 {
			every = "every request"
		}
		r.found(o, AlwaysFails, path, "fails for %s, where %s is null: ask whether it is null first, or leave the operation out of `operations`", every, lacks)
	}
	if len(r.Found) == before {
		whole()
	}
	if len(r.Found) == before && len(unset) > 0 {
		which, they := "is optional", "it"
		if len(unset) > 1 {
			which, they = "are optional", "them"
		}
		then := "and the request is refused"
		if p.Spec.FailurePolicy == "Ignore" {
			then = "and by `failurePolicy` the policy is left out"
		}
		r.By(Unasked, o, finding.Remark, path, "reads `%s`, which %s: the expression fails where the field is left out, %s; ask for %s with has() first",
			strings.Join(unset, "`, `"), which, then, they)
	}
}

// runs reports whether a policy may get as far as its rules: no condition fails for each request, or is false for each.
func (r *reviewer) runs(conditions []string, roots map[string]*outcome.Shape) bool {
	for i, c := range conditions {
		if possible := outcome.Given(c, conditions[:i], roots); !possible.CanBeTrue {
			return false
		}
	}
	return true
}

// operations returns the operations whose objects are known.
func (p *policy) operations() (all []string) {
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		for _, operation := range [...]string{"CREATE", "UPDATE", "DELETE"} {
			if slices.Contains(rule.Operations, operation) || slices.Contains(rule.Operations, "*") {
				all = append(all, operation)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// seen returns the variables of a request for an operation.
func (r *reviewer) seen(p *policy, operation string, request *outcome.Shape) map[string]*outcome.Shape {
	there, null := *r.shown(p), &outcome.Shape{Type: outcome.Null}
	there.Type, there.IsSet = "object", true
	fields := maps.Clone(request.Fields)
	fields["operation"] = among(operation)
	roots := map[string]*outcome.Shape{"object": &there, "oldObject": &there,
		"request": {Type: "object", IsSet: true, Fields: fields}}
	switch operation {
	case "CREATE":
		roots["oldObject"] = null
	case "DELETE":
		roots["object"] = null
	}
	return roots
}

// request returns the shape of the variable of that name, as far as the names in a policy decide it.
func (r *reviewer) request(p *policy) *outcome.Shape {
	groups, versions, resources, kinds := among(), among(), among(), among()
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		groups.Enum, versions.Enum = named(groups.Enum, rule.APIGroups), named(versions.Enum, rule.APIVersions)
		var plurals []string
		for _, name := range rule.Resources {
			plural, sub, _ := strings.Cut(name, "/")
			plurals = append(plurals, plural)
			for _, group := range rule.APIGroups {
				kind := r.names[schema.GroupResource{Group: group, Resource: plural}]
				if kind == "" || sub != "" {
					kind = "*"
				}
				kinds.Enum = named(kinds.Enum, []string{kind})
			}
		}
		resources.Enum = named(resources.Enum, plurals)
	}
	for _, s := range []*outcome.Shape{groups, versions, resources, kinds} {
		if len(s.Enum) == 0 || slices.Contains(s.Enum, "*") {
			s.Enum = nil
		}
	}
	of := func(fields map[string]*outcome.Shape) *outcome.Shape {
		return &outcome.Shape{Type: "object", IsSet: true, Fields: fields}
	}
	return of(map[string]*outcome.Shape{
		"operation": among("CREATE", "UPDATE", "DELETE", "CONNECT"),
		"resource":  of(map[string]*outcome.Shape{"group": groups, "version": versions, "resource": resources}),
		"kind":      of(map[string]*outcome.Shape{"kind": kinds}),
	})
}

// among returns the shape of one of some texts.
func among(texts ...string) *outcome.Shape {
	return &outcome.Shape{Type: "string", IsSet: true, Enum: texts}
}

// named adds names, each once.
func named(all, more []string) []string {
	for _, name := range more {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// condition reviews a condition given the previous ones, which all have to be met.
func (r *reviewer) condition(o *manifest.Object, path, text string, before []string, roots map[string]*outcome.Shape) {
	for i, b := range before {
		if strings.TrimSpace(b) == strings.TrimSpace(text) {
			r.found(o, shadowedCondition, path, "is the condition with the index %d again", i)
			return
		}
	}
	switch possible := outcome.Given(text, before, roots); {
	case !possible.CanBeTrue:
		why := because(possible)
		if len(before) > 0 && outcome.Of(text, roots).CanBeTrue {
			why = " where the conditions before it are met"
		}
		r.found(o, neverMet, path, "can never be true%s, so that the policy never runs", why)
	case !possible.CanBeFalse && !possible.CanFail:
		if len(before) > 0 && outcome.Of(text, roots).CanBeFalse {
			r.found(o, shadowedCondition, path, "decides nothing: it is true wherever the conditions before it are")
			return
		}
		r.found(o, shadowedCondition, path, "decides nothing: it is always true%s", because(possible))
	}
}

// shown returns the shape of the objects that a policy sees; the zero shape if they are not of one known kind.
func (r *reviewer) shown(p *policy) *outcome.Shape {
	var shape *outcome.Shape
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				s := r.kinds[schema.GroupResource{Group: group, Resource: name}]
				if s == nil || shape != nil && shape != s {
					return &outcome.Shape{}
				}
				shape = s
			}
		}
	}
	if shape == nil {
		return &outcome.Shape{}
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
			r.found(o, unused, "metadata.name",
				"no expression reads `state.%s`, so that the collection is read for nothing", o.Name)
		}
	}
}
