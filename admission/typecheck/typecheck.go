// Package typecheck checks the expressions of admission policies against the
// schemas of the resources that they match, when the policies are loaded. A
// policy with findings runs all the same: expressions see an object as it is,
// whatever its schema says.
//
// It finds what kube-apiserver writes into the status of a ValidatingAdmissionPolicy, and how much
// an expression could cost at worst.
package typecheck

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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
	// Type is the type that the schema describes.
	Type *cel.ObjectType
	// Own is set if the schema is in the policy files, so that its author can set bounds on
	// expressions that could cost too much.
	Own bool
	// Unfilled are the fields with a default that is left to the API; nil if there are none.
	Unfilled *cel.Unfilled
}

// Kinds knows kinds of objects.
type Kinds interface {
	// Resource is the kind of a resource's objects; false if it is not known.
	Resource(schema.GroupVersionResource) (Kind, bool)
	// Kind is false for a kind whose schema is not known.
	Kind(schema.GroupVersionKind) (Kind, bool)
}

// An Expander is a Kinds that knows which resources a rule matches, whatever names the rule has for them.
type Expander interface {
	Expand(*admissionv1.NamedRuleWithOperations) []schema.GroupVersionResource
}

// A Policy has the parts of a policy that are checked.
type Policy struct {
	Match       *admissionv1.MatchResources
	ParamKind   *admissionv1.ParamKind
	Conditions  []admissionv1.MatchCondition
	Variables   []admissionv1.Variable
	States      []string // the collections behind the variable state
	Mutating    bool     // expressions may make patches
	Defaulting  bool     // expressions see the variable self
	Ignores     bool     // the failure policy is Ignore
	Expressions []Expression
	// Common is what the policies of the set have in common; nil: the policy is reviewed by itself.
	Common *cel.Common
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
	// Text says what is wrong, in several lines. It is empty if only Fails is known.
	Text string
	// Fails says that the expression fails for every object of some of the kinds, provably, and why. ForAll reports
	// whether these are all kinds that the policy can judge.
	Fails  string
	ForAll bool
	// Rest is what Text says beside Fails.
	Rest string
}

// maxKinds is for how many kinds of one rule a policy is checked, Kubernetes' limit.
const maxKinds = 10

// Check checks a policy against each kind of object that its rules name. Rules
// with wildcards are left out, as in Kubernetes. An expression that always fails is found without
// any kind.
func Check(p *Policy, kinds Kinds) ([]Warning, error) {
	variables, warnings := field.NewPath("spec", "variables"), newWarnings(p)
	for i, v := range p.Variables {
		warnings.constant(Expression{variables.Index(i).Child("expression"), v.Expression})
	}
	expressions := append(conditions(p), p.Expressions...)
	for _, e := range expressions {
		warnings.constant(e)
	}
	if p.Ignores {
		warnings.counts(p)
	}
	all := Matched(p.Match, kinds)
	for _, k := range all {
		warnings.unasked(p, k)
	}
	found := slices.DeleteFunc(all, func(k Kind) bool { return k.Type == nil })
	if len(found) == 0 {
		return warnings.list(), nil
	}
	params, hasParams := paramsOf(p.ParamKind, kinds)
	checkers := make([]*checker, len(found))
	for i, k := range found {
		c, err := warnings.common.TypeChecker(cel.TypedVariables{Object: k.Type, HasParams: hasParams, Params: params,
			States: p.States, Mutating: p.Mutating, Defaulting: p.Defaulting})
		if err != nil {
			return nil, err
		}
		checkers[i] = &checker{c, k, p.Ignores}
	}
	for i, v := range p.Variables {
		e := Expression{variables.Index(i).Child("expression"), v.Expression}
		warnings.addAll(e, checkers, func(c *checker, p *cel.Parsed) error { return c.Variable(v.Name, p) })
	}
	for _, e := range expressions {
		if strings.TrimSpace(e.Text) == "" {
			continue
		}
		warnings.addAll(e, checkers, (*checker).Check)
	}
	warnings.fates(p, checkers)
	return warnings.list(), nil
}

// Unasked finds only the expressions that read a field whose default is left to the API without asking for it.
func Unasked(p *Policy, kinds Kinds) []Warning {
	w := newWarnings(p)
	for _, k := range Matched(p.Match, kinds) {
		w.unasked(p, k)
	}
	return w.list()
}

