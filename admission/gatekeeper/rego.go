package gatekeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
)

// regoEngine checks constraints by the rule violation of their template's module.
type regoEngine struct {
	program   *rego.Program
	query     *rego.Query
	path      string // of the rule, as decision logs name it
	old       bool   // it reads review.oldObject
	carried   bool   // it reads what a server carries over from the stored object
	namespace bool   // it reads review.namespaceObject
	inventory bool   // it reads data.inventory
}

// The names of the data that modules read, beside the review's object.
const (
	namespaceObject = "namespaceObject"
	inventoryName   = "inventory"
)

// compileRego compiles modules, the one with the rule violation first.
func compileRego(v0 bool, modules []rego.Module) (*regoEngine, error) {
	program, err := rego.Compile(rego.Options{V0: v0, Template: true}, modules...)
	if err != nil {
		return nil, err
	}
	rule := program.Packages()[0] + ".violation"
	if !program.Has(rule) {
		return nil, errors.New("invalid rego: invalid module: missing required rules: [violation]")
	}
	query, err := program.Query(rule)
	if err != nil {
		return nil, err
	}
	e := &regoEngine{program: program, query: query, path: rego.PathOf(rule), carried: program.ReadsCarried()}
	for _, m := range modules {
		// A module that goes through all members of a review finds these there only if some module names them.
		text := string(m.Source)
		e.old = e.old || strings.Contains(text, oldObject)
		e.namespace = e.namespace || strings.Contains(text, namespaceObject)
		e.inventory = e.inventory || strings.Contains(text, inventoryName)
	}
	return e, nil
}

// bind prepares the query for the parameters of a constraint.
func (e *regoEngine) bind(c *Constraint) error {
	parameters := rego.Object()
	if n, ok := c.parameters(); ok {
		var err error
		if parameters, err = rego.ValueOf(n); err != nil {
			return fmt.Errorf("spec.parameters: %w", err)
		}
	}
	c.given, c.query = parameters, e.query.With(parameters)
	return nil
}

func (e *regoEngine) language() string { return rego.Engine }

func (e *regoEngine) readsOld() bool       { return e.old }
func (e *regoEngine) readsCarried() bool   { return e.carried }
func (e *regoEngine) readsNamespace() bool { return e.namespace }
func (e *regoEngine) readsInventory() bool { return e.inventory }

func (e *regoEngine) programs() []*cel.Program { return nil }
func (e *regoEngine) modules() *rego.Program   { return e.program }
func (e *regoEngine) rule() *rego.Query        { return e.query }

func (e *regoEngine) find(ctx context.Context, q *request, c *Constraint) ([]violation, error) {
	in, err := q.input(ctx, e)
	if err != nil {
		return nil, err
	}
	if in.Relaxed = nil; c.template.isLenient {
		in.Relaxed = func(err error) { q.report.Relaxed(c.template.kind, err) }
	}
	violations, err := c.query.Violations(ctx, in)
	switch {
	case errors.Is(err, rego.ErrUndefined):
		return nil, nil // a rule of another form than a set, which finds nothing
	case err != nil:
		return nil, err
	}
	found := make([]violation, len(violations))
	for i, v := range violations {
		found[i] = violation{message: v.Message, field: v.Field}
	}
	return found, nil
}

// input is the input of an engine's modules.
func (q *request) input(ctx context.Context, e *regoEngine) (*rego.Input, error) {
	if !q.plain.Review.Valid() {
		if err := q.makePlain(); err != nil {
			return nil, err
		}
	}
	if !e.namespace {
		return &q.plain, nil
	}
	if !q.named.Review.Valid() {
		if err := q.makeNamed(ctx); err != nil {
			return nil, err
		}
	}
	return &q.named, nil
}

// makePlain makes the review. As in Gatekeeper the object of a deletion is the stored one.
func (q *request) makePlain() error {
	a := q.attributes
	review, err := rego.ReviewOf(a, a.Info.GroupVersionResource())
	if err != nil {
		return err
	}
	if a.Object == nil && a.Old != nil {
		object := rego.Member{Name: "object", Value: review.Get(oldObject)}
		if review, err = review.With(object); err != nil {
			return err
		}
	}
	q.plain.Review, q.plain.Deadline, q.plain.Memory = review, a.Frame.Deadline(), rego.MemoryOf(a)
	q.plain.Shared = rego.NewShared(a)
	if q.report.Decisions != nil {
		q.plain.Evaluated = func(_ string, v rego.Value) { q.result = v }
	}
	q.plain.Fired = rego.FiredBy(a)
	if q.inventory != nil {
		q.plain.Inventory = func() (rego.Value, error) { return q.inventory.value(a) }
	}
	return nil
}

// makeNamed adds the namespace to the review. As in Gatekeeper it is an empty object if there is none.
func (q *request) makeNamed(ctx context.Context) error {
	namespace := rego.Object()
	if q.attributes.Info.ObjectNamespace() != "" {
		n, err := q.attributes.LookUpNamespace(ctx)
		if err != nil {
			return err
		}
		if namespace, err = rego.ValueOf(n); err != nil {
			return err
		}
	}
	review, err := q.plain.Review.With(rego.Member{Name: namespaceObject, Value: namespace})
	if err != nil {
		return err
	}
	q.named = q.plain
	q.named.Review, q.named.Shared = review, rego.NewShared(q.attributes)
	return nil
}
