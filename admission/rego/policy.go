package rego

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/status"
)

// A RegoPolicy judges and changes objects by rules in Rego. Its definition,
// policies/crds/regopolicies.yaml, says what the fields mean and may hold.
type RegoPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RegoPolicySpec `json:"spec"`
}

// RegoPolicySpec says which requests are concerned, and by which rules.
type RegoPolicySpec struct {
	FailurePolicy     admissionv1.FailurePolicyType  `json:"failurePolicy"`
	MatchConstraints  *admissionv1.MatchResources    `json:"matchConstraints"`
	MatchConditions   []admissionv1.MatchCondition   `json:"matchConditions"`
	ParamKind         *admissionv1.ParamKind         `json:"paramKind"`
	ParamRef          *admissionv1.ParamRef          `json:"paramRef"`
	Parameters        json.RawMessage                `json:"parameters"`
	ValidationActions []admissionv1.ValidationAction `json:"validationActions"`
	RegoVersion       string                         `json:"regoVersion"`
	Package           string                         `json:"package"`
	Rego              string                         `json:"rego"`
	AllowedHosts      []string                       `json:"allowedHosts"`
	CredentialHeaders string                         `json:"credentialHeaders"`
	Bundle            string                         `json:"bundle"`
	BuiltinErrors     string                         `json:"builtinErrors"`
	TargetRefs        []resource.TargetRef           `json:"targetRefs"`
	Rollout           *rollout.Spec                  `json:"rollout"`
}

// UndefinedErrors asks for lenient queries: an error of a built-in function is an undefined value.
const UndefinedErrors = "Undefined"

// kind is the kind of the policies.
var kind = policy.Kind{
	Name:          "RegoPolicy",
	Denied:        func(name, _ string) string { return status.DeniedByPolicy(name) },
	Misconfigured: metav1.StatusReasonInvalid,
	Operations:    admission.AllOperations,
	ValidateMatch: match.Validate,
}

// A Policy is a compiled RegoPolicy. It is immutable and safe for concurrent use.
type Policy struct {
	policy.Policy
	binding    *policy.Binding
	program    *Program
	rules      rules
	names      []string // of the rules, with those that others are joined of
	reads      reads
	parameters Value // that the policy has itself
	states     []string
	actions    []admissionv1.ValidationAction
	texts      []string // the actions, for the audit event
	isLenient  bool     // an error of a built-in function is an undefined value
	usable     func() error
	taken      taken
}

// rules are the rules of the policy's package that the gateway knows; nil for a rule that it has not.
type rules struct{ deny, violation, warn, allow, defaults, patch *Query }

// Queries are the rules that the policy has.
func (p *Policy) Queries() (all []*Query) {
	r := p.rules
	for _, q := range []*Query{r.deny, r.violation, r.warn, r.allow, r.defaults, r.patch} {
		if q != nil {
			all = append(all, q)
		}
	}
	return all
}

// reads says which parts of the input modules read, beside input.review and input.parameters.
type reads struct {
	old, carried bool
	head         []func(in *Input, h *httpRequest, body Value) // each adds a form of the head
	// lines are the paths of header lines and the query in the input.
	lines []string
	// credentials are shown: the headers that prove who the client is.
	credentials bool
}

// Source is the origin of a policy's modules.
type Source struct {
	// Program is the compiled modules; nil while there are none, which Usable says.
	Program *Program
	// States are the names of the collections that modules read as data.state.
	States []string
	// Usable returns why the modules must not judge requests now, and nil if they may; a nil function:
	// they always may. What it returns is a failure of the policy.
	Usable func() error
	// Origin is the bundle that the modules come from.
	Origin Origin
}

