package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
	"github.com/admission-gateway/gateway/admission/rego/plan"
	"github.com/admission-gateway/gateway/internal/document"
)

// A reviewValue is a plan.LazyValue of a review.
type reviewValue interface {
	plan.LazyValue
	// err returns why OPA's value of something in the review could not be made; nil if all could.
	err() error
}

// seen is the value as plans see it.
func (v Value) seen() plan.Value {
	if v.part != nil {
		return plan.Unmade(v.part)
	}
	return plan.Made(v.term)
}

// A reading has the values of a document that rules have read. The document must not change as long
// as the values are in use.
type reading struct {
	converter
	document *document.Document
	pages    []*page // by the index of the node
	nodes    []node  // room, of which the first ones are used
	places   []uint32
	used     struct{ nodes, places int }
}

// A page has the values of nodes whose indexes are next to each other.
type page [pageSize]plan.Value

const (
	pageSize   = 64
	nodeBlock  = 16 // nodes
	placeBlock = 64 // indexes
	// What a reading takes, beside OPA's values.
	pageBytes = pageSize * 24
	nodeBytes = 72
	// maxPages are kept for another document.
	maxPages = 4
)

// begin returns a document as a part of a review; null for none. It refuses the numbers that
// [ValueOf] refuses, wherever they are.
func (r *reading) begin(d *document.Document, m *meter) (Value, error) {
	if d == nil {
		return Null, nil
	}
	root := d.Root()
	if root.Kind() < document.Object {
		return valueWithin(root, m)
	}
	if !d.AreWhole() { // whole numbers in the range of a double are never too long
		if err := checkNumbers(root); err != nil {
			return Value{}, err
		}
	}
	r.document, r.converter = d, converter{meter: m}
	return Value{part: r.node(root)}, nil
}

// forget clears what belongs to the document, and keeps some room.
func (r *reading) forget() {
	if r.document == nil {
		return
	}
	if len(r.pages) > maxPages {
		r.pages = nil
	}
	for _, p := range r.pages {
		if p != nil {
			*p = page{}
		}
	}
	clear(r.nodes[:r.used.nodes])
	*r = reading{pages: r.pages, nodes: r.nodes, places: r.places}
}

// checkNumbers returns the error about a number in a value that is too long or too large.
func checkNumbers(of document.Node) error {
	for m := of.Children(); m.Valid(); m.Next() {
		var err error
		switch m.Kind() {
		case document.Object, document.Array:
			err = checkNumbers(m.Node())
		case document.Number:
			err = builtin.CheckNumber(string(m.Node().Raw()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value returns the value of a node.
func (r *reading) value(n document.Node) plan.Value {
	at := int(n.Index() / pageSize)
	if at >= len(r.pages) {
		r.pages = slices.Grow(r.pages, at+1-len(r.pages))[:at+1]
	}
	if r.pages[at] == nil {
		r.spend(pageBytes)
		r.pages[at] = new(page)
	}
	v := &r.pages[at][n.Index()%pageSize]
	switch {
	case v.IsValid():
	case n.Kind() < document.Object:
		r.spend(itemBytes)
		*v = plan.Made(r.term(n))
	default:
		*v = plan.Unmade(r.node(n))
	}
	return *v
}

func (r *reading) node(n document.Node) *node {
	if r.used.nodes == len(r.nodes) {
		r.nodes, r.used.nodes = make([]node, nodeBlock), 0
	}
	made := &r.nodes[r.used.nodes]
	r.used.nodes++
	r.spend(nodeBytes)
	*made = node{of: r, index: n.Index(), length: uint32(n.Len())}
	return made
}

// room returns room for the places of so many members.
func (r *reading) room(members int) []uint32 {
	r.spend(4 * int64(members))
	if members > placeBlock {
		return make([]uint32, 0, members)
	}
	if members > len(r.places)-r.used.places {
		r.places, r.used.places = make([]uint32, placeBlock), 0
	}
	begin := r.used.places
	r.used.places += members
	return r.places[begin:begin:r.used.places]
}

// spend asks for memory.
func (r *reading) spend(bytes int64) {
	if r.meter != nil && !r.meter.take(bytes) && r.converter.err == nil {
		r.converter.err = ErrNoMemory
	}
}

// A node is an object or a list of a document.
type node struct {
	of            *reading
	index, length uint32
	order         []uint32 // the members in OPA's order, once something asks for that
	made          *ast.Term
}

func (n *node) node() document.Node { return n.of.document.Node(n.index) }

// Kind implements plan.Part.
func (n *node) Kind() plan.Kind {
	if n.node().Kind() == document.Array {
		return plan.List
	}
	return plan.Object
}

// Len implements plan.Part.
func (n *node) Len() int { return int(n.length) }

// ID implements plan.Part.
func (n *node) ID() int { return int(n.index) }

// place returns the index of a member, by its position in OPA's order.
func (n *node) place(i int) document.Node {
	if n.order == nil {
		n.sort()
	}
	return n.of.document.Node(n.order[i])
}

func (n *node) sort() {
	d := n.of.document
	order := n.of.room(n.Len())
	for m := n.node().Children(); m.Valid(); m.Next() {
		order = append(order, m.Node().Index())
	}
	if n.Kind() == plan.Object {
		slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(d.Node(a).Key(), d.Node(b).Key()) })
	}
	n.order = order
}

// Key implements plan.Part.
func (n *node) Key(i int) *ast.Term {
	if n.Kind() == plan.List {
		return ast.InternedTerm(i)
	}
	return n.of.key(n.place(i).Key())
}

// At implements plan.Part.
func (n *node) At(i int) plan.Value { return n.of.value(n.place(i)) }

// Get implements plan.Part.
func (n *node) Get(key *ast.Term) plan.Value {
	switch k := key.Value.(type) {
	case ast.String:
		if member, ok := n.node().Get(string(k)); ok {
			return n.of.value(member)
		}
	case ast.Number:
		if i, ok := k.Int(); ok && i >= 0 && i < n.Len() && n.Kind() == plan.List {
			return n.At(i)
		}
	}
	return plan.Value{}
}

// Whole implements plan.Part.
func (n *node) Whole() *ast.Term {
	if n.made == nil {
		n.made = n.of.term(n.node())
	}
	return n.made
}

func (n *node) err() error { return n.of.converter.err }
