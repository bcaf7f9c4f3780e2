package rego

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
	"github.com/admission-gateway/gateway/internal/document"
)

// A Value is a JSON value as modules see it. It is immutable, safe for concurrent use, and holds
// nothing of the document that it was made of, unless it is the review of a request: see [ReviewOf].
// The zero Value is no value.
type Value struct {
	term *ast.Term
	part reviewValue // of a review; nil: the value is made
}

// Valid reports whether there is a value.
func (v Value) Valid() bool { return v.term != nil || v.part != nil }

// whole returns the value as OPA has it; nil if there is none. It is made for a part of a review, and
// not true if err returns an error then.
func (v Value) whole() *ast.Term {
	if v.part != nil {
		return v.part.Whole()
	}
	return v.term
}

// err returns why a part of a value could not be made.
func (v Value) err() error {
	if v.part == nil {
		return nil
	}
	return v.part.err()
}

// Null is JSON's null.
var Null = Value{term: ast.NullTerm()}

// ValueOf makes a value of a node; none of an invalid one. Numbers keep their digits. It refuses
// numbers with exponents of more than 4 digits, whose decimal form fills the memory, and numbers of
// more than 4096 digits.
func ValueOf(n document.Node) (Value, error) {
	return valueWithin(n, nil)
}

// ValueWithin is ValueOf for a value whose memory is reserved before it is made; nil sets no bound.
// The holder gives it back. The error is ErrNoMemory if that is refused.
func ValueWithin(n document.Node, m Memory) (Value, error) {
	return valueWithin(n, &meter{memory: m})
}

// valueWithin is ValueOf for a value whose memory is asked for, if there is a meter.
func valueWithin(n document.Node, m *meter) (Value, error) {
	if !n.Valid() {
		return Value{}, nil
	}
	c := converter{meter: m}
	t := c.term(n)
	if c.err != nil {
		return Value{}, c.err
	}
	return Value{term: t}, nil
}

// converter makes terms. It takes them, and the bytes of strings, from blocks, since an object has
// many.
type converter struct {
	terms []ast.Term
	block int // the size of the last one of terms
	text  strings.Builder
	items []*ast.Term
	pairs [][2]*ast.Term
	meter *meter
	err   error
}

// What values take by measurement, besides the bytes of strings.
const (
	itemBytes      = 104 // a value in a list
	memberBytes    = 232 // a value in an object, with its key
	containerBytes = 96  // more, for a list or an object
)

// charge asks for what a container takes. It reports whether there may be one.
func (c *converter) charge(n document.Node, each int64) bool {
	if c.err != nil {
		return false
	}
	if c.meter != nil && !c.meter.take(containerBytes+each*int64(n.Len())) {
		c.err = ErrNoMemory
	}
	return c.err == nil
}

// Blocks begin small, for little may be read of a document, and grow to these sizes.
const (
	leastTerms, mostTerms = 8, 32
	leastText, mostText   = 128, 1024
)

func (c *converter) take(v ast.Value) *ast.Term {
	if len(c.terms) == 0 {
		c.block = min(max(2*c.block, leastTerms), mostTerms)
		c.terms = make([]ast.Term, c.block)
	}
	t := &c.terms[0]
	c.terms = c.terms[1:]
	t.Value = v
	return t
}

// own copies a string, which may be part of a request's body.
func (c *converter) own(s string) string {
	if c.text.Cap()-c.text.Len() < len(s) {
		if len(s) > mostText/4 {
			return strings.Clone(s)
		}
		size := min(max(2*c.text.Cap(), leastText, len(s)), mostText)
		c.text = strings.Builder{}
		c.text.Grow(size)
	}
	begin := c.text.Len()
	c.text.WriteString(s)
	return c.text.String()[begin:]
}

