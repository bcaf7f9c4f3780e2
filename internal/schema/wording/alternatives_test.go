package wording

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Alternatives that each demand a member are a union of these, and failures name them (VAL-6).
func TestAlternatives(t *testing.T) {
	at := field.NewPath("f")
	for _, c := range []struct{ got, want string }{
		{AnyOf(at, nil).Error(), "f: Invalid value: must match at least one of the alternatives in 'anyOf'"},
		{AnyOf(at, []string{"a", "b"}).Error(), "f: Invalid value: must have at least one of `a` and `b`"},
		{OneOf(at, 0, nil).Error(), "f: Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none"},
		{OneOf(at, 2, nil).Error(), "f: Invalid value: must match exactly one of the alternatives in 'oneOf', and matches 2"},
		{OneOf(at, 0, []string{"a"}).Error(), "f: Invalid value: must have exactly one of `a`, and has none"},
		{OneOf(at, 3, []string{"a", "b", "c"}).Error(),
			"f: Invalid value: must have exactly one of `a`, `b` and `c`, and has 3"},
		{Among([]string{strings.Repeat("a", 300), "b"}), "`" + Clip(strings.Repeat("a", 300)) + "` and `b`"},
	} {
		if c.got != c.want {
			t.Errorf("\n got %s\nwant %s", c.got, c.want)
		}
	}
}
