package builtin

import (
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
	gintersect "github.com/yashtewari/glob-intersection"
)

// An intersection finds out whether a text may match two patterns of regex.globs_match. It goes the
// ways that OPA's library goes, but each only once.
type intersection struct {
	globs [2]gintersect.Glob
	known map[spot]bool
	sets  int64 // letters that the sets of both have, at most
	meter meter
}

// A spot is a question that comes up again: whether the rests of the patterns from these places on
// have a text in common, asked in one of three ways.
type spot struct {
	way  way
	swap bool // the pattern that leads is the second
	i, j int  // places in the one that leads, and in the other
}

type way uint8

const (
	normal way = iota
	plussed
	starred
)

func globsMatch(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	var x intersection
	x.meter.budget = b
	x.known = map[spot]bool{}
	for i := range x.globs {
		text, err := builtins.StringOperand(operands[i].Value, i+1)
		if err != nil {
			return err
		}
		cost := setsOf(string(text))
		if !b.Spend(cost) {
			return halt(b, bctx.Location)
		}
		defer b.Return(cost)
		x.sets += cost / 64
		if x.globs[i], err = gintersect.NewGlob(string(text)); err != nil {
			return err
		}
	}
	found := x.nonEmpty()
	if !x.meter.ask() {
		return halt(b, bctx.Location)
	}
	return iter(ast.InternedTerm(found))
}

// setsOf returns what the tokens of a pattern take. A set has each of its letters.
func setsOf(text string) int64 {
	cost := 160 * int64(len(text))
	for i := range len(text) {
		if text[i] != '-' {
			continue
		}
		from, _ := utf8.DecodeLastRuneInString(text[:i])
		to, _ := utf8.DecodeRuneInString(text[i+1:])
		if to == '\\' && i+2 < len(text) {
			to, _ = utf8.DecodeRuneInString(text[i+2:])
		}
		cost = add(cost, 64*int64(max(0, to-from)))
	}
	return cost
}

// match reports whether the tokens of the globs have a letter in common.
func (x *intersection) match(t, other gintersect.Token) bool {
	letters := int64(1)
	if t.Type() == gintersect.TTSet && other.Type() == gintersect.TTSet {
		letters = x.sets
	}
	return x.meter.take(letters) && gintersect.Match(t, other)
}

// nonEmpty trims what is alike at both ends, and then looks for ways.
func (x *intersection) nonEmpty() bool {
	one, two := x.globs[0], x.globs[1]
	none := gintersect.Flag(gintersect.FlagNone)
	l := 0
	for ; l < len(one) && l < len(two) && one[l].Flag() == none && two[l].Flag() == none; l++ {
		if !x.match(one[l], two[l]) {
			return false
		}
	}
	if l > 0 {
		l--
	}
	a, b := len(one)-1, len(two)-1
	for ; a >= 0 && a >= l && b >= 0 && b >= l && one[a].Flag() == none && two[b].Flag() == none; a, b = a-1, b-1 {
		if !x.match(one[a], two[b]) {
			return false
		}
	}
	if a < len(one)-1 {
		a++
		b++
	}
	x.globs = [2]gintersect.Glob{one[l : a+1], two[l : b+1]}
	return x.ask(spot{way: normal})
}

// ask answers a question, once.
func (x *intersection) ask(s spot) bool {
	if answer, ok := x.known[s]; ok {
		return answer
	}
	if !x.meter.take(frameBytes) {
		return false
	}
	lead, other := x.globs[0][min(s.i, len(x.globs[0])):], x.globs[1][min(s.j, len(x.globs[1])):]
	if s.swap {
		lead, other = x.globs[1][s.i:], x.globs[0][s.j:]
	}
	answer := false
	switch s.way {
	case normal:
		answer = x.normal(s, lead, other)
	case plussed:
		answer = x.plussed(s, lead, other)
	case starred:
		answer = x.starred(s, lead, other)
	}
	x.known[s] = answer
	return answer
}

func (x *intersection) normal(s spot, lead, other gintersect.Glob) bool {
	i := 0
	for ; i < len(lead) && i < len(other); i++ {
		if lead[i].Flag() != gintersect.FlagNone {
			return x.special(lead[i].Flag(), spot{swap: s.swap, i: s.i + i, j: s.j + i})
		}
		if other[i].Flag() != gintersect.FlagNone {
			return x.special(other[i].Flag(), spot{swap: !s.swap, i: s.j + i, j: s.i + i})
		}
		if !x.match(lead[i], other[i]) {
			return false
		}
	}
	return i == len(lead) && i == len(other)
}

func (x *intersection) special(flag gintersect.Flag, s spot) bool {
	s.way = starred
	if flag == gintersect.FlagPlus {
		s.way = plussed
	}
	return x.ask(s)
}

func (x *intersection) plussed(s spot, lead, other gintersect.Glob) bool {
	if !x.match(lead[0], other[0]) {
		return false
	}
	if x.ask(spot{way: starred, swap: s.swap, i: s.i, j: s.j + 1}) {
		return true
	}
	return other[0].Flag() != gintersect.FlagNone && x.ask(spot{way: normal, swap: s.swap, i: s.i + 1, j: s.j})
}

func (x *intersection) starred(s spot, lead, other gintersect.Glob) bool {
	var next gintersect.Token
	if len(lead) > 1 {
		next = lead[1]
	}
	for i, t := range other {
		if next != nil && x.match(t, next) && x.ask(spot{way: normal, swap: s.swap, i: s.i + 1, j: s.j + i}) {
			return true
		}
		if !x.match(t, lead[0]) {
			return false
		}
	}
	return next == nil
}
