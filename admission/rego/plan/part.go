package plan

import "github.com/open-policy-agent/opa/v1/ast"

// A LazyValue is an object or a list of a request, or a set of few values. Steps read it as it is. OPA's
// value of it is made if something needs that, such as a built-in function. It belongs to one
// goroutine.
type LazyValue interface {
	Kind() Kind
	Len() int
	// Key and At return the key and the value of a member, by its position in OPA's order. Sets have no
	// keys.
	Key(i int) *ast.Term
	At(i int) Value
	// Get returns the member of an object or of a list that has a key; no value if there is none.
	Get(key *ast.Term) Value
	// Whole makes OPA's value, once. If it cannot be made, another one stands for it, and
	// Documents.Err returns why.
	Whole() *ast.Term
	// ID differs for most Parts. A Part always has the same.
	ID() int
}

// A Kind is the type of a Part. Kinds are in OPA's order of values.
type Kind int

// The kinds of parts.
const (
	List Kind = iota
	Object
	Set
)
