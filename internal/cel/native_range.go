package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/document"
)

// A cursor goes through what a loop is over. It is used for one loop and stays on the stack.
type cursor struct {
	key  val // the index or the name, where the loop has two variables
	item val // the item, or the name where the loop has one variable

	pairs  bool
	count  int
	node   document.Node // the next item or member
	typ    *Type         // of the items, or of the object
	member bool          // node is a member
	vals   []val         // what is left of a built list
	it     traits.Iterator
	of     ref.Val // what it goes through
}

// over starts a loop over a value; pairs says that the loop has two variables. The result is an error, or unset.
func (c *cursor) over(f *Frame, v val, pairs bool) val {
	if v = f.settled(v); v.kind == valErr {
		return v
	}
	c.pairs = pairs
	switch {
	case v.isArray():
		c.node = v.node.First()
		if t := v.typ(); t != nil {
			c.typ = t.items
		}
		return val{}
	case v.isMembers():
		c.node, c.typ, c.member = v.node.First(), v.typ(), true
		return val{}
	case v.kind == valList:
		c.vals = v.list().vals
		return val{}
	}
	f.used = true
	of := f.ref(v)
	switch of.(type) {
	case traits.Mapper, traits.Lister:
	default:
		if pairs {
			return errVal(types.NewErr("unsupported comprehension range type: %T", of))
		}
		if !of.Type().HasTrait(traits.IterableType) {
			return errVal(types.NewErr("got '%T', expected iterable type", of))
		}
	}
	c.of, c.it = of, of.(traits.Iterable).Iterator()
	return val{}
}

// next goes on to the next round.
func (c *cursor) next(f *Frame) bool {
	switch {
	case c.node.Valid():
		if c.member {
			return c.nextMember(f)
		}
		f.charge(1)
		c.item = nodeVal(c.node, c.typ)
		c.node = c.node.Next()
	case len(c.vals) > 0:
		f.charge(1)
		c.item = c.vals[0]
		c.vals = c.vals[1:]
	case c.it != nil:
		return c.nextRef(f)
	default:
		return false
	}
	if c.pairs {
		c.key = intVal(int64(c.count))
		c.count++
	}
	return true
}

func (c *cursor) nextMember(f *Frame) bool {
	n := c.node
	child := (*Type)(nil)
	if c.typ != nil {
		var ok bool
		for child, ok = c.typ.member(n.Key()); !ok; child, ok = c.typ.member(n.Key()) {
			f.charge(1)
			if n = n.Next(); !n.Valid() {
				c.node = n
				return false
			}
		}
	}
	c.node = n.Next()
	name := n.Key()
	f.charge(1 + int64(len(name))/bytesPerUnit)
	if c.typ != nil && c.typ.members != nil {
		if escaped, ok := apiservercel.Escape(name); ok {
			name = escaped
		}
	}
	c.item = stringVal(name)
	if c.pairs {
		c.key = c.item
		c.item = nodeVal(n, child)
		if c.typ != nil {
			c.item, _ = f.member(n.Parent(), c.typ, c.key, false)
		}
	}
	return true
}

func (c *cursor) nextRef(f *Frame) bool {
	if c.it.HasNext() != types.True {
		return false
	}
	f.charge(1)
	next := c.it.Next()
	c.item = f.of(next)
	if !c.pairs {
		return true
	}
	if m, ok := c.of.(traits.Mapper); ok {
		c.key = c.item
		c.item = f.of(m.Get(next))
		return true
	}
	c.key = intVal(int64(c.count))
	c.count++
	return true
}
