package graph

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// Unmet finds what no value can meet of a schema that refers to no others: bounds of which the least is above the most,
// required members that a closed object cannot have, and values that the other keywords do not let be.
func Unmet(n document.Node) (all []Finding) {
	u := &unmet{found: func(f Finding) { all = append(all, f) }}
	u.part(n)
	u.judge()
	return all
}

// unmet finds what no value can meet of a schema that was compiled, by its own keywords and those of the schemas that
// it extends.
func (c *Compiler) unmet(n document.Node) {
	u := &unmet{compiler: c, found: c.report}
	u.part(n)
	u.judge()
}

// unmet looks at a schema and those that it extends.
type unmet struct {
	compiler    *Compiler                 // follows references; nil if there are none
	parts       []document.Node           // the schema comes first
	seen        []uint32                  // they, and what is nothing but a reference
	expressions map[uint32]*regexp.Regexp // by their keywords
	found       func(Finding)
}

func (u *unmet) add(at document.Node, format string, args ...any) {
	u.found(Finding{At: at, Message: fmt.Sprintf(format, args...), Error: true, Unmet: true})
}

func (u *unmet) judge() {
	if len(u.parts) == 0 {
		return
	}
	for _, p := range pairs {
		u.bounds(p)
	}
	u.idle()
	if u.compiler != nil { // other schemas do not let be what they do not name
		u.unnamed()
	}
	u.closed()
	u.types()
	u.values()
}

// maxParts is how many schemas that extend each other are looked at together.
const maxParts = 32

// part takes a schema and those that it extends.
func (u *unmet) part(n document.Node) {
	if n.Kind() != document.Object || len(u.seen) == maxParts || slices.Contains(u.seen, n.Index()) {
		return
	}
	u.seen = append(u.seen, n.Index())
	ref, isReference := n.Get("$ref")
	isReference = isReference && u.compiler != nil && ref.Kind() == document.String
	isAlone := isReference && u.compiler.dialect == OpenAPI30 // nothing counts beside it
	if !isAlone {
		u.parts = append(u.parts, n)
	}
	if isReference {
		if to, err := u.compiler.resolve(ref.Str(), n); err == nil { // what leads nowhere is found elsewhere
			u.part(to)
		}
	}
	list, _ := n.Get("allOf")
	for part := list.First(); part.Valid() && !isAlone; part = part.Next() {
		u.part(part)
	}
}

// A pair is two keywords that bound values of one kind.
type pair struct {
	least, most           string
	aboveLeast, belowMost string // the keywords for bounds that are no value themselves
}

