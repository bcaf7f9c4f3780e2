package cel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// traces keeps what a tracer is seen.
type traces []*Trace

func (t *traces) Traced(one *Trace) { *t = append(*t, one) }

func (t *Trace) lines() string {
	var b strings.Builder
	if t.Variable != "" {
		b.WriteString(t.Variable + ": ")
	}
	fmt.Fprintf(&b, "%s = %s", t.Expression, t.Value)
	if t.Err != nil {
		b.WriteString("failed: " + t.Err.Error())
	}
	if t.IsDoubtful {
		b.WriteString(" (doubtful)")
	}
	for _, p := range t.Parts {
		fmt.Fprintf(&b, "\n%s%d:%d %s = %s", strings.Repeat("  ", p.Depth+1), p.Line, p.Column, p.Source, p.Value)
		if p.InLoop {
			b.WriteString(" (loop)")
		}
		for _, reads := range []struct {
			so   bool
			name string
		}{{p.Reads.Object, "object"}, {p.Reads.Old, "old"}, {p.Reads.Others, "others"}} {
			if reads.so {
				b.WriteString(" " + reads.name)
			}
		}
	}
	return b.String()
}

// TestTrace holds what is seen of expressions and their parts to whole answers.
func TestTrace(t *testing.T) {
	c := NewAdmissionCompiler(true)
	if err := c.Variable("limit", "params.max"); err != nil {
		t.Fatal(err)
	}
	if err := c.Variable("asked", "object.spec.replicas"); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ expression, want string }{
		{"object.spec.replicas <= 3", `object.spec.replicas <= 3 = false
  1:22 object.spec.replicas <= 3 = false object
    1:1 object.spec.replicas = 5 object`},
		{"has(object.spec.paused) || object.spec.replicas > oldObject.spec.replicas", `has(object.spec.paused) || object.spec.replicas > oldObject.spec.replicas = true
  1:25 has(object.spec.paused) || object.spec.replicas > oldObject.spec.replicas = true object old
    1:4 has(object.spec.paused) = false object
    1:49 object.spec.replicas > oldObject.spec.replicas = true object old
      1:28 object.spec.replicas = 5 object
      1:51 oldObject.spec.replicas = 4 old`},
		{"object.spec.names.all(n, n.startsWith('a'))", `object.spec.names.all(n, n.startsWith('a')) = false
  1:1 object.spec.names.all(n, n.startsWith("a")) = false object
    1:1 object.spec.names = ["ab","cd","ae"] object
    1:26 n.startsWith("a") = false (loop) object
      1:26 n = "cd" (loop) object`},
		{"variables.asked <=\n  variables.limit", `asked: object.spec.replicas = 5
  1:1 object.spec.replicas = 5 object
limit: params.max = 4
  1:1 params.max = 4 others
variables.asked <=
  variables.limit = false
  1:17 variables.asked <= variables.limit = false object others
    1:1 variables.asked = 5 object
    2:3 variables.limit = 4 others`},
		{"object.spec.missing == 1", `object.spec.missing == 1 = failed: expression 'object.spec.missing == 1' resulted in error: no such key: missing
  1:21 object.spec.missing == 1 = error: no such key: missing object
    1:1 object.spec.missing = error: no such key: missing object`},
		{"request.operation == 'CREATE' ? params.max > 1 : false", `request.operation == 'CREATE' ? params.max > 1 : false = true
  1:31 (request.operation == "CREATE") ? (params.max > 1) : false = true others
    1:19 request.operation == "CREATE" = true
      1:1 request.operation = "CREATE"
    1:44 params.max > 1 = true others
      1:33 params.max = 4 others`},
	} {
		t.Run(one.expression, func(t *testing.T) {
			p, err := c.Condition(one.expression)
			if err != nil {
				t.Fatal(err)
			}
			f := NewFrame(context.Background())
			defer f.Release()
			var seen traces
			f.Trace(&seen)
			bind := func(v *Vars) {
				v.Set(value.Object, celtest.Parse(t, `{"spec":{"replicas":5,"names":["ab","cd","ae"]}}`), nil)
				v.Set(value.OldObject, celtest.Parse(t, `{"spec":{"replicas":4}}`), nil)
				v.Set(value.Params, celtest.Parse(t, `{"max":4}`), nil)
				v.SetRequest(&Request{Operation: "CREATE"})
			}
			v := f.Vars()
			bind(v)
			f.OpenVariables(v, c.Variables())
			defer f.CloseVariables(v)
			before := f.Budget()
			_, _ = p.EvalBool(f, v) // the trace has the outcome
			spent := before - f.Budget()
			var got []string
			for _, one := range seen {
				got = append(got, one.lines())
			}
			if got := strings.Join(got, "\n"); got != one.want {
				t.Errorf("got\n%s\nwant\n%s", got, one.want)
			}
			plain := NewFrame(context.Background())
			defer plain.Release()
			u := plain.Vars()
			bind(u)
			plain.OpenVariables(u, c.Variables())
			defer plain.CloseVariables(u)
			before = plain.Budget()
			_, _ = p.EvalBool(plain, u)
			if untraced := before - plain.Budget(); spent != untraced {
				t.Errorf("it costs %d units if it is traced, and else %d", spent, untraced)
			}
		})
	}
}

// TestTracesOfPolicies traces the expressions of the policies in the suites over recorded objects: what
// is found of the parts belongs to the verdict.
func TestTracesOfPolicies(t *testing.T) {
	bodies := celtest.RequestBodies(t)
	traced, doubtful := 0, 0
	for _, object := range celtest.PolicyDocuments(t) {
		var p policySpec
		if json.Unmarshal(object, &p) != nil || p.Kind != "ValidatingAdmissionPolicy" ||
			bytes.Contains(object, []byte("authorizer")) {
			continue
		}
		c := NewAdmissionCompiler(p.Spec.ParamKind != nil)
		for _, v := range p.Spec.Variables {
			_ = c.Variable(v.Name, v.Expression) // what does not compile is reported elsewhere
		}
		for _, validation := range p.Spec.Validations {
			program, err := c.Condition(validation.Expression)
			if err != nil {
				continue
			}
			for i := 0; i < len(bodies); i += 50 {
				var seen traces
				f := NewFrame(context.Background())
				f.Trace(&seen)
				f.Vars().Set(value.Object, celtest.Parse(t, bodies[i]), nil)
				f.Vars().SetRequest(&Request{Operation: "CREATE", Name: "a", Namespace: "default"})
				if c.Variables() != nil {
					f.OpenVariables(f.Vars(), c.Variables())
				}
				_, _ = program.EvalBool(f, f.Vars()) // the trace has the outcome
				f.CloseVariables(f.Vars())
				f.Release()
				for _, one := range seen {
					traced++
					if one.IsDoubtful {
						doubtful++
						t.Errorf("the parts do not belong to the verdict:\n%s", one.lines())
					}
				}
			}
		}
	}
	if t.Logf("%d evaluations, %d doubtful", traced, doubtful); traced == 0 {
		t.Error("nothing was traced")
	}
}
