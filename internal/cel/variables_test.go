package cel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// Of variables of one name the last one counts, for those between too. What messages say
// shows no values of parameters that it reads (ERR-7). A variable that reads the one that it replaces reads itself.
func TestVariablesOfOneName(t *testing.T) {
	for _, c := range []struct {
		variables       [][2]string
		condition, want string
	}{
		{[][2]string{{"a", "1"}, {"a", "2"}}, "variables.a == 2", "true"},
		{[][2]string{{"a", "1"}, {"b", "variables.a * 10"}, {"a", "object.n"}}, "variables.b == 30", "true"},
		{[][2]string{{"a", "1"}, {"b", "variables.a * 10"}, {"a", "'x'"}}, "variables.b == 30",
			`composited variable "b" fails to evaluate: no such overload`},
		{[][2]string{{"a", "1"}, {"a", "variables.a + 1"}}, "variables.a == 2",
			`composited variable "a" fails to evaluate: a variable refers to itself`},
		{[][2]string{{"ok", "object.n < 5"}, {"both", "variables.ok && object.n > 1"}, {"ok", "object.m < 5"}},
			"variables.both", "false"},
		{[][2]string{{"ok", "object.n < 5"}, {"ok", "object.m < 5"}}, "variables.ok", "false"},
		{[][2]string{{"a", "'x'"}, {"b", "int(variables.a)"}, {"a", "params.word"}}, "variables.b == 1",
			`composited variable "b" fails to evaluate: type conversion error from 'string' to 'int'`},
	} {
		compiler := NewAdmissionCompiler(true)
		for _, v := range c.variables {
			if err := compiler.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		p, err := compiler.Condition(c.condition)
		if err != nil {
			t.Fatal(err)
		}
		f := NewFrame(context.Background())
		v := f.Vars()
		v.Set(value.Object, celtest.Parse(t, `{"n":3,"m":7}`), nil)
		v.Set(value.Params, celtest.Parse(t, `{"word":"SECRET"}`), nil)
		f.OpenVariables(v, compiler.Variables())
		ok, err := p.EvalBool(f, v)
		got := fmt.Sprint(ok)
		if failed, ok := err.(*Error); ok {
			got = failed.Detail
		}
		if got != c.want || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s of %v: %s, %v, want %s", c.condition, c.variables, got, err, c.want)
		}
		f.CloseVariables(v)
		f.Release()
	}
}
