package schema

import (
	"math"
	"math/big"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

func parse(t testing.TB, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d.Root()
}

// VAL-5: numbers are read exactly.
func TestNumberOf(t *testing.T) {
	for _, c := range []struct {
		text     string
		want     number
		integral bool
	}{
		{"0", number{integer: true}, true},
		{"-0", number{integer: true}, true},
		{"9007199254740993", number{i: 9007199254740993, integer: true}, true},
		{"9223372036854775807", number{i: math.MaxInt64, integer: true}, true},
		{"-9223372036854775808", number{i: math.MinInt64, integer: true}, true},
		{"9223372036854775808", number{f: 1 << 63}, false},
		{"1.0", number{f: 1}, true},
		{"1e3", number{f: 1000}, true},
		{"9007199254740991.0", number{f: 9007199254740991}, true},
		{"9007199254740992.0", number{f: 9007199254740992}, false},
		{"1e17", number{f: 1e17}, false},
		{"1.5", number{f: 1.5}, false},
	} {
		got := numberOf(parse(t, c.text))
		if got != c.want || got.integral() != c.integral {
			t.Errorf("%s: got %+v, integral %v; want %+v, %v", c.text, got, got.integral(), c.want, c.integral)
		}
	}
}

func TestCompareInt(t *testing.T) {
	ints := []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, 10, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	floats := []float64{math.Inf(-1), -1e300, -1 << 63, -1.5, -1, -0.5, 0, 0.5, 1, 9.5, 10, 10.5, 1 << 53, 1 << 62, 1 << 63, 1e300, math.Inf(1)}
	for _, i := range ints {
		for _, f := range floats {
			want := new(big.Float).SetInt64(i).Cmp(big.NewFloat(f))
			if got := compareInt(i, f); got != want {
				t.Errorf("%d and %g: got %d, want %d", i, f, got, want)
			}
		}
	}
}

func TestFactor(t *testing.T) {
	for _, c := range []struct {
		factor float64
		number string
		want   bool
	}{
		{0.5, "1", true}, {0.5, "1.5", true}, {0.5, "0.3", false}, {0.01, "19.99", true}, {0.01, "19.995", false}, {3, "9", true}, {3, "10", false},
		{3, "9.0", true}, {2.5, "5", true}, {2.5, "6", false}, {0, "0", false}, {-1, "1", false}, {2, "9007199254740993", false}, {7, "0", true},
	} {
		if got := newFactor(c.factor).divides(numberOf(parse(t, c.number))); got != c.want {
			t.Errorf("%s by %g: got %v, want %v", c.number, c.factor, got, c.want)
		}
	}
}
