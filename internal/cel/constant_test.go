package cel

import "testing"

// TestAlwaysFails proves that a constant expression without a value is found when it is loaded, and no other one.
func TestAlwaysFails(t *testing.T) {
	const fails = "always fails, since it depends on no object: "
	for expression, want := range map[string]string{
		`bool(string(dyn(1.5)))`:           fails + `type conversion error from 'string' to 'bool'`,
		`1 / 0 == 1`:                       fails + "division by zero",
		`[1, 2][dyn(5)] == 1`:              fails + "index out of bounds: 5",
		`[1, 2].all(x, x / 0 == 1)`:        fails + "division by zero",
		`true || 1 / 0 == 1`:               "", // its logic leaves the failing part out
		`1 / 0 == 1 || true`:               "",
		`false ? 1 / 0 == 1 : true`:        "",
		`[].all(x, x / 0 == 1)`:            "",
		`object.spec.x == 1 / 0`:           "ERROR: <input>:1:20: fails for every object: division by zero\n | object.spec.x == 1 / 0\n | ...................^",
		`self.x / 0u > 1u`:                 "ERROR: <input>:1:8: fails for every object: division by zero\n | self.x / 0u > 1u\n | .......^",
		`self.x / 0.0 > 1.0`:               "", // it is infinite
		`1 / 0 == 1 || object.spec.x == 1`: "",
		`'a' == 1`:                         "", // of wrong types: compiling it says so
		`lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))`: "", // costs too much, which is another error
		`true`: "",
	} {
		got := ""
		if err := Parse(expression).AlwaysFails(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}
