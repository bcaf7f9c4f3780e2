package policies

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
)

// RateLimitPolicy bounds how often clients may ask. Its definition, crds/ratelimitpolicies.yaml, says what the fields
// mean and may hold.
type RateLimitPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RateLimitPolicySpec `json:"spec"`
}

// RateLimitPolicySpec says which requests count, by what, and how many may come.
type RateLimitPolicySpec struct {
	Match         RateLimitMatch `json:"match"`
	Key           ratelimit.Key  `json:"key"`
	HeaderName    string         `json:"headerName"`
	KeyExpression string         `json:"keyExpression"`
	Requests      int32          `json:"requests"`
	PeriodSeconds int32          `json:"periodSeconds"`
	Burst         int32          `json:"burst"`
	Scope         string         `json:"scope"`
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

func (l *loader) rateLimitPolicy(o *manifest.Object) {
	p := &RateLimitPolicy{}
	if !l.own(o, p) {
		return
	}
	s := &p.Spec
	r := &ratelimit.Rule{
		Name:       p.Name,
		Verbs:      s.Match.Verbs,
		APIGroups:  s.Match.APIGroups,
		Resources:  s.Match.Resources,
		Namespaces: s.Match.Namespaces,
		Key:        s.Key,
		HeaderName: s.HeaderName,
		Requests:   int(s.Requests),
		Period:     time.Duration(s.PeriodSeconds) * time.Second,
		Burst:      int(s.Burst),
	}
	if r.Burst == 0 {
		r.Burst = r.Requests
	}
	var compiler cel.RequestCompiler
	for i, condition := range s.Match.MatchConditions {
		r.Conditions = append(r.Conditions, l.program(o, fmt.Sprintf("spec.match.matchConditions[%d].expression", i), condition.Expression, compiler.Condition))
	}
	switch {
	case s.KeyExpression != "":
		r.Key = ratelimit.Expression
		r.KeyProgram = l.program(o, "spec.keyExpression", s.KeyExpression, compiler.Key)
	case s.Key == "":
		r.Key = ratelimit.ClientAddress
	}
	l.planned(o, append(slices.Clone(r.Conditions), r.KeyProgram))
	l.limits = append(l.limits, r)
}

// program compiles an expression; nil, and an error is recorded, if it is wrong.
func (l *loader) program(o *manifest.Object, path, expression string, compile func(string) (*cel.Program, error)) *cel.Program {
	p, err := compile(expression)
	if err != nil {
		l.at(o, Error, path, "Invalid value: %q: %v", expression, err)
	}
	return p
}