func (c *converter) term(n document.Node) *ast.Term {
	switch n.Kind() {
	case document.Object:
		return c.object(n)
	case document.Array:
		return c.array(n)
	case document.String:
		text := n.Str()
		if c.meter != nil && !c.meter.take(int64(len(text))) {
			c.err = ErrNoMemory
			return ast.InternedNullTerm
		}
		return c.take(ast.String(c.own(text)))
	case document.Number:
		return c.number(string(n.Raw()))
	case document.Bool:
		return ast.InternedTerm(n.Bool())
	}
	return ast.InternedNullTerm
}

func (c *converter) number(text string) *ast.Term {
	if err := builtin.CheckNumber(text); err != nil {
		c.err = err
		return ast.InternedNullTerm
	}
	if t := ast.InternedIntNumberTermFromString(text); t != nil {
		return t
	}
	return c.take(ast.Number(json.Number(text)))
}

func (c *converter) object(n document.Node) *ast.Term {
	if !c.charge(n, memberBytes) {
		return ast.InternedNullTerm
	}
	begin := len(c.pairs)
	for m := n.Children(); m.Valid(); m.Next() {
		key := c.key(m.Key())
		value := c.term(m.Node())
		c.pairs = append(c.pairs, [2]*ast.Term{key, value})
	}
	o := ast.NewObject(c.pairs[begin:]...)
	c.pairs = c.pairs[:begin]
	return c.take(o)
}

// key is the term of a key. Objects have the same keys again and again.
func (c *converter) key(name string) *ast.Term {
	if t := knownKeys.Load(); t != nil {
		if known := (*t)[name]; known != nil {
			return known
		}
	}
	if len(name) <= maxKnownKey {
		if t := learnKey(name); t != nil {
			return t
		}
	}
	return c.take(ast.String(c.own(name)))
}

// knownKeys are the terms of keys that were seen before: at most maxKnownKeys, none longer than
// maxKnownKey.
var (
	knownKeys atomic.Pointer[map[string]*ast.Term]
	learning  sync.Mutex
)

const (
	maxKnownKeys = 1024
	maxKnownKey  = 64
)

// learnKey adds a key to the known ones; nil if there are enough.
func learnKey(name string) *ast.Term {
	if t := knownKeys.Load(); t != nil && len(*t) >= maxKnownKeys {
		return nil
	}
	learning.Lock()
	defer learning.Unlock()
	next := map[string]*ast.Term{}
	if t := knownKeys.Load(); t != nil {
		if len(*t) >= maxKnownKeys {
			return nil
		}
		maps.Copy(next, *t)
	}
	name = strings.Clone(name)
	next[name] = ast.StringTerm(name)
	knownKeys.Store(&next)
	return next[name]
}

func (c *converter) array(n document.Node) *ast.Term {
	if !c.charge(n, itemBytes) {
		return ast.InternedNullTerm
	}
	begin := len(c.items)
	for m := n.Children(); m.Valid(); m.Next() {
		c.items = append(c.items, c.term(m.Node()))
	}
	items := append([]*ast.Term(nil), c.items[begin:]...)
	c.items = c.items[:begin]
	return c.take(ast.NewArray(items...))
}

// Text makes a value of a string.
func Text(s string) Value { return Value{term: ast.StringTerm(s)} }

// Flag makes a value of a boolean.
func Flag(b bool) Value { return Value{term: ast.BooleanTerm(b)} }

// A Member is a member of an object that [Object] makes.
type Member struct {
	Name  string
	Value Value
}

// Get returns a member of an object; none if there is no such member.
func (v Value) Get(name string) Value {
	if r, ok := v.part.(*review); ok {
		return r.member(name)
	}
	o, ok := v.whole().Value.(ast.Object)
	if !ok {
		return Value{}
	}
	return Value{term: o.Get(ast.InternedTerm(name))}
}

// Object makes an object of the members that have values. Their names must be unique.
func Object(members ...Member) Value {
	pairs := make([][2]*ast.Term, 0, len(members))
	for _, m := range members {
		if m.Value.Valid() {
			pairs = append(pairs, [2]*ast.Term{ast.InternedTerm(m.Name), m.Value.whole()})
		}
	}
	return Value{term: ast.ObjectTerm(pairs...)}
}

