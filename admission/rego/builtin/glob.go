package builtin

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gobwas/glob"
	globsyntax "github.com/gobwas/glob/syntax"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// globs match texts with wildcards. Their library goes back as often as wildcards can be filled in,
// so that a text with many wildcards is matched by the regular expression that says the same.
type globs struct {
	regexps *regexps
	cache   patternCache[*wildcards]
}

// wildcards are a pattern of glob.match.
type wildcards struct {
	*glob.Pattern
	choices int // wildcards, and alternatives
	regexp  func() string
}

func (g *globs) match(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	text, err := builtins.StringOperand(operands[0].Value, 1)
	if err != nil {
		return err
	}
	var separators []rune
	switch operands[1].Value.(type) {
	case ast.Null:
	case *ast.Array:
		if separators, err = builtins.RuneSliceOperand(operands[1].Value, 2); err != nil {
			return err
		}
		if len(separators) == 0 {
			separators = []rune{'.'}
		}
	default:
		return builtins.NewOperandTypeErr(2, operands[1].Value, "array", "null")
	}
	match, err := builtins.StringOperand(operands[2].Value, 3)
	if err != nil {
		return err
	}
	w, err := g.compile(bctx, b, string(text), separators)
	if err != nil {
		return err
	}
	if w.ways(len(match), len(separators)) <= g.regexps.plain {
		return iter(ast.InternedTerm(w.Match(string(match))))
	}
	if !utf8.ValidString(string(match)) {
		return halt(b, bctx.Location)
	}
	p, err := g.regexps.compile(bctx, b, w.regexp())
	if err != nil {
		return err
	}
	found, err := p.matches(b, string(match))
	if err != nil {
		return wasOver(bctx, b, err)
	}
	return iter(ast.InternedTerm(found))
}

// ways returns in how many ways the wildcards can be filled in with a text, at most, and how much
// work it is to try each.
func (w *wildcards) ways(length, separators int) int64 {
	ways := int64(length+1) * int64(separators+1)
	for range w.choices {
		if ways = multiply(ways, int64(length+1)); ways > plainSteps {
			break
		}
	}
	return ways
}

// compile compiles a pattern if the budget allows for it.
func (g *globs) compile(bctx topdown.BuiltinContext, b Budget, text string, separators []rune) (*wildcards, error) {
	key := text + "-" + string(separators)
	if w, ok := g.cache.get(key); ok {
		return w, nil
	}
	groups := int64(strings.Count(text, "{"))
	cost := multiply(4*sourceBytes+8*int64(len(separators)), int64(len(text))) + 2*frameBytes*groups +
		128*multiply(groups, groups)
	if !b.Spend(cost) {
		return nil, halt(b, bctx.Location)
	}
	defer b.Return(cost)
	p, err := glob.Compile(text, separators...)
	if err != nil {
		return nil, err
	}
	w := &wildcards{
		Pattern: p, choices: strings.Count(text, "*") + strings.Count(text, ",") + strings.Count(text, "{"),
		regexp: sync.OnceValue(func() string { return regexpOf(text, separators) }),
	}
	g.cache.put(key, w, cost)
	return w, nil
}

// regexpOf returns the regular expression that says what a pattern says, which has no error.
func regexpOf(text string, separators []rune) string {
	const any = `(?s:.)`
	one := any
	if len(separators) > 0 {
		one = "[^" + classOf(string(separators)) + "]"
	}
	var made strings.Builder
	made.WriteString(`\A(?:`)
	lexer := globsyntax.NewLexer(text)
	for {
		switch token := lexer.Next(); token.Type {
		case globsyntax.EOF, globsyntax.Error:
			made.WriteString(`)\z`)
			return made.String()
		case globsyntax.Text:
			made.WriteString(regexp.QuoteMeta(token.Data))
		case globsyntax.Any:
			made.WriteString(one + "*")
		case globsyntax.Super:
			made.WriteString(any + "*")
		case globsyntax.Single:
			made.WriteString(one)
		case globsyntax.TermsOpen:
			made.WriteString("(?:")
		case globsyntax.TermSeparator:
			made.WriteByte('|')
		case globsyntax.TermsClose:
			made.WriteByte(')')
		case globsyntax.RangeOpen:
			made.WriteByte('[')
			writeClass(&made, lexer)
		}
	}
}

// writeClass writes what is within brackets.
func writeClass(made *strings.Builder, lexer *globsyntax.Lexer) {
	for {
		switch token := lexer.Next(); token.Type {
		case globsyntax.Not:
			made.WriteByte('^')
		case globsyntax.Text, globsyntax.RangeLo, globsyntax.RangeHi:
			made.WriteString(classOf(token.Data))
		case globsyntax.RangeBetween:
			made.WriteByte('-')
		default:
			made.WriteByte(']')
			return
		}
	}
}

// classOf writes letters for a class of a regular expression.
func classOf(letters string) string {
	var made strings.Builder
	for _, c := range letters {
		if c < utf8.RuneSelf && !isWord(byte(c)) || c == '-' || c == '^' {
			made.WriteByte('\\')
		}
		made.WriteRune(c)
	}
	return made.String()
}
