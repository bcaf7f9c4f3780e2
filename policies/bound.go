package policies

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// bound are the policies of one of Kubernetes' kinds, which act through bindings. P is a compiled
// policy, and B a compiled binding. Policies are compiled when all bindings are known.
type bound[P compiledPolicy[P, B], B governed] struct {
	policies []boundPolicy[P, B] // compile sorts them by name
	bindings []binding[B]
}

// compiledPolicy is a policy whose expressions are known. It is shared by all sets that have it; each of them binds it
// anew.
type compiledPolicy[P, B any] interface {
	admission.Policy
	Bound(t admission.Terms, bindings ...B) P
	Programs() []*cel.Program
	FindsKind() bool
}

// governed is a binding that can have terms.
type governed interface{ Govern(t admission.Terms) }

type boundPolicy[P, B any] struct {
	from    *manifest.Object
	match   *admissionv1.MatchResources
	params  *admissionv1.ParamKind
	compile func(states []string, common *cel.Common) (P, field.ErrorList)
	// review returns warnings about the expressions of a policy that compiles, and wording advice on
	// its messages; nil: there is none.
	review  func(states []string, kinds typecheck.Kinds, common *cel.Common) ([]typecheck.Warning, error)
	wording func() []typecheck.Warning
}

type binding[B any] struct {
	from     *manifest.Object
	policy   string // the policy's name, also of a binding that did not compile
	params   *admissionv1.ParamRef
	compiled B
	ok       bool // it did compile
}

// bind takes a binding whose compilation ended with errs.
func (b *bound[P, B]) bind(l *loader, o *manifest.Object, policy string, params *admissionv1.ParamRef, compiled B,
	errs field.ErrorList) {
	l.Fields(o, Error, errs)
	b.bindings = append(b.bindings, binding[B]{o, policy, params, compiled, len(errs) == 0})
}

// compile compiles all policies with their bindings, and returns the ones that are bound.
func (b *bound[P, B]) compile(l *loader, kind string) []P {
	slices.SortFunc(b.policies, func(x, y boundPolicy[P, B]) int { return cmp.Compare(x.from.Name, y.from.Name) })
	compiledFor := make(map[string][]B, len(b.bindings))
	isBound := make(map[string]bool, len(b.bindings)) // also by bindings that did not compile
	for _, one := range b.bindings {
		isBound[one.policy] = true
		if one.ok {
			one.compiled.Govern(l.terms.TermsByAnnotation(one.from))
			compiledFor[one.policy] = append(compiledFor[one.policy], one.compiled)
		}
		b.refer(l, kind, &one)
	}
	unbound := b.compileUnbound(l)
	if l.isStopped() {
		return nil
	}
	var all []P
	for i, p := range b.policies {
		compiled := unbound[i]
		if compiled.ok {
			compiled.policy = compiled.policy.Bound(l.terms.TermsByAnnotation(p.from), compiledFor[p.from.Name]...)
			l.plans.note(p.from, compiled.policy.Programs())
			l.reads.expressions(p.from, compiled.policy.Programs())
		}
		if !isBound[p.from.Name] && !part[unreadBindings](l).any {
			if l.mayBeUnused(p.from) {
				continue
			}
			if compiled.ok && compiled.policy.FindsKind() {
				l.At(p.from, Warning, "spec.paramKind", "nothing in the policy files provides the kind: unless the backend has it every request that the policy matches is refused, "+
					"although no %sBinding names the policy", kind)
				all = append(all, compiled.policy)
				continue
			}
			l.At(p.from, Warning, "metadata.name", "no %sBinding names the policy '%s', so that it never runs", kind,
				p.from.Name)
		} else if compiled.ok {
			all = append(all, compiled.policy)
		}
	}
	return all
}

