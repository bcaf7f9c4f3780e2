package plan

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/print"
)

// Documents has the documents that modules read.
type Documents interface {
	// HasInput reports whether there is a document input.
	HasInput() bool
	// Whole returns the document input; nil: there is none.
	Whole() *ast.Term
	// Outline returns the document input as Outline has it; nil: there is none.
	Outline() *ast.Term
	// Member returns a member of the document input; no value: there is none.
	Member(name string) Value
	// Data reads a part of the document data that no module defines. storage.IsNotFound says of the
	// error that there is none.
	Data(path storage.Path) (ast.Value, error)
	// Err returns why a part of the documents could not be made; nil if all could.
	Err() error
}

// Env has what an evaluation needs from outside.
type Env struct {
	Context   context.Context
	Documents Documents
	// Cancel is asked before each expression.
	Cancel Cancel
	// IgnoredErrors counts the errors of built-in functions, whose values are undefined then; nil: an error
	// ends the evaluation.
	Relaxed *IgnoredErrors
	// Shared has the values that other plans found for the request; nil: they share none.
	Shared       *Shared
	Print        print.Hook
	RoundTripper topdown.CustomizeRoundTripper
	Capabilities *ast.Capabilities
}

// An IgnoredErrors has the errors of built-in functions that counted as undefined values.
type IgnoredErrors struct {
	Count int
	First error
}

// A Cancel ends an evaluation that did enough.
type Cancel interface {
	topdown.Cancel
	// Spent returns how much was done, about in bytes.
	Spent() int64
}
