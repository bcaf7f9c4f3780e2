package explain

import (
	"slices"
	"sync"

	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel"
)

// An Explanation holds what is known of an expression besides how it is run.
type Explanation struct {
	program *cel.Program
	field   []step  // of the field that the expression judges; see Field
	operand operand // the expression of a variable

	// what must hold for a condition to be true, and what must for it to be false
	whenTrue, whenFalse *clause

	source *cel.Source // gives whenTrue when it is asked for first; nil: it is there
	once   sync.Once
}

// A clause is a condition taken apart: what must hold, and its parts. It is made once, so that a
// request whose object fails it evaluates only what is needed to find the part that failed.
type clause struct {
	kind   clauseKind
	want   bool   // the value of the expression that holds
	source string // the expression's own text, for what cannot be put in words

	program *cel.Program // the expression; nil if it need not be evaluated again
	parts   []*clause

	// of clauseUnless, and the conditions of the two parts of clauseChoice
	when, otherwise []statement

	*eachItem       // of clauseEach; nil for others
	atom      *atom // of clauseAtom; nil for others
}

// An eachItem is what a clause says of a list whose items it looks at.
type eachItem struct {
	level       int
	over        *cel.Program // gives the items
	items       operand
	names       [2]string    // of the loop's variables
	mapped      *cel.Program // gives the items as the body sees them, if they are made of the items of over
	description sentence     // of the whole list
}

// An atom is a demand on one operand that is not made of others.
type atom struct {
	kind    atomKind
	subject operand
	must    string // as a demand: "must be less than 5"
	is      string // as a statement: "is less than 5"
	// exempts: an alternative of this form says when the others need not hold, such as x != 'a' or !has(x).
	exempts bool
	// past: it compares with what was there before an update.
	past bool
	// supported are the only values, of atomSupported.
	supported []ref.Val
	// size and op bound a size, of atomSize.
	size int64
	op   string
	// keys are the paths that atomUnique compares.
	keys [][]step
	// literal is the value that atomMember looks for; absent: it may not be there.
	literal ref.Val
	absent  bool
}

// An operand is a part of a comparison.
type operand struct {
	kind    operandKind
	place   operandLocation
	literal ref.Val
	list    []ref.Val
	text    string // as a message names it

	// of operandOther: what all the places that it is made of have in common
	about   operandLocation
	located bool
}

type clauseKind uint8

const (
	clauseAtom   clauseKind = iota
	clauseAll               // all parts must hold
	clauseUnless            // the one part must hold when some statements are true
	clauseChoice            // the first part must hold when the program is true, the second otherwise
	clauseEach              // the part must hold for each item
)

type atomKind uint8

const (
	atomOther       atomKind = iota // cannot be put in words
	atomPlain                       // must and is say it all
	atomPresence                    // must be set
	atomAbsence                     // may not be set
	atomSupported                   // must be one of some values
	atomSize                        // must be of some size
	atomImmutable                   // must be what it was
	atomUnique                      // must not occur again
	atomMember                      // must have a member or item
	atomAnyPresence                 // must have one of several members
	atomSentence                    // must and is are whole sentences
)

// operandKind says what is known of an operand.
type operandKind uint8

const (
	operandOther   operandKind = iota
	operandPlace               // stands at one place
	operandLiteral             // is written in the expression
	operandList                // is a list of literals
)

// basis is the kind of variable at which a place begins.
type basis uint8

const (
	baseObject basis = iota // self or object: the object that is validated
	baseOld                 // oldSelf or oldObject
	baseItem                // the only variable of a loop: an item of a list, the name of a member of a map
	baseKey                 // the first of two variables of a loop: the index of an item, the name of a member
	baseMember              // the second of two: the item, the value of a member
	baseChosen              // a variable of the policy that stands for one of several places of the object
	baseOther               // any other variable; its values are not for the client (ERR-7)
)

// sentence says how a list has to be for each of its items to be as wanted.
type sentence struct{ be, is string }

// A statement is a condition under which a demand is made: "`type` is 'Header'".
type statement struct {
	subject operand
	is      string
	text    string // the whole of it, if it concerns several things
	// present: it says no more than that the subject is set, which goes without saying in a demand on what is in it.
	present bool
	// past: it constrains the object before an update, or whether there is one.
	past bool
	// raw: text is CEL.
	raw bool
}

