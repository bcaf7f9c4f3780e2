package contract

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/quote"
)

// Place is the part of a request that has a parameter.
type Place uint8

// The places in the order in which their failures are named.
const (
	InPath Place = iota
	InQuery
	InHeader
	InCookie
	// InBody is for the fields of a form.
	InBody
)

// String returns the name that documents and failures use.
func (p Place) String() string { return [...]string{"path", "query", "header", "cookie", "body"}[p] }

// PlaceNamed returns the place of that name.
func PlaceNamed(name string) (Place, bool) {
	for p := InPath; p <= InCookie; p++ {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// Type is a type of JSON that a text can stand for.
type Type uint8

// The types, in the order in which a text is tried for them.
const (
	Integer Type = iota
	Number
	Boolean
	String
)

// A Parameter says how the value of a parameter is read.
type Parameter struct {
	In   Place
	Name string
	// Segment is the segment of the path that a parameter in the path is, counted from the last one.
	Segment int
	// Literals are the texts around the variables of a segment with several parts, such as '{from}-{to}', and Variable
	// is which of the variables the parameter is; nil if it is the whole segment.
	Literals []string
	Variable int
	// Types are the types that the text, or each item of a list, may have.
	Types []Type
	Shape Shape
	// Style says what stands before the value of a parameter in the path.
	Style Style
	// Separator stands between the items of a list, or the members of an object, in one text; empty if each is a
	// parameter of its own.
	Separator string
	// Keys says how the names of an object's members are written, and Members how their values are read. Others is for
	// members that are not named; nil takes them for text.
	Keys Keys
	// Items says how the items of a list are written: Scalar or JSON.
	Items   Shape
	Members []Parameter
	Others  *Parameter
	// IsRequired says that the parameter must be there, MayBeEmpty that an empty one means none.
	IsRequired, MayBeEmpty bool
}

// Shape says how the text of a parameter is written.
type Shape uint8

const (
	// Scalar is one value.
	Scalar Shape = iota
	// List is a list of values.
	List
	// JSON is a value that is written in JSON.
	JSON
	// Object is an object whose members are values or lists of values.
	Object
)

// Style says what stands before the value of a parameter in the path.
type Style uint8

const (
	// Simple is nothing.
	Simple Style = iota
	// Label is a dot: .5
	Label
	// Matrix is the name behind a semicolon: ;id=5
	Matrix
	// MatrixEach is Matrix for each item of a list: ;id=5;id=6
	MatrixEach
	// MatrixMembers is a semicolon, with the members of an object behind it: ;R=100;G=200
	MatrixMembers
)

// Keys says how the names of an object's members are written.
type Keys uint8

const (
	// KeysAmong stand before their values, with the same separator: R,100,G,200.
	KeysAmong Keys = iota
	// KeysAssigned stand before their values with an equals sign: R=100,G=200.
	KeysAssigned
	// KeysSpread are names of parameters themselves: R=100&G=200.
	KeysSpread
	// KeysDeep stand in brackets behind the name of the parameter: color[R]=100&color[G]=200.
	KeysDeep
)

// path is how failures name the parameter.
func (p *Parameter) path() *field.Path {
	if p.In == InBody {
		return field.NewPath(p.Name)
	}
	return field.NewPath(p.In.String()).Child(p.Name)
}

// appendBare appends the texts of the value of a styled text; ok is false if it does not have the
// style.
func (p *Parameter) appendBare(to []string, text string) (_ []string, ok bool) {
	if p.Style == Label {
		text, ok = strings.CutPrefix(text, ".")
		return append(to, text), ok
	}
	if text, ok = strings.CutPrefix(text, ";"); !ok {
		return to, false
	}
	if p.Style == MatrixMembers {
		return append(to, text), true
	}
	for more := true; more && ok; {
		one, rest := text, ""
		if more = false; p.Style == MatrixEach {
			one, rest, more = strings.Cut(text, ";")
		}
		name, value, _ := strings.Cut(one, "=")
		to, ok, text = append(to, value), name == p.Name, rest
	}
	return to, ok
}

// styled says how a text must begin.
func (p *Parameter) styled() string {
	switch p.Style {
	case Label:
		return "must begin with '.'"
	case MatrixMembers:
		return "must begin with ';'"
	case MatrixEach:
		return "must have ';" + p.Name + "=' before each value"
	}
	return "must be one value that begins with ';" + p.Name + "='"
}

// member returns how the value of a member is read.
func (p *Parameter) member(name string) *Parameter {
	for k := range p.Members {
		if p.Members[k].Name == name {
			return &p.Members[k]
		}
	}
	if p.Others != nil {
		return p.Others
	}
	return &anyText
}

// anyText reads what is not described.
var anyText = Parameter{Types: []Type{String}}

// appendValue appends the JSON value of a decoded text; ok is false if it has none of the types.
func (p *Parameter) appendValue(to []byte, text string) (_ []byte, ok bool) {
	for _, t := range p.Types {
		switch {
		case t == Integer && isInteger(text), t == Number && isNumber(text), t == Boolean &&
			(text == "true" || text == "false"):
			return append(to, text...), true
		case t == String && utf8.ValidString(text):
			return quote.AppendJSON(to, text), true
		}
	}
	return to, false
}

// expected says what a text must be.
func (p *Parameter) expected() string {
	names := make([]string, 0, len(p.Types))
	for _, t := range p.Types {
		names = append(names, [...]string{"an integer", "a number", "'true' or 'false'", "text in UTF-8"}[t])
	}
	return "must be " + strings.Join(names, " or ")
}

// isInteger reports whether a text is an integer of 64 bits as JSON spells it, without fraction and exponent,
// which many servers do not read in an integer.
func isInteger(s string) bool {
	unsigned := strings.TrimPrefix(s, "-")
	if unsigned == "" || unsigned[0] == '0' && len(unsigned) > 1 || digits(unsigned) < len(unsigned) {
		return false
	}
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// isNumber reports whether a text is a number as JSON spells it.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	n := digits(s)
	if n == 0 || s[0] == '0' && n > 1 {
		return false
	}
	s = s[n:]
	if rest, found := strings.CutPrefix(s, "."); found {
		if n = digits(rest); n == 0 {
			return false
		}
		s = rest[n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n = digits(s)
		return n > 0 && n == len(s)
	}
	return s == ""
}

// digits returns how many digits a text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
