package outcome

import (
	"fmt"
	"strings"
)

// A Shape says how a schema bounds a value. The zero Shape allows everything.
type Shape struct {
	// Type is the name of the JSON type, or Null; empty for any.
	Type string
	// Min and Max bound numbers, MinSize and MaxSize the sizes of strings, lists and maps. Nil is unbounded.
	Min, Max, MinSize, MaxSize *float64
	// Enum has the strings that are allowed; nil allows all.
	Enum []string
	// Fields are the members of an object that are known.
	Fields map[string]*Shape
	// Items is the shape of the items of a list.
	Items *Shape
	// IsSet reports whether a member always has a value, because it is required or has a default.
	IsSet bool
}

// Null is the type of a value that is always null.
const Null = "null"

// truth says whether a value can be true, and whether it can be false.
type truth struct{ yes, no bool }

var either = truth{true, true}

// result says what the value of a part of an expression can be.
type result struct {
	truth truth
	fails bool // it may be an error
	shape *Shape
	path  string // of a chain of fields
	// number, text and list are the values of literals.
	number *float64
	text   *string
	list   []result
}

func anything(fails bool) result { return result{truth: either, fails: fails, shape: &Shape{}} }

// failure is the result of what always fails.
func failure() result { return result{truth: truth{}, fails: true, shape: &Shape{}} }

func (r result) isFailure() bool { return r.truth == truth{} && r.fails }

func (r result) isNull() bool { return r.shape.Type == Null }

// isObject reports whether the value is surely an object.
func (r result) isObject() bool { return r.shape.Type == "object" && r.shape.IsSet }

// neverSucceeds reports whether whatever is done with the value fails, but for comparisons with null.
func (r result) neverSucceeds() bool { return r.isFailure() || r.isNull() }

func boolean(t truth, fails bool) result {
	return result{truth: t, fails: fails, shape: &Shape{Type: "boolean"}}
}

// describe says what is allowed for the value at a path, with an example.
func describe(path string, s *Shape) string {
	switch {
	case s.Enum != nil && len(s.Enum) <= 8:
		return fmt.Sprintf("`%s` is one of '%s'", path, strings.Join(s.Enum, "', '"))
	case s.Min != nil && s.Max != nil:
		return fmt.Sprintf("`%s` is %s to %s", path, show(*s.Min), show(*s.Max))
	case s.Min != nil:
		return fmt.Sprintf("`%s` is at least %s", path, show(*s.Min))
	case s.Max != nil:
		return fmt.Sprintf("`%s` is at most %s", path, show(*s.Max))
	}
	return ""
}

func show(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.6f", f), ".000000") }
