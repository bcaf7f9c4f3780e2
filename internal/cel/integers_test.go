package cel

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// VAL-5: an expression reads a number that is spelled as an integer exactly, or not at all. Within
// int64 it reads what Kubernetes reads. Beyond, Kubernetes reads the nearest double, so that
// several numbers are one to it; here reading it is an error, so that a rule fails and the
// failurePolicy of a policy decides. If a schema says `number` both read a double.
func TestIntegersBeyondInt64(t *testing.T) {
	env := adhocEnv(t)
	number := value.NewType(celtest.Structural(t, `{"type":"number"}`), false)
	for _, c := range []struct {
		number, kubernetes string
		exact              bool // we read the same if no schema says what it is
	}{
		{"9007199254740993", "int(9007199254740993)", true}, // beyond the precision of a double
		{"9223372036854775807", "int(9223372036854775807)", true},
		{"-9223372036854775808", "int(-9223372036854775808)", true},
		{"9223372036854775808", "double(9.223372036854776e+18)", false},
		{"9223372036854775809", "double(9.223372036854776e+18)", false}, // one with the number before
		{"-9223372036854775809", "double(-9.223372036854776e+18)", false},
		{"18446744073709551615", "double(1.8446744073709552e+19)", false}, // the largest uint64
		{"18446744073709551616", "double(1.8446744073709552e+19)", false},
		{"9223372036854775809.0", "double(9.223372036854776e+18)", true}, // no integer, as it is spelled
		{"1e19", "double(1e+19)", true},
	} {
		body := `{"n":` + c.number + `}`
		node := celtest.Parse(t, body)
		vars := map[string]any{"object": types.DefaultTypeAdapter.NativeToValue(decode(t, body)), "oldObject": nil, "params": nil, "namespaceObject": nil}
		for _, expression := range []string{"object.n", "[object.n][0]", "{'a': object.n}.a", "object.map(k, object[k])[0]", "object.n > 5.0 ? object.n : object.n"} {
			ast, issues := env.Compile(expression)
			if issues != nil {
				t.Fatal(issues)
			}
			kube, err := env.Program(ast)
			if err != nil {
				t.Fatal(err)
			}
			want := theirs(kube, vars)
			if want.value != c.kubernetes {
				t.Errorf("%s of %s: Kubernetes reads %v, want %s", expression, c.number, want, c.kubernetes)
			}
			natively, lazily, err := bothWays(t, env, expression, ast.NativeRep())
			if err != nil {
				t.Fatal(err)
			}
			for way, p := range map[string]*Program{"natively": natively, "lazily": lazily} {
				if p == nil {
					continue
				}
				got := ours(p, func(v *Vars) { v.Set(value.Object, node, nil) })
				if c.exact && got != want || !c.exact && !strings.Contains(got.err, "integer '"+c.number+"' is beyond 64 bits") {
					t.Errorf("%s of %s, %s: %v, Kubernetes %v", expression, c.number, way, got, want)
				}
			}
		}
		f := NewFrame(t.Context())
		n, _ := node.Get("n")
		if got := f.Arena.Typed(n, number); got.Type() != types.DoubleType {
			t.Errorf("a `number` of %s is %v", c.number, got)
		}
		f.Release()
	}
}