// CompilePolicy checks and compiles a policy whose modules were compiled.
func CompilePolicy(p *RegoPolicy, from Source) (*Policy, field.ErrorList) {
	spec := &policy.Spec{
		Name: p.Name, FailurePolicy: &p.Spec.FailurePolicy, ParamKind: p.Spec.ParamKind,
		MatchConstraints: p.Spec.MatchConstraints, MatchConditions: p.Spec.MatchConditions,
		TargetRefs: p.Spec.TargetRefs,
	}
	errs := kind.Validate(spec)
	if p.Spec.MatchConstraints == nil {
		return nil, errs
	}
	compiled := &Policy{program: from.Program, states: from.States, actions: p.Spec.ValidationActions,
		usable: from.Usable, taken: taken{origin: from.Origin}}
	for _, action := range compiled.actions {
		compiled.texts = append(compiled.texts, string(action))
	}
	c := policy.NewCompiler(&kind, &compiled.Policy, spec, cel.NewAdmissionCompiler(p.Spec.ParamKind != nil),
		from.States)
	c.Errs = errs
	c.Constraints()
	c.Conditions()
	binding, errs := policy.CompileBinding(&policy.BindingSpec{Name: p.Name, PolicyName: p.Name,
		ParamRef: p.Spec.ParamRef}, nil)
	c.Errs = append(c.Errs, errs...)
	if binding != nil {
		compiled.binding = binding
		compiled.Policy = compiled.Bound(binding)
	}
	c.Errs = append(c.Errs, compiled.prepare(&p.Spec)...)
	if len(c.Errs) > 0 {
		return nil, c.Errs
	}
	return compiled, nil
}

// Governed returns the policy with terms, and with what says whether its modules may judge requests now: see [Source].
// It shares with the policy all that is compiled.
func (p *Policy) Governed(t admission.Terms, usable func() error) *Policy {
	governed := *p
	governed.Policy, governed.usable = p.Policy.Governed(t), usable
	return &governed
}

// prepare finds the rules of the policy's package.
func (p *Policy) prepare(spec *RegoPolicySpec) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if text := strings.TrimSpace(string(spec.Parameters)); text != "" && text != "null" {
		if spec.ParamKind != nil {
			errs = append(errs, field.Forbidden(path.Child("parameters"), "must not be set beside `paramKind`"))
		}
		var err error
		if p.parameters, err = parse([]byte(text)); err != nil {
			errs = append(errs, field.Invalid(path.Child("parameters"), text, err.Error()))
		}
	}
	if p.program == nil {
		return errs
	}
	from, at := "data."+strings.TrimPrefix(spec.Package, "data."), path.Child("package")
	if spec.Package == "" {
		all := p.program.Packages()
		if len(all) != 1 {
			return append(errs, field.Required(at, "the modules have several packages: "+strings.Join(all, ", ")))
		}
		from = all[0]
	}
	found := false
	p.isLenient = spec.BuiltinErrors == UndefinedErrors
	for _, rule := range []struct {
		name     string
		into     **Query
		isFamily bool
	}{
		{"deny", &p.rules.deny, true}, {"violation", &p.rules.violation, true}, {"warn", &p.rules.warn, true},
		{"allow", &p.rules.allow, false}, {"defaults", &p.rules.defaults, false}, {"patch", &p.rules.patch, false},
	} {
		names := []string{from + "." + rule.name}
		if rule.isFamily {
			names = p.program.Family(from, rule.name)
		}
		if len(names) == 0 || !p.program.Has(names[0]) {
			continue
		}
		q, err := p.program.Union(names)
		if err != nil {
			errs = append(errs, field.Invalid(at, spec.Package, err.Error()))
			continue
		}
		if q = q.With(p.parameters); p.isLenient {
			q = q.Lenient()
		}
		*rule.into, found = q, true
		p.names = append(p.names, names...)
	}
	if !found && len(errs) == 0 {
		errs = append(errs, field.Invalid(at, spec.Package, fmt.Sprintf("no module defines one of the rules deny, violation, warn, allow, patch or defaults in the package '%s'", from)))
	}
	p.reads = readBy(p.program)
	p.reads.credentials = spec.CredentialHeaders == "Shown"
	p.setPath(from)
	return errs
}

// setPath says how decision logs name what the policy judges by.
func (p *Policy) setPath(from string) {
	var validating []string
	for _, q := range []*Query{p.rules.deny, p.rules.violation, p.rules.warn, p.rules.allow} {
		if q != nil {
			validating = append(validating, q.rule)
		}
	}
	if p.taken.isOneRule = len(validating) == 1; p.taken.isOneRule {
		from = validating[0]
	}
	p.taken.path = PathOf(from)
}