var pairs = [...]pair{
	{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
	{least: "minLength", most: "maxLength"},
	{least: "minItems", most: "maxItems"},
	{least: "minProperties", most: "maxProperties"},
	{least: "minContains", most: "maxContains"},
}

// A limit is a bound of values, and where a schema says it.
type limit struct {
	at       document.Node
	isStrict bool
}

// limit returns the tightest of a keyword's bounds. Sign is 1 for a least value, and -1 for a most.
func (u *unmet) limit(keyword, strict string, sign int) (tightest limit) {
	take := func(l limit) {
		if l.at.Kind() != document.Number {
			return
		}
		if tightest.at.Valid() {
			if c := sign * document.CompareNumbers(l.at, tightest.at); c < 0 || c == 0 && !l.isStrict {
				return
			}
		}
		tightest = l
	}
	for _, p := range u.parts {
		beside, _ := p.Get(strict)
		if m, found := p.Get(keyword); found {
			take(limit{m, beside.Bool()})
		}
		take(limit{beside, true})
	}
	return tightest
}

// bounds finds a least value that is above the most.
func (u *unmet) bounds(p pair) {
	least, most := u.limit(p.least, p.aboveLeast, 1), u.limit(p.most, p.belowMost, -1)
	if u.compiler == nil && p.aboveLeast == "" && most.at.Kind() == document.Number &&
		document.CompareNumbers(most.at, zero) < 0 {
		u.add(most.at, "must be an integer of at least 0")
		return
	}
	if !least.at.Valid() || !most.at.Valid() {
		return
	}
	c := document.CompareNumbers(least.at, most.at)
	isEmpty := c > 0 || c == 0 && (least.isStrict || most.isStrict)
	if p.aboveLeast != "" && !isEmpty && u.isWhole() {
		isEmpty = !hasInteger(least, most)
	}
	if isEmpty {
		u.add(least.at, "no value fits both it and `%s`%s", most.at.Key(), elsewhere(most.at, least.at))
	}
}

// isWhole reports whether numbers must be integers.
func (u *unmet) isWhole() bool {
	return slices.ContainsFunc(u.parts, func(p document.Node) bool {
		t, _ := p.Get("type")
		return t.Is("integer")
	})
}

// hasInteger reports whether there is an integer between two limits. It says so too if they are too large to know.
func hasInteger(least, most limit) bool {
	const exact = 1 << 53
	low, ok := least.at.Float64()
	high, both := most.at.Float64()
	if !ok || !both || math.Abs(low) > exact || math.Abs(high) > exact {
		return true
	}
	first, last := math.Ceil(low), math.Floor(high)
	if least.isStrict && first == low {
		first++
	}
	if most.isStrict && last == high {
		last--
	}
	return first <= last
}

// elsewhere says where a keyword is that is not beside another one.
func elsewhere(m, other document.Node) string {
	if m.Parent().Index() == other.Parent().Index() {
		return ""
	}
	return " in '" + m.Parent().Path() + "'"
}

// idle finds keywords for values that the type of their schema does not let be.
func (u *unmet) idle() {
	n := u.parts[0]
	t, found := n.Get("type")
	names, known := typesIn(t)
	if !found || !known {
		return
	}
	accepts, _, _ := acceptable(names)
	for m := n.First(); m.Valid(); m = m.Next() {
		if of, is := kindOfKeyword(m.Key()); is && !accepts.has(of) && m.Kind() != document.Null {
			u.found(Finding{At: m, Message: fmt.Sprintf("decides nothing: it is for %s, and the type is '%s'",
				manyOf(of), strings.Join(names, "' or '"))})
		}
	}
}

// kindOfKeyword returns which values a keyword is for, if it is for those of one kind.
func kindOfKeyword(name string) (document.Kind, bool) {
	switch name {
	case "minLength", "maxLength", "pattern":
		return document.String, true
	case "minimum", "maximum", "multipleOf":
		return document.Number, true
	case "minItems", "maxItems", "uniqueItems", "items":
		return document.Array, true
	case "minProperties", "maxProperties", "properties", "required":
		return document.Object, true
	}
	return document.Invalid, false
}

// manyOf names the values of a kind.
func manyOf(k document.Kind) string {
	if k == document.Array {
		return "lists"
	}
	return k.String() + "s"
}

// unnamed finds a required member that no property has the name of, and that is perhaps spelled otherwise.
func (u *unmet) unnamed() {
	own, _ := u.parts[0].Get("properties")
	required, _ := u.parts[0].Get("required")
	names := map[string]bool{}
	for _, p := range u.parts {
		properties, _ := p.Get("properties")
		for m := properties.First(); m.Valid(); m = m.Next() {
			names[m.Key()] = true
		}
	}
	for name := required.First(); name.Valid() && own.Len() > 0; name = name.Next() {
		if like := manifest.Suggest(name.Str(), maps.Keys(names)); like != "" && !names[name.Str()] {
			u.found(Finding{At: name, Message: fmt.Sprintf("no property has the name '%.200s'%s", name.Str(), like)})
		}
	}
}

// closed finds required members that an object cannot have, since one of the schemas lets no other members be than its
// own.
func (u *unmet) closed() {
	for _, p := range u.parts {
		rest, _ := p.Get("additionalProperties")
		_, hasPatterns := p.Get("patternProperties")
		if rest.Kind() != document.Bool || rest.Bool() || hasPatterns {
			continue
		}
		properties, _ := p.Get("properties")
		for _, part := range u.parts {
			required, _ := part.Get("required")
			for name := required.First(); name.Valid(); name = name.Next() {
				if _, found := properties.Get(name.Str()); !found && name.Kind() == document.String {
					u.add(name, "can never be met: `additionalProperties: false`%s lets no member '%.200s' be",
						elsewhere(rest, required), name.Str())
				}
			}
		}
		least := u.limit("minProperties", "", 1).at
		if most, ok := least.Int64(); ok && most > int64(properties.Len()) {
			u.add(least, "no value fits both it and `additionalProperties: false`%s, which lets only %d members be", elsewhere(rest, least), properties.Len())
		}
	}
}

// types finds types of which no value has all.
func (u *unmet) types() {
	var first, last document.Node
	left := anyKind
	for _, p := range u.parts {
		t, found := p.Get("type")
		if nullable, _ := p.Get("nullable"); nullable.Bool() {
			return // null may have them
		}
		names, known := typesIn(t)
		if !found || !known {
			continue
		}
		if !first.Valid() {
			first = t
		}
		accepts, _, _ := acceptable(names)
		left, last = left&accepts, t
		if left == 0 {
			u.add(last, "no value fits both it and `type`%s", elsewhere(first, last))
			return
		}
	}
}

// typesIn returns the types that a keyword names; false if it is wrong.
func typesIn(t document.Node) (names []string, known bool) {
	if t.Kind() != document.Array {
		return []string{t.Str()}, slices.Contains(allTypes, t.Str())
	}
	for item := t.First(); item.Valid(); item = item.Next() {
		names = append(names, item.Str())
	}
	return names, !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(allTypes, name) })
}

