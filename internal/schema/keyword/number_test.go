package keyword

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/schema/compare"
)

func TestFactor(t *testing.T) {
	for _, c := range []struct {
		factor float64
		number string
		want   bool
	}{
		{0.5, "1", true}, {0.5, "1.5", true}, {0.5, "0.3", false}, {0.01, "19.99", true}, {0.01, "19.995", false},
		{3, "9", true}, {3, "10", false},
		{3, "9.0", true}, {2.5, "5", true}, {2.5, "6", false}, {0, "0", false}, {-1, "1", false},
		{2, "9007199254740993", false}, {7, "0", true},
	} {
		if got := NewFactor(c.factor).divides(compare.NumberOf(parse(t, c.number))); got != c.want {
			t.Errorf("%s by %g: got %v, want %v", c.number, c.factor, got, c.want)
		}
	}
}
