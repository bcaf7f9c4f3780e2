package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/document"
)

// A chain is a variable or a computed value and the members and items that follow it: object.spec.?labels['app']. It is
// followed from node to node without making a value of any of them.
type chain struct {
	base  expr // computed; nil for a variable
	slot  Slot // the variable, unless it is a local one
	local int  // the local variable; -1 for none

	links    []link
	optional bool // a link is optional, and so is the value
	test     bool // the last link is only tested for: has()
	units    int64

	// The links that are members with literal names, up to the first one that is not, lead along a path of names.
	root *Type // how the variable's node is seen; nil as plain JSON
	path []document.Name
	typ  *Type // how the value's node is seen where path is all of the chain
}

// A link is a member or an item of the value before it.
type link struct {
	key      val  // a literal; unset where index computes it
	index    expr //
	optional bool
	child    *Type // how the value is seen, where the link is part of a path

	field   *types.FieldType // of a type that reads its fields itself
	adapter types.Adapter    // of what it reads
}

// How far a chain led.
type reach uint8

const (
	present reach = iota // the value is there
	some                 // the value is there, and is optional
	none                 // an optional link leads nowhere
	absent               // the member that is tested for is not there
	failed               // the value is an error
)

// start is the variable's node, if the chain has one that is seen as the path was made for.
func (c *chain) start(f *Frame) (document.Node, bool) {
	if c.base != nil {
		return document.Node{}, false
	}
	if c.local >= 0 {
		v := &f.locals[f.localsBase+c.local]
		if v.kind != valNode {
			return document.Node{}, false
		}
		if c.root == nil {
			return v.node, v.aux == nil
		}
		return v.node, v.typ() == c.root
	}
	s := &f.vars.slots[c.slot]
	return s.node, s.typ == c.root && s.node.Valid() && (c.slot != OldSelf || !f.program.optionalOld)
}

// direct tells whether the chain is nothing but a path.
func (c *chain) direct() bool { return c.base == nil && len(c.path) == len(c.links) }

// node is the value of a chain that is nothing but a path, if all of the path is there.
func (c *chain) node(f *Frame) (document.Node, bool) {
	n, ok := c.start(f)
	if !ok {
		return n, false
	}
	f.charge(c.units)
	if len(c.path) == 0 {
		return n, true
	}
	n, far := n.Walk(c.path)
	return n, far == len(c.path) && (c.root == nil || n.Kind() != document.Null)
}

// find follows the chain. The value of a chain that is optional is not wrapped.
func (c *chain) find(f *Frame) (val, reach) {
	f.charge(c.units)
	n, ok := c.start(f)
	if !ok {
		return c.follow(f, 0, c.variable(f), present)
	}
	n, far := n.Walk(c.path)
	t := c.root
	if far > 0 {
		t = c.links[far-1].child
		if t != nil && n.Kind() == document.Null {
			// Whether a null is a member depends on the type of the object; a walk ends at one.
			far--
			n, t = n.Parent(), c.root
			if far > 0 {
				t = c.links[far-1].child
			}
		}
	}
	v := nodeVal(n, t)
	if far < len(c.links) {
		return c.follow(f, far, v, present)
	}
	if c.test || c.optional {
		if v, how := f.sound(v); how == failed {
			return v, failed
		}
		if c.optional {
			return v, some
		}
	}
	return v, present
}

// variable is what the chain begins with.
func (c *chain) variable(f *Frame) val {
	switch {
	case c.base != nil:
		return c.base(f)
	case c.local >= 0:
		return f.locals[f.localsBase+c.local]
	}
	return f.variable(c.slot)
}

// follow is find from the link i on, in all generality. It does what cel-go's applyQualifiers does.
func (c *chain) follow(f *Frame, i int, v val, how reach) (val, reach) {
	if o, ok := v.optional(); ok && i == 0 && len(c.links) > 0 {
		if !o.HasValue() {
			return val{}, none
		}
		v, how = f.of(o.GetValue()), some
	}
	for j := range i {
		if c.links[j].optional {
			how = some
		}
	}
	for ; i < len(c.links); i++ {
		l := &c.links[i]
		if v.kind == valErr {
			return v, failed
		}
		key := l.key
		if l.index != nil {
			if key = f.settled(l.index(f)); key.kind == valErr {
				return key, failed
			}
		}
		if l.optional {
			how = some
		}
		soft := how == some || c.test && i == len(c.links)-1
		var found reach
		if l.field != nil {
			v, found = f.fieldOf(l, v, soft)
		} else {
			v, found = f.qualify(v, key, soft)
		}
		switch {
		case found == none && how != some:
			return v, absent
		case found != present:
			return v, found
		}
	}
	if v.kind == valErr {
		return v, failed
	}
	if how == some || c.test {
		checked, found := f.sound(v)
		if found == failed {
			return checked, failed
		}
	}
	return v, how
}

