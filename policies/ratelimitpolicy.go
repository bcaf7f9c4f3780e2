package policies

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// RateLimitPolicy bounds how often clients may ask. Its definition, crds/ratelimitpolicies.yaml, says what the fields
// mean and may hold.
type RateLimitPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RateLimitPolicySpec `json:"spec"`
}

// RateLimitPolicySpec says which requests count, by what, and how many may come and be served at the same time.
type RateLimitPolicySpec struct {
	RouteScope `json:",inline"`

	Match               RateLimitMatch      `json:"match"`
	Exemptions          RateLimitExemptions `json:"exemptions"`
	Key                 ratelimit.Key       `json:"key"`
	HeaderName          string              `json:"headerName"`
	KeyExpression       string              `json:"keyExpression"`
	Mode                ratelimit.Mode      `json:"mode"`
	Requests            int32               `json:"requests"`
	PeriodSeconds       int32               `json:"periodSeconds"`
	Burst               int32               `json:"burst"`
	Cost                string              `json:"cost"`
	MaxInFlight         int32               `json:"maxInFlight"`
	MaxInFlightTotal    int32               `json:"maxInFlightTotal"`
	QueueLength         int32               `json:"queueLength"`
	QueueTimeoutSeconds int32               `json:"queueTimeoutSeconds"`
	Headers             string              `json:"headers"`
	Scope               string              `json:"scope"`

	WhenStoreUnavailable ratelimit.Fallback `json:"whenStoreUnavailable"`
	LeaseSize            int32              `json:"leaseSize"`

	Rollout *rollout.Spec `json:"rollout"`
}

// RateLimitExemptions are requests that do not count, any of them.
type RateLimitExemptions struct {
	Usernames       []string `json:"usernames"`
	Groups          []string `json:"groups"`
	Namespaces      []string `json:"namespaces"`
	ClientAddresses []string `json:"clientAddresses"`
}

// RateLimitMatch says which requests count.
type RateLimitMatch struct {
	Verbs           []string         `json:"verbs"`
	APIGroups       []string         `json:"apiGroups"`
	Resources       []string         `json:"resources"`
	Namespaces      []string         `json:"namespaces"`
	MatchConditions []MatchCondition `json:"matchConditions"`
}

// MatchCondition is a CEL expression about a request.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// rateLimits are the rate limits of the files, and what is wrong with the shared ones if there is no store.
type rateLimits struct {
	limits  []*ratelimit.Rule
	sharing []Finding
}

// compile implements compiler.
func (a *rateLimits) compile(l *loader) {
	l.set.limits, l.set.remarks.sharing = ratelimit.NewRules(a.limits), a.sharing
	for _, one := range a.limits {
		l.matched.limit(one)
	}
}

func (a *rateLimits) take(l *loader, o *manifest.Object, p *RateLimitPolicy) {
	s := &p.Spec
	r := &ratelimit.Rule{
		Name:       p.Name,
		Scope:      s.scope(),
		Verbs:      s.Match.Verbs,
		APIGroups:  s.Match.APIGroups,
		Resources:  s.Match.Resources,
		Namespaces: s.Match.Namespaces,
		Exemptions: ratelimit.Exemptions{Usernames: s.Exemptions.Usernames, Groups: s.Exemptions.Groups,
			Namespaces: s.Exemptions.Namespaces},
		Key:        s.Key,
		HeaderName: s.HeaderName,
		Mode:       s.Mode,
		Requests:   int(s.Requests),
		Period:     time.Duration(s.PeriodSeconds) * time.Second,
		Burst:      int(s.Burst),
		InFlight: ratelimit.InFlight{
			PerKey: int(s.MaxInFlight), Total: int(s.MaxInFlightTotal),
			QueueLength: int(s.QueueLength), QueueTimeout: time.Duration(max(s.QueueTimeoutSeconds, 1)) * time.Second,
		},
		Quiet: s.Headers == "Never",
	}
	if r.Burst == 0 {
		r.Burst = r.Requests
	}
	for i, address := range s.Exemptions.ClientAddresses {
		r.Exemptions.Addresses = append(r.Exemptions.Addresses,
			network(&l.findings, o, fmt.Sprintf("spec.exemptions.clientAddresses[%d]", i), address))
	}
	compiled := reuse.OfObject(l.kept, &l.findings, o, "limit", nil,
		func(f *findings) limitPrograms { return limitProgramsOf(f, o, s) })
	r.Conditions, r.KeyProgram, r.Cost = slices.Clone(compiled.conditions), compiled.key, compiled.cost
	switch {
	case s.KeyExpression != "":
		r.Key = ratelimit.Expression
	case s.Key == "":
		r.Key = ratelimit.ClientAddress
	}
	r.Rollout = l.terms.Plan(o, s.Rollout)
	if r.Rollout != nil && r.Rollout.IsByLabels() {
		l.At(o, Error, "spec.rollout.namespaceSelector",
			"must not be set: limits are held before anything is asked about a namespace")
	}
	l.useScope(o, r.Scope, inSpec)
	programs := append(slices.Clone(r.Conditions), r.KeyProgram, r.Cost)
	l.plans.note(o, programs)
	l.failing(o, programs)
	l.reads.expressions(o, programs)
	l.reads.limit(o, r)
	a.share(l, o, s, r)
	adviseLimit(&l.findings, o, r)
	a.limits = append(a.limits, r)
}