// List makes a list of values.
func List(items ...Value) Value {
	terms := make([]*ast.Term, len(items))
	for i := range items {
		terms[i] = items[i].whole()
	}
	return Value{term: ast.ArrayTerm(terms...)}
}

// Merge adds the members of one object to another, whose members give way.
func Merge(into, from Value) (Value, error) {
	if !into.Valid() {
		return from, nil
	}
	a, ok := into.whole().Value.(ast.Object)
	b, alike := from.whole().Value.(ast.Object)
	if !ok || !alike {
		return Value{}, errors.New("must be objects")
	}
	merged, _ := a.MergeWith(b, func(_, second *ast.Term) (*ast.Term, bool) {
		return second, false
	})
	return Value{term: ast.NewTerm(merged)}, nil
}

// Join returns the members of two objects and of the objects in both. It reports false if the two say different things
// of one member, or are no objects.
func Join(a, b Value) (Value, bool) {
	one, ok := a.whole().Value.(ast.Object)
	other, alike := b.whole().Value.(ast.Object)
	if !ok || !alike {
		return Value{}, false
	}
	joined, ok := one.Merge(other)
	if !ok {
		return Value{}, false
	}
	return Value{term: ast.NewTerm(joined)}, true
}

// orEmpty is the value as the document data.
func (v Value) orEmpty() ast.Value {
	if !v.Valid() {
		return ast.NewObject()
	}
	return v.whole().Value
}

// AppendJSON appends the value's JSON. Sets are lists, and the keys of objects are sorted.
func (v Value) AppendJSON(dst []byte) ([]byte, error) {
	if !v.Valid() {
		return append(dst, "null"...), nil
	}
	whole := v.whole()
	if err := v.err(); err != nil {
		return dst, err
	}
	return appendJSON(dst, whole.Value)
}

func appendJSON(dst []byte, v ast.Value) (_ []byte, err error) {
	switch v := v.(type) {
	case ast.Null:
		return append(dst, "null"...), nil
	case ast.Boolean:
		if v {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case ast.Number:
		return append(dst, v...), nil
	case ast.String:
		return document.AppendString(dst, string(v)), nil
	case *ast.Array:
		return appendItems(dst, v.Iter)
	case ast.Set:
		return appendItems(dst, v.Sorted().Iter)
	case ast.Object:
		return appendMembers(dst, v)
	}
	return dst, errors.New("a value has no JSON form")
}

// appendMembers appends an object, whose keys are sorted. One that is no string stands as the text of
// its JSON, as with OPA, and the last one of several with the same text stands for all.
func appendMembers(dst []byte, o ast.Object) (_ []byte, err error) {
	members := make([]jsonMember, 0, o.Len())
	o.Foreach(func(key, value *ast.Term) {
		m := jsonMember{value: value.Value}
		if s, ok := key.Value.(ast.String); ok {
			m.name = string(s)
		} else if text, failed := appendJSON(nil, key.Value); failed != nil {
			err = failed
		} else {
			m.name = string(text)
		}
		members = append(members, m)
	})
	if err != nil {
		return dst, err
	}
	slices.SortStableFunc(members, func(a, b jsonMember) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	begin := len(dst)
	for i := range members {
		if i+1 < len(members) && members[i].name == members[i+1].name {
			continue
		}
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(document.AppendString(dst, members[i].name), ':')
		if dst, err = appendJSON(dst, members[i].value); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// A jsonMember is a member of an object with its key as a string.
type jsonMember struct {
	name  string
	value ast.Value
}

func appendItems(dst []byte, each func(func(*ast.Term) error) error) ([]byte, error) {
	dst = append(dst, '[')
	begin := len(dst)
	err := each(func(t *ast.Term) (err error) {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst, err = appendJSON(dst, t.Value)
		return err
	})
	return append(dst, ']'), err
}

// textOf is the text of a term; "" of one that is no string.
func textOf(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}
