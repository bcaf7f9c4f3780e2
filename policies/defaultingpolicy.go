package policies

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/mutate"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	kschema "github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// defaultingPolicies are the DefaultingPolicies of the files.
type defaultingPolicies struct{ all []loadedDefaulting }

// loadedDefaulting is a DefaultingPolicy, which is compiled when all resources are known.
type loadedDefaulting struct {
	from *manifest.Object
	spec *mutate.DefaultingPolicy
}

func (d *defaultingPolicies) take(l *loader, o *manifest.Object, p *mutate.DefaultingPolicy) {
	l.useTargets(o, p.Spec.TargetRefs)
	d.all = append(d.all, loadedDefaulting{o, p})
}

// compile implements compiler. A policy that is disabled is checked all the same.
func (d *defaultingPolicies) compile(l *loader) {
	slices.SortFunc(d.all, func(a, b loadedDefaulting) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	states, kinds := l.stateNames(), l.knownKinds()
	compiler := mutate.Compiler{States: states, Common: l.common}
	for i, p := range d.all {
		compiled := reuse.OfObject(l.kept, &l.findings, p.from, "policy", joined(states),
			func(f *findings) *mutate.Defaulting {
				compiled, errs := compiler.CompileDefaulting(p.spec)
				f.Fields(p.from, Error, errs)
				return compiled
			})
		if compiled == nil {
			continue
		}
		compiled = compiled.Governed(l.terms.Terms(p.from, p.spec.Spec.Rollout))
		l.plans.note(p.from, compiled.Programs())
		l.reads.expressions(p.from, compiled.Programs())
		reviewPolicy(l.kept, &l.findings, p.from, states, kinds,
			func(_ []string, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
				return compiler.ReviewDefaulting(p.spec, kinds)
			})
		suited(&l.findings, p, compiled, kinds)
		l.suitedWidely(p, compiled, kinds)
		if !l.mayBeUnused(p.from) {
			overtaken(&l.findings, p, d.all[:i], kinds)
		}
		if p.spec.Enabled() {
			l.mutators = append(l.mutators, compiled)
		}
	}
}

// suited checks the fields and values of a policy against the resources that its rules name.
func suited(f *findings, p loadedDefaulting, compiled *mutate.Defaulting, kinds *knownKinds) {
	severity := Error
	if !p.spec.Enabled() {
		severity = Warning
	}
	for _, gvr := range typecheck.Named(p.spec.Spec.MatchConstraints) {
		typ, s := kinds.mergeType(gvr)
		if typ == nil {
			continue
		}
		for i, setting := range compiled.Settings() {
			path := field.NewPath("spec", "defaults").Index(i)
			if rule, what, err := unsuited(&setting, typ, s); err != nil {
				f.By(rule, p.from, severity, path.Child(what).String(), "%s", inObjects(err, gvr))
			}
		}
	}
}

// suitedWidely finds fields that none of the kinds has which rules with wildcards match.
func (l *loader) suitedWidely(p loadedDefaulting, compiled *mutate.Defaulting, kinds *knownKinds) {
	all, severity := l.matchedByWildcards(p.from)
	for i, setting := range compiled.Settings() {
		var why error
		for _, r := range all {
			typ, _ := kinds.mergeType(r.GroupVersion().WithResource(r.Names.Plural))
			if typ == nil {
				why = nil
				break
			}
			if _, why = setting.Path.In(typ); why == nil {
				break
			}
		}
		if why != nil {
			l.By(applicability.UnknownField, p.from, severity,
				field.NewPath("spec", "defaults").Index(i).Child("field").String(),
				"%s, in objects of any resource that the files describe and the rules match", why)
		}
	}
}

// unsuited says what is wrong with a default for objects of a type, which of its fields says so, and the id of the
// check.
func unsuited(d *mutate.Setting, t *merge.Type, s *kschema.Schema) (rule, what string, err error) {
	of, err := d.Path.In(t)
	switch {
	case err != nil:
		return applicability.UnknownField, "field", err
	case d.Value != nil:
		if err := d.Path.CheckLiteral(t, s, d.Value); err != nil {
			return applicability.UnfitValue, "value", fmt.Errorf("must fit the field: %w", err)
		}
	case d.Kind != document.Invalid && !of.Allows(d.Kind):
		return applicability.UnfitValue, "valueExpression",
			fmt.Errorf("must fit the field, which is not for values of kind %s", d.Kind)
	}
	return "", "", nil
}

// mergeType is the type of a resource's objects, and the schema if the files have it; nil if
// nothing is known.
func (k *knownKinds) mergeType(gvr schema.GroupVersionResource) (*merge.Type, *kschema.Schema) {
	if r, ok := k.resources[gvr]; ok {
		switch {
		case r.compiled.schema == nil:
			return nil, nil
		case r.showsItems():
			return mergeTypeOf(k.kept, r.compiled.schema, true)(), nil
		}
		return mergeTypeOf(k.kept, r.compiled.schema, false)(), r.compiled.schema
	}
	return kubernetes.TypeOfResource(gvr), nil
}