// sound is the value, or the error that reading it is.
func (f *Frame) sound(v val) (val, reach) {
	if v.kind == valNode {
		switch t := v.typ(); {
		case t != nil:
			if err := f.settled(v); err.kind == valErr {
				return err, failed
			}
		case v.node.Kind() == document.Number && v.node.IsInteger():
			if _, ok := v.node.Int64(); !ok {
				return f.settled(v), failed
			}
		}
	}
	return v, present
}

// qualify is a member or an item of a value; soft says that it may be missing. It does what cel-go's refQualify does.
func (f *Frame) qualify(v, key val, soft bool) (val, reach) {
	switch key.kind {
	case valString, valInt, valUint, valDouble, valBool:
	default:
		if v, how := f.sound(v); how == failed {
			return v, failed
		}
		return errVal(types.NewErr("invalid qualifier type: %T", f.ref(key))), failed
	}
	switch v.kind {
	case valNode:
		switch {
		case v.isMembers():
			return f.member(v.node, v.typ(), key, soft)
		case v.isArray():
			return f.item(v, key, soft)
		}
		if v = f.settled(v); v.kind == valErr {
			return v, failed
		}
	case valList:
		i, err := types.IndexOrError(f.index(key))
		if err != nil {
			return errVal(types.WrapErr(err)), failed
		}
		if vals := v.list().vals; i >= 0 && i < len(vals) {
			return vals[i], present
		}
		return f.missing("index out of bounds", key, soft)
	case valErr:
		return v, failed
	}
	if v.kind == valRef {
		return f.qualifyRef(v.ref(), key, soft)
	}
	return f.missing("no such key", key, soft)
}

// fieldOf is a field of an object of a type that reads its fields itself. It does what cel-go's fieldQualifier does.
func (f *Frame) fieldOf(l *link, v val, soft bool) (val, reach) {
	object := f.ref(v).Value()
	if soft && !l.field.IsSet(object) {
		return val{}, none
	}
	found, err := l.field.GetFrom(object)
	if err != nil {
		return errVal(types.WrapErr(err)), failed
	}
	return f.of(l.adapter.NativeToValue(found)), present
}

// missing is what a chain is without a member.
func (f *Frame) missing(what string, key val, soft bool) (val, reach) {
	if soft {
		return val{}, none
	}
	return errVal(types.NewErr("%s: %v", what, f.ref(key))), failed
}

func (f *Frame) member(n document.Node, t *Type, key val, soft bool) (val, reach) {
	if key.kind != valString {
		if t != nil {
			return errVal(types.NoSuchOverloadErr()), failed
		}
		return f.missing("no such key", key, soft)
	}
	name, m := key.str, (*Type)(nil)
	ok := true
	if t != nil && t.members != nil {
		name, ok = t.unescape(name)
	}
	var child document.Node
	if ok {
		child, ok = n.Get(name)
	}
	if ok && t != nil {
		m, ok = t.member(name)
		ok = ok && (t.members == nil || child.Kind() != document.Null)
	}
	if !ok {
		return f.missing("no such key", key, soft)
	}
	return nodeVal(child, m), present
}

// index is a key as cel-go has it, in order to be an index.
func (f *Frame) index(key val) ref.Val {
	if key.kind == valInt && key.num < 256 {
		return types.Int(key.num)
	}
	return f.ref(key)
}

func (f *Frame) item(v, key val, soft bool) (val, reach) {
	n, t := v.node, v.typ()
	i := int(key.num)
	if key.kind != valInt {
		var err error
		if i, err = types.IndexOrError(f.index(key)); err != nil {
			return errVal(types.WrapErr(err)), failed
		}
	}
	if i < 0 || i >= n.Len() {
		return f.missing("index out of bounds", key, soft)
	}
	if t == nil {
		return nodeVal(f.indexed(n).nth(i), nil), present
	}
	if key.kind != valInt {
		return errVal(types.NewErr("unsupported index: %v", f.ref(key))), failed
	}
	return nodeVal(f.indexed(n).nth(i), t.items), present
}