func conditions(p *Policy) []Expression {
	all := make([]Expression, 0, len(p.Conditions)+len(p.Expressions))
	for i, c := range p.Conditions {
		all = append(all, Expression{field.NewPath("spec", "matchConditions").Index(i).Child("expression"),
			c.Expression})
	}
	return all
}

// checker checks against one kind.
type checker struct {
	*cel.TypeChecker
	kind    Kind
	ignores bool
}

// say words a finding as Kubernetes does.
func (c *checker) say(err error) string {
	var problem *cel.CompileError
	if !errors.As(err, &problem) {
		return ""
	}
	return fmt.Sprintf("%v: %s", c.kind.GroupVersionKind, problem.Detail)
}

// cost says that an expression may cost more than Kubernetes allows a rule of a schema. What it does cost is counted
// when it runs.
func (c *checker) cost(p *cel.Parsed) string {
	units, ok := c.Cost(p)
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

// ignored says what a client can do with an expression whose cost it decides, if failures are ignored.
const ignored = "a client can let this exceed its cost limit and use up the budget of the policy, and `failurePolicy: Ignore` then " +
	"leaves it out, and the expressions after it; set `failurePolicy: Fail`, or "

// ignorable says that the client's data can let an expression exceed its limit, so that it is ignored. Expressions that
// counts finds are left to it.
func (c *checker) ignorable(p *cel.Parsed) string {
	units, ok := c.Cost(p)
	if _, isCounted := p.Counts(); isCounted || !c.kind.Own || !ok || units <= uint64(cel.ExpressionLimit) {
		return ""
	}
	return fmt.Sprintf("%v: %sadd maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared", c.kind.GroupVersionKind, ignored)
}

// counts adds that a number of the client decides what an expression costs, whatever the kind.
func (w *warnings) counts(p *Policy) {
	look := func(path *field.Path, text string) {
		places, _ := w.parse(text).Counts()
		for _, place := range places {
			w.add(path, fmt.Sprintf("%s says how many items this makes: %scompare %s with a bound first", place,
				ignored, place))
		}
	}
	for i, v := range p.Variables {
		look(field.NewPath("spec", "variables").Index(i).Child("expression"), v.Expression)
	}
	for _, e := range append(conditions(p), p.Expressions...) {
		if !isMessage(e.Field) {
			look(e.Field, e.Text)
		}
	}
}

// isMessage reports whether the expression at a path makes a message, which decides nothing.
func isMessage(path *field.Path) bool { return strings.HasSuffix(path.String(), "messageExpression") }

// warnings collects findings, several about one expression in one.
type warnings struct {
	order []string
	texts map[string][]string
	fails map[string]failure // by the expression

	common *cel.Common
}

// parse parses an expression, once.
func (w *warnings) parse(text string) *cel.Parsed { return w.common.Parse(text) }

// failure says that an expression always fails.
type failure struct {
	text, problem string
	forAll        bool
}

func newWarnings(p *Policy) *warnings {
	w := &warnings{texts: map[string][]string{}, fails: map[string]failure{}, common: p.Common}
	if w.common == nil {
		w.common = cel.NewCommon()
	}
	return w
}

// addAll adds what is found about an expression against each kind. Nothing is reported for several
// of Kubernetes' own kinds that are matched together, if the expression itself distinguishes them,
// or fits one of them.
func (w *warnings) addAll(e Expression, checkers []*checker, check func(*checker, *cel.Parsed) error) {
	p, texts := w.parse(e.Text), make([]string, len(checkers))
	natives, fits := 0, tellsKinds(e.Text)
	for i, c := range checkers {
		texts[i] = c.say(check(c, p))
		if !c.kind.Own {
			natives++
			fits = fits || texts[i] == ""
		}
	}
	for i, c := range checkers {
		if c.kind.Own || natives < 2 || !fits {
			w.add(e.Field, texts[i])
		}
		w.add(e.Field, c.cost(p))
		if c.ignores && !isMessage(e.Field) {
			w.add(e.Field, c.ignorable(p))
		}
	}
}

// constant adds that an expression has no value, whatever the object.
func (w *warnings) constant(e Expression) {
	err := w.parse(e.Text).AlwaysFails()
	if err == nil {
		return
	}
	w.add(e.Field, err.Error())
	if decides(e.Field) {
		w.fails[e.Field.String()] = failure{err.Error(), err.Error(), true}
	}
}

// unasked adds that expressions read fields of a kind without asking for them, although their defaults are not filled
// in.
func (w *warnings) unasked(p *Policy, k Kind) {
	if k.Unfilled == nil {
		return
	}
	r := k.Unfilled.Reader(map[string]string{"object": "", "oldObject": ""})
	look := func(e Expression) {
		if text := cel.SayUnasked(r.Reads(w.parse(e.Text))); text != "" {
			w.add(e.Field, fmt.Sprintf("%v: %s", k.GroupVersionKind, text))
		}
	}
	for _, e := range conditions(&Policy{Conditions: p.Conditions}) {
		look(e)
		r.Condition(w.parse(e.Text))
	}
	for i, v := range p.Variables {
		look(Expression{field.NewPath("spec", "variables").Index(i).Child("expression"), v.Expression})
		r.Variable(v.Name, w.parse(v.Expression))
	}
	for _, e := range p.Expressions {
		look(e)
	}
}

// tellsKinds reports whether an expression distinguishes kinds.
func tellsKinds(expression string) bool {
	return (strings.Contains(expression, ".kind") || strings.Contains(expression, ".resource") ||
		strings.Contains(expression, ".request")) &&
		kindMention.MatchString(expression)
}

var kindMention = regexp.MustCompile(`\b(?:object|oldObject)\.kind\b|\brequest\.(?:kind|resource|requestKind|requestResource)\b`)

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
		of := w.fails[at]
		rest := slices.DeleteFunc(slices.Clone(w.texts[at]),
			func(text string) bool { return of.problem != "" && strings.HasSuffix(text, of.problem) })
		all = append(all, Warning{at, strings.Join(w.texts[at], "\n"), of.text, of.forAll, strings.Join(rest, "\n")})
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

// Matched are the kinds that the rules name, in order, as Kubernetes finds them.
func Matched(m *admissionv1.MatchResources, kinds Kinds) []Kind {
	if m == nil {
		return nil
	}
	found := map[schema.GroupVersionKind]Kind{}
rules:
	for i := range m.ResourceRules {
		count := 0
		named := namedBy(&m.ResourceRules[i])
		if e, is := kinds.(Expander); is {
			named = e.Expand(&m.ResourceRules[i])
		}
		for _, gvr := range named {
			k, ok := kinds.Resource(gvr)
			if !ok {
				continue
			}
			found[k.GroupVersionKind] = k
			if count++; count == maxKinds {
				break rules
			}
		}
	}
	list := make([]Kind, 0, len(found))
	for _, k := range found {
		if k.Type != nil || k.Unfilled != nil {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b Kind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version),
			strings.Compare(a.Kind, b.Kind))
	})
	return list
}

