package builtin

import (
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// A pattern is a regular expression with the bounds of its program. A client may have written it.
type pattern struct {
	*regexp.Regexp
	steps int64 // of its program
	plain int64 // steps of a search that needs no meter
	looks bool  // it looks at what is before a match
	after *regexp.Regexp
}

const (
	instructionBytes = 256 // an instruction of a program, with what compiling it takes
	sourceBytes      = 192 // a byte of a pattern, parsed
	classBytes       = 16 << 10
	// plainSteps are so few that a search needs no meter.
	plainSteps = 1 << 20
)

// A patternCache keeps the patterns of modules, which are the same for each request, as long as all
// of them take little.
type patternCache[P any] struct {
	mu    sync.RWMutex
	known map[string]cached[P]
	bytes int64
}

type cached[P any] struct {
	pattern P
	bytes   int64
}

const (
	maxCached    = 8 << 20
	maxCachedOne = 256 << 10
)

func (c *patternCache[P]) get(key string) (P, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry, ok := c.known[key]
	return entry.pattern, ok
}

// put keeps a pattern that takes so many bytes, unless they are many. Any others give way.
func (c *patternCache[P]) put(key string, p P, bytes int64) {
	bytes += 2 * int64(len(key))
	if bytes > maxCachedOne {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[key]; ok {
		return
	}
	if c.known == nil {
		c.known = map[string]cached[P]{}
	}
	for other, entry := range c.known {
		if c.bytes+bytes <= maxCached {
			break
		}
		delete(c.known, other)
		c.bytes -= entry.bytes
	}
	key = strings.Clone(key)
	c.known[key] = cached[P]{p, bytes}
	c.bytes += bytes
}

// compile compiles a pattern if the budget allows for its program.
func (r *regexps) compile(bctx topdown.BuiltinContext, b Budget, text string) (*pattern, error) {
	if p, ok := r.cache.get(text); ok {
		return p, nil
	}
	tree, held, err := parsePattern(bctx, b, text)
	defer func() { b.Return(held) }()
	if err != nil {
		return nil, err
	}
	steps := programSteps(tree)
	cost := multiply(instructionBytes, steps)
	if !b.Spend(cost) {
		return nil, halt(b, bctx.Location)
	}
	held += cost
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{Regexp: re, steps: steps, plain: r.plain, looks: looksBack(tree)}
	if p.looks {
		if p.after, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + tree.String() + `)`); err != nil {
			return nil, err
		}
	}
	r.cache.put(text, p, cost)
	return p, nil
}

// parsePattern parses a pattern if the budget allows for the tree. What it took has to be given
// back.
func parsePattern(bctx topdown.BuiltinContext, b Budget, text string) (_ *syntax.Regexp, held int64, err error) {
	held = multiply(sourceBytes, int64(len(text))) +
		classBytes*int64(strings.Count(text, `\p`)+strings.Count(text, `\P`)+strings.Count(text, `[:`))
	if strings.Contains(text, "(?") {
		held += classBytes * int64(strings.Count(text, "[")) // it may ignore case
	}
	if !b.Spend(held) {
		return nil, 0, halt(b, bctx.Location)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	return tree, held, err
}

// programSteps returns about how many instructions the program of a pattern has. The parser bounds
// how deep it is nested.
func programSteps(re *syntax.Regexp) int64 {
	sum := int64(0)
	for _, sub := range re.Sub {
		sum = add(sum, programSteps(sub))
	}
	switch re.Op {
	case syntax.OpLiteral:
		return int64(len(re.Rune)) + 1
	case syntax.OpCharClass:
		return 1 + int64(len(re.Rune))/32
	case syntax.OpRepeat:
		times := int64(max(re.Max, re.Min+1))
		return multiply(times, sum+1)
	}
	return add(sum, 2+int64(len(re.Sub)))
}

// looksBack reports whether a pattern looks at what is before the place of its match.
func looksBack(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if looksBack(sub) {
			return true
		}
	}
	return false
}

// A metered is a text that is read rune by rune, and asks the budget as it is read.
type metered struct {
	text string
	each int64
	*meter
}

// ReadRune implements io.RuneReader.
func (r *metered) ReadRune() (c rune, size int, err error) {
	if len(r.text) == 0 || !r.take(r.each) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

// cost returns what each rune of a text costs, at most, that is searched with so many places for
// groups.
func (p *pattern) cost(groups int64) int64 { return 1 + multiply(p.steps, 1+groups/8)/4 }

// threads returns what the states of a search take: each place of the program has one, with room
// for all groups.
func (p *pattern) threads() int64 {
	return multiply(32, multiply(p.steps, 1+int64(p.NumSubexp())))
}

// matches reports whether a text has a match.
func (p *pattern) matches(b Budget, text string) (bool, error) {
	threads := p.threads()
	if threads > chunk {
		if !b.Spend(threads) {
			return false, errBudget
		}
		defer b.Return(threads)
	}
	if multiply(p.steps, int64(len(text))) <= p.plain {
		return p.MatchString(text), nil
	}
	m := &meter{budget: b}
	found := p.MatchReader(&metered{text, p.cost(0), m})
	if !m.ask() {
		return false, errBudget
	}
	return found, nil
}

// all calls f with the places of at most limit matches, and of their groups if they are wanted, as
// FindAll finds them; a limit below 0 means no limit. A pattern may look at the rest of the text
// for each of its matches, so the work is metered.
func (p *pattern) all(b Budget, text string, limit int, wantsGroups bool, f func(match []int) bool) error {
	if limit < 0 {
		limit = len(text) + 1
	}
	groups := int64(1)
	if wantsGroups {
		groups += int64(p.NumSubexp())
	}
	n := int64(len(text))
	threads := p.threads()
	if threads > chunk {
		if !b.Spend(threads) {
			return errBudget
		}
		defer b.Return(threads)
	}
	if room := multiply(p.steps, groups); multiply(room, multiply(n, n/8+1)) <= p.plain {
		b.Spend(n)
		found := [][]int(nil)
		if wantsGroups {
			found = p.FindAllStringSubmatchIndex(text, limit)
		} else {
			found = p.FindAllStringIndex(text, limit)
		}
		for _, match := range found {
			if !f(match) {
				return errBudget
			}
		}
		return nil
	}
	m := &meter{budget: b}
	last := -1
	for at, count := 0, 0; count < limit && at <= len(text); {
		match := p.next(m, text, at, groups, wantsGroups)
		if !m.take(32 + 16*groups) {
			return errBudget
		}
		if match == nil {
			break
		}
		isEmptyAgain := false
		if match[1] == at {
			isEmptyAgain = match[0] == last // an empty match right after another one does not count
			_, size := utf8.DecodeRuneInString(text[at:])
			at += max(size, 1)
		} else {
			at = match[1]
		}
		last = match[1]
		if isEmptyAgain {
			continue
		}
		if !f(match) {
			return errBudget
		}
		count++
	}
	if !m.ask() {
		return errBudget
	}
	return nil
}

// next returns the first match that begins at a place of the text or after it.
func (p *pattern) next(m *meter, text string, at int, groups int64, wantsGroups bool) (match []int) {
	from, re := at, p.Regexp
	if p.looks && at > 0 {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		from, re = at-size, p.after
	}
	reader := &metered{text[from:], p.cost(groups), m}
	if wantsGroups || re == p.after {
		match = re.FindReaderSubmatchIndex(reader)
	} else {
		match = re.FindReaderIndex(reader)
	}
	if match == nil || m.over {
		return nil
	}
	if re == p.after {
		match = match[2:]
	}
	for i := range match {
		if match[i] >= 0 {
			match[i] += from
		}
	}
	return match
}

// wasOver turns the error of a meter into the one that ends the evaluation.
func wasOver(bctx topdown.BuiltinContext, b Budget, err error) error {
	if errors.Is(err, errBudget) {
		return halt(b, bctx.Location)
	}
	return err
}