// indexed is the list of the array, which remembers where it was read last.
func (f *Frame) indexed(n document.Node) *list {
	l := &f.recent[n.Index()%uint32(len(f.recent))]
	if l.node != n {
		f.use()
		*l = list{frame: f, node: n}
	}
	return l
}

// qualifyRef is qualify for a value of cel-go's.
func (f *Frame) qualifyRef(v ref.Val, key val, soft bool) (val, reach) {
	k := f.ref(key)
	switch v := v.(type) {
	case traits.Mapper:
		found, ok := v.Find(k)
		if found != nil && types.IsError(found) {
			return errVal(found), failed
		}
		if ok {
			return f.of(found), present
		}
		return f.missing("no such key", key, soft)
	case traits.Lister:
		i, err := types.IndexOrError(k)
		if err != nil {
			return errVal(types.WrapErr(err)), failed
		}
		if size, ok := v.Size().(types.Int); i < 0 || !ok || types.Int(i) >= size {
			return f.missing("index out of bounds", key, soft)
		}
		return f.of(v.Get(k)), present
	case traits.Indexer:
		if tester, ok := v.(traits.FieldTester); ok && soft {
			is := tester.IsSet(k)
			if types.IsError(is) {
				return errVal(is), failed
			}
			if is == types.False {
				return val{}, none
			}
		}
		found := v.Get(k)
		if types.IsError(found) {
			return errVal(found), failed
		}
		return f.of(found), present
	}
	return f.missing("no such key", key, soft)
}

// variable is the value of a variable that is not simply a node.
func (f *Frame) variable(s Slot) val {
	sl := &f.vars.slots[s]
	switch s {
	case Self, OldSelf:
		optional := s == OldSelf && f.program.optionalOld
		switch {
		case sl.node.Valid() && optional:
			return val{kind: valRef, aux: types.OptionalOf(f.ref(nodeVal(sl.node, sl.typ)))}
		case optional:
			return val{kind: valRef, aux: types.OptionalNone}
		case !sl.node.Valid():
			return errVal(types.WrapErr(fmt.Errorf("no such attribute(s): %s", slotNames[s])))
		}
	}
	if !sl.node.Valid() {
		return nullVal
	}
	return nodeVal(sl.node, sl.typ)
}

// eval is the chain's value.
func (c *chain) eval(f *Frame) val {
	v, how := c.find(f)
	if how == present && !c.test {
		return v
	}
	return c.wrapped(f, v, how)
}

// settled is the chain's value with scalars read.
func (c *chain) settled(f *Frame) val {
	if c.local >= 0 && len(c.links) == 0 {
		f.charge(c.units)
		return f.settled(f.locals[f.localsBase+c.local])
	}
	if c.direct() && !c.test && !c.optional {
		if n, ok := c.node(f); ok {
			return f.settled(nodeVal(n, c.typ))
		}
	}
	return f.settled(c.eval(f))
}

// wrapped is the value that find found, as the expression sees it.
func (c *chain) wrapped(f *Frame, v val, how reach) val {
	switch {
	case how == failed:
		return v
	case c.test:
		return boolVal(how != none && how != absent)
	}
	return raw(f, v, how)
}

// raw is the value that find found; a test of something optional is the optional value itself.
func raw(f *Frame, v val, how reach) val {
	switch how {
	case some:
		return val{kind: valRef, aux: types.OptionalOf(f.ref(v))}
	case none:
		return val{kind: valRef, aux: types.OptionalNone}
	}
	return v
}

// truth is a chain that ends in a test.
func (c *chain) truth(f *Frame) verdict {
	v, how := c.find(f)
	if how == failed {
		return f.fail(v.ref())
	}
	return truthOf(how != none && how != absent)
}

// maybeOptional tells whether a test at the end of the chain may be about something optional.
func (c *chain) maybeOptional() bool {
	return c.optional || c.base != nil || c.local >= 0 || c.slot == OldSelf
}

// attribute is the value of a part that chooses or that is an index. There cel-go forgets that has() of something optional
// is a test.
func (k code) attribute() code {
	c := k.chain
	if c == nil || !c.test || !c.maybeOptional() {
		return k
	}
	return code{eval: func(f *Frame) val {
		switch v, how := c.find(f); how {
		case present:
			return trueVal
		case absent:
			return falseVal
		default:
			return raw(f, v, how)
		}
	}}
}
