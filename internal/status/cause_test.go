package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWithoutValue(t *testing.T) {
	at := field.NewPath("spec", "size")
	for _, c := range []struct {
		err  *field.Error
		want string
	}{
		{field.Invalid(at, "large", "must be a number"), "must be a number"},
		{field.Invalid(at, `a": "b`, `must match "x": y`), `must match "x": y`},
		{field.Invalid(at, int64(-3), "must be greater than 0"), "must be greater than 0"},
		{field.Invalid(at, true, "must be false"), "must be false"},
		{field.Invalid(at, nil, "must not be null"), "must not be null"},
		{field.Invalid(at, map[string]any{"card": "4111: 1111"}, "must have a name"), "must have a name"},
		{field.Invalid(at, []string{"a"}, "must be sorted"), "must be sorted"},
		{field.Invalid(at, field.OmitValueType{}, "must be one of them"), "must be one of them"},
		{field.Invalid(at, "secret", ""), "Invalid value"},
		{field.Invalid(at, 1.5, "true or false"), "true or false"},
		{field.Invalid(at, field.OmitValueType{}, "true or false"), "true or false"},
		{field.Required(at, ""), "Required value"},
		{field.Required(at, "must have a size"), "must have a size"},
		{field.TypeInvalid(at, "x", "must be of type integer"), "must be of type integer"},
		{field.Duplicate(at, "x"), "Duplicate value"},
		{field.NotSupported(at, "x", []string{"a", "b"}), `supported values: "a", "b"`},
		{field.Forbidden(at, "must not be set"), "must not be set"},
		{field.TooLong(at, "x", 3), "may not be more than 3 bytes"},
		{field.TooMany(at, 5, 3), "must have at most 3 items"},
		// the end of the value is not shown
		{field.Invalid(at, strings.Repeat("k", 5000), "must be short"), "Invalid value"},
	} {
		cause := Cause(c.err)
		if got := WithoutValue(&cause); got != c.want {
			t.Errorf("%.200s\ngot  %q\nwant %q", cause.Message, got, c.want)
		}
	}
	own := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: "orders of team-a must have a budget"}
	if got := WithoutValue(&own); got != own.Message {
		t.Errorf("the words of a policy became %q", got)
	}
}

// FuzzWithoutValue: whatever text is wrong, it is gone, and what is said of it stays.
func FuzzWithoutValue(f *testing.F) {
	for _, seed := range []string{"x", `"`, `": `, `\": `, "{", "\u2028", "\xff", "12", "null"} {
		f.Add(seed, "must be short")
	}
	f.Fuzz(func(t *testing.T, value, detail string) {
		e := field.Invalid(field.NewPath("a"), value, detail)
		if cause := Cause(e); len(e.ErrorBody()) <= 200 && detail != "" {
			if got := WithoutValue(&cause); got != detail {
				t.Fatalf("%q: got %q, want %q", cause.Message, got, detail)
			}
		}
	})
}
