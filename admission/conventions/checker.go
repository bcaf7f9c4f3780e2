package conventions

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Object has the values that must obey the rules.
type Object struct {
	// Root is the object, Old the stored one; invalid if there is none.
	Root, Old document.Node
	// Schema is the object's, which gives dates their format; nil if it is not known.
	Schema *schema.Schema
	// Bare objects have no kind, apiVersion, metadata and spec.
	Bare bool
	// Status is the path of the status; nil if objects have none.
	Status []string
	// Part is the part of the object that the request may write.
	Part WritablePart
}

// A WritablePart is a part of an object that a request may write.
type WritablePart uint8

// The parts.
const (
	Whole WritablePart = iota
	WithoutStatus
	StatusAlone
)

// Result has the findings of a check.
type Result struct {
	// Errors are the failures that refuse the request.
	Errors field.ErrorList
	// More is how many further failures there are.
	More int
	// Warnings are sentences for the client.
	Warnings []string
	// DryRuns are the policies that are not enforced, and Excepted the ones that were not asked.
	DryRuns  []DryRun
	Excepted []admission.Excepted
}

// A DryRun is a policy that is not enforced: what it denies is warned of.
type DryRun struct {
	Policy string
	Terms  admission.Terms
	// Denials are the first failures that it would have refused.
	Denials []string

	actions [checks]Action
}

// maxDryRunDenials is how many failures of a dry run are kept.
const maxDryRunDenials = 10

// note keeps a failure.
func (t *DryRun) note(err *field.Error) {
	if len(t.Denials) < maxDryRunDenials {
		t.Denials = append(t.Denials, err.Error())
	}
}

// maxFindings is how many failures of one object are described, and how many are
// warned of.
const maxFindings = 100

// checker is one check of one object.
type checker struct {
	Object
	attributes *admission.Attributes
	actions    [checks]Action
	keyRules   []keyRule
	dryRuns    []DryRun
	excepted   []admission.Excepted

	status document.Node // of the object; invalid if it has none
	result Result
	warned int // how many more failures there are to warn of
}

// keyRule has the rule of one policy on reserved keys.
type keyRule struct {
	action  Action
	allowed []string
	trial   int // of the policy, if it is only tried; else -1
}

func (c *checker) on(check Check) bool { return c.actions[check] != Off }

// found records a failure of a rule for a value.
func (c *checker) found(check Check, v document.Node, err *field.Error) {
	var tried []*DryRun
	for i := range c.dryRuns {
		if t := &c.dryRuns[i]; t.actions[check] == Deny {
			tried = append(tried, t)
		}
	}
	c.record(c.actions[check], v, err, tried)
}

// record keeps a failure, which policies would refuse that are only tried. A failure of a value that an update leaves
// as it was is only warned of.
func (c *checker) record(action Action, v document.Node, err *field.Error, tried []*DryRun) {
	r := &c.result
	warning := err.Error()
	if before := c.before(v); before.Valid() && document.EqualNodes(v, before) {
		action, tried = min(action, Warn), nil
	}
	for _, t := range tried {
		t.note(err)
		warning = err.Error() + admission.OnceEnforced
	}
	switch {
	case action == Off:
	case action == Deny && len(r.Errors) < maxFindings:
		r.Errors = append(r.Errors, err)
	case action == Deny:
		r.More++
	case len(r.Warnings) < maxFindings:
		r.Warnings = append(r.Warnings, warning)
	default:
		c.warned++
	}
}

// before returns the value that is stored in the place of a value; conditions, and other list items
// with a type, stand at the item of their type.
func (c *checker) before(v document.Node) document.Node {
	parent := v.Parent()
	if !c.Old.Valid() || !parent.Valid() {
		return c.Old
	}
	in := c.before(parent)
	if parent.Kind() == document.Object {
		n, _ := in.Get(v.Key())
		return n
	}
	if kind, found := v.Get("type"); found && kind.Kind() == document.String {
		for n := in.First(); n.Valid(); n = n.Next() {
			if other, found := n.Get("type"); found && other.Is(kind.Str()) {
				return n
			}
		}
	}
	position := 0
	for n := parent.First(); n.Valid() && n != v; n = n.Next() {
		position++
	}
	n, _ := in.At(position)
	return n
}

// at is the value at a path of members; invalid if there is none, and for no path.
func at(v document.Node, path []string) document.Node {
	if len(path) == 0 {
		return document.Node{}
	}
	for _, key := range path {
		v, _ = v.Get(key)
	}
	return v
}

// shown is a scalar as failures show it.
func shown(v document.Node) any {
	if v.Kind() != document.String {
		return json.Number(v.Raw()) // as it was spelled
	}
	return strings.Clone(quote.Clip(v.Str(), quote.MaxScalar))
}

// path is the position of a value.
func (c *checker) path(v document.Node) string {
	if c.Schema != nil {
		return c.Schema.PathOf(v)
	}
	return v.Path()
}

// shape is the schema of the object's root; nil if it is not known.
func (c *checker) shape() *schema.Shape {
	if c.Schema == nil {
		return nil
	}
	return c.Schema.Root()
}

func (c *checker) invalid(v document.Node, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: c.path(v), BadValue: shown(v), Detail: detail}
}

func (c *checker) forbidden(v document.Node, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeForbidden, Field: c.path(v), Detail: detail}
}
