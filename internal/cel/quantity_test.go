package cel

import (
	"context"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// TestBoundedQuantities: a few characters of a client never keep a policy busy, in either way to run it.
func TestBoundedQuantities(t *testing.T) {
	const refused = "what is read as a quantity must be a quantity of at most 256 characters with an exponent between -256 and 256"
	for _, c := range []struct{ value, want string }{
		{"1e3", ""}, {"1500m", ""}, {"1e-256", ""},
		{"1e-2147483647", refused}, {"1E99999999", refused}, {"1e-10000000", refused},
	} {
		d, err := document.Parse([]byte(`{"q":"`+c.value+`"}`), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		rules := []string{`isQuantity(object.q)`, `quantity(object.q).isGreaterThan(quantity('0'))`,
			`object.q == '' || sign(quantity(object.q)) == 1`}
		for _, p := range append(nativePrograms(t, rules), lazyPrograms(t, rules)...) {
			f := NewFrame(context.Background())
			f.Vars().Set(value.Object, d.Root(), nil)
			ok, err := p.EvalBool(f, f.Vars())
			got := ""
			if err != nil {
				_, got, _ = strings.Cut(err.Error(), "resulted in error: ")
			}
			if got != c.want || ok != (c.want == "") {
				t.Errorf("%s of %s: %v, %q, want %q", p.Source(), c.value, ok, got, c.want)
			}
			f.Release()
		}
	}
}
