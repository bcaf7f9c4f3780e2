package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/celtest"
)

// TestLater: a condition of policies that share what they have in common is taken apart once, when it fails first, as
// it would have been when it was compiled.
func TestLater(t *testing.T) {
	common := cel.NewCommon()
	compile := func(expression string, variables ...string) *Explanation {
		t.Helper()
		admission := cel.NewAdmissionCompiler(false)
		admission.Share(common)
		c := NewCompiler(admission)
		for _, name := range variables {
			if err := c.Variable(name, "object.spec."+name); err != nil {
				t.Fatal(err)
			}
		}
		_, x, err := c.Condition(expression)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := compile("variables.size < 5", "size"); x.source != nil || x.whenTrue == nil {
		t.Error("a condition with variables of its policy was not taken apart when it was compiled")
	}
	expressions := []string{`object.spec.replicas <= 5 && object.spec.containers.all(c, c.image.startsWith('registry/'))`}
	for _, text := range celtest.PolicyDocuments(t) {
		var policy admissionv1.ValidatingAdmissionPolicy
		if json.Unmarshal(text, &policy) == nil && policy.Kind == "ValidatingAdmissionPolicy" {
			for _, v := range policy.Spec.Validations {
				expressions = append(expressions, v.Expression)
			}
		}
	}
	slices.Sort(expressions)
	compared := 0
	for _, expression := range slices.Compact(expressions) {
		checked, err := cel.NewAdmissionCompiler(false).CheckCondition(expression)
		if err != nil {
			continue // it has parameters or variables, or a mistake
		}
		x := compile(expression)
		if x.whenTrue != nil {
			t.Errorf("%s: the demands are known before they are asked for", expression)
		}
		all := make([]*clause, 4)
		var asking sync.WaitGroup
		for i := range all {
			asking.Go(func() { all[i] = x.demands() })
		}
		asking.Wait()
		want := outlined(demandsOf(checked, nil))
		for _, got := range all {
			if got != all[0] || outlined(got) != want {
				t.Errorf("%s: got %s, want %s", expression, outlined(got), want)
			}
		}
		compared++
	}
	if compared < 50 {
		t.Errorf("%d conditions were compared", compared)
	}
}

// outlined writes the parts of a clause.
func outlined(c *clause) string {
	if c == nil {
		return "nothing"
	}
	text := fmt.Sprint(c.kind, c.want, c.source, c.program != nil)
	for _, part := range c.parts {
		text += " (" + outlined(part) + ")"
	}
	return text
}
