package rego

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// Engine is the language of rules in Rego, as evaluations name it.
const Engine = "Rego"

// Origin is the bundle that modules come from, and its version; both are empty if they come from none.
type Origin struct{ Bundle, Revision string }

// taken has the members that all evaluations of a policy share when they are taken down.
type taken struct {
	origin    Origin
	path      string // of the validating rule, or of the package if there are several
	isOneRule bool   // there is one validating rule
}

// PathOf returns a rule such as data.tickets.deny as decision logs of OPA name it: tickets/deny.
func PathOf(rule string) string {
	ref, err := ast.ParseRef(rule)
	if err != nil {
		return ""
	}
	path, err := ref.Ptr()
	if err != nil {
		return ""
	}
	return path
}

// leftOut stands for a text that may have data of a Secret.
const leftOut = "(withheld)"

// The parts of an evaluation that are erased if they may have data of a Secret.
const (
	erasedObject     = "/input/review/object"
	erasedOld        = "/input/review/oldObject"
	erasedParameters = "/input/parameters"
	erasedResult     = "/result"
)

// Fill sets what an evaluation has of a request: the input without what Secrets hold, the result of
// its rules, and how the evaluation ended. What rules say that may have seen a Secret, or credentials if
// sawCredentials says so, is withheld.
func Fill(e *admission.Evaluation, a *admission.Attributes, in *Input, result Value, err error, sawCredentials bool) {
	e.Took = time.Since(e.Began)
	shown := *in
	isSecret := a.Info.Group == "" && a.Info.Resource == "secrets"
	if isSecret {
		shown.Review = without(in.Review, "object", "oldObject")
		shown.More = nil // has the body
		e.Erased = append(e.Erased, erasedObject, erasedOld)
	}
	if isSecretValue(in.Parameters) {
		isSecret, shown.Parameters = true, Value{}
		e.Erased = append(e.Erased, erasedParameters)
	}
	isSecret = isSecret || sawCredentials
	all, unmade := shown.Value()
	if unmade != nil { // there is no memory for what no rule read
		shown.Review, shown.More = Value{}, nil
		all, _ = shown.Value()
	}
	if all.Valid() {
		e.Input = all
	}
	switch {
	case err != nil:
		e.Code, e.Failure = codeOf(err), err.Error()
		if isSecret {
			e.Failure = leftOut
		}
	case isSecret:
		e.Erased = append(e.Erased, erasedResult)
	case result.Valid():
		e.Result = result
	}
}

// isSecretValue reports whether a value is a Secret of Kubernetes.
func isSecretValue(v Value) bool {
	o, ok := v.orNone().(ast.Object)
	if !ok {
		return false
	}
	kind, version := o.Get(ast.StringTerm("kind")), o.Get(ast.StringTerm("apiVersion"))
	return kind != nil && version != nil && kind.Value.Compare(ast.String("Secret")) == 0 &&
		version.Value.Compare(ast.String("v1")) == 0
}

func (v Value) orNone() ast.Value {
	if !v.Valid() {
		return nil
	}
	return v.whole().Value
}

// without returns an object without some of its members.
func without(v Value, names ...string) Value {
	o, ok := v.orNone().(ast.Object)
	if !ok {
		return v
	}
	left := ast.NewObject()
	for _, key := range o.Keys() {
		name, _ := key.Value.(ast.String)
		isOut := false
		for _, n := range names {
			isOut = isOut || n == string(name)
		}
		if !isOut {
			left.Insert(key, o.Get(key))
		}
	}
	return Value{term: ast.NewTerm(left)}
}

// codeOf returns the word for what went wrong: OPA's, if the error is one of OPA's.
func codeOf(err error) string {
	var at Error
	switch {
	case errors.Is(err, ErrUndefined):
		return "undefined"
	case errors.As(err, &at):
		if code, _, ok := strings.Cut(at.Message, ":"); ok && strings.HasPrefix(code, "eval_") {
			return code
		}
	}
	return "evaluation_error"
}

// admit lets the policy judge the request for a parameter, if the match conditions hold. The
// evaluation is recorded if that is wanted.
func (p *Policy) admit(ctx context.Context, a *admission.Attributes, as schema.GroupVersionResource,
	param document.Node, r *admission.Report) error {
	if r.Decisions != nil {
		return p.admitRecorded(ctx, a, as, param, r)
	}
	in, applies, err := p.input(a, as, param, r)
	if err == nil && applies {
		_, err = p.validate(ctx, in, a, r)
	}
	return err
}

func (p *Policy) admitRecorded(ctx context.Context, a *admission.Attributes, as schema.GroupVersionResource,
	param document.Node, r *admission.Report) error {
	e := admission.Evaluation{
		Kind: kind.Name, Engine: Engine, Policy: p.Name(), Path: p.taken.path, Bundle: p.taken.origin.Bundle,
		Revision: p.taken.origin.Revision,
		Actions:  p.texts, Began: time.Now(),
	}
	in, applies, err := p.input(a, as, param, r)
	if err == nil && !applies {
		return nil
	}
	var names []string
	var values []Value
	if err == nil {
		in.Evaluated = func(rule string, v Value) { names, values = append(names, rule), append(values, v) }
		e.Violations, err = p.validate(ctx, in, a, r)
	}
	e.Erased = append(e.Erased, p.reads.lines...)
	Fill(&e, a, p.recorded(a, as, in, param), resultOf(names, values, p.taken.isOneRule), err, p.reads.credentials)
	r.Decisions.LogDecision(&e)
	return err
}

// recorded is the input as it is taken down, without header lines and the query, which may prove who
// the client is. If there was no input, it has what there is.
func (p *Policy) recorded(a *admission.Attributes, as schema.GroupVersionResource, in *Input,
	param document.Node) *Input {
	if in == nil {
		in = &Input{Parameters: p.parameters}
		if param.Valid() {
			in.Parameters, _ = ValueOf(param) // then there are none
		}
		in.Review, _ = ReviewOf(a, as) // as above
		return in
	}
	if len(p.reads.head) == 0 {
		return in
	}
	shown := *in
	shown.HTTP, shown.More = Value{}, nil
	h, body := httpOf(a, false), madeOf(a, as).body
	h.query, h.headers, h.target = nil, nil, h.path
	for _, add := range p.reads.head {
		add(&shown, h, body)
	}
	return &shown
}

// resultOf is the value of the rule, or an object of the values of the rules by their names.
func resultOf(names []string, values []Value, isOne bool) Value {
	if len(values) == 0 {
		return Value{}
	}
	if isOne {
		return values[0]
	}
	members := make([]Member, len(names))
	for i, name := range names {
		members[i] = Member{name[strings.LastIndexByte(name, '.')+1:], values[i]}
	}
	return Object(members...)
}
