package builtin

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// An own is a function of this package. It asks the budget as it works.
type own func(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error

// regexps are the functions that search for patterns.
type regexps struct {
	plain int64 // steps of a search that needs no meter
	cache patternCache[*pattern]
}

// stringsOf returns the operands that must be strings.
func stringsOf(operands []*ast.Term, count int) ([]string, error) {
	all := make([]string, count)
	for i := range all {
		s, err := builtins.StringOperand(operands[i].Value, i+1)
		if err != nil {
			return nil, err
		}
		all[i] = string(s)
	}
	return all, nil
}

func (r *regexps) match(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	expression, err := builtins.StringOperand(operands[0].Value, 1)
	if err != nil {
		return err
	}
	text, err := builtins.StringOperand(operands[1].Value, 2)
	if err != nil {
		return err
	}
	p, err := r.compile(bctx, b, string(expression))
	if err != nil {
		return err
	}
	found, err := p.matches(b, string(text))
	if err != nil {
		return wasOver(bctx, b, err)
	}
	return iter(ast.InternedTerm(found))
}

func (r *regexps) isValid(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term,
	iter func(*ast.Term) error) error {
	s, ok := operands[0].Value.(ast.String)
	if !ok {
		return iter(ast.InternedTerm(false))
	}
	_, held, err := parsePattern(bctx, b, string(s))
	b.Return(held)
	if isHalt(err) {
		return err
	}
	return iter(ast.InternedTerm(err == nil))
}

func isHalt(err error) bool {
	_, is := err.(topdown.Halt)
	return is
}

// find is regex.find_n, and regex.find_all_string_submatch_n.
func (r *regexps) find(wantsGroups bool) own {
	return func(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
		s, err := stringsOf(operands, 2)
		if err != nil {
			return err
		}
		limit, err := builtins.IntOperand(operands[2].Value, 3)
		if err != nil {
			return err
		}
		p, err := r.compile(bctx, b, s[0])
		if err != nil {
			return err
		}
		found := []*ast.Term{}
		m := &meter{budget: b}
		err = p.all(b, s[1], limit, wantsGroups, func(match []int) bool {
			if !m.take(itemBytes * int64(len(match)) / 2) {
				return false
			}
			if !wantsGroups {
				found = append(found, ast.StringTerm(s[1][match[0]:match[1]]))
				return true
			}
			groups := make([]*ast.Term, len(match)/2)
			for i := range groups {
				part := ""
				if match[2*i] >= 0 {
					part = s[1][match[2*i]:match[2*i+1]]
				}
				groups[i] = ast.StringTerm(part)
			}
			found = append(found, ast.ArrayTerm(groups...))
			return true
		})
		if err != nil {
			return wasOver(bctx, b, err)
		}
		return iter(ast.ArrayTerm(found...))
	}
}

func (r *regexps) split(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	s, err := stringsOf(operands, 2)
	if err != nil {
		return err
	}
	p, err := r.compile(bctx, b, s[0])
	if err != nil {
		return err
	}
	text := s[1]
	if len(s[0]) > 0 && len(text) == 0 {
		return iter(ast.ArrayTerm(ast.StringTerm("")))
	}
	var found []*ast.Term
	begin, end := 0, 0
	m := &meter{budget: b}
	err = p.all(b, text, -1, false, func(match []int) bool {
		end = match[0]
		if match[1] != 0 {
			found = append(found, ast.StringTerm(text[begin:end]))
		}
		begin = match[1]
		return m.take(itemBytes)
	})
	if err != nil {
		return wasOver(bctx, b, err)
	}
	if end != len(text) {
		found = append(found, ast.StringTerm(text[begin:]))
	}
	return iter(ast.ArrayTerm(found...))
}

func (r *regexps) replace(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term,
	iter func(*ast.Term) error) error {
	s, err := stringsOf(operands, 3)
	if err != nil {
		return err
	}
	text, value := s[0], s[2]
	p, err := r.compile(bctx, b, s[1])
	if err != nil {
		return err
	}
	var made []byte
	m := &meter{budget: b}
	last := 0
	err = p.all(b, text, -1, true, func(match []int) bool {
		most := int64(len(value)) + int64(strings.Count(value, "$"))*int64(len(text))
		if !m.take(int64(match[0]-last)) || most > chunk && !m.take(expanded(value, match)) {
			return false
		}
		before := len(made)
		made = append(made, text[last:match[0]]...)
		made = p.ExpandString(made, value, text, match)
		last = match[1]
		return m.take(5 * int64(len(made)-before))
	})
	if err != nil {
		return wasOver(bctx, b, err)
	}
	if !m.take(int64(len(text)-last)) || !m.ask() {
		return halt(b, bctx.Location)
	}
	made = append(made, text[last:]...)
	if string(made) == text {
		return iter(operands[0])
	}
	return iter(ast.InternedTerm(string(made)))
}

// expanded returns how long a replacement may be for a match: each name may stand for any group.
func expanded(value string, match []int) int64 {
	longest := 0
	for i := 0; i+1 < len(match); i += 2 {
		longest = max(longest, match[i+1]-match[i])
	}
	return add(int64(len(value)), multiply(int64(strings.Count(value, "$")), int64(longest)))
}

// templateMatch matches a text with a pattern whose regular expressions are between delimiters.
func (r *regexps) templateMatch(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term,
	iter func(*ast.Term) error) error {
	s, err := stringsOf(operands, 4)
	if err != nil {
		return err
	}
	if len(s[2]) != 1 {
		return fmt.Errorf("start delimiter has to be exactly one character long but is %d long", len(s[2]))
	}
	if len(s[3]) != 1 {
		return fmt.Errorf("end delimiter has to be exactly one character long but is %d long", len(s[2]))
	}
	expression, err := r.ofTemplate(bctx, b, s[0], s[2][0], s[3][0])
	if err != nil {
		return err
	}
	p, err := r.compile(bctx, b, expression)
	if err != nil {
		return err
	}
	found, err := p.matches(b, s[1])
	if err != nil {
		return wasOver(bctx, b, err)
	}
	return iter(ast.InternedTerm(found))
}

// ofTemplate returns the regular expression of a pattern of templateMatch.
func (r *regexps) ofTemplate(bctx topdown.BuiltinContext, b Budget, template string, begin, end byte) (string, error) {
	if !b.Spend(8 * int64(len(template))) {
		return "", halt(b, bctx.Location)
	}
	level, open, last := 0, 0, 0
	var spots [][2]int
	for i := range len(template) {
		switch template[i] {
		case begin:
			if level++; level == 1 {
				open = i
			}
		case end:
			if level--; level == 0 {
				spots = append(spots, [2]int{open, i + 1})
			} else if level < 0 {
				return "", fmt.Errorf(`unbalanced braces in %q`, template)
			}
		}
	}
	if level != 0 {
		return "", fmt.Errorf(`unbalanced braces in %q`, template)
	}
	var made strings.Builder
	made.WriteByte('^')
	for _, spot := range spots {
		part := template[spot[0]+1 : spot[1]-1]
		fmt.Fprintf(&made, "%s(%s)", regexp.QuoteMeta(template[last:spot[0]]), part)
		last = spot[1]
		if err := r.isPart(bctx, b, "^"+part+"$"); err != nil {
			return "", err
		}
	}
	made.WriteString(regexp.QuoteMeta(template[last:]))
	made.WriteByte('$')
	return made.String(), nil
}

// isPart returns the error about a part of a template that is no pattern.
func (r *regexps) isPart(bctx topdown.BuiltinContext, b Budget, text string) error {
	_, held, err := parsePattern(bctx, b, text)
	b.Return(held)
	return err
}
