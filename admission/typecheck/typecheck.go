// Package typecheck checks the expressions of admission policies against the
// schemas of the resources that they match, when the policies are loaded. A
// policy with findings runs all the same: expressions see an object as it is,
// whatever its schema says.
//
// What is found is what kube-apiserver writes into the status of a
// ValidatingAdmissionPolicy, and what an expression could cost at worst.
package typecheck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
)

// A Kind is a kind of object whose schema is known.
type Kind struct {
	schema.GroupVersionKind
	// Type is what the schema says.
	Type *cel.ObjectType
	// Own tells that the schema is in the policy files, so that its author can set
	// bounds where expressions could cost too much.
	Own bool
}

// Kinds knows kinds of objects.
type Kinds interface {
	// Resource is the kind of a resource's objects; false where it is not known.
	Resource(schema.GroupVersionResource) (Kind, bool)
	// Kind is false for a kind whose schema is not known.
	Kind(schema.GroupVersionKind) (Kind, bool)
}

// A Policy is what is checked of one.
type Policy struct {
	Match       *admissionv1.MatchResources
	ParamKind   *admissionv1.ParamKind
	Variables   []admissionv1.Variable
	States      []string // the collections behind the variable state
	Mutating    bool     // expressions may make patches
	Expressions []Expression
}

// An Expression is one to check.
type Expression struct {
	Field *field.Path
	Text  string
}

// A Warning is a finding about an expression.
type Warning struct {
	// Field is the path of the expression in its policy.
	Field string
	// Text says what is wrong, in several lines.
	Text string
}

// maxKinds is for how many kinds of one rule a policy is checked, Kubernetes' limit.
const maxKinds = 10

// Check checks a policy against each kind of object that its rules name. Rules
// with wildcards are left out, as in Kubernetes.
func Check(p *Policy, kinds Kinds) ([]Warning, error) {
	found := matched(p.Match, kinds)
	if len(found) == 0 {
		return nil, nil
	}
	params, hasParams := paramsOf(p.ParamKind, kinds)
	checkers := make([]*checker, len(found))
	variables := field.NewPath("spec", "variables")
	warnings := newWarnings(p)
	for i, k := range found {
		c, err := cel.NewTypeChecker(cel.TypedVariables{Object: k.Type, HasParams: hasParams, Params: params, States: p.States, Mutating: p.Mutating})
		if err != nil {
			return nil, err
		}
		checkers[i] = &checker{c, k}
		for v := range p.Variables {
			path := variables.Index(v).Child("expression")
			warnings.add(path, checkers[i].say(c.Variable(p.Variables[v].Name, p.Variables[v].Expression)))
			warnings.add(path, checkers[i].cost(p.Variables[v].Expression))
		}
	}
	for _, e := range p.Expressions {
		for _, c := range checkers {
			warnings.add(e.Field, c.say(c.Check(e.Text)))
			warnings.add(e.Field, c.cost(e.Text))
		}
	}
	return warnings.list(), nil
}

// checker checks against one kind.
type checker struct {
	*cel.TypeChecker
	kind Kind
}

// say words a finding as Kubernetes does.
func (c *checker) say(err error) string {
	var problem *cel.CompileError
	if !errors.As(err, &problem) {
		return ""
	}
	return fmt.Sprintf("%v: %s", c.kind.GroupVersionKind, problem.Detail)
}

// cost says that an expression may cost more than Kubernetes allows a rule of a schema. What it does cost is counted when
// it runs.
func (c *checker) cost(expression string) string {
	units, ok := c.Cost(expression)
	if !c.kind.Own || !ok || units <= validation.StaticEstimatedCostLimit {
		return ""
	}
	factor := float64(units) / validation.StaticEstimatedCostLimit
	by := "more than 100x"
	switch {
	case factor < 1.5:
		by = fmt.Sprintf("%fx", factor)
	case factor <= 100:
		by = fmt.Sprintf("%.1fx", factor)
	}
	return fmt.Sprintf("%v: estimated cost exceeds budget by factor of %s "+
		"(try simplifying the expression, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", c.kind.GroupVersionKind, by)
}

// warnings collects findings, several about one expression in one.
type warnings struct {
	order []string
	texts map[string][]string
}

func newWarnings(p *Policy) *warnings { return &warnings{texts: map[string][]string{}} }

func (w *warnings) add(path *field.Path, text string) {
	if text == "" {
		return
	}
	at := path.String()
	if _, ok := w.texts[at]; !ok {
		w.order = append(w.order, at)
	}
	if !slices.Contains(w.texts[at], text) {
		w.texts[at] = append(w.texts[at], text)
	}
}

func (w *warnings) list() []Warning {
	var all []Warning
	for _, at := range w.order {
		all = append(all, Warning{at, strings.Join(w.texts[at], "\n")})
	}
	return all
}

func paramsOf(k *admissionv1.ParamKind, kinds Kinds) (t *cel.ObjectType, has bool) {
	if k == nil {
		return nil, false
	}
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return nil, false
	}
	kind, _ := kinds.Kind(gv.WithKind(k.Kind))
	return kind.Type, true
}

// matched are the kinds that the rules name, in order, as Kubernetes finds them.
func matched(m *admissionv1.MatchResources, kinds Kinds) []Kind {
	if m == nil {
		return nil
	}
	found := map[schema.GroupVersionKind]Kind{}
rules:
	for _, rule := range m.ResourceRules {
		if hasWildcard(rule.APIGroups) || hasWildcard(rule.APIVersions) {
			continue
		}
		count := 0
		for _, group := range sorted(rule.APIGroups) {
			for _, version := range sorted(rule.APIVersions) {
				for _, resource := range sorted(rule.Resources) {
					if strings.ContainsAny(resource, "*/") {
						continue
					}
					k, ok := kinds.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
					if !ok {
						continue
					}
					found[k.GroupVersionKind] = k
					if count++; count == maxKinds {
						break rules
					}
				}
			}
		}
	}
	list := make([]Kind, 0, len(found))
	for _, k := range found {
		if k.Type != nil {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b Kind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind))
	})
	return list
}

func hasWildcard(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "*") })
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