// readBy returns which parts of the input the modules of a program read.
func readBy(p *Program) reads {
	r := reads{old: p.Reads("review", "oldObject") || p.Reads("request", "oldObject"), carried: p.ReadsCarried()}
	if p.Reads("http") {
		r.head = append(r.head, func(in *Input, h *httpRequest, _ Value) { in.HTTP = h.own() })
		r.lines = append(r.lines, "/input/http/headers", "/input/http/query")
	}
	if slices.ContainsFunc(envoyMembers, func(name string) bool { return p.Reads(name) }) {
		r.head = append(r.head, func(in *Input, h *httpRequest,
			body Value) {
			in.More = append(in.More, h.envoy(body)...)
		})
		r.lines = append(r.lines, "/input/attributes/request/http/headers", "/input/parsed_query")
	}
	if p.Reads("request") {
		add := func(in *Input, h *httpRequest, body Value) { in.More = append(in.More, h.kong(body)) }
		if slices.ContainsFunc(reviewMembers[:], func(name string) bool { return p.Reads("request", name) }) {
			add = func(in *Input, h *httpRequest, body Value) {
				in.More = append(in.More, webhook(h.kong(body), in.Review))
			}
		}
		r.head = append(r.head, add)
		r.lines = append(r.lines, "/input/request/http/headers", "/input/request/http/querystring")
	}
	return r
}

// envoyMembers are the members of the input that Envoy's plugin has.
var envoyMembers = []string{"attributes", "parsed_path", "parsed_query", "parsed_body", "truncated_body"}

func parse(text []byte) (Value, error) {
	d, err := document.Parse(text, document.Limits{})
	if err != nil {
		return Value{}, err
	}
	defer d.Release()
	return ValueOf(d.Root())
}

// NeedsOld implements admission.Policy.
func (p *Policy) NeedsOld() bool { return p.Policy.NeedsOld() || p.reads.old }

// ReadsCarried implements admission.CarriedReader.
func (p *Policy) ReadsCarried() bool { return p.Policy.ReadsCarried() || p.reads.carried }

// IsValidating reports whether the policy has rules that refuse requests, Changes if it has rules that
// change objects. A policy whose modules are not known yet counts as validating: it fails.
func (p *Policy) IsValidating() bool {
	return p.program == nil || p.rules.deny != nil || p.rules.violation != nil || p.rules.warn != nil ||
		p.rules.allow != nil
}

// Changes reports whether the policy has rules that change objects.
func (p *Policy) Changes() bool { return p.rules.defaults != nil || p.rules.patch != nil }

// Validate implements admission.Validator.
func (p *Policy) Validate(ctx context.Context, a *admission.Attributes, r *admission.Report) error {
	as, matches, err := p.Matches(ctx, a, r)
	if !matches {
		return err
	}
	found, err := p.Params(ctx, p.binding, a, r)
	if err != nil || len(found) == 0 {
		return err
	}
	if as != a.Info.GroupVersionResource() {
		defer a.Bind()
		if _, err := policy.Convert(a, as); err != nil {
			return p.Misconfigured(nil, err, r)
		}
	}
	for _, param := range found {
		err := p.admit(ctx, a, as, param, r)
		if err == nil {
			continue
		}
		if err := p.AnswerOr(nil, err, r); err != nil {
			return err
		}
	}
	return nil
}