// An operandLocation is the location of an operand: a variable, and the path from it.
type operandLocation struct {
	base   basis
	level  int // of the loop whose item it is
	name   string
	steps  []step
	chosen *Explanation // of the variable, of baseChosen
}

// step is a member, a key of a map or an item of a list.
type step struct {
	name  string
	index int // of an item
	item  bool
	key   bool // a key of a map
}

// knowledge says what the variables of a policy stand for.
type knowledge struct {
	all    []*Explanation // in the order of the variables
	places map[string]int // by their names
}

// ofObject reports whether the operand belongs to the object that is validated, and not to the
// request or the old object.
func (o operand) ofObject() bool {
	if o.kind == operandPlace {
		return o.place.ofObject()
	}
	return o.located
}

// around is an operand that is only about the same as this one.
func (o operand) around() operand {
	if o.kind == operandPlace {
		return operand{about: o.place, located: o.place.ofObject() && o.place.base != baseKey}
	}
	return operand{about: o.about, located: o.located}
}

// about is an operand with the subject of the clause.
func (c *clause) about() operand {
	switch c.kind {
	case clauseAtom:
		return c.atom.subject.around()
	case clauseEach:
		return c.items.around()
	}
	return commonAbout(c.parts)
}

// commonAbout returns the place that the clauses are all about.
func commonAbout(clauses []*clause) operand {
	places := make([]operandLocation, 0, len(clauses))
	for _, c := range clauses {
		if o := c.about(); o.located {
			places = append(places, o.about)
		}
	}
	return commonPlace(places)
}

// commonPlace returns what the places have in common: the places in the innermost loop's item, if
// there are any.
func commonPlace(places []operandLocation) operand {
	var inmost []operandLocation
	for _, p := range places {
		if len(inmost) > 0 && p.level > inmost[0].level {
			inmost = inmost[:0]
		}
		if len(inmost) == 0 || p.level == inmost[0].level {
			inmost = append(inmost, p)
		}
	}
	if len(inmost) == 0 {
		return operand{}
	}
	return operand{about: shared(inmost), located: true}
}

// shared is the beginning that places of one level have in common.
func shared(places []operandLocation) operandLocation {
	first := places[0]
	paths := make([][]step, len(places))
	apart := false
	for i, p := range places {
		paths[i] = p.steps
		apart = apart || p.chosen != first.chosen
	}
	if apart { // which place of the object the variables stand for is known only of a request
		first = operandLocation{base: baseObject}
		for i, p := range places {
			if p.chosen != nil {
				paths[i] = p.chosen.field
			}
		}
	}
	first.steps = commonPrefix(paths)
	return first
}

// exempts reports whether an alternative says when others need not hold.
func (c *clause) exempts() bool {
	switch c.kind {
	case clauseAtom:
		return c.atom.exempts || !c.ofObject()
	case clauseAll:
		for _, part := range c.parts {
			if !part.exempts() {
				return false
			}
		}
		return true
	}
	return false
}

// ofObject reports whether the clause constrains the object that is validated, and not the request
// or the old object.
func (c *clause) ofObject() bool {
	if c.kind != clauseAtom {
		return true
	}
	s := c.atom.subject
	return s.ofObject() && (s.kind != operandPlace || s.place.base != baseKey)
}

func (p operandLocation) equal(q operandLocation) bool {
	return p.base == q.base && p.level == q.level && p.name == q.name && slices.Equal(p.steps, q.steps)
}

// within reports whether the place is another one or in it.
func (p operandLocation) within(q operandLocation) bool {
	return p.base == q.base && p.level == q.level && p.name == q.name &&
		len(p.steps) >= len(q.steps) && slices.Equal(p.steps[:len(q.steps)], q.steps)
}

// follow is the place some steps further.
func (p operandLocation) follow(steps ...step) operandLocation {
	p.steps = append(slices.Clip(p.steps), steps...)
	return p
}

func (p operandLocation) ofObject() bool { return p.base != baseOther && p.base != baseOld }

func commonPrefix(paths [][]step) []step {
	if len(paths) == 0 {
		return nil
	}
	prefix := paths[0]
	for _, path := range paths[1:] {
		n := 0
		for n < len(prefix) && n < len(path) && prefix[n] == path[n] {
			n++
		}
		prefix = prefix[:n]
	}
	return prefix
}
