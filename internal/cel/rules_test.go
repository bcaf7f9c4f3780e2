package cel

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestRules: rules of a schema with old values, messages and field paths.
func TestRules(t *testing.T) {
	s := celtest.Structural(t, celtest.TypedSchema)
	spec := s.Properties["spec"]
	rules, _, errs := CompileRules(apiextensionsv1.ValidationRules{
		{Rule: `self.replicas <= 5`, Message: "  too many  "},
		{Rule: `self.replicas >= oldSelf.replicas`, MessageExpression: `'was %d'.format([oldSelf.replicas])`,
			FieldPath: ".replicas"},
		{Rule: `oldSelf.hasValue() ? self.name == oldSelf.value().name : self.name != 'x'`,
			OptionalOldSelf: ptr.To(true), FieldPath: ".labels['a.b']"},
		{Rule: `self.list.all(x, x < 3)`, MessageExpression: `self.name + '\n'`,
			Reason: ptr.To(apiextensionsv1.FieldValueForbidden)},
		{Rule: ` `},
	}, &spec, false, field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if !rules.UsesOldSelf {
		t.Error("the rules use oldSelf")
	}
	type want struct {
		applies bool
		verdict string
		message string
	}
	check := func(name, self, old string, wants []want) {
		f := NewFrame(context.Background())
		defer f.Release()
		v := f.Vars()
		v.Set(value.Self, celtest.Parse(t, self), rules.Type)
		if old != "" {
			v.Set(value.OldSelf, celtest.Parse(t, old), rules.Type)
		}
		for i := range rules.Rules {
			r := &rules.Rules[i]
			got := want{applies: r.Applies(old != "")}
			if got.applies {
				ok, err := r.Program.EvalBool(f, v)
				got.verdict = fmt.Sprint(ok)
				if err != nil {
					got.verdict = err.(*Error).Detail
				}
				if !ok && err == nil {
					message, err := r.EvalMessage(f, v)
					if err != nil {
						t.Error(err)
					}
					got.message = message
				}
			}
			if got != wants[i] {
				t.Errorf("%s, rule %d: got %+v, want %+v", name, i, got, wants[i])
			}
		}
	}
	self := `{"replicas":6,"name":"web","list":[1,5]}`
	check("create", self, "", []want{{true, "false", ""}, {}, {true, "true", ""}, {true, "false", "web"}, {}})
	check("update", self, `{"replicas":7,"name":"log","list":[]}`,
		[]want{{true, "false", ""}, {true, "false", "was 7"}, {true, "false", ""}, {true, "false", "web"}, {}})
	check("missing", `{"name":"x"}`, "", []want{{true, "no such key: replicas", ""}, {}, {true, "false", ""},
		{true, "no such key: list", ""}, {}})

	if got := rules.Rules[0].Message; got != "too many" {
		t.Errorf("message %q", got)
	}
	if got := rules.Rules[1].FieldPath; got != "replicas" {
		t.Errorf("field path %q", got)
	}
	if got := rules.Rules[2].FieldPath; got != "labels[a.b]" {
		t.Errorf("field path %q", got)
	}
}

// TestRuleFindings: every rule that does not compile is found, by its path.
func TestRuleFindings(t *testing.T) {
	s := celtest.Structural(t, celtest.TypedSchema)
	_, _, errs := CompileRules(apiextensionsv1.ValidationRules{
		{Rule: `self.spec.replicas <`},
		{Rule: `self.spec.missing == 1`},
		{Rule: `self.spec.replicas`},
		{Rule: `self.spec.replicas < 1`, MessageExpression: `1`, FieldPath: ".spec.zzz"},
		{Rule: `object.spec.replicas < 1`},
		{Rule: `oldSelf.orValue(self) == self`},
	}, s, true, field.NewPath("schema", "x-kubernetes-validations"))
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
	}
	want := []string{
		"schema.x-kubernetes-validations[0].rule", "schema.x-kubernetes-validations[1].rule",
		"schema.x-kubernetes-validations[2].rule",
		"schema.x-kubernetes-validations[3].messageExpression", "schema.x-kubernetes-validations[3].fieldPath",
		"schema.x-kubernetes-validations[4].rule", "schema.x-kubernetes-validations[5].rule",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v\n%v", got, want, errs)
	}
}

// TestRulesOnScalars: rules of a node that is no object.
func TestRulesOnScalars(t *testing.T) {
	s := celtest.Structural(t, celtest.TypedSchema)
	replicas := s.Properties["spec"].Properties["replicas"]
	rules, _, errs := CompileRules(apiextensionsv1.ValidationRules{{Rule: `self < 5 && self > oldSelf`}}, &replicas,
		false, field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Self, celtest.Parse(t, `3`), rules.Type)
	f.Vars().Set(value.OldSelf, celtest.Parse(t, `2`), rules.Type)
	if ok, err := rules.Rules[0].Program.EvalBool(f, f.Vars()); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
}