// Named are the resources that the rules name, each once. Rules with wildcards
// are left out.
func Named(m *admissionv1.MatchResources) []schema.GroupVersionResource {
	if m == nil {
		return nil
	}
	var named []schema.GroupVersionResource
	for i := range m.ResourceRules {
		for _, gvr := range namedBy(&m.ResourceRules[i]) {
			if !slices.Contains(named, gvr) {
				named = append(named, gvr)
			}
		}
	}
	return named
}

// Described are the kinds that the rules match, if the policy files describe all of them; nil if the rules may match
// others.
func Described(m *admissionv1.MatchResources, kinds Kinds) (all []Kind) {
	if m == nil {
		return nil
	}
	for i := range m.ResourceRules {
		r := &m.ResourceRules[i]
		named := namedBy(r)
		if len(named) < len(r.APIGroups)*len(r.APIVersions)*len(r.Resources) || len(all)+len(named) > maxKinds {
			return nil
		}
		for _, gvr := range named {
			k, ok := kinds.Resource(gvr)
			if !ok || !k.Own || k.Type == nil {
				return nil
			}
			all = append(all, k)
		}
	}
	return all
}

func namedBy(r *admissionv1.NamedRuleWithOperations) (named []schema.GroupVersionResource) {
	if hasWildcard(r.APIGroups) || hasWildcard(r.APIVersions) {
		return nil
	}
	for _, group := range sorted(r.APIGroups) {
		for _, version := range sorted(r.APIVersions) {
			for _, resource := range sorted(r.Resources) {
				if !strings.ContainsAny(resource, "*/") {
					named = append(named, schema.GroupVersionResource{Group: group, Version: version,
						Resource: resource})
				}
			}
		}
	}
	return named
}

func hasWildcard(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "*") })
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
