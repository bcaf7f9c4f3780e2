// Package pattern matches regular expressions as package regexp does, most of them with one look into a table for each
// byte.
package pattern

import (
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
)

// A Pattern is a regular expression as Go reads it (RE2). Most patterns of schemas and policies are
// small, and most strings that are matched against them are ASCII: those are decided by a table
// with one look-up per byte, everything else by package regexp. Both answer the same. A Pattern is
// immutable.
type Pattern struct {
	text   string
	regexp *regexp.Regexp
	table  *automaton // nil when the expression is not for a small table
}

// New compiles an expression. The error is package regexp's.
func New(text string) (*Pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &Pattern{text: text, regexp: re, table: newAutomaton(text)}, nil
}

// String is the expression.
func (p *Pattern) String() string { return p.text }

// Regexp is the expression for callers that need the position of a match.
func (p *Pattern) Regexp() *regexp.Regexp { return p.regexp }

// Match reports whether the string contains a match.
func (p *Pattern) Match(s string) bool {
	if p.table != nil {
		if matched, decided := p.table.match(s); decided {
			return matched
		}
	}
	return p.regexp.MatchString(s)
}

// Bounds of what is worth a table.
const (
	maxStates       = 256
	maxInstructions = 1024
)

// automaton is a deterministic automaton over ASCII. A state is the offset of its row in next;
// nothing that follows can change the states before firstOpen.
type automaton struct {
	class [256]uint8 // of a byte; 0 for bytes beyond ASCII
	next  []uint16   // row of a state + class
	start uint16
	end   []bool // by offset of a state: matches when the string ends here
	// by offset of a state: a bit for each class that leads back to it; none if there are more than 64 classes
	stay []uint64
}

// The states that decide the match, by offset. No row but these is that short, so that others lie
// behind them.
const (
	undecided uint16 = iota // the string is not ASCII
	refused
	matched
	firstOpen
)

// match decides strings of ASCII; decided is false for others.
func (a *automaton) match(s string) (yes, decided bool) {
	state := a.start
	for i := 0; state >= firstOpen; i++ {
		// Most of a string is read in states that lead back to themselves, so that no byte waits
		// for the one before.
		stay := a.stay[state]
		for i < len(s) && stay>>(a.class[s[i]]&63)&1 != 0 {
			i++
		}
		if i >= len(s) {
			return a.end[state], true
		}
		state = a.next[int(state)+int(a.class[s[i]])]
	}
	return state == matched, state != undecided
}

// subset is a set of instructions that a string may have led to, sorted. It is one state.
type subset struct {
	instructions []uint32
	first        bool // nothing has been read yet
}

func (s *subset) key() string {
	b := make([]byte, 0, 4*len(s.instructions)+1)
	for _, pc := range s.instructions {
		b = binary.LittleEndian.AppendUint32(b, pc)
	}
	if s.first {
		b = append(b, 1)
	}
	return string(b)
}

// newAutomaton builds the table by the subset construction; nil when the expression looks at words or lines, or would
// need too large a table.
func newAutomaton(text string) *automaton {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxInstructions {
		return nil
	}
	for i := range prog.Inst {
		if in := &prog.Inst[i]; in.Op == syntax.InstEmptyWidth {
			if syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
				return nil
			}
		}
	}
	b := &builder{prog: prog, seen: map[string]int{}, mark: make([]uint32, len(prog.Inst))}
	b.add(subset{first: true})
	var rows [][128]int
	for at := 0; at < len(b.states); at++ {
		if len(b.states) > maxStates {
			return nil
		}
		rows = append(rows, b.row(at))
	}
	return b.compress(rows)
}

// ending is the answer when a string has led to a state.
type ending uint8

const (
	goesOn ending = iota
	atEnd         // matches when the string ends here
	anyway        // matches whatever follows
)

type builder struct {
	prog   *syntax.Prog
	states []subset
	final  []ending
	seen   map[string]int
	mark   []uint32
	round  uint32
}

// add finds or makes the state of a set.
func (b *builder) add(s subset) int {
	key := s.key()
	if at, ok := b.seen[key]; ok {
		return at
	}
	at := len(b.states)
	b.seen[key] = at
	b.states = append(b.states, s)
	b.final = append(b.final, b.ending(&s))
	return at
}

