package plan

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A builder makes the steps of a plan.
type builder struct {
	compiler                       *ast.Compiler
	slots, lists, bodies, rulesets int
	byName                         map[string]*ruleset
	signatures                     map[string]signature // by the path of the rules
	later                          []func()             // makes what steps refer to that exist already
	refused                        error                // the first thing that has no step
	reads                          []reading
	targets                        []ast.Ref // of the document data, which with replaces
}

// A reading is a part of the document data that is read in one piece.
type reading struct {
	ref    ast.Ref
	goesOn bool // by keys that are known when the step runs
}

// refuse notes that there is no step for something.
func (b *builder) refuse(format string, args ...any) {
	if b.refused == nil {
		b.refused = fmt.Errorf(format, args...)
	}
}

func next(counter *int) int {
	*counter++
	return *counter - 1
}

// A scope makes the steps of a body, one after the other. It knows which variables have a value
// when the next step runs.
type scope struct {
	*builder
	known map[ast.Var]source
	refs  map[string]int // the values of references that a step before put into slots
	steps []link
	// isValue says that the body's end gives a rule its only value.
	isValue bool
}

func newScope(b *builder) *scope {
	return &scope{builder: b, known: map[ast.Var]source{}, refs: map[string]int{}}
}

// inner begins a body within this one, which sees the variables.
func (s *scope) inner() *scope {
	return &scope{builder: s.builder, known: maps.Clone(s.known), refs: maps.Clone(s.refs)}
}

func (s *scope) add(l link) { s.steps = append(s.steps, l) }

// slot returns a free slot.
func (s *scope) slot() int { return next(&s.slots) }

// end returns the first step of the scope's, whose last one is followed by an end.
func (s *scope) end(last step) step {
	for i := len(s.steps) - 1; i >= 0; i-- {
		s.steps[i].follow(last)
		last = s.steps[i]
	}
	return last
}

// known returns the source of a term's value, without a step; false if the term has variables
// without a value, or must be evaluated.
func (s *scope) source(t *ast.Term) (source, bool) {
	switch v := t.Value.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		return source{term: t}, true
	case ast.Var:
		from, ok := s.known[v]
		return from, ok
	case *ast.Array, ast.Set, ast.Object:
		if ast.IsConstant(v) {
			return source{term: t}, true
		}
		return s.made(v)
	}
	return source{}, false
}

// made is the source of a container with variables.
func (s *scope) made(v ast.Value) (source, bool) {
	all := true
	put := func(to *[]source, t *ast.Term) {
		from, ok := s.source(t)
		*to, all = append(*to, from), all && ok
	}
	switch v := v.(type) {
	case *ast.Array:
		made := &newArray{}
		v.Foreach(func(t *ast.Term) { put(&made.items, t) })
		return source{made: made}, all
	case ast.Set:
		made := &newSet{}
		v.Foreach(func(t *ast.Term) { put(&made.items, t) })
		return source{made: made}, all
	case ast.Object:
		made := &newObject{}
		v.Foreach(func(key, value *ast.Term) {
			put(&made.keys, key)
			put(&made.values, value)
		})
		return source{made: made}, all
	}
	return source{}, false
}

// name is the same for two sources if they have the same value for sure; empty if that is unknown.
func (s *source) name() string {
	switch {
	case s.made != nil:
		return ""
	case s.term != nil:
		return ast.ValueName(s.term.Value) + strings.ReplaceAll(s.term.String(), "|", "||")
	}
	return "#" + strconv.Itoa(s.slot)
}
