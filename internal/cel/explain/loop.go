package explain

import (
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// A loop is a comprehension as the macro that it was made of says it.
type loop struct {
	kind   loopKind
	over   celast.Expr
	name   string // of the loop's variable; of an item's index or a member's name if second is set
	second string
	body   celast.Expr // what is asked of each item; of map the result
}

type loopKind uint8

const (
	loopAll loopKind = iota
	loopExists
	loopExistsOne
	loopFilter
	loopMap
)

// loopOf recognises the macros all, exists, exists_one, filter and map (without a condition).
func loopOf(e celast.Expr) (loop, bool) {
	if e.Kind() != celast.ComprehensionKind {
		return loop{}, false
	}
	c := e.AsComprehension()
	l := loop{over: c.IterRange(), name: c.IterVar(), second: c.IterVar2()}
	for _, name := range []string{l.name, l.second} {
		if _, taken := plan.UsesOf[name]; taken || name == plan.NameFrame {
			return loop{}, false // it hides a variable of the environment
		}
	}
	step := c.LoopStep()
	if step.Kind() != celast.CallKind {
		return loop{}, false
	}
	accu := func(e celast.Expr) bool { return e.Kind() == celast.IdentKind && e.AsIdent() == c.AccuVar() }
	call := step.AsCall()
	args := call.Args()
	switch name := call.FunctionName(); {
	case name == operators.LogicalAnd && isLiteral(c.AccuInit(), types.True) && accu(args[0]) && accu(c.Result()):
		l.kind, l.body = loopAll, args[1]
	case name == operators.LogicalOr && isLiteral(c.AccuInit(), types.False) && accu(args[0]) && accu(c.Result()):
		l.kind, l.body = loopExists, args[1]
	case name == operators.Conditional && isLiteral(c.AccuInit(), types.IntZero) && accu(args[2]):
		l.kind, l.body = loopExistsOne, args[0]
	case name == operators.Conditional && empty(c.AccuInit()) && accu(args[2]) && accu(c.Result()):
		kept, ok := added(args[1], accu)
		if !ok || kept.Kind() != celast.IdentKind || kept.AsIdent() != l.name || l.second != "" {
			return loop{}, false
		}
		l.kind, l.body = loopFilter, args[0]
	case name == operators.Add && empty(c.AccuInit()) && accu(c.Result()):
		result, ok := added(step, accu)
		if !ok || l.second != "" {
			return loop{}, false
		}
		l.kind, l.body = loopMap, result
	default:
		return loop{}, false
	}
	return l, true
}

// added is x in accu + [x].
func added(e celast.Expr, accu func(celast.Expr) bool) (celast.Expr, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.Add || len(e.AsCall().Args()) != 2 {
		return nil, false
	}
	args := e.AsCall().Args()
	if !accu(args[0]) || args[1].Kind() != celast.ListKind || args[1].AsList().Size() != 1 {
		return nil, false
	}
	return args[1].AsList().Elements()[0], true
}

func isLiteral(e celast.Expr, v any) bool {
	return e.Kind() == celast.LiteralKind && e.AsLiteral() == v
}

// iterate declares the loop's variables while do runs. Items from elsewhere than the object have a
// text alone.
func (d *deriver) iterate(l loop, over operand, do func()) {
	n := len(d.scope)
	defer func() { d.scope = d.scope[:n] }()
	if over.kind != operandPlace || !over.ofObject() {
		text := "an item of " + over.text
		if over.kind == operandList {
			text = enumerate(literalTexts(over.list), "or")
		} else if over.text == "" {
			text = ""
		}
		if l.second != "" {
			text = ""
		}
		d.scope = append(d.scope, iteration{name: l.name, text: text}, iteration{name: l.second})
		do()
		return
	}
	d.level++
	if d.over == nil {
		d.over = make(map[int]operandLocation)
	}
	d.over[d.level] = over.place
	if l.second == "" {
		d.scope = append(d.scope, iteration{name: l.name, place: operandLocation{base: baseItem, level: d.level},
			known: true, over: over.place})
	} else {
		d.scope = append(d.scope, iteration{name: l.name, place: operandLocation{base: baseKey, level: d.level},
			known: true, over: over.place},
			iteration{name: l.second, place: operandLocation{base: baseMember, level: d.level}, known: true,
				over: over.place})
	}
	do()
	d.level--
}

func (d *deriver) goesThroughMap(e celast.Expr, p operandLocation) bool {
	return d.ast.GetType(e.ID()).Kind() == types.MapKind || isMap(p.steps)
}

// article puts one before a noun phrase of items.
func article(item string) string {
	if strings.HasPrefix(item, "item") {
		return "an " + item
	}
	return "a " + item
}

// items names the items for which the body of the loop is as wanted: "item in which `name` is 'a'".
func (d *deriver) items(l loop, over operand, want bool) (text string, ok bool) {
	noun := d.noun(l, over)
	d.iterate(l, over, func() {
		c := d.words(l.body, want)
		text, ok = described(c.statements(), false)
	})
	text = noun + " " + text
	return text, ok
}

func (d *deriver) itemSubject(l loop, over operand, want bool) (s sentence, ok bool) {
	noun := d.noun(l, over)
	d.iterate(l, over, func() {
		c := d.words(l.body, want)
		if c.kind == clauseAtom && c.atom.kind == atomUnique && c.atom.subject.text == "" {
			s, ok = sentence{"not contain " + article(noun) + " twice", "contains no " + noun + " twice"}, true
			return
		}
		var text string
		if text, ok = described(c.statements(), true); ok {
			text = noun + "s " + text
			s, ok = sentence{"contain only " + text, "contains only " + text}, len(text) <= maxSource
		}
	})
	return s, ok
}

// described puts statements about an item, or about items, behind a noun: "that is 'a' and in which `x` is 'b'".
func described(statements []statement, many bool) (text string, ok bool) {
	var that, which []string
	for _, s := range statements {
		switch {
		case s.raw || s.String() == "":
			return "", false
		case s.text != "" || s.subject.text != "":
			which = append(which, s.String())
		case many:
			that = append(that, plural(s.is))
		default:
			that = append(that, s.is)
		}
	}
	var parts []string
	if len(that) > 0 {
		parts = append(parts, "that "+enumerate(that, "and"))
	}
	if len(which) > 0 {
		parts = append(parts, "in which "+enumerate(which, "and"))
	}
	return strings.Join(parts, " and "), len(parts) > 0
}

// noun names what a loop goes through.
func (d *deriver) noun(l loop, over operand) string {
	if l.second == "" && over.kind == operandPlace && d.goesThroughMap(l.over, over.place) {
		return "key"
	}
	return "item"
}

// plural puts the verb at the beginning of a statement into the plural.
func plural(is string) string {
	verb, rest, _ := strings.Cut(is, " ")
	switch verb {
	case "is":
		verb = "are"
	case "has":
		verb = "have"
	case "does":
		verb = "do"
	case "matches":
		verb = "match"
	default:
		verb = strings.TrimSuffix(verb, "s")
	}
	return strings.TrimSuffix(verb+" "+rest, " ")
}
