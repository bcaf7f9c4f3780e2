package explain

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// visited is an item that a loop has reached.
type visited struct {
	path string        // relative to self or object
	node document.Node // its value, as far as it is part of the object
	key  string        // its name, as far as it is part of the object

	keyed bool // the loop's only variable is the name
}

// explainItems says which items do not meet a demand on every item.
func (x *explainer) explainItems(c *clause) {
	outermost := x.each == nil
	if outermost {
		x.each = &Violation{Error: *x.whole(c), Source: c.source}
	}
	if c.over != nil {
		x.visit(c)
	}
	if outermost {
		x.found = append(x.found, *x.each)
		x.each = nil
	}
}

// whole is the failure of a list.
func (x *explainer) whole(c *clause) *field.Error {
	a := atom{subject: c.items}
	if c.description.be != "" {
		a.kind, a.must = atomPlain, "must "+c.description.be
		if a.subject.kind != operandPlace {
			a.subject.text = ""
		}
	}
	return x.failure(&clause{kind: clauseAtom, atom: &a})
}

func (x *explainer) visit(c *clause) {
	over, err := c.over.EvalValue(x.frame, x.vars)
	if err != nil {
		return
	}
	var seen traits.Lister
	if c.mapped != nil {
		made, err := c.mapped.EvalValue(x.frame, x.vars)
		if err != nil {
			return
		}
		if seen, _ = made.(traits.Lister); seen == nil {
			return
		}
	}
	for len(x.items) <= c.level {
		x.items = append(x.items, visited{})
		x.over = append(x.over, operandLocation{})
	}
	x.items, x.over = x.items[:c.level+1], x.over[:c.level+1]
	x.over[c.level] = c.items.around().about
	switch over := over.(type) {
	case traits.Lister:
		x.visitList(c, over, seen)
	case traits.Mapper:
		x.visitMap(c, over)
	}
}

func (x *explainer) visitList(c *clause, over, seen traits.Lister) {
	path, static := "", false
	if c.items.kind == operandPlace {
		_, path, static = x.at(c.items.place)
	}
	if !static {
		path = x.nearest(c.items)
	}
	size, _ := over.Size().(types.Int)
	if n, ok := over.Size().(types.Int); seen != nil && (!ok || seen.Size() != n) {
		return
	}
	for i := types.IntZero; i < size; i++ {
		of := over.Get(i)
		first, second := of, ref.Val(nil)
		if seen != nil {
			first = seen.Get(i)
		}
		if c.names[1] != "" {
			first, second = i, first
		}
		x.item(c, first, second, func() visited {
			node := nodeOf(of)
			if l, ok := over.(*value.List); ok && x.inObject(l.Node) {
				node = l.Nth(int(i))
			}
			switch {
			case x.inObject(node):
				return visited{node: node, path: x.pathOf(node)}
			case static:
				return visited{path: string(document.AppendPathIndex([]byte(path), int(i)))}
			}
			return visited{path: path}
		})
	}
}

func (x *explainer) visitMap(c *clause, over traits.Mapper) {
	for it := over.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			continue
		}
		of, found := over.Find(key)
		if !found {
			continue
		}
		x.item(c, key, of, func() visited {
			item := visited{keyed: c.names[1] == "", path: x.nearest(c.items)}
			if o, ok := over.(*value.Map); ok && x.inObject(o.Node) {
				if member, found := o.Node.Get(o.PlainName(string(name))); found {
					item.node, item.path, item.key = member, x.pathOf(member), member.Key()
				}
			}
			return item
		})
	}
}

// item evaluates the demand on one item, and says why it is not met. It looks for the place of an item only if that is
// to be named: of a long list that takes long.
func (x *explainer) item(c *clause, first, second ref.Val, at func() visited) {
	body := c.parts[0]
	x.vars.Loop(c.names[0], first)
	n := 1
	if c.names[1] != "" {
		x.vars.Loop(c.names[1], second)
		n = 2
	}
	x.items, x.over = x.items[:c.level], x.over[:c.level+1]
	is, known := x.truth(body.program)
	switch {
	case !known || is == body.want:
	case x.full():
		x.each.More++
	default:
		x.items = append(x.items, at())
		when := x.when
		x.explain(body)
		x.when = when
	}
	x.vars.LeaveLoop(n)
}

// nodeOf is the node behind a container; scalars have lost theirs.
func nodeOf(v ref.Val) document.Node {
	switch v := v.(type) {
	case *value.Map:
		return v.Node
	case *value.List:
		return v.Node
	}
	return document.Node{}
}

// objectSlot is the slot of the object that is validated: self or object.
func (x *explainer) objectSlot() *value.Binding {
	if s := &x.vars.Slots[value.Self]; s.Node.Valid() {
		return s
	}
	return &x.vars.Slots[value.Object]
}

// inObject reports whether a node is part of the object that is validated, so that its value may be
// shown.
func (x *explainer) inObject(n document.Node) bool {
	if !n.Valid() {
		return false
	}
	top := x.objectSlot().Node
	if n.Document() != top.Document() {
		return false
	}
	for ; n.Valid(); n = n.Parent() {
		if n == top {
			return true
		}
	}
	return false
}

// pathOf is the path of a node of the object.
func (x *explainer) pathOf(n document.Node) string {
	s := x.objectSlot()
	path, _ := x.appendPathOf(nil, s.Node, s.Typ, n)
	return string(path)
}

// appendPathOf appends the way from one node to another within it, whose type it returns.
func (x *explainer) appendPathOf(b []byte, top document.Node, t *value.Type, n document.Node) ([]byte, *value.Type) {
	if n == top {
		return b, t
	}
	parent := n.Parent()
	b, t = x.appendPathOf(b, top, t, parent)
	if parent.Kind() == document.Array {
		at := 0
		for i := parent.First(); i.Valid() && i != n; i = i.Next() {
			at++
		}
		x.frame.Arena.Charge(1 + int64(at)/value.StepsPerUnit)
		if t != nil {
			t = t.Items
		}
		return document.AppendPathIndex(b, at), t
	}
	name := n.Key()
	switch {
	case t != nil && t.Members == nil && t.Additional != nil:
		return appendKey(b, name), t.Additional
	case t == nil && isMapPath(b):
		return appendKey(b, name), nil
	case t != nil:
		t = t.Members[name]
	}
	return document.AppendPathKey(b, name), t
}

// isMapPath reports whether the path leads to what is a map in every object.
func isMapPath(path []byte) bool {
	for _, suffix := range []string{"metadata.labels", "metadata.annotations"} {
		if n := len(path) - len(suffix); n >= 0 && string(path[n:]) == suffix {
			return true
		}
	}
	return false
}
