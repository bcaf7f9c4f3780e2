package compare

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
		want     Number
		integral bool
	}{
		{"0", Number{IsInt: true}, true},
		{"-0", Number{IsInt: true}, true},
		{"9007199254740993", Number{Int: 9007199254740993, IsInt: true}, true},
		{"9223372036854775807", Number{Int: math.MaxInt64, IsInt: true}, true},
		{"-9223372036854775808", Number{Int: math.MinInt64, IsInt: true}, true},
		{"9223372036854775808", Number{Double: 1 << 63}, false},
		{"1.0", Number{Double: 1}, true},
		{"1e3", Number{Double: 1000}, true},
		{"9007199254740991.0", Number{Double: 9007199254740991}, true},
		{"9007199254740992.0", Number{Double: 9007199254740992}, false},
		{"1e17", Number{Double: 1e17}, false},
		{"1.5", Number{Double: 1.5}, false},
	} {
		got := NumberOf(parse(t, c.text))
		if got != c.want || got.Integral() != c.integral {
			t.Errorf("%s: got %+v, integral %v; want %+v, %v", c.text, got, got.Integral(), c.want, c.integral)
		}
	}
}

func TestCompareInt(t *testing.T) {
	ints := []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, 10, 1<<53 - 1, 1 << 53, 1<<53 + 1,
		math.MaxInt64 - 1, math.MaxInt64}
	floats := []float64{math.Inf(-1), -1e300, -1 << 63, -1.5, -1, -0.5, 0, 0.5, 1, 9.5, 10, 10.5, 1 << 53, 1 << 62,
		1 << 63, 1e300, math.Inf(1)}
	for _, i := range ints {
		for _, f := range floats {
			want := new(big.Float).SetInt64(i).Cmp(big.NewFloat(f))
			if got := compareInt(i, f); got != want {
				t.Errorf("%d and %g: got %d, want %d", i, f, got, want)
			}
		}
	}
}
