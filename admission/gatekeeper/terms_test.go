package gatekeeper_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/internal/resource"
)

// terms are admission.Terms by which constraints stand to each request alike.
type terms struct {
	standing admission.Standing
	old      bool
	tried    []bool
}

func (t *terms) Stand(context.Context, *admission.Attributes) admission.Standing { return t.standing }
func (t *terms) NeedsOld() bool                                                  { return t.old }
func (t *terms) ReportDryRun(would bool)                                         { t.tried = append(t.tried, would) }

func (t *terms) Applicability(_ *admission.Attributes, o resource.Applicability) resource.Applicability {
	return o
}

// decisions are an admission.DecisionLogger.
type decisions []string

// LogDecision implements admission.DecisionLogger.
func (d *decisions) LogDecision(e *admission.Evaluation) {
	text := func(j admission.JSON) string {
		if j == nil {
			return "none"
		}
		b, err := j.AppendJSON(nil)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	input := text(e.Input)
	var has []string
	for _, part := range []string{`"words":["w"]`, `"namespaceObject":{`, `"name":"web"`} {
		if strings.Contains(input, part) {
			has = append(has, part)
		}
	}
	*d = append(*d, fmt.Sprintf("%s %s %s/%s %q %v, %d violations: %s; %s; %s", e.Kind, e.Engine, e.Policy, e.Binding,
		e.Path, e.Actions, e.Violations,
		text(e.Result), e.Failure, strings.Join(has, " ")))
}

const webPod = "{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {say: hello}}}"

// TestTerms: a constraint judges as its terms say: it is enforced, tried, or not asked.
func TestTerms(t *testing.T) {
	failing := strings.Replace(checkTemplate, "msg := said(input.review.object)",
		`msg := "a"; to_number(input.review.object.kind) > 1`, 1)
	for name, c := range map[string]struct {
		template, spec string
		terms          *terms
		want           string
		tried          string
	}{
		"enforced": {checkTemplate, "{}", &terms{}, said + "[c] hello", "[]"},
		"tried":    {checkTemplate, "{}", &terms{standing: admission.Standing{IsDryRun: true}}, "", "[true]"},
		"excepted": {checkTemplate, "{}", &terms{standing: admission.Standing{Exception: "e", Reason: "r"}}, "", "[]"},
		"another kind": {checkTemplate, "{match: {kinds: [{apiGroups: [''], kinds: [Service]}]}}",
			&terms{standing: admission.Standing{IsDryRun: true}}, "", "[]"},
		"failing": {failing, "{}", &terms{}, said + "[c] ", "[]"},
		// it is not known what it would say
		"tried to fail": {failing, "{}", &terms{standing: admission.Standing{IsDryRun: true}}, "", "[false]"},
	} {
		template, errs, problems := read(t, c.template)
		if template == nil {
			t.Fatal(errs, problems)
		}
		one := constraintOf(t, template, "c", c.spec)
		governed := one.Governed(c.terms)
		if governed.Terms() != admission.Terms(c.terms) || one.Terms() != nil {
			t.Errorf("%s: the terms are %v", name, governed.Terms())
		}
		a := review(t, admission.Create, webPod, "")
		a.Bind()
		var r admission.Report
		if err := gatekeeper.NewConstraintSet([]*gatekeeper.Constraint{governed}, nil,
			nil).Validate(context.Background(), a,
			&r); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := r.Err(a); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		r.ReportDryRuns()
		if fmt.Sprint(c.terms.tried) != c.tried {
			t.Errorf("%s: tried %v, want %s", name, c.terms.tried, c.tried)
		}
	}
	template, _, _ := read(t, checkTemplate)
	one := constraintOf(t, template, "c", "{match: {kinds: [{apiGroups: [''], kinds: [Pod]}]}}")
	if one.NeedsOld() || !one.Governed(&terms{old: true}).NeedsOld() || one.Governed(&terms{}).NeedsOld() {
		t.Error("which constraint needs the stored object")
	}
}

// TestDecisions: each evaluation is logged, with what the template saw and found.
func TestDecisions(t *testing.T) {
	named := strings.Replace(checkTemplate, "msg := said(input.review.object)",
		"msg := input.review.namespaceObject.metadata.name", 1)
	failing := strings.Replace(checkTemplate, "msg := said(input.review.object)",
		`msg := "a"; to_number(input.review.object.kind) > 1`, 1)
	for _, c := range []struct{ template, kind, spec, want string }{
		{checkTemplate, "Check", "{parameters: {words: [w]}}", `Constraint Rego Check/c "check/violation" [deny], 2 violations: [{"msg":"hello"},{"msg":"w of 3"}]; ; "words":["w"] "name":"web"`},
		{named, "Check", "{enforcementAction: warn, parameters: {words: [w]}}", `Constraint Rego Check/c "check/violation" [warn], 2 violations: [{"msg":"team-a"},{"msg":"w of 3"}]; ; "words":["w"] "namespaceObject":{ "name":"web"`},
		{failing, "Check", "{}", `Constraint Rego Check/c "check/violation" [deny], 0 violations: none; `},
		{celTemplate, "Limit", "{parameters: {most: 2}}", `Constraint K8sNativeValidation Limit/c "" [deny], 2 violations: [{"msg":"at most 2"},{"msg":"failed expression: has(variables.anyObject.spec)"}]; ; "name":"web"`},
		{checkTemplate, "Check", "{match: {kinds: [{apiGroups: [''], kinds: [Service]}]}}", ""},
	} {
		s := constraintSet(t, []string{c.template}, []constraint{{c.kind, "c", c.spec}}, nil, nil)
		a := review(t, admission.Create, webPod, "")
		a.Bind()
		var d decisions
		if err := s.Validate(context.Background(), a, &admission.Report{Decisions: &d}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d, "\n"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("logged  %s\nwant %s", got, c.want)
		}
	}
}