// input makes what the modules see, if the match conditions hold.
func (p *Policy) input(
	a *admission.Attributes, as schema.GroupVersionResource, param document.Node, r *admission.Report,
) (in *Input, applies bool, err error) {
	a.Frame.Vars().Set(value.Params, param, nil)
	if applies, err = p.MatchesConditions(a.Frame, a.Frame.Vars()); err != nil || !applies {
		return nil, false, err
	}
	if p.usable != nil {
		if err := p.usable(); err != nil {
			return nil, false, err
		}
	}
	made := madeOf(a, as)
	in = &made.input
	*in = Input{Parameters: p.parameters, Deadline: a.Frame.Deadline(), Memory: MemoryOf(a)}
	in.Fired = FiredBy(a)
	if p.isLenient {
		in.Relaxed = func(err error) { r.Relaxed(p.Name(), err) }
	}
	if param.Valid() {
		if in.Parameters, err = ValueOf(param); err != nil {
			return nil, false, err
		}
	}
	if in.Review, err = ReviewOf(a, as); err != nil {
		return nil, false, err
	}
	made.source = statesOf{attributes: a, made: made, names: p.states}
	in.Shared, in.State = &made.shared, &made.source
	if len(p.reads.head) > 0 {
		p.describeHTTP(a, as, in)
	}
	return in, true, nil
}

// describeHTTP adds the parts of the input about the request's head that modules read.
func (p *Policy) describeHTTP(a *admission.Attributes, as schema.GroupVersionResource, in *Input) {
	h, body := httpOf(a, p.reads.credentials), madeOf(a, as).body
	for _, add := range p.reads.head {
		add(in, h, body)
	}
}

// validate evaluates the rules that refuse requests, and does what the policy's actions ask for. Nothing
// is done if a rule fails: the error stands for all of them. It returns how many violations there are.
func (p *Policy) validate(ctx context.Context, in *Input, a *admission.Attributes, r *admission.Report) (int, error) {
	var denied, warned []Violation
	for _, q := range []*Query{p.rules.deny, p.rules.violation} {
		if q == nil {
			continue
		}
		found, err := q.Violations(ctx, in)
		if err != nil {
			return 0, err
		}
		denied = append(denied, found...)
	}
	if p.rules.warn != nil {
		var err error
		if warned, err = p.rules.warn.Violations(ctx, in); err != nil {
			return 0, err
		}
	}
	if p.rules.allow != nil && len(denied) == 0 {
		allowed, why, err := p.rules.allow.Allowed(ctx, in)
		if err != nil {
			return 0, err
		}
		if !allowed {
			why.Reason = reasonOf(&why, metav1.StatusReasonForbidden)
			if why.Message == "" {
				why.Message = "the rule '" + p.rules.allow.rule + "' does not allow it"
			}
			denied = append(denied, why)
		}
	}
	for i := range denied {
		p.act(&denied[i], i, a, r)
	}
	for i := range warned {
		r.Warn(status.PolicyWarns(p.Name(), warned[i].Message))
	}
	return len(denied) + len(warned), nil
}

// act does with a violation what the policy's actions ask for.
func (p *Policy) act(v *Violation, index int, a *admission.Attributes, r *admission.Report) {
	if v.Message == "" {
		v.Message = "the request is denied"
	}
	for _, action := range p.actions {
		switch action {
		case admissionv1.Deny:
			d := status.Denial{
				Reason: metav1.StatusReason(reasonOf(v, metav1.StatusReasonInvalid)),
				Cause:  metav1.StatusCause{Field: v.Field, Message: v.Message},
			}
			if a.Item != "" {
				d.PlaceIn(a.Item)
			}
			p.Deny(nil, d, r)
		case admissionv1.Warn:
			r.Warn(status.PolicyWarns(p.Name(), v.Message))
		case admissionv1.Audit:
			r.Audit(admission.AuditedFailure{Message: v.Message, Policy: p.Name(), ExpressionIndex: index,
				ValidationActions: p.texts})
		}
	}
}

// reasonOf is the reason of the answer that a violation asks for.
func reasonOf(v *Violation, otherwise metav1.StatusReason) string {
	switch {
	case v.Reason != "":
		return v.Reason
	case v.Code == http.StatusUnauthorized:
		return string(metav1.StatusReasonUnauthorized)
	case v.Code == http.StatusForbidden:
		return string(metav1.StatusReasonForbidden)
	case v.Code == http.StatusRequestEntityTooLarge:
		return string(metav1.StatusReasonRequestEntityTooLarge)
	}
	return string(otherwise)
}