// closure returns the states that can be reached without reading anything, given the place in the string.
func (b *builder) closure(s *subset, end bool) (reached []uint32, match bool) {
	flags := syntax.EmptyOp(0)
	if s.first {
		flags |= syntax.EmptyBeginText
	}
	if end {
		flags |= syntax.EmptyEndText
	}
	b.round++
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if b.mark[pc] == b.round {
			return
		}
		b.mark[pc] = b.round
		switch in := &b.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(in.Out)
			visit(in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				visit(in.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			reached = append(reached, pc)
		}
	}
	for _, pc := range s.instructions {
		visit(pc)
	}
	visit(uint32(b.prog.Start)) // a match may begin anywhere
	return reached, match
}

func (b *builder) ending(s *subset) ending {
	if _, match := b.closure(s, false); match {
		return anyway
	}
	if _, match := b.closure(s, true); match {
		return atEnd
	}
	return goesOn
}

// row are the states that one more character leads to.
func (b *builder) row(at int) (row [128]int) {
	if b.final[at] == anyway {
		for c := range row {
			row[c] = at // nothing that follows matters
		}
		return row
	}
	reached, _ := b.closure(&b.states[at], false)
	for c := range row {
		var to subset
		for _, pc := range reached {
			if in := &b.prog.Inst[pc]; in.MatchRune(rune(c)) {
				to.instructions = append(to.instructions, in.Out)
			}
		}
		slices.Sort(to.instructions)
		to.instructions = slices.Compact(to.instructions)
		row[c] = b.add(to)
	}
	return row
}

// compress merges the characters that no state distinguishes, and makes states out of what is
// decided.
func (b *builder) compress(rows [][128]int) *automaton {
	a := &automaton{}
	columns := map[string]uint8{}
	kept := []int{-1} // a character of each class; class 0 is all that is not ASCII
	for c := range 128 {
		column := make([]byte, 0, 2*len(rows))
		for state := range rows {
			column = binary.LittleEndian.AppendUint16(column, uint16(rows[state][c]))
		}
		class, ok := columns[string(column)]
		if !ok {
			class = uint8(len(kept))
			columns[string(column)] = class
			kept = append(kept, c)
		}
		a.class[c] = class
	}
	width := len(kept)
	offset := func(state int) uint16 {
		switch {
		case b.final[state] == anyway:
			return matched
		case b.final[state] == goesOn && b.stuck(rows[state], state):
			return refused // whatever follows, ASCII or not
		}
		return firstOpen + uint16(state*width)
	}
	a.next = make([]uint16, int(firstOpen)+len(rows)*width)
	a.end, a.stay = make([]bool, len(a.next)), make([]uint64, len(a.next))
	for state, row := range rows {
		at := int(firstOpen) + state*width
		a.end[at] = b.final[state] == atEnd
		a.next[at] = undecided
		for class := 1; class < width; class++ {
			to := offset(row[kept[class]])
			if a.next[at+class] = to; int(to) == at && width <= 64 {
				a.stay[at] |= 1 << class
			}
		}
	}
	a.start = offset(0)
	return a
}

// stuck reports whether nothing that a string may go on with leads out of a state. A character
// beyond ASCII has no column in the row, so that the instructions themselves are asked for it.
func (b *builder) stuck(row [128]int, state int) bool {
	for _, to := range row {
		if to != state {
			return false
		}
	}
	reached, _ := b.closure(&b.states[state], false)
	return !slices.ContainsFunc(reached, func(pc uint32) bool { return readsBeyondASCII(&b.prog.Inst[pc]) })
}

// readsBeyondASCII reports whether the instruction accepts a character that is not ASCII.
func readsBeyondASCII(in *syntax.Inst) bool {
	switch in.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	if len(in.Rune) == 1 && syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
		for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
			if r > unicode.MaxASCII {
				return true // such as the Kelvin sign for k
			}
		}
	}
	// Ranges are sorted, so that the last rune is the highest.
	return len(in.Rune) > 0 && in.Rune[len(in.Rune)-1] > unicode.MaxASCII
}
