package quantity

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestBounded(t *testing.T) {
	for s, want := range map[string]bool{
		"1": true, "100m": true, "1Gi": true, "1E": true, "1e3": true, "1e-256": true, "1E256": true, "": true,
		"x": true, "1e": true,
		"1e257": false, "1e-10000000": false, "1E2147483647": false, "1e99999999999999999999": false,
		strings.Repeat("9", 257): false,
	} {
		if got := Bounded(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

// What is bounded is read in no time, whatever it is: the fuzzer's deadline would pass otherwise.
func FuzzBounded(f *testing.F) {
	for _, s := range []string{"1e256", "-1.5e-256", "1e10000E", strings.Repeat("9", 256), "1e1e999999999", "1E+256",
		".5Ei"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		if Bounded(s) {
			_, _ = resource.ParseQuantity(s)
		}
	})
}
