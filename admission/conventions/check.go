package conventions

import (
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Object is what is held to the rules.
type Object struct {
	// Root is the object, Old the stored one; invalid where there is none.
	Root, Old document.Node
	// Shape is the object's schema, which tells dates by their format; nil where
	// it is not known.
	Shape *schema.Shape
	// Bare objects have no kind, apiVersion, metadata and spec.
	Bare bool
	// Status is where the status is; nil where objects have none.
	Status []string
	// Part is what of the object the request may write.
	Part Part
}

// Part is a part of an object.
type Part uint8

// The parts.
const (
	Whole Part = iota
	WithoutStatus
	StatusAlone
)

// maxFindings is how many failures of one object are described.
const maxFindings = 100

// checker is one check of one object.
type checker struct {
	Object
	attributes *admission.Attributes
	actions    [checks]Action
	keyRules   []keyRule

	findings []finding
	denied   int // how many more failures that refuse were found than described
	warned   int // and of others
	walks    bool
}

// keyRule is what one policy says of reserved keys.
type keyRule struct {
	action  Action
	allowed []string
}

type finding struct {
	err    *field.Error
	at     document.Node
	action Action
}

// add takes a policy into account.
func (c *checker) add(p *Policy) {
	for i, a := range p.actions {
		c.actions[i] = max(c.actions[i], a)
	}
	if a := p.actions[ReservedKeys]; a != Off {
		c.keyRules = append(c.keyRules, keyRule{a, p.allowed})
	}
}

// idle tells that no rule is on.
func (c *checker) idle() bool { return c.actions == [checks]Action{} }

// found records a failure about the value.
func (c *checker) found(check Check, at document.Node, err *field.Error) {
	c.record(c.actions[check], at, err)
}

func (c *checker) record(action Action, at document.Node, err *field.Error) {
	if action == Deny && c.unchanged(at) {
		action = Warn
	}
	switch {
	case action == Off:
	case len(c.findings) < maxFindings:
		c.findings = append(c.findings, finding{err, at, action})
	case action == Deny:
		c.denied++
	default:
		c.warned++
	}
}

// unchanged tells whether an update leaves the value as it was.
func (c *checker) unchanged(at document.Node) bool {
	before := c.before(at)
	return before.Valid() && document.EqualNodes(at, before)
}

// before is the stored value in the place of one of the object's; conditions are told apart by their type.
func (c *checker) before(at document.Node) document.Node {
	parent := at.Parent()
	if !parent.Valid() {
		return c.Old
	}
	in := c.before(parent)
	if !in.Valid() {
		return document.Node{}
	}
	if parent.Kind() == document.Object {
		n, _ := in.Get(at.Key())
		return n
	}
	if kind, found := at.Get("type"); found && kind.Kind() == document.String {
		for n := in.First(); n.Valid(); n = n.Next() {
			if other, found := n.Get("type"); found && other.Is(kind.Str()) {
				return n
			}
		}
	}
	position := 0
	for n := parent.First(); n.Valid() && n != at; n = n.Next() {
		position++
	}
	n, _ := in.At(position)
	return n
}

// result hands out what was found.
func (c *checker) result() Result {
	r := Result{More: c.denied}
	for _, f := range c.findings {
		if f.action == Deny {
			r.Errors = append(r.Errors, f.err)
		} else {
			r.Warnings = append(r.Warnings, f.err.Error())
		}
	}
	return r
}

// check holds the object to the rules that are on.
func (c *checker) check() {
	c.walks = c.actions[FractionsInSpec] != Off || c.actions[UnsafeIntegers] != Off || c.actions[Dates] != Off
	status := at(c.Root, c.Status)
	if c.Part != StatusAlone {
		c.reservedNames()
		c.topLevelFields()
		c.reservedKeys()
	}
	if c.actions[Conditions] != Off && c.Part != WithoutStatus && status.Kind() == document.Object {
		if conditions, found := status.Get("conditions"); found {
			c.conditions(conditions)
		}
	}
	if !c.walks {
		return
	}
	if c.Part == StatusAlone {
		c.value(shapeAt(c.Shape, c.Status), status, false)
		return
	}
	for m := c.Root.First(); m.Valid(); m = m.Next() {
		if !c.Bare && isEnvelope(m) {
			continue
		}
		c.member(c.Shape, m, c.Bare || m.Key() == "spec", status)
	}
}

// member checks a member on the way to the status, which may be deeper than the root.
func (c *checker) member(s *schema.Shape, m document.Node, spec bool, status document.Node) {
	if m == status {
		if c.Part == Whole {
			c.value(child(s, m), m, false)
		}
		return
	}
	c.value(child(s, m), m, spec)
}

// value checks the numbers and dates in a value. In a spec, numbers may have no fractions.
func (c *checker) value(s *schema.Shape, v document.Node, spec bool) {
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = m.Next() {
			if c.Part != StatusAlone && len(c.Status) > 1 && m == at(c.Root, c.Status) {
				if c.Part == Whole {
					c.value(child(s, m), m, false)
				}
				continue
			}
			c.value(child(s, m), m, spec)
		}
	case document.Array:
		items := s.Items()
		for n := v.First(); n.Valid(); n = n.Next() {
			c.value(items, n, spec)
		}
	case document.Number:
		c.number(v, spec)
	case document.String:
		if c.actions[Dates] != Off && isDate(s, v) && !isRFC3339(v) {
			c.found(Dates, v, invalid(v, "must be a date of RFC 3339, such as '2006-01-02T15:04:05Z'"))
		}
	}
}