// values finds values of enumerations and constants that the other keywords do not let be.
func (u *unmet) values() {
	for _, p := range u.parts {
		if list, found := p.Get("enum"); found && list.Kind() == document.Array {
			u.listed(list)
		}
		if value, found := p.Get("const"); found {
			if keyword := u.against(value); keyword.Valid() {
				u.add(value, "no value fits both it and `%s`%s", keyword.Key(), elsewhere(keyword, value))
			}
		}
	}
}

// listed finds values of an enumeration that the other keywords do not let be.
func (u *unmet) listed(list document.Node) {
	isMet := false
	var first document.Node // of the keywords that a value does not meet
	var lost []Finding
	for v := list.First(); v.Valid(); v = v.Next() {
		keyword := u.against(v)
		if !keyword.Valid() {
			isMet = true
			continue
		}
		if !first.Valid() {
			first = keyword
		}
		if keyword.Parent().Index() == list.Parent().Index() { // a schema may extend another one by fewer values
			lost = append(lost, Finding{At: v, Message: fmt.Sprintf("can never be the value: it does not fit `%s`",
				keyword.Key())})
		}
	}
	if first.Valid() && !isMet {
		u.add(list, "no value fits both it and `%s`%s", first.Key(), elsewhere(first, list))
		return
	}
	for _, f := range lost {
		u.found(f)
	}
}

// against returns the keyword of a bound, or a pattern, that a value does not meet; invalid if it meets all.
func (u *unmet) against(v document.Node) document.Node {
	for _, p := range u.parts {
		for m := p.First(); m.Valid(); m = m.Next() {
			if !u.meets(v, m) {
				return m
			}
		}
	}
	return document.Node{}
}

// meets reports whether a value meets a keyword for numbers or texts, or another enumeration. Others are not looked at.
func (u *unmet) meets(v, m document.Node) bool {
	count := utf8.RuneCountInString(v.Str())
	isNumber := v.Kind() == document.Number && m.Kind() == document.Number
	switch m.Key() {
	case "minimum":
		beside, _ := m.Parent().Get("exclusiveMinimum")
		return !isNumber || document.CompareNumbers(v, m) > 0 || !beside.Bool() && document.CompareNumbers(v, m) == 0
	case "maximum":
		beside, _ := m.Parent().Get("exclusiveMaximum")
		return !isNumber || document.CompareNumbers(v, m) < 0 || !beside.Bool() && document.CompareNumbers(v, m) == 0
	case "exclusiveMinimum":
		return !isNumber || document.CompareNumbers(v, m) > 0
	case "exclusiveMaximum":
		return !isNumber || document.CompareNumbers(v, m) < 0
	case "minLength":
		n, ok := m.Int64()
		return !ok || v.Kind() != document.String || int64(count) >= n
	case "maxLength":
		n, ok := m.Int64()
		return !ok || n < 0 || v.Kind() != document.String || int64(count) <= n
	case "pattern":
		if v.Kind() != document.String {
			return true
		}
		expression := u.expression(m)
		return expression == nil || expression.MatchString(v.Str())
	case "type":
		return u.compiler != nil && v.Parent().Kind() == document.Array || isOfType(v, m)
	case "enum":
		return m.Kind() != document.Array || m.Index() == v.Parent().Index() ||
			slices.ContainsFunc(listed(m, false), func(o document.Node) bool { return document.EqualNodes(v, o) })
	}
	return true
}

// expression returns the expression of a pattern; nil if it is not one of RE2.
func (u *unmet) expression(m document.Node) *regexp.Regexp {
	e, known := u.expressions[m.Index()]
	if !known {
		if u.expressions == nil {
			u.expressions = map[uint32]*regexp.Regexp{}
		}
		e, _ = regexp.Compile(fromECMA(m.Str())) // nil with an error, which is found elsewhere
		u.expressions[m.Index()] = e
	}
	return e
}

// isOfType reports whether a value is of the type that a keyword names.
func isOfType(v, t document.Node) bool {
	names, known := typesIn(t)
	nullable, _ := t.Parent().Get("nullable")
	if !known || v.Kind() == document.Null && nullable.Bool() {
		return true
	}
	accepts, isWhole, _ := acceptable(names)
	return accepts.has(v.Kind()) && !(isWhole && v.Kind() == document.Number && !v.IsWhole())
}
