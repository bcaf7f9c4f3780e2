package plan

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A cursor goes through what a loop is over. It is used for one loop and stays on the stack.
type cursor struct {
	pairs        bool // the loop has two variables
	member       bool // node is a member of an object
	first, other int  // the places of the variables in Frame.locals
	count        int
	node         document.Node // the next item or member
	typ          *value.Type   // of the items, or of the object
	vals         []Val         // what is left of a built list
	of           ref.Val       // any other value
	it           traits.Iterator
}

// set gives the variables of the loop their values for a round; key is the first one's if there are
// two.
func (c *cursor) set(f *Machine, key, item Val) {
	if c.pairs {
		f.locals[c.first] = key
		f.locals[c.other] = item
		return
	}
	f.locals[c.first] = item
}

// over starts the loop over a value. The result is an error, or unset.
func (c *cursor) over(f *Machine, l *macro, v Val) Val {
	if v = f.Scalar(v); v.Kind == ValErr {
		return v
	}
	c.pairs, c.first, c.other = l.pairs, f.run.localsBase+l.first, f.run.localsBase+l.other
	switch {
	case v.isArray():
		c.node = v.node().First()
		if t := v.typ(); t != nil {
			c.typ = t.Items
		}
		return Val{}
	case v.isMembers():
		c.node, c.typ, c.member = v.node().First(), v.typ(), true
		return Val{}
	case v.Kind == ValList:
		c.vals = v.List().vals
		return Val{}
	}
	f.use()
	of := f.Ref(v)
	switch of.(type) {
	case traits.Mapper, traits.Lister:
	default:
		if c.pairs {
			return ErrVal(types.NewErr("unsupported comprehension range type: %T", of))
		}
		if !of.Type().HasTrait(traits.IterableType) {
			return ErrVal(types.NewErr("got '%T', expected iterable type", of))
		}
	}
	c.of, c.it = of, inOrder(of).(traits.Iterable).Iterator()
	return Val{}
}

// next goes on to the next round.
func (c *cursor) next(f *Machine) bool {
	var item Val
	switch {
	case c.node.Valid():
		if c.member {
			return c.nextMember(f)
		}
		item = nodeVal(c.node, c.typ)
		c.node = c.node.Next()
	case len(c.vals) > 0:
		item = c.vals[0]
		c.vals = c.vals[1:]
	case c.it != nil:
		return c.nextRef(f)
	default:
		return false
	}
	f.Arena.Charge(otherUnits)
	c.set(f, intVal(int64(c.count)), item)
	c.count++
	return true
}

func (c *cursor) nextMember(f *Machine) bool {
	n := c.node
	name := n.Key()
	if c.typ != nil {
		for _, ok := c.typ.Member(name); !ok; _, ok = c.typ.Member(name) {
			f.Arena.Charge(1)
			if n = n.Next(); !n.Valid() {
				c.node = n
				return false
			}
			name = n.Key()
		}
	}
	c.node = n.Next()
	f.Arena.Charge(otherUnits + int64(len(name))/value.BytesPerUnit)
	if c.typ != nil && c.typ.Members != nil {
		if escaped, ok := apiservercel.Escape(name); ok {
			name = escaped
		}
	}
	key := stringVal(name)
	if !c.pairs {
		c.set(f, key, key)
		return true
	}
	item := nodeVal(n, nil)
	if c.typ != nil {
		item, _ = f.member(n.Parent(), c.typ, key, false)
	}
	c.set(f, key, item)
	return true
}

func (c *cursor) nextRef(f *Machine) bool {
	if c.it.HasNext() != types.True {
		return false
	}
	f.Arena.Charge(otherUnits)
	next := c.it.Next()
	item := f.Of(next)
	key := item
	if c.pairs {
		if m, ok := c.of.(traits.Mapper); ok {
			item = f.Of(m.Get(next))
		} else {
			key = intVal(int64(c.count))
		}
	}
	c.set(f, key, item)
	c.count++
	return true
}