// limitPrograms are the expressions of a limit; nil for those that it has not.
type limitPrograms struct {
	conditions []*cel.Program
	key, cost  *cel.Program
}

// limitProgramsOf compiles the expressions of a limit.
func limitProgramsOf(f *findings, o *manifest.Object, s *RateLimitPolicySpec) (made limitPrograms) {
	var compiler cel.RequestCompiler
	for i, condition := range s.Match.MatchConditions {
		made.conditions = append(made.conditions,
			program(f, o, fmt.Sprintf("spec.match.matchConditions[%d].expression", i), condition.Expression,
				compiler.Condition))
	}
	if s.KeyExpression != "" {
		made.key = program(f, o, "spec.keyExpression", s.KeyExpression, compiler.Key)
	}
	if s.Cost != "" {
		made.cost = program(f, o, "spec.cost", s.Cost, compiler.Cost)
	}
	return made
}

// network reads an address or a network, which the definition of the kind has checked.
func network(f *findings, o *manifest.Object, path, text string) netip.Prefix {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		f.At(o, Error, path, "Invalid value: %q: %v", text, err)
	}
	if p.Bits() == 0 {
		f.At(o, Warning, path, "exempts every client: a policy that nobody is held to may be left out")
	}
	return p.Masked()
}

// adviseLimit warns of settings of a limit that cannot be meant.
func adviseLimit(f *findings, o *manifest.Object, r *ratelimit.Rule) {
	if r.InFlight.QueueLength > 0 && r.Mode == ratelimit.Warn {
		f.At(o, Warning, "spec.queueLength", "has no effect while `spec.mode` is 'Warn': nobody waits where nobody is refused")
	}
	if len(r.Verbs) == 1 && resource.VerbNamed(r.Verbs[0]).Lasts() &&
		r.InFlight != (ratelimit.InFlight{QueueTimeout: r.InFlight.QueueTimeout}) {
		path := "spec.maxInFlight"
		if r.InFlight.PerKey == 0 {
			path = "spec.maxInFlightTotal"
		}
		f.At(o, Warning, path, "counts a watch only until its answer begins, so that it does not bound how many there are")
	}
	if update := slices.Index(r.Verbs, resource.VerbUpdate.String()); update >= 0 &&
		!slices.Contains(r.Verbs, resource.VerbPatch.String()) && !slices.Contains(r.Verbs, "*") {
		f.At(o, Warning, fmt.Sprintf("spec.match.verbs[%d]", update), "names 'update' and not 'patch': who sends PATCH in place of PUT is not counted; name both")
	}
	if r.Cost != nil {
		adviseCost(f, o, r)
	}
}

// adviseCost tries the cost of a request of each verb that has nothing but its verb, as far as that
// says anything.
func adviseCost(f *findings, o *manifest.Object, r *ratelimit.Rule) {
	verbs := r.Verbs
	if len(verbs) == 0 || slices.Contains(verbs, "*") {
		verbs = nil
		for v := range resource.Verbs {
			if v.OfResource() {
				verbs = append(verbs, v.String())
			}
		}
	}
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	for _, verb := range verbs {
		frame.Vars().SetLimited(&cel.Request{Verb: verb})
		switch cost, err := r.Cost.EvalInt(frame, frame.Vars()); {
		case err != nil:
		case cost > int64(r.Burst):
			f.At(o, Warning, "spec.cost", "comes to %d for the verb '%s', which must be less than or equal to the burst, %d, to count in full: it counts as %d, and passes only when nothing else came", cost, verb, r.Burst, r.Burst)
			return
		case cost < 1:
			f.At(o, Warning, "spec.cost", "comes to %d for the verb '%s', which counts as 1: requests that are to cost nothing may be left out by `spec.match` or `spec.exemptions`", cost, verb)
			return
		}
	}
}

// program compiles an expression; nil, and an error is recorded, if it is wrong.
func program(f *findings, o *manifest.Object, path, expression string,
	compile func(string) (*cel.Program, error)) *cel.Program {
	p, err := compile(expression)
	if err != nil {
		f.At(o, Error, path, "Invalid value: %q: %v", expression, err)
	}
	return p
}

// scopeShared is the scope of limits that all gateways count together.
const scopeShared = "Shared"

// share makes a limit one that all gateways count together, if the policy says so.
func (a *rateLimits) share(l *loader, o *manifest.Object, s *RateLimitPolicySpec, r *ratelimit.Rule) {
	if s.Scope != scopeShared {
		return
	}
	r.Sharing = &ratelimit.Sharing{WhenUnavailable: s.WhenStoreUnavailable, Lease: int(s.LeaseSize)}
	if r.Sharing.WhenUnavailable == "" {
		r.Sharing.WhenUnavailable = ratelimit.LocalLimit
	}
	if r.Mode == ratelimit.Warn && r.Sharing.WhenUnavailable == ratelimit.Deny {
		l.At(o, Warning, "spec.whenStoreUnavailable", "has no effect while `spec.mode` is 'Warn': nobody is refused")
	}
	one := finding.Of(o, "spec.scope")
	one.Message = "must be 'Local': there is nothing to share it by, as the configuration has no section `redis`"
	a.sharing = append(a.sharing, one)
}