// compileUnbound compiles and reviews the policies on all processors. It finds the same, in the same order, on one.
func (b *bound[P, B]) compileUnbound(l *loader) []unboundPolicy[P] {
	states, kinds := l.stateNames(), l.knownKinds()
	unbound, found := make([]unboundPolicy[P], len(b.policies)), make([]findings, len(b.policies))
	runs := b.runs()
	var next atomic.Int64
	work := func(common *cel.Common) {
		for n := next.Add(1); n <= int64(len(runs)); n = next.Add(1) {
			for _, i := range runs[n-1] {
				if l.gateway.Stopped != nil && l.gateway.Stopped() {
					return
				}
				memory.Pace()
				unbound[i] = b.policies[i].reviewed(l, &found[i], states, kinds, common)
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(runs)) - 1 {
		others.Go(func() {
			if l.common == nil {
				work(nil)
			} else {
				work(cel.NewCommon()) // one goroutine uses each
			}
		})
	}
	work(l.common)
	others.Wait()
	for i := range b.policies {
		if l.isStopped() {
			break
		}
		l.Found = append(l.Found, found[i].Found...)
		if p := &b.policies[i]; unbound[i].ok && l.plans.advise(p.from.File) {
			l.wildcards(p.from, states, kinds, p.reviewWith(l.common))
		}
	}
	return unbound
}

// mostInRun is how many policies one processor compiles before it looks for the next ones.
const mostInRun = 16

// runs returns the indexes of the policies in runs, each of which one processor compiles. All policies of a run are for
// the same resource, so that what is made of its schema for the review of one serves the next, and need not be kept for
// long.
func (b *bound[P, B]) runs() (all [][]int) {
	resources, order := make([]string, len(b.policies)), make([]int, len(b.policies))
	for i := range b.policies {
		resources[i], order[i] = firstResource(b.policies[i].match), i
	}
	slices.SortStableFunc(order, func(x, y int) int { return strings.Compare(resources[x], resources[y]) })
	for first, i := range order {
		last := len(all) - 1
		if first == 0 || len(all[last]) == mostInRun || resources[i] != resources[order[first-1]] {
			all = append(all, order[first:first:len(order)])
			last++
		}
		all[last] = all[last][:len(all[last])+1]
	}
	return all
}

// firstResource is the group and name of the first resource that rules name; "" if they name none.
func firstResource(m *admissionv1.MatchResources) string {
	if m == nil || len(m.ResourceRules) == 0 || len(m.ResourceRules[0].APIGroups) == 0 ||
		len(m.ResourceRules[0].Resources) == 0 {
		return ""
	}
	return m.ResourceRules[0].APIGroups[0] + "/" + m.ResourceRules[0].Resources[0]
}

// unboundPolicy is a policy without its bindings; false: it did not compile.
type unboundPolicy[P any] struct {
	policy P
	ok     bool
}

// reviewed compiles and reviews the policy. It uses nothing that another goroutine changes, apart from what it reuses.
func (p *boundPolicy[P, B]) reviewed(l *loader, found *findings, states []string, kinds *knownKinds,
	common *cel.Common) unboundPolicy[P] {
	compiled := p.compiled(l, found, states, common)
	if compiled.ok && l.plans.advise(p.from.File) {
		reviewPolicy(l.kept, found, p.from, states, kinds, p.reviewWith(common))
		unaskedWidely(found, p.from, states, kinds, p.reviewWith(common))
		p.advise(l.kept, found)
	}
	return compiled
}

// compiled returns the policy without its bindings.
func (p *boundPolicy[P, B]) compiled(l *loader, found *findings, states []string,
	common *cel.Common) unboundPolicy[P] {
	key := joined(states)
	if l.findsKind(p.params) {
		key += "\n"
	}
	return reuse.OfObject(l.kept, found, p.from, "policy", key, func(f *findings) unboundPolicy[P] {
		compiled, errs := p.compile(states, common)
		f.Fields(p.from, Error, errs)
		return unboundPolicy[P]{compiled, len(errs) == 0}
	})
}

// reviewWith returns the review of the policy, which shares what is in common with other policies.
func (p *boundPolicy[P, B]) reviewWith(
	common *cel.Common) func([]string, typecheck.Kinds) ([]typecheck.Warning, error) {
	return func(states []string, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
		return p.review(states, kinds, common)
	}
}

// joined are names as one key.
func joined(names []string) string { return strings.Join(names, "\n") }

// refer notes the parameters that a binding refers to, or warns that its policy is in no file. As on
// an API server the binding does nothing until the policy is there.
func (b *bound[P, B]) refer(l *loader, kind string, one *binding[B]) {
	i, found := slices.BinarySearchFunc(b.policies, one.policy,
		func(p boundPolicy[P, B], name string) int { return cmp.Compare(p.from.Name, name) })
	if found {
		l.paramUses = append(l.paramUses, paramUse{one.from, b.policies[i].params, one.params})
		return
	}
	if _, known := l.known[objectID{group: admissionRegistrationGroup, kind: kind, name: one.policy}]; !known &&
		one.policy != "" && !l.mayBeUnused(one.from) {
		l.At(one.from, Warning, "spec.policyName",
			"no %s in the policy files has the name '%s', so that the binding does nothing", kind, one.policy)
	}
}

func (p *boundPolicy[P, B]) advise(kept *reuse.Store, found *findings) {
	if p.wording == nil {
		return
	}
	reuse.OfObject(kept, found, p.from, "wording", nil, func(f *findings) struct{} {
		for _, w := range p.wording() {
			f.At(p.from, Wording, w.Field, "%s", w.Text)
		}
		return struct{}{}
	})
}
