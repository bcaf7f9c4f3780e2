// Package wording words what is wrong with a value of a request, by package status, and what Kubernetes' own checks
// say, as the API conventions ask.
package wording

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/status"
)

// The words for what is wrong are package status'. The types of the errors, which become the reasons of causes, are
// the ones that apiextensions-apiserver gives: what reads them is to find the same here.

// Omitted is printed as no value at all.
var Omitted = field.OmitValueType{}

// ValueOf is a value as a field error keeps it: copied out of the document, shortened, and of numbers the spelling.
func ValueOf(v document.Node) any {
	switch v.Kind() {
	case document.Bool:
		return v.Bool()
	case document.String:
		return Clip(v.Str())
	case document.Number:
		if n := compare.NumberOf(v); n.IsInt {
			return n.Int
		}
		if raw := v.Raw(); len(raw) <= quote.MaxValue {
			return json.RawMessage(append([]byte(nil), raw...))
		}
		f, _ := v.Float64()
		return f
	case document.Null:
		return json.RawMessage("null")
	}
	return Omitted
}

// Shown is valueOf, with small lists and objects as they are.
func Shown(v document.Node) any {
	switch v.Kind() {
	case document.Object, document.Array:
		if raw := v.Raw(); len(raw) <= quote.MaxValue {
			return json.RawMessage(append([]byte(nil), raw...))
		}
	}
	return ValueOf(v)
}

// TypeOf is the type of a value as schemas name it.
func TypeOf(v document.Node) string {
	if v.Kind() == document.Number && compare.NumberOf(v).IsInt {
		return "integer"
	}
	return v.Kind().String()
}

// text is a path as errors have it.
func text(path *field.Path) string { return path.String() }

func Type(path *field.Path, v document.Node, typeName string) *field.Error {
	return status.Type(text(path), TypeOf(v), typeName)
}

func Format(path *field.Path, v document.Node, format string) *field.Error {
	return as(field.ErrorTypeTypeInvalid, status.Format(text(path), Clip(v.Str()), format))
}

func Enum(path *field.Path, v document.Node, values []string) *field.Error {
	return status.Enum(text(path), Shown(v), values)
}

func Required(path *field.Path) *field.Error { return status.Required(text(path), "") }

func Nameless(path *field.Path) *field.Error {
	return status.Required(text(path), "name or generateName is required")
}

func MaxLength(path *field.Path, most int64) *field.Error {
	return status.MaxLength(text(path), most)
}

func MinLength(path *field.Path, v document.Node, least int64) *field.Error {
	err := as(field.ErrorTypeInvalid, status.MinLength(text(path), "", least))
	err.BadValue = ValueOf(v)
	return err
}

func Pattern(path *field.Path, v document.Node, pattern string) *field.Error {
	return status.Pattern(text(path), Clip(v.Str()), pattern)
}

func Minimum(path *field.Path, v document.Node, least float64, exclusive bool) *field.Error {
	return status.Minimum(text(path), ValueOf(v), least, exclusive)
}

func Maximum(path *field.Path, v document.Node, most float64, exclusive bool) *field.Error {
	return status.Maximum(text(path), ValueOf(v), most, exclusive)
}

func Range(path *field.Path, v document.Node, low, high int64) *field.Error {
	return status.Range(text(path), ValueOf(v), low, high)
}

func Single(path *field.Path, v document.Node) *field.Error {
	return field.Invalid(path, ValueOf(v), "must be within the range of the format 'float'")
}

func MultipleOf(path *field.Path, v document.Node, factor float64) *field.Error {
	return status.MultipleOf(text(path), ValueOf(v), factor)
}

func MinItems(path *field.Path, actual, least int64) *field.Error {
	return as(field.ErrorTypeInvalid, status.MinItems(text(path), actual, least))
}

func MaxItems(path *field.Path, actual, most int64) *field.Error {
	return status.MaxItems(text(path), actual, most)
}

func MinProperties(path *field.Path, actual, least int64) *field.Error {
	return as(field.ErrorTypeInvalid, status.MinProperties(text(path), actual, least))
}

func MaxProperties(path *field.Path, actual, most int64) *field.Error {
	return status.MaxProperties(text(path), actual, most)
}

func Closed(path *field.Path, name string) *field.Error {
	if path == nil {
		path = field.NewPath(Clip(name))
	}
	return field.Invalid(path, Clip(name), closed)
}

const closed = "may not be set: the schema allows no other properties than its own"

// CountOf reports whether a failure is one of the number of an object's members, or a list's items: they are too few,
// or too many.
func CountOf(err *field.Error) (isFew, isMany bool) {
	isCount := func(noun string) bool { return strings.HasSuffix(err.Detail, noun) }
	if !slices.ContainsFunc([]string{" properties", " property", " items", " item"}, isCount) {
		return false, false
	}
	return strings.HasPrefix(err.Detail, "must have at least "), strings.HasPrefix(err.Detail, "must have at most ")
}

// IsClosed reports whether a failure is one of [Closed].
func IsClosed(err *field.Error) bool { return err.Detail == closed }

func Not(path *field.Path) *field.Error { return status.Not(text(path), Omitted) }

func MapItem(path *field.Path, v document.Node) *field.Error {
	return field.Invalid(path, ValueOf(v), "must be an object in a list of type map")
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

// Conformant words a failure that a library found as the API conventions ask.
func Conformant(err *field.Error) *field.Error {
	err.Detail = reworded.Replace(err.Detail)
	return err
}
