package gatekeeper

import (
	"context"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// An engine checks constraints by the code of their template.
type engine interface {
	// find returns what is wrong by a constraint that matches the request.
	find(ctx context.Context, q *request, c *Constraint) ([]violation, error)
	// readsOld reports whether the code reads the stored object of an update.
	readsOld() bool
	// readsCarried reports whether the code reads fields of the object that a server carries over.
	readsCarried() bool
	// readsNamespace reports whether the code reads the namespace of the object.
	readsNamespace() bool
	// readsInventory reports whether the code reads data.inventory.
	readsInventory() bool
	// language is the name of the engine.
	language() string
	// programs are the engine's expressions, if it has such, and modules its modules, or nil.
	programs() []*cel.Program
	modules() *rego.Program
	// rule is the query of the rule violation, or nil.
	rule() *rego.Query
}

// oldObject is the member of reviews, and the variable of expressions, that has the stored object.
const oldObject = "oldObject"

// A violation is something that an engine finds wrong.
type violation struct {
	message, field string
	failed         bool // the engine could not decide
}

// A Template is a compiled ConstraintTemplate. It is immutable and safe for concurrent use.
type Template struct {
	kind       string
	operations admission.Operation
	schema     *schema.Schema // of its constraints
	engine     engine
	hasCEL     bool
	isLenient  bool // an error of a built-in function is an undefined value
}

// Kind is the kind of the constraints.
func (t *Template) Kind() string { return t.kind }

// IsLenient reports whether an error of a built-in function counts as an undefined value.
func (t *Template) IsLenient() bool { return t.isLenient }

// Programs are the expressions of the template.
func (t *Template) Programs() []*cel.Program { return t.engine.programs() }

// Modules are the modules of the template; nil if it has none.
func (t *Template) Modules() *rego.Program { return t.engine.modules() }

// Rule is the query of the rule violation; nil if the template has no modules.
func (t *Template) Rule() *rego.Query { return t.engine.rule() }

// A Constraint is a compiled constraint. It is immutable and safe for concurrent use.
type Constraint struct {
	template *Template
	name     string
	match    *match.Matcher
	rules    []admission.Rule
	object   *document.Document
	action   string   // as the constraint has it
	actions  []string // that the gateway takes
	query    *rego.Query
	given    rego.Value      // the parameters; none if the code is not in Rego
	terms    admission.Terms // nil: always enforced
}

// Governed returns the constraint with terms, which shares with it all that is compiled.
func (c *Constraint) Governed(t admission.Terms) *Constraint {
	governed := *c
	governed.terms = t
	return &governed
}

// Terms are the terms of the constraint; nil: it has none.
func (c *Constraint) Terms() admission.Terms { return c.terms }

func (c *Constraint) spec() document.Node {
	n, _ := c.object.Root().Get("spec")
	return n
}

func (c *Constraint) parameters() (document.Node, bool) {
	n, ok := c.spec().Get("parameters")
	return n, ok && n.Kind() != document.Null
}

// A request has what is made of a request once for all constraints.
type request struct {
	inventory  *Inventory
	attributes *admission.Attributes
	report     *admission.Report
	objects    []match.Object // the object and the stored one, as far as there are such
	room       [2]match.Object

	plain, named rego.Input // without and with the namespace
	result       rego.Value // of the last rule, if evaluations are taken down
}

func newRequest(inventory *Inventory, a *admission.Attributes, r *admission.Report) *request {
	q := &request{inventory: inventory, attributes: a, report: r}
	q.objects = match.Objects(q.room[:0], a)
	return q
}

// ReadsInventory reports whether the template's modules read data.inventory.
func (t *Template) ReadsInventory() bool {
	return t.engine.readsInventory()
}
