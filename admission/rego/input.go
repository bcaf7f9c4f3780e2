package rego

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/rego/plan"
)

// An Input has what modules know of a request. It belongs to one goroutine; its values may be
// shared.
type Input struct {
	// Root is the whole input; if it is unset, the input is an object of the members below.
	Root Value
	// Review is input.review, Parameters is input.parameters, and HTTP is input.http.
	Review, Parameters, HTTP Value
	// Inventory returns data.inventory; nil: there is none. It is called if a module reads it.
	Inventory func() (Value, error)
	// State has the collections that are read as data.state; nil: there are none.
	State States
	// Deadline is when the request is over; the zero time if it has no deadline.
	Deadline time.Time
	// Memory is asked for what evaluations take; nil bounds it for each evaluation alone.
	Memory Memory
	// Fired is called with the rules that have a value; nil if that is not wanted, for it costs a
	// second evaluation.
	Fired func(Rule)
	// Relaxed is called, after an evaluation, with the first error that counted as an undefined
	// value; it may be nil. Only lenient queries have such errors.
	Relaxed func(error)
	// Shared has what other queries found out about the same Review; nil: each finds all by itself.
	Shared *Shared
	// More are further members of an input without a Root.
	More []Member
	// Evaluated, if set, is called with the value of each rule.
	Evaluated func(rule string, v Value)
}

// Shared keeps what queries find out about one review.
type Shared = plan.Shared

// NewShared returns a Shared for the queries that judge a request. What it keeps is asked of the
// request's memory.
func NewShared(a *admission.Attributes) *Shared {
	return plan.NewShared(MemoryOf(a))
}

// Value is the whole input. The error is that a part of the review cannot be made.
func (in *Input) Value() (Value, error) {
	whole := in.term()
	return Value{term: whole}, in.err()
}

// err returns why a part of the input could not be made.
func (in *Input) err() error { return cmp.Or(in.Root.err(), in.Review.err()) }

// States are the collections behind data.state.
type States interface {
	// Names are the names of the collections.
	Names() []string
	// State returns the objects of a collection, in a list. The error says that they are not known.
	State(name string) (Value, error)
}

// term is the input as a term; nil for none.
func (in *Input) term() *ast.Term {
	if in.Root.Valid() {
		return in.Root.whole()
	}
	members := []Member{{"review", in.Review}, {"parameters", in.Parameters}, {"http", in.HTTP}}
	root := Object(append(members, in.More...)...)
	if root.term.Value.(ast.Object).Len() == 0 {
		return nil
	}
	return root.term
}

// outline is the input as plan.Outline has it; nil for none.
func (in *Input) outline() *ast.Term {
	if in.Root.Valid() {
		return plan.Outline(in.Root.seen())
	}
	shown := *in
	if p := in.Review.part; p != nil && p.Kind() == plan.Object {
		shown.Review = Value{term: ast.InternedEmptyObject}
	}
	return shown.term()
}

// isSet reports whether there is an input at all.
func (in *Input) isSet() bool {
	return in.Root.Valid() || in.Review.Valid() || in.Parameters.Valid() || in.HTTP.Valid() ||
		slices.ContainsFunc(in.More, func(m Member) bool { return m.Value.Valid() })
}

// member is a member of the input; none if there is none.
func (in *Input) member(name string) Value {
	if in.Root.Valid() {
		return in.Root.Get(name)
	}
	switch name {
	case "review":
		return in.Review
	case "parameters":
		return in.Parameters
	case "http":
		return in.HTTP
	}
	for _, m := range in.More {
		if m.Name == name {
			return m.Value
		}
	}
	return Value{}
}

// store is the document data of one evaluation: the program's, and what comes with the request.
type store struct {
	storage.Store // for what no evaluation calls
	data          ast.Value
	input         *Input
}

const (
	inventoryName = "inventory"
	stateName     = "state"
)

// Read implements storage.Store.
func (s *store) Read(_ context.Context, _ storage.Transaction, path storage.Path) (any, error) {
	if len(path) == 0 {
		return s.whole()
	}
	switch {
	case path[0] == inventoryName && s.input.Inventory != nil:
		inventory, err := s.input.Inventory()
		if err != nil {
			return nil, err
		}
		return find(inventory.orEmpty(), path[1:])
	case path[0] == stateName && s.input.State != nil:
		if len(path) == 1 {
			return s.states()
		}
		objects, err := s.input.State.State(path[1])
		if err != nil {
			return nil, err
		}
		return find(objects.term.Value, path[2:])
	}
	return find(s.data, path)
}

// whole is all of data.
func (s *store) whole() (any, error) {
	all := Value{term: ast.NewTerm(s.data)}
	var members []Member
	if s.input.Inventory != nil {
		inventory, err := s.input.Inventory()
		if err != nil {
			return nil, err
		}
		members = append(members, Member{inventoryName, inventory})
	}
	if s.input.State != nil {
		states, err := s.states()
		if err != nil {
			return nil, err
		}
		members = append(members, Member{stateName, Value{term: ast.NewTerm(states)}})
	}
	merged, err := Merge(all, Object(members...))
	if err != nil {
		return nil, err
	}
	return merged.term.Value, nil
}

// states are all collections.
func (s *store) states() (ast.Value, error) {
	var members []Member
	for _, name := range s.input.State.Names() {
		objects, err := s.input.State.State(name)
		if err != nil {
			return nil, err
		}
		members = append(members, Member{name, objects})
	}
	return Object(members...).term.Value, nil
}

// find follows a path. A step into a list is a position.
func find(v ast.Value, path storage.Path) (any, error) {
	for _, step := range path {
		var next *ast.Term
		switch at := v.(type) {
		case ast.Object:
			next = at.Get(ast.StringTerm(step))
		case *ast.Array:
			n, err := ast.ParseTerm(step)
			if err == nil {
				next = at.Get(n)
			}
		}
		if next == nil {
			return nil, errNotFound
		}
		v = next.Value
	}
	return v, nil
}

var errNotFound = &storage.Error{Code: storage.NotFoundErr, Message: "not found"}

// errUnknownState is the error about a collection that no file defines.
var errUnknownState = errors.New("no StateSource has the name")
