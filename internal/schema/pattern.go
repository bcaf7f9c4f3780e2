package schema

import (
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
)

// pattern is a regular expression as Go reads it (RE2). Most patterns of schemas are small, and most strings that are
// held against them are ASCII: those are decided by a table with one look-up per byte, everything else by package
// regexp. Both answer the same.
type pattern struct {
	text   string
	regexp *regexp.Regexp
	dfa    *automaton // nil when the expression is not for a small table
}

func newPattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{text: text, regexp: re, dfa: newAutomaton(text)}, nil
}

func (p *pattern) matches(s string) bool {
	if p.dfa != nil {
		if matched, decided := p.dfa.match(s); decided {
			return matched
		}
	}
	return p.regexp.MatchString(s)
}

// Bounds of what is worth a table.
const (
	maxStates       = 192
	maxInstructions = 1024
)

// automaton is a deterministic automaton over ASCII.
type automaton struct {
	class   [128]uint8 // of a byte
	classes int
	next    []uint8 // state*classes + class
	start   uint8
	final   []ending // by state
}

type ending uint8

const (
	open     ending = iota
	atEnd           // matches when the string ends here
	matched         // matches whatever follows
	deadEnds        // matches whatever follows never
)

// match decides strings of ASCII; decided is false for others.
func (a *automaton) match(s string) (yes, decided bool) {
	state := int(a.start)
	for i := range len(s) {
		switch a.final[state] {
		case matched:
			return true, true
		case deadEnds:
			return false, true
		}
		c := s[i]
		if c >= 128 {
			return false, false
		}
		state = int(a.next[state*a.classes+int(a.class[c])])
	}
	return a.final[state] == atEnd || a.final[state] == matched, true
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
	b := &builder{prog: prog, seen: map[string]uint8{}, mark: make([]uint32, len(prog.Inst))}
	start, ok := b.add(subset{first: true})
	if !ok {
		return nil
	}
	var rows [][128]uint8
	for at := 0; at < len(b.states); at++ {
		var row [128]uint8
		for c := range 128 {
			to, ok := b.add(b.step(&b.states[at], rune(c)))
			if !ok {
				return nil
			}
			row[c] = to
		}
		rows = append(rows, row)
	}
	return b.compress(start, rows)
}

type builder struct {
	prog   *syntax.Prog
	states []subset
	final  []ending
	seen   map[string]uint8
	mark   []uint32
	round  uint32
}

// add finds or makes the state of a set.
func (b *builder) add(s subset) (uint8, bool) {
	key := s.key()
	if at, ok := b.seen[key]; ok {
		return at, true
	}
	if len(b.states) == maxStates {
		return 0, false
	}
	at := uint8(len(b.states))
	b.seen[key] = at
	b.states = append(b.states, s)
	b.final = append(b.final, b.ending(&s))
	return at, true
}

// closure is what can be reached from a state without reading anything, given where the string stands.
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
		return matched
	}
	if _, match := b.closure(s, true); match {
		return atEnd
	}
	return open
}

// step is the state after one more character.
func (b *builder) step(s *subset, c rune) subset {
	reached, match := b.closure(s, false)
	if match {
		return *s // nothing that follows matters
	}
	var to subset
	for _, pc := range reached {
		if in := &b.prog.Inst[pc]; in.MatchRune(c) {
			to.instructions = append(to.instructions, in.Out)
		}
	}
	slices.Sort(to.instructions)
	to.instructions = slices.Compact(to.instructions)
	return to
}

// compress merges the characters that no state tells apart, and marks the states that nothing leads out of.
func (b *builder) compress(start uint8, rows [][128]uint8) *automaton {
	a := &automaton{start: start, final: b.final}
	columns := map[string]uint8{}
	var kept []int
	for c := range 128 {
		column := make([]byte, len(rows))
		for state := range rows {
			column[state] = rows[state][c]
		}
		class, ok := columns[string(column)]
		if !ok {
			class = uint8(len(kept))
			columns[string(column)] = class
			kept = append(kept, c)
		}
		a.class[c] = class
	}
	a.classes = len(kept)
	for state := range rows {
		stuck := a.final[state] == open
		for _, c := range kept {
			a.next = append(a.next, rows[state][c])
			stuck = stuck && int(rows[state][c]) == state
		}
		if stuck {
			a.final[state] = deadEnds
		}
	}
	return a
}
