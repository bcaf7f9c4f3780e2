package schema

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// omitted is printed as no value at all.
var omitted = field.OmitValueType{}

// valueOf is a value as a field error keeps it: copied out of the document, shortened, and of numbers the spelling.
func valueOf(v document.Node) any {
	switch v.Kind() {
	case document.Bool:
		return v.Bool()
	case document.String:
		return clip(v.Str())
	case document.Number:
		if n := numberOf(v); n.integer {
			return n.i
		}
		if raw := v.Raw(); len(raw) <= maxShown {
			return json.RawMessage(append([]byte(nil), raw...))
		}
		f, _ := v.Float64()
		return f
	case document.Null:
		return json.RawMessage("null")
	}
	return omitted
}

func typeFailure(path *field.Path, v document.Node, typeName string) *field.Error {
	article := "a "
	if strings.HasPrefix(typeName, "i") || strings.HasPrefix(typeName, "o") || strings.HasPrefix(typeName, "a") {
		article = "an "
	}
	return field.TypeInvalid(path, valueOf(v), "must be "+article+typeName)
}

func formatFailure(path *field.Path, v document.Node, format string) *field.Error {
	return field.TypeInvalid(path, valueOf(v), "must match the format '"+format+"'")
}

func enumFailure(path *field.Path, v document.Node, values []string) *field.Error {
	return field.NotSupported(path, valueOf(v), values)
}

func requiredFailure(path *field.Path) *field.Error { return field.Required(path, "") }

func namelessFailure(path *field.Path) *field.Error {
	return field.Required(path, "name or generateName is required")
}

func maxLengthFailure(path *field.Path, most int64) *field.Error {
	return field.TooLongCharacters(path, "", int(most))
}

func minLengthFailure(path *field.Path, v document.Node, least int64) *field.Error {
	return field.Invalid(path, valueOf(v), "must be at least "+plural(least, "character")+" long")
}

func patternFailure(path *field.Path, v document.Node, pattern string) *field.Error {
	return field.Invalid(path, valueOf(v), "must match the pattern '"+pattern+"'")
}

func minimumFailure(path *field.Path, v document.Node, least float64, exclusive bool) *field.Error {
	if exclusive {
		return field.Invalid(path, valueOf(v), "must be greater than "+decimal(least))
	}
	return field.Invalid(path, valueOf(v), "must be greater than or equal to "+decimal(least))
}

func maximumFailure(path *field.Path, v document.Node, most float64, exclusive bool) *field.Error {
	if exclusive {
		return field.Invalid(path, valueOf(v), "must be less than "+decimal(most))
	}
	return field.Invalid(path, valueOf(v), "must be less than or equal to "+decimal(most))
}

func rangeFailure(path *field.Path, v document.Node, format string) *field.Error {
	return field.Invalid(path, valueOf(v), "must be within the range of the format '"+format+"'")
}

func multipleOfFailure(path *field.Path, v document.Node, factor float64) *field.Error {
	return field.Invalid(path, valueOf(v), "must be a multiple of "+decimal(factor))
}

func minItemsFailure(path *field.Path, actual, least int64) *field.Error {
	return field.Invalid(path, actual, "must have at least "+plural(least, "item"))
}

func maxItemsFailure(path *field.Path, actual, most int64) *field.Error {
	return field.TooMany(path, int(actual), int(most))
}

func minPropertiesFailure(path *field.Path, actual, least int64) *field.Error {
	return field.Invalid(path, actual, "must have at least "+plural(least, "item"))
}

func maxPropertiesFailure(path *field.Path, actual, most int64) *field.Error {
	return field.TooMany(path, int(actual), int(most))
}

func closedFailure(path *field.Path, name string) *field.Error {
	return field.Invalid(path, clip(name), "must not have this field")
}

func anyOfFailure(path *field.Path) *field.Error {
	return field.Invalid(path, omitted, "must match at least one schema of 'anyOf'")
}

func oneOfFailure(path *field.Path, fitting int) *field.Error {
	if fitting == 0 {
		return field.Invalid(path, omitted, "must match exactly one schema of 'oneOf', and matches none")
	}
	return field.Invalid(path, omitted, "must match exactly one schema of 'oneOf', and matches "+strconv.Itoa(fitting))
}

func notFailure(path *field.Path) *field.Error {
	return field.Invalid(path, omitted, "must not match the schema of 'not'")
}

func mapItemFailure(path *field.Path, v document.Node) *field.Error {
	return field.Invalid(path, valueOf(v), "must be an object for an array of list-type map")
}

// duplicateFailure shows the item of a set, and the keys of an item of a list of type map.
func duplicateFailure(path *field.Path, l *listRules, v document.Node) *field.Error {
	if l.keys == nil {
		return field.Duplicate(path, shown(v))
	}
	keys := map[string]any{}
	for _, name := range l.keys {
		if value, found := v.Lookup(name); found {
			keys[name.String()] = shown(value)
		}
	}
	return field.Duplicate(path, keys)
}

// shown is valueOf with small lists and objects as they are.
func shown(v document.Node) any {
	switch v.Kind() {
	case document.Object, document.Array:
		if raw := v.Raw(); len(raw) <= maxShown {
			return json.RawMessage(append([]byte(nil), raw...))
		}
	}
	return valueOf(v)
}

// conformant words a failure that a library found as the API conventions ask.
func conformant(err *field.Error) *field.Error {
	err.Detail = strings.ReplaceAll(err.Detail, " should ", " must ")
	return err
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}

// decimal spells a bound without exponent where it is an integer of common size.
func decimal(f float64) string {
	if f == float64(int64(f)) && f >= -1e18 && f <= 1e18 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
