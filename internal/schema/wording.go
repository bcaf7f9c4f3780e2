package schema

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// The words for what is wrong are package status'. The types of the errors, which become the reasons of causes, are
// those that apiextensions-apiserver gives: what reads them is to find the same here.

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

// shown is valueOf, with small lists and objects as they are.
func shown(v document.Node) any {
	switch v.Kind() {
	case document.Object, document.Array:
		if raw := v.Raw(); len(raw) <= maxShown {
			return json.RawMessage(append([]byte(nil), raw...))
		}
	}
	return valueOf(v)
}

// typeOf is the type of a value as schemas name it.
func typeOf(v document.Node) string {
	if v.Kind() == document.Number && numberOf(v).integer {
		return "integer"
	}
	return v.Kind().String()
}

// text is a path as errors have it.
func text(path *field.Path) string { return path.String() }

func typeFailure(path *field.Path, v document.Node, typeName string) *field.Error {
	return status.Type(text(path), typeOf(v), typeName)
}

func formatFailure(path *field.Path, v document.Node, format string) *field.Error {
	return as(field.ErrorTypeTypeInvalid, status.Format(text(path), clip(v.Str()), format))
}

func enumFailure(path *field.Path, v document.Node, values []string) *field.Error {
	return status.Enum(text(path), shown(v), values)
}

func requiredFailure(path *field.Path) *field.Error { return status.Required(text(path), "") }

func namelessFailure(path *field.Path) *field.Error {
	return status.Required(text(path), "name or generateName is required")
}

func maxLengthFailure(path *field.Path, most int64) *field.Error {
	return status.MaxLength(text(path), most)
}

func minLengthFailure(path *field.Path, v document.Node, least int64) *field.Error {
	err := as(field.ErrorTypeInvalid, status.MinLength(text(path), "", least))
	err.BadValue = valueOf(v)
	return err
}

func patternFailure(path *field.Path, v document.Node, pattern string) *field.Error {
	return status.Pattern(text(path), clip(v.Str()), pattern)
}

func minimumFailure(path *field.Path, v document.Node, least float64, exclusive bool) *field.Error {
	return status.Minimum(text(path), valueOf(v), least, exclusive)
}

func maximumFailure(path *field.Path, v document.Node, most float64, exclusive bool) *field.Error {
	return status.Maximum(text(path), valueOf(v), most, exclusive)
}

func rangeFailure(path *field.Path, v document.Node, low, high int64) *field.Error {
	return status.Range(text(path), valueOf(v), low, high)
}

func singleFailure(path *field.Path, v document.Node) *field.Error {
	return field.Invalid(path, valueOf(v), "must be within the range of the format 'float'")
}

func multipleOfFailure(path *field.Path, v document.Node, factor float64) *field.Error {
	return status.MultipleOf(text(path), valueOf(v), factor)
}

func minItemsFailure(path *field.Path, actual, least int64) *field.Error {
	return as(field.ErrorTypeInvalid, status.MinItems(text(path), actual, least))
}

func maxItemsFailure(path *field.Path, actual, most int64) *field.Error {
	return status.MaxItems(text(path), actual, most)
}

func minPropertiesFailure(path *field.Path, actual, least int64) *field.Error {
	return as(field.ErrorTypeInvalid, status.MinProperties(text(path), actual, least))
}

func maxPropertiesFailure(path *field.Path, actual, most int64) *field.Error {
	return status.MaxProperties(text(path), actual, most)
}

func closedFailure(path *field.Path, name string) *field.Error {
	if path == nil {
		path = field.NewPath(clip(name))
	}
	return field.Invalid(path, clip(name), "may not be set: the schema allows no other properties than its own")
}

func anyOfFailure(path *field.Path, branches []*Shape) *field.Error {
	if names := demands(branches); names != nil {
		return field.Invalid(path, omitted, "must have at least one of "+among(names))
	}
	return status.AnyOf(text(path), omitted)
}

// oneOfFailure says of alternatives that each demand a member that they are a union (VAL-6).
func oneOfFailure(path *field.Path, fitting int, branches []*Shape) *field.Error {
	err, verb := status.OneOf(text(path), omitted), "matches"
	if names := demands(branches); names != nil {
		err.Detail, verb = "must have exactly one of "+among(names), "has"
	}
	if fitting == 0 {
		err.Detail += ", and " + verb + " none"
	} else {
		err.Detail += ", and " + verb + " " + strconv.Itoa(fitting)
	}
	return err
}

// demands are the members that alternatives ask for, if each asks for one and nothing else; else nil.
func demands(branches []*Shape) []string {
	names := make([]string, 0, len(branches))
	for _, s := range branches {
		if len(s.required) != 1 || len(s.properties) > 0 || s.logic != nil || s.enum != nil || s.size != nil || s.additional != nil || s.closed ||
			s.typeName != "" && s.typeName != "object" {
			return nil
		}
		names = append(names, "`"+clip(s.required[0].String())+"`")
	}
	return names
}

func notFailure(path *field.Path) *field.Error { return status.Not(text(path), omitted) }

func mapItemFailure(path *field.Path, v document.Node) *field.Error {
	return field.Invalid(path, valueOf(v), "must be an object in a list of type map")
}

// duplicateFailure shows the item of a set, and the keys of an item of a list of type map.
func duplicateFailure(path *field.Path, l *listRules, v document.Node) *field.Error {
	if l.keys == nil {
		return status.Duplicate(text(path), shown(v))
	}
	keys := map[string]any{}
	for _, name := range l.keys {
		if value, found := v.Lookup(name); found {
			keys[name.String()] = shown(value)
		}
	}
	return status.Duplicate(text(path), keys)
}

func as(t field.ErrorType, err *field.Error) *field.Error {
	err.Type = t
	return err
}

// reworded are the words of Kubernetes' checks of metadata that break the API conventions.
var reworded = strings.NewReplacer(
	" should ", " must ",
	"must be <group>/<version> or <version>", "must be '<group>/<version>' or '<version>'",
	`Only one reference can have Controller set to true. Found "true" in references for`, "only one reference may have `controller` set, and it is set for",
	"cannot be both set", "may not be set both",
)

// conformant words a failure that a library found as the API conventions ask.
func conformant(err *field.Error) *field.Error {
	err.Detail = reworded.Replace(err.Detail)
	return err
}
