package syntax

import (
	"strings"
	"sync"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

const (
	// maxLength is how many bytes of an expression are parsed.
	maxLength = 20_000
	// maxNesting is how many tokens that nest may be between two that end all nesting. cel-go allows 250 levels; each such
	// token adds at most two to those of one rule of its grammar.
	maxNesting = 120
)

// A Parser parses expressions. It is safe for concurrent use.
type Parser struct {
	macros map[call]parser.Macro
	states sync.Pool // of *tree
}

// A call is what a macro stands for: a function with so many arguments, -1 for any.
type call struct {
	function string
	args     int
	isMember bool
}

// New returns a parser that expands macros, and notes the calls that they stood for.
func New(macros []parser.Macro) *Parser {
	p := &Parser{macros: make(map[call]parser.Macro, len(macros))}
	for _, m := range macros {
		of := call{m.Function(), m.ArgCount(), m.IsReceiverStyle()}
		if strings.Contains(m.MacroKey(), ":*:") {
			of.args = -1
		}
		p.macros[of] = m
	}
	return p
}

// Parse parses an expression. It returns nil if it declines.
func (p *Parser) Parse(expression string, source common.Source) *ast.AST {
	if len(expression) > maxLength {
		return nil
	}
	t, isKept := p.states.Get().(*tree)
	if !isKept {
		t = &tree{Parser: p, ExprFactory: ast.NewExprFactoryWithAccumulator(parser.HiddenAccumulatorName)}
	}
	defer p.states.Put(t)
	var isScanned bool
	if t.tokens, isScanned = scan(expression, t.tokens); !isScanned || nests(t.tokens) {
		return nil
	}
	t.text, t.info, t.at, t.nextID, t.isDeclined = expression, ast.NewSourceInfo(source), 0, 1, false
	root := t.expr()
	t.need(end)
	made := ast.NewAST(root, t.info)
	t.text, t.info = "", nil
	if t.isDeclined {
		return nil
	}
	return made
}

// nests reports whether an expression may nest deeper than cel-go allows.
func nests(tokens []token) bool {
	open, nesting := 0, 0
	for _, t := range tokens {
		switch t.kind {
		case and, or:
			if open == 0 {
				nesting = 0
			}
		case '(', '[', '{':
			open++
			nesting++
		case ')', ']', '}':
			open--
		case identifier, quotedIdentifier, integer, unsigned, double, text, isTrue, isFalse, null, ',', ':', end:
		default:
			nesting++
		}
		if nesting > maxNesting {
			return true
		}
	}
	return false
}

// A tree is an expression that is being parsed. Its methods are the rules of cel-go's grammar, and number the nodes in the order
// in which cel-go does.
type tree struct {
	*Parser
	ast.ExprFactory
	text       string
	info       *ast.SourceInfo
	tokens     []token
	at         int // of the next token
	nextID     int64
	isDeclined bool
}

// decline ends the parsing.
func (t *tree) decline() {
	t.isDeclined = true
	t.at = len(t.tokens) - 1
}

// next is the kind of the next token.
func (t *tree) next() kind { return t.tokens[t.at].kind }

// take goes on if the next token is of a kind.
func (t *tree) take(k kind) bool {
	if t.next() != k || k == end {
		return false
	}
	t.at++
	return true
}

// need goes on by a token of a kind, which must be there.
func (t *tree) need(k kind) {
	if t.next() != k {
		t.decline()
	} else if k != end {
		t.at++
	}
}

// taken is the token that was taken last.
func (t *tree) taken() token { return t.tokens[t.at-1] }

func (t *tree) textOf(k token) string { return t.text[k.begin:k.end] }

// id returns the next number, for a node at a place.
func (t *tree) id(place ast.OffsetRange) int64 {
	id := t.nextID
	t.info.SetOffsetRange(id, place)
	t.nextID++
	return id
}

// idOf returns the next number, for a node whose place is that of a token.
func (t *tree) idOf(k token) int64 { return t.id(placeOf(k)) }

// placeOf is the place of a token. Its end counts bytes, as in cel-go.
func placeOf(k token) ast.OffsetRange {
	return ast.OffsetRange{Start: k.at, Stop: k.at + k.end - k.begin}
}

func (t *tree) expr() ast.Expr {
	condition := t.or()
	if !t.take('?') {
		return condition
	}
	id := t.idOf(t.taken())
	yes := t.or()
	t.need(':')
	no := t.expr()
	return t.operation(id, operators.Conditional, condition, yes, no)
}

func (t *tree) or() ast.Expr { return t.logic(or, operators.LogicalOr, t.and) }

func (t *tree) and() ast.Expr { return t.logic(and, operators.LogicalAnd, t.relation) }

// logic parses terms with a logical operator between them.
func (t *tree) logic(k kind, operator string, term func() ast.Expr) ast.Expr {
	first := term()
	if t.next() != k {
		return first
	}
	terms, ids := []ast.Expr{first}, []int64{}
	for t.take(k) {
		between := t.taken()
		terms = append(terms, term())
		ids = append(ids, t.idOf(between))
	}
	return t.balanced(operator, terms, ids)
}

// balanced makes a tree of terms that is as flat as it can be. There is one operator less than terms.
func (t *tree) balanced(operator string, terms []ast.Expr, ids []int64) ast.Expr {
	if len(terms) == 1 {
		return terms[0]
	}
	middle := len(ids) / 2
	left := t.balanced(operator, terms[:middle+1], ids[:middle])
	right := t.balanced(operator, terms[middle+1:], ids[middle+1:])
	return t.NewCall(ids[middle], operator, left, right)
}

func (t *tree) relation() ast.Expr { return t.infix(relationOf, t.sum) }

func (t *tree) sum() ast.Expr { return t.infix(sumOf, t.product) }

func (t *tree) product() ast.Expr { return t.infix(productOf, t.unary) }

// infix parses operands with operators between them that count from the left.
func (t *tree) infix(operatorOf func(kind) string, operand func() ast.Expr) ast.Expr {
	left := operand()
	for {
		operator := operatorOf(t.next())
		if operator == "" {
			return left
		}
		t.at++
		id := t.idOf(t.taken())
		left = t.operation(id, operator, left, operand())
	}
}

func relationOf(k kind) string {
	switch k {
	case '<':
		return operators.Less
	case atMost:
		return operators.LessEquals
	case atLeast:
		return operators.GreaterEquals
	case '>':
		return operators.Greater
	case equal:
		return operators.Equals
	case notEqual:
		return operators.NotEquals
	case in:
		return operators.In
	}
	return ""
}

func sumOf(k kind) string {
	switch k {
	case '+':
		return operators.Add
	case '-':
		return operators.Subtract
	}
	return ""
}

func productOf(k kind) string {
	switch k {
	case '*':
		return operators.Multiply
	case '/':
		return operators.Divide
	case '%':
		return operators.Modulo
	}
	return ""
}

func (t *tree) unary() ast.Expr {
	switch k := t.next(); {
	case k == '!':
		return t.prefix(k, operators.LogicalNot)
	case k == '-' && !t.isSigned():
		return t.prefix(k, operators.Negate)
	}
	return t.member()
}

// isSigned reports whether a number with its sign follows.
func (t *tree) isSigned() bool {
	if t.next() != '-' {
		return false
	}
	k := t.tokens[t.at+1].kind
	return k == integer || k == double
}

// prefix parses operators of one kind before an operand. Two of them cancel each other.
func (t *tree) prefix(k kind, operator string) ast.Expr {
	first, isOdd := t.tokens[t.at], false
	for t.take(k) {
		isOdd = !isOdd
	}
	if !isOdd {
		return t.member()
	}
	id := t.idOf(first)
	return t.operation(id, operator, t.member())
}

// member parses an operand and what follows it: members, indexes and calls.
func (t *tree) member() ast.Expr {
	e := t.primary()
	for {
		switch {
		case t.take('.'):
			e = t.selected(e)
		case t.take('['):
			id, operator := t.idOf(t.taken()), operators.Index
			if t.take('?') {
				operator = operators.OptIndex
			}
			index := t.expr()
			t.need(']')
			e = t.operation(id, operator, e, index)
		default:
			return e
		}
	}
}

// selected parses what follows a dot.
func (t *tree) selected(operand ast.Expr) ast.Expr {
	dot, isOptional := t.taken(), t.take('?')
	name, isQuoted := t.name()
	named := t.taken()
	switch {
	case t.isDeclined:
		return nil
	case isOptional:
		literal := t.NewLiteral(t.idOf(named), types.String(name))
		return t.NewCall(t.idOf(dot), operators.OptSelect, operand, literal)
	case !isQuoted && t.take('('):
		id := t.idOf(t.taken())
		return t.called(id, name, operand, t.args())
	}
	return t.NewSelect(t.idOf(dot), operand, name)
}

// name takes the name of a member.
func (t *tree) name() (name string, isQuoted bool) {
	switch {
	case t.take(identifier):
		return t.textOf(t.taken()), false
	case t.take(quotedIdentifier):
		quoted := t.textOf(t.taken())
		return quoted[1 : len(quoted)-1], true
	}
	t.decline()
	return "", false
}

// args parses the arguments of a call behind the bracket.
func (t *tree) args() []ast.Expr {
	if t.take(')') {
		return []ast.Expr{}
	}
	args := []ast.Expr{t.expr()}
	for t.take(',') {
		args = append(args, t.expr())
	}
	t.need(')')
	return args
}

func (t *tree) primary() ast.Expr {
	switch {
	case t.take('('):
		e := t.expr()
		t.need(')')
		return e
	case t.take('['):
		return t.list()
	case t.take('{'):
		return t.mapping()
	case t.take('.'):
		return t.reference(".")
	case t.next() == identifier:
		return t.reference("")
	}
	return t.literal()
}

// reference parses a name that refers to a variable, a function or a type of objects.
func (t *tree) reference(dot string) ast.Expr {
	if t.isObject() {
		return t.object(dot)
	}
	t.need(identifier)
	if t.isDeclined {
		return nil
	}
	named := t.taken()
	name := t.textOf(named)
	if isReserved(name) {
		t.decline()
		return nil
	}
	if t.take('(') {
		id := t.idOf(t.taken())
		return t.called(id, dot+name, nil, t.args())
	}
	return t.NewIdent(t.idOf(named), dot+name)
}

// isReserved reports whether no variable and no function has a name.
func isReserved(name string) bool {
	switch name {
	case "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return",
		"var", "void", "while":
		return true
	}
	return false
}

// isObject reports whether the name of a type follows, and a brace after it.
func (t *tree) isObject() bool {
	at := t.at
	for t.tokens[at].kind == identifier {
		switch t.tokens[at+1].kind {
		case '{':
			return true
		case '.':
			at += 2
		default:
			return false
		}
	}
	return false
}

// object parses an object of a type.
func (t *tree) object(dot string) ast.Expr {
	var name strings.Builder
	name.WriteString(dot)
	for !t.take('{') {
		name.WriteString(t.textOf(t.tokens[t.at]))
		t.at++
	}
	id, fields := t.idOf(t.taken()), []ast.EntryExpr{}
	t.each('}', func() {
		isOptional := t.take('?')
		field, _ := t.name()
		t.need(':')
		if t.isDeclined {
			return
		}
		at := t.idOf(t.taken())
		fields = append(fields, t.NewStructField(at, field, t.expr(), isOptional))
	})
	return t.NewStruct(id, name.String(), fields)
}

// each parses parts with commas between them up to a bracket, before which a comma may stand, too.
func (t *tree) each(closing kind, part func()) {
	if t.take(',') {
		t.need(closing)
		return
	}
	for !t.take(closing) {
		part()
		if !t.take(',') {
			t.need(closing)
			return
		}
	}
}

func (t *tree) list() ast.Expr {
	id := t.idOf(t.taken())
	items, optional := []ast.Expr{}, []int32{}
	t.each(']', func() {
		if t.take('?') {
			optional = append(optional, int32(len(items)))
		}
		items = append(items, t.expr())
	})
	return t.NewList(id, items, optional)
}

func (t *tree) mapping() ast.Expr {
	id, entries := t.idOf(t.taken()), []ast.EntryExpr{}
	t.each('}', func() {
		at := t.nextID // an entry has its number before its key, and the place of the colon
		t.nextID++
		isOptional := t.take('?')
		key := t.expr()
		t.need(':')
		if t.isDeclined {
			return
		}
		t.info.SetOffsetRange(at, placeOf(t.taken()))
		entries = append(entries, t.NewMapEntry(at, key, t.expr(), isOptional))
	})
	return t.NewMap(id, entries)
}

// operation makes a call of an operator.
func (t *tree) operation(id int64, operator string, args ...ast.Expr) ast.Expr {
	return t.called(id, operator, nil, args)
}

// called makes a call, or what a macro makes of it. target is nil for a function that is not called on a value.
func (t *tree) called(id int64, function string, target ast.Expr, args []ast.Expr) ast.Expr {
	if t.isDeclined {
		return nil
	}
	if e := t.expand(id, function, target, args); e != nil || t.isDeclined {
		return e
	}
	if target == nil {
		return t.NewCall(id, function, args...)
	}
	return t.NewMemberCall(id, function, target, args...)
}
