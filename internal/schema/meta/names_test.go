package meta

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checkNames compares the quick checks with the library: they accept exactly what it accepts.
// META-2
func checkNames(t *testing.T, s string) {
	t.Helper()
	for _, c := range []struct {
		name      string
		got, want bool
	}{
		{"label value", isLabelValue(s), len(content.IsLabelValue(s)) == 0},
		{"label key", isLabelKey(s, false), len(content.IsLabelKey(s)) == 0},
		{"annotation key", isLabelKey(s, true), len(content.IsLabelKey(strings.ToLower(s))) == 0},
		{"subdomain", isSubdomain(s, false), len(validation.IsDNS1123Subdomain(s)) == 0},
		{"label", isLabel(s), len(validation.IsDNS1123Label(s)) == 0},
		{"kind", IsKind(s), len(validation.IsDNS1035Label(strings.ToLower(s))) == 0},
	} {
		if c.got && !c.want || !c.got && c.want && ascii(s) {
			// lower case of 'K' (U+212A) is ASCII: that is left to the library
			t.Errorf("%s %q: got %v, want %v", c.name, s, c.got, c.want)
		}
	}
	if isSegment(s) && len(content.IsPathSegmentName(s)) > 0 {
		t.Errorf("segment %q: got true, want false", s)
	}
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

var nameSamples = []string{
	"", "a", "A", "a-b", "-a", "a-", "a.b", ".a", "a.", "a..b", "a_b", "_a", "example.com/x", "Example.com/x",
	"example.com/", "/x", "a/b/c",
	"a-.b", "a.-b", "a b", "é", "a%b", "..", strings.Repeat("a", 63), strings.Repeat("a", 64),
	strings.Repeat("a", 253) + "/b", strings.Repeat("a", 254) + "/b",
	"1a", "a1", "A1-b", "x/" + strings.Repeat("b", 64), "\u212aind/a",
}

func TestNames(t *testing.T) {
	for _, s := range nameSamples {
		checkNames(t, s)
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range nameSamples {
		f.Add(s)
	}
	f.Fuzz(checkNames)
}
