package status

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file has one function per validation failure, so that schemas, rules and policies word the
// same failure the same way. The words come from Kubernetes' native validation if it follows the
// API conventions ("must", "must not" for formats, "may not" for behaviour, inequalities in words),
// and not from its CRD schemas ("should be at most 3 chars long"). The path is a field path as
// field.Path prints it.

// Minimum says that the number must be at least min, or greater than min if min itself is excluded.
func Minimum(path string, value any, min float64, exclusive bool) *field.Error {
	if exclusive {
		return invalid(path, value, "must be greater than "+Number(min))
	}
	return invalid(path, value, "must be greater than or equal to "+Number(min))
}

// Maximum says that the number must be at most max, or less than max if max itself is excluded.
func Maximum(path string, value any, max float64, exclusive bool) *field.Error {
	if exclusive {
		return invalid(path, value, "must be less than "+Number(max))
	}
	return invalid(path, value, "must be less than or equal to "+Number(max))
}

// Range says that the integer must be within the bounds, both included.
func Range(path string, value any, min, max int64) *field.Error {
	return invalid(path, value, fmt.Sprintf("must be between %d and %d, inclusive", min, max))
}

// MultipleOf says that the number must be a multiple of another.
func MultipleOf(path string, value any, of float64) *field.Error {
	return invalid(path, value, "must be a multiple of "+Number(of))
}

// MinLength says that the string has less than n characters (code points).
func MinLength(path, value string, n int64) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooShort, Field: path, BadValue: value,
		Detail: "must be at least " + count(n, "character", "characters")}
}

// MaxLength says that the string has more than n characters (code points). It
// does not show the string. Kubernetes' "may not be more than" breaks the
// conventions, which want neither "more than" nor "may not" for a format.
func MaxLength(path string, n int64) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooLong, Field: path, BadValue: "<value omitted>",
		Detail: "must be at most " + count(n, "character", "characters")}
}

// MinItems says that the list has too few items.
func MinItems(path string, actual, n int64) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooFew, Field: path, BadValue: actual,
		Detail: "must have at least " + count(n, "item", "items")}
}

// MaxItems says that the list has too many items.
func MaxItems(path string, actual, n int64) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooMany, Field: path, BadValue: actual,
		Detail: "must have at most " + count(n, "item", "items")}
}

// MinProperties says that the object has too few members.
func MinProperties(path string, actual, n int64) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooFew, Field: path, BadValue: actual,
		Detail: "must have at least " + count(n, "property", "properties")}
}

// MaxProperties says that the object has too many members.
func MaxProperties(path string, actual, n int64) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooMany, Field: path, BadValue: actual,
		Detail: "must have at most " + count(n, "property", "properties")}
}

// Pattern says that the string must match a regular expression.
func Pattern(path, value, regexp string) *field.Error {
	return invalid(path, value, "must match the regular expression '"+regexp+"'")
}

// Format says that the string must be of a format ("date-time", "uuid").
func Format(path, value, format string) *field.Error {
	return invalid(path, value, FormatDetail(format))
}

// FormatDetail says what a string of the format must be, in words that do not need the schema's own: a 'byte' is
// base64.
func FormatDetail(format string) string {
	if format == "byte" {
		return "must be base64 (RFC 4648), with padding"
	}
	return "must be a valid '" + format + "'"
}

// Enum says that the value must be one of those given, each as its plain text
// for a string and as JSON for anything else.
func Enum(path string, value any, supported []string) *field.Error {
	quoted := make([]string, len(supported))
	for i, s := range supported {
		quoted[i] = strconv.Quote(s)
	}
	detail := ""
	if len(quoted) > 0 {
		detail = "supported values: " + strings.Join(quoted, ", ")
	}
	return &field.Error{Type: field.ErrorTypeNotSupported, Field: path, BadValue: value, Detail: detail}
}

// Type says that the value must be of one of the JSON types. actual is the type that it has, which
// is shown in place of the value, as Kubernetes does: a whole object in place of a number does not
// help the reader.
func Type(path, actual string, expected ...string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTypeInvalid, Field: path, BadValue: actual,
		Detail: "must be of type " + strings.Join(expected, " or ")}
}

// Required says that the field must be set. The detail may be empty.
func Required(path, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeRequired, Field: path, BadValue: "", Detail: detail}
}

// Duplicate says that the value occurs again in a list that is a set, or the
// keys again in a list that is a map.
func Duplicate(path string, value any) *field.Error {
	return &field.Error{Type: field.ErrorTypeDuplicate, Field: path, BadValue: value}
}

// Immutable says that the field may not change once it is set, in Kubernetes' words.
func Immutable(path string, value any) *field.Error {
	return invalid(path, value, validation.FieldImmutableErrorMsg)
}

// AnyOf says that the value matches none of several alternatives.
func AnyOf(path string, value any) *field.Error {
	return invalid(path, value, "must match at least one of the alternatives in 'anyOf'")
}

// OneOf says that the value matches none, or several, of the alternatives.
func OneOf(path string, value any) *field.Error {
	return invalid(path, value, "must match exactly one of the alternatives in 'oneOf'")
}

// Not says that the value matches what it must not match.
func Not(path string, value any) *field.Error {
	return invalid(path, value, "must not match the schema in 'not'")
}

// Invalid value with a detail that starts with "must".
func invalid(path string, value any, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: value, Detail: detail}
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// Number prints a bound as a person would write it: whole numbers up to 2^63
// in full, without exponent or fraction.
func Number(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
