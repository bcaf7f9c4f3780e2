package cel

import (
	"slices"
	"testing"
)

func TestCounts(t *testing.T) {
	for expression, want := range map[string][]string{
		`lists.range(object.spec.n).all(i, i >= 0)`:                                      {"object.spec.n"},
		`lists.range(object.spec.?n.orValue(3) + self.m).size() > 0`:                     {"object.spec.n", "self.m"},
		`lists.range(object.spec['n']).all(i, lists.range(object.spec.n).all(j, j > i))`: {"object.spec.n"},
		`object.spec.n <= 1000 && lists.range(object.spec.n).all(i, i >= 0)`:             nil,
		`object.spec.m <= 1000 && lists.range(object.spec.n).all(i, i >= 0)`:             {"object.spec.n"},
		`lists.range(10).all(i, object.spec.l[i] > 0)`:                                   nil,
		`object.spec.l.all(x, x > object.spec.n)`:                                        nil,
		`lists.range(object.spec.`:                                                       nil,
	} {
		if got, _ := Parse(expression).Counts(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
