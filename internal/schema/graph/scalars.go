package graph

import (
	"regexp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/format"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
)

func (f *filler) enumeration(m document.Node, isConst bool) {
	if !isConst && m.Kind() != document.Array {
		f.refuse(m, "must be a list of values")
		return
	}
	f.s.enum = enumerationOf(listed(m, isConst), f.s.enum)
}

// listed are the values of an enumeration or a constant.
func listed(m document.Node, isConst bool) (values []document.Node) {
	if isConst {
		return []document.Node{m}
	}
	for item := m.First(); item.Valid(); item = item.Next() {
		values = append(values, item)
	}
	return values
}

// enumerationOf makes an enumeration that holds beside another one, which may be nil.
func enumerationOf(values []document.Node, and *keyword.Enum) *keyword.Enum {
	kept := make([]document.Node, len(values))
	for i, v := range values {
		if kept[i] = v; v.Kind() != document.String {
			kept[i] = constant(v.Raw())
		}
	}
	return keyword.ExactEnum(kept, and)
}

// impossible names the values of an enumeration that are not of the schema's type.
func (f *filler) impossible() {
	list, _ := f.at.Get("enum")
	for v := list.First(); v.Valid(); v = v.Next() {
		switch {
		case v.Kind() == document.Null && f.s.isNullable:
		case !f.s.accepts.has(v.Kind()), v.Kind() == document.Number && f.s.isWhole && !v.IsWhole():
			f.warn(v, "must be a value of the schema's type; it is left out of the enumeration")
		}
	}
}

// lists makes one schema of alternatives that only list values; nil if they do not, or if
// a value would match two of which one must.
func lists(branches []document.Node, isOne bool) *node {
	var all []document.Node
	for _, b := range branches {
		var own []document.Node
		for m := b.First(); m.Valid(); m = m.Next() {
			switch key := m.Key(); {
			case (key == "enum" && m.Kind() == document.Array || key == "const") && own == nil:
				own = listed(m, key == "const")
			case key != "type" && (!IsAnnotation(key) || key == "readOnly" || key == "writeOnly"):
				return nil
			}
		}
		if own == nil || len(all)+len(own) > manyListed {
			return nil
		}
		for _, v := range own {
			if isOne && slices.ContainsFunc(all, func(o document.Node) bool { return document.EqualNodes(o, v) }) {
				return nil
			}
		}
		all = append(all, own...)
	}
	return &node{accepts: anyKind, enum: enumerationOf(all, nil), isDirect: true}
}

// manyListed is how many values of alternatives are compared with each other.
const manyListed = 200

// textKeyword compiles the keywords of strings, and `format`, which numbers have too.
func (f *filler) textKeyword(name string, m document.Node) {
	switch name {
	case "minLength":
		f.text().Least = f.count(m)
	case "maxLength":
		f.text().Most = f.count(m)
	case "pattern":
		if p := f.pattern(m, m); p != nil {
			f.text().Pattern, f.text().Shown = p, strings.Clone(m.Str())
		}
	case "format":
		switch {
		case m.Kind() != document.String:
			f.refuse(m, "must be a string")
		case f.isOpenAPI():
			f.format(m)
		}
	}
}

// moreFormats are the formats of strings that JSON Schema does not define and Kubernetes checks. Its
// durations are not among them: they are '1h30m', and in JSON Schema 'PT1H30M'.
var moreFormats = []string{
	"mac", "cidr", "password", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor",
	"rgbcolor", "bsonobjectid", "datetime",
}

// hints are formats that say nothing of what values are right beyond the type.
var hints = []string{"double", "binary", "int-or-string", "quantity"}

// base64 is the format 'byte'. Kubernetes' own expression for it does not know the empty string,
// which encodes nothing.
var base64 = regexp.MustCompile(`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`)

func (f *filler) format(m document.Node) {
	name := m.Str()
	numeric := f.mayBeNumber()
	switch of := textFormat(strings.Clone(name)); {
	case of != nil:
		if f.mayBe("string") {
			f.text().Format = of
		}
	case slices.Contains(hints, name):
	case name == "int32" && numeric:
		f.number().Low, f.number().High = -1<<31, 1<<31-1
	case name == "int64" && numeric:
		f.number().Low, f.number().High = -1<<63, 1<<63-1
	case name == "int32", name == "int64":
	case name == "float":
		f.number().IsSingle = true
	default:
		f.gap(m, "the format '%.80s' is not enforced", name)
	}
}

// textFormat is the format of strings that is checked by this name; nil if there is none.
func textFormat(name string) *format.Format {
	switch {
	case slices.Contains(moreFormats, name):
		return format.Of(name)
	case name == "byte":
		return &format.Format{Name: "byte", Quick: isPlainBase64, Decide: base64.MatchString}
	case name == "regex":
		return &format.Format{Name: name, Decide: isExpression}
	}
	return format.Standard(name)
}

// mayBe reports whether the schema names the type alone, perhaps with null.
func (f *filler) mayBe(name string) bool {
	t, found := f.at.Get("type")
	if !found {
		return true
	}
	return slices.Contains(f.typesOf(t, false), name)
}

// mayBeNumber reports whether the schema names a type of numbers, or none.
func (f *filler) mayBeNumber() bool { return f.mayBe("integer") || f.mayBe("number") }

// isPlainBase64 reports whether a text is base64 without padding, which most is at least up to its
// end.
func isPlainBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c|0x20-'a' >= 26 && c-'0' > 9 && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

// numberKeyword compiles the keywords of numbers.
func (f *filler) numberKeyword(name string, m document.Node) {
	if name == "multipleOf" {
		factor, ok := keyword.ExactFactor(m)
		if !ok {
			f.refuse(m, "must be a number greater than 0, of at most 19 digits")
			return
		}
		f.number().MultipleOf = factor
		return
	}
	isExclusive := name == "exclusiveMinimum" || name == "exclusiveMaximum"
	if isExclusive && m.Kind() == document.Bool && f.isOpenAPI() {
		return // it stands beside the other keyword
	}
	if m.Kind() != document.Number {
		f.refuse(m, "must be a number")
		return
	}
	if !isExclusive && f.isOpenAPI() {
		beside, _ := f.at.Get("exclusiveM" + name[1:])
		isExclusive = beside.Bool()
	}
	b := keyword.ExactBound(constant(m.Raw()), isExclusive)
	r := f.number()
	to, sign := &r.Minimum, 1
	if strings.HasSuffix(name, "aximum") {
		to, sign = &r.Maximum, -1
	}
	if *to != nil {
		c := sign * document.CompareNumbers(b.Exact, (*to).Exact)
		if c < 0 || c == 0 && !isExclusive {
			return // the other one is tighter
		}
	}
	*to = b
}

// pattern compiles an expression of ECMA-262; nil if it is not one of RE2, which is reported at a
// place.
func (f *filler) pattern(m, at document.Node) *pattern.Pattern {
	if m.Kind() != document.String {
		f.refuse(m, "must be a string")
		return nil
	}
	return f.expression(m.Str(), at)
}

func (f *filler) expression(text string, at document.Node) *pattern.Pattern {
	translated := fromECMA(text)
	if p := f.patterns[translated]; p != nil {
		return p
	}
	p, err := pattern.New(strings.Clone(translated))
	if err != nil {
		say := f.gap
		if IsMistaken(err) {
			say = f.warn
		}
		say(at, "is not enforced, because the expression is not one of RE2: %s",
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	}
	f.patterns[p.String()] = p
	return p
}
