package plan

import (
	"unsafe"

	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A chain is a variable or a computed value and the members and items that follow it: object.spec.?labels['app']. It is
// followed from node to node without making a value of any of them.
type chain struct {
	// What is read of a path that was followed before stands together.
	base     expr        // computed; nil for a variable
	root     *value.Type // how the variable's node is seen; nil as plain JSON
	whole    pathKey     // of path, if keyed
	slot     value.Slot  // the variable, unless it is a local one
	keyed    bool        // the path has members, and begins at a variable that is not local
	optional bool        // a link is optional, and so is the value
	test     bool        // the last link is only tested for: has()
	units    int64
	local    int // the local variable; -1 for none

	// The links that are members with literal names, up to the first one that is not, are a path.
	path  []member
	typ   *value.Type // how the value's node is seen if path is all of the chain
	links []link
}

// A link is a member or an item of the value before it.
type link struct {
	key      Val  // a literal; unset if index computes it
	index    expr //
	optional bool
	child    *value.Type // how the value is seen, if the link is part of a path

	field   *types.FieldType // of a type that reads its fields itself
	adapter types.Adapter    // of what it reads
}

// How far a chain led.
type chainResult uint8

const (
	present chainResult = iota // the value is there
	some                       // the value is there, and is optional
	none                       // an optional link leads nowhere
	absent                     // the member that is tested for is not there
	failed                     // the value is an error
)

// direct reports whether the chain is nothing but a path.
func (c *chain) direct() bool { return c.base == nil && len(c.path) == len(c.links) }

// lead follows the path as far as there are such members. It returns the value that it reached and how many names it
// followed; not ok if the chain has no path to follow.
func (c *chain) lead(f *Machine) (n document.Node, far int, ok bool) {
	if !c.keyed {
		return c.leadAnew(f)
	}
	s, r := &f.run.nodes.Slots[c.slot], &f.paths.roots[c.slot]
	if s.Node != r.node || !r.node.Valid() || s.Typ != c.root || c.slot == value.OldSelf && f.run.optionalOld {
		return c.leadAnew(f)
	}
	if e := &f.paths.found[c.whole.at]; e.id == c.whole.id && e.epoch == r.epoch && e.index != absentIndex {
		return r.node.Document().Node(e.index), len(c.path), true
	}
	n, far = f.search(c, r)
	return n, far, true
}

// leadAnew is lead without what was found before: from a local variable, for instance.
func (c *chain) leadAnew(f *Machine) (n document.Node, far int, ok bool) {
	switch {
	case c.local >= 0:
		v := &f.locals[f.run.localsBase+c.local]
		if v.Kind != valNode || v.q != unsafe.Pointer(c.root) {
			return n, 0, false
		}
		n = v.node()
	case c.base != nil:
		return n, 0, false
	default:
		s := &f.run.nodes.Slots[c.slot]
		if !s.Node.Valid() || s.Typ != c.root || c.slot == value.OldSelf && f.run.optionalOld {
			return n, 0, false
		}
		n = s.Node
	}
	for i := range c.path {
		next, isThere := n.Step(&c.path[i].name)
		if !isThere {
			return n, i, true
		}
		n = next
	}
	return n, len(c.path), true
}

// node is the value of a chain that is nothing but a path, if all of the path is there.
func (c *chain) node(f *Machine) (document.Node, bool) {
	n, far, ok := c.lead(f)
	if !ok {
		return n, false
	}
	f.Arena.Charge(c.units)
	return n, far == len(c.path) && (c.root == nil || far == 0 || n.Kind() != document.Null)
}

// find follows the chain. The value of a chain that is optional is not wrapped.
func (c *chain) find(f *Machine) (Val, chainResult) {
	f.Arena.Charge(c.units)
	n, far, ok := c.lead(f)
	if !ok {
		return c.follow(f, 0, c.variable(f), present)
	}
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

// variable returns the value that the chain begins with.
func (c *chain) variable(f *Machine) Val {
	switch {
	case c.base != nil:
		return c.base(f)
	case c.local >= 0:
		return f.locals[f.run.localsBase+c.local]
	}
	return f.variable(c.slot)
}

// follow is find from the link i on, in all generality. It does what cel-go's applyQualifiers does.
func (c *chain) follow(f *Machine, i int, v Val, how chainResult) (Val, chainResult) {
	if o, ok := v.optional(); ok && i == 0 && len(c.links) > 0 {
		if !o.HasValue() {
			return Val{}, none
		}
		v, how = f.Of(o.GetValue()), some
	}
	for j := range i {
		if c.links[j].optional {
			how = some
		}
	}
	for ; i < len(c.links); i++ {
		l := &c.links[i]
		if v.Kind == ValErr {
			return v, failed
		}
		key := l.key
		if l.index != nil {
			if key = f.Scalar(l.index(f)); key.Kind == ValErr {
				return key, failed
			}
		}
		if l.optional {
			how = some
		}
		soft := how == some || c.test && i == len(c.links)-1
		var found chainResult
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
	if v.Kind == ValErr {
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

// eval is the chain's value.
func (c *chain) eval(f *Machine) Val {
	v, how := c.find(f)
	if how == present && !c.test {
		return v
	}
	return c.wrapped(f, v, how)
}

// scalar is the chain's value with scalars read.
func (c *chain) scalar(f *Machine) Val {
	if c.local >= 0 && len(c.links) == 0 {
		f.Arena.Charge(c.units)
		return f.Scalar(f.locals[f.run.localsBase+c.local])
	}
	if c.direct() && !c.test && !c.optional {
		if n, ok := c.node(f); ok {
			return f.Scalar(nodeVal(n, c.typ))
		}
	}
	return f.Scalar(c.eval(f))
}

// wrapped is the value that find found, as the expression sees it.
func (c *chain) wrapped(f *Machine, v Val, how chainResult) Val {
	switch {
	case how == failed:
		return v
	case c.test:
		return boolVal(how != none && how != absent)
	}
	return raw(f, v, how)
}

// raw is the value that find found; a test of something optional is the optional value itself.
func raw(f *Machine, v Val, how chainResult) Val {
	switch how {
	case some:
		return refVal(types.OptionalOf(f.Ref(v)))
	case none:
		return refVal(types.OptionalNone)
	}
	return v
}

// truth is a chain that ends in a test.
func (c *chain) truth(f *Machine) verdict {
	v, how := c.find(f)
	if how == failed {
		return f.fail(v.Ref())
	}
	return truthOf(how != none && how != absent)
}

// maybeOptional reports whether a test at the end of the chain may be about something optional.
func (c *chain) maybeOptional() bool {
	return c.optional || c.base != nil || c.local >= 0 || c.slot == value.OldSelf
}

// attribute is the value of a part that chooses or that is an index. There cel-go forgets that has() of something
// optional is a test.
func (k code) attribute() code {
	c := k.chain
	if c == nil || !c.test || !c.maybeOptional() {
		return k
	}
	return code{eval: func(f *Machine) Val {
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
