package admission

import (
	"context"
	"math/bits"

	"github.com/admission-gateway/gateway/internal/resource"
)

// operations is how many operations there are.
const operations = 4

// A Scoped is the policies of a [Chain] that may match operations on one resource, or one of its
// subresources. It is what the Chain has for them, found once: it answers all that the Chain answers,
// by the methods of the same names, and looks nothing up. It is immutable and safe for concurrent use.
//
//	scoped := chain.For(&info)              // once, when the scope of an operation is made
//	if scoped.Concerns(&w.Info, operation)  // for each request
//
// The requests that it is asked about must have the group, version, resource and subresource of the
// Info that it was made for. All else of them may differ: the verb, the namespace and the name. It has
// all four operations, so that a PUT which may create asks the one Scoped about [Update] and [Create],
// and a request that leads to somewhere else about [Connect]. A request that is admitted as another
// resource or subresource has another Scoped.
//
// To make one takes a few look-ups, and a question to each policy that it has. It holds at most a few
// hundred bytes and a bit for each policy and operation; all resources without policies share one.
type Scoped struct {
	chain                *Chain
	mutating, validating [operations]found
	// mutated and validated are operations that policies may match whatever a request says besides: no policy is asked.
	mutated, validated Operation
	canPrefilter       bool
	matched            [operations]positions // validators that match whatever a request says
	named              Operation             // those that a rule names, whatever the policy says besides
}

// For returns the policies for the resource or subresource of a request.
func (c *Chain) For(i *resource.Info) *Scoped {
	s := Scoped{chain: c}
	isEmpty := true
	for bit := range operations {
		var mutators, validators room
		at := c.at(&mutators, &validators, i, 1<<bit)
		s.mutating[bit], s.validating[bit] = keep(at.mutating), keep(at.validating)
		if c.mutating.matchesAll(at.mutating, i, 1<<bit) {
			s.mutated |= 1 << bit
		}
		if c.validating.matchesAll(at.validating, i, 1<<bit) {
			s.validated |= 1 << bit
		}
		isEmpty = isEmpty && s.mutating[bit] == nil && s.validating[bit] == nil
		s.matched[bit] = c.validating.matched(at.validating, i, 1<<bit)
		s.canPrefilter = s.canPrefilter || c.mutating.canPrefilterIn(at.mutating) ||
			c.validating.canPrefilterIn(at.validating)
		if c.IsNamed(i, 1<<bit) {
			s.named |= 1 << bit
		}
	}
	if isEmpty && s.named == 0 {
		return c.none()
	}
	made := s
	return &made
}

// none is the Scoped of all resources without policies.
func (c *Chain) none() *Scoped {
	if c.empty == nil {
		return &Scoped{chain: c} // of a Chain that was not made by NewChain
	}
	return c.empty
}

// keep returns what was found in room of its own; nil for nothing.
func keep(f found) found {
	if len(f) == 0 {
		return nil
	}
	return append(found(nil), f...)
}

// at returns the policies for an operation.
func (s *Scoped) at(o Operation) operation {
	if bits.OnesCount8(uint8(o)) == 1 {
		bit := bits.TrailingZeros8(uint8(o))
		return operation{s.chain, s.mutating[bit], s.validating[bit], s.matched[bit]}
	}
	at := operation{chain: s.chain}
	for bit := range operations {
		if o&(1<<bit) != 0 {
			at.mutating, at.validating = append(at.mutating, s.mutating[bit]...),
				append(at.validating, s.validating[bit]...)
		}
	}
	return at
}

// Concerns reports whether any policy may match the operation on the resource.
func (s *Scoped) Concerns(i *resource.Info, o Operation) bool {
	return (s.mutated|s.validated)&o != 0 || s != s.chain.empty && s.at(o).concerns(i, o)
}

// CanPrefilter reports whether a request's [resource.Prefilter] may find any of the policies not to match it.
func (s *Scoped) CanPrefilter() bool { return s.canPrefilter }

// IsNamed reports whether a rule of any policy names the operation on the resource, whatever else the policy says, and
// whatever the subresource is.
func (s *Scoped) IsNamed(o Operation) bool { return s.named&o != 0 }

// Validates reports whether any validating policy may match the operation on the resource.
func (s *Scoped) Validates(i *resource.Info, o Operation) bool {
	return s.validated&o != 0 || s.chain.validating.matches(s.at(o).validating, i, o)
}

// Mutates reports whether a mutating policy may match the operation.
func (s *Scoped) Mutates(i *resource.Info, o Operation) bool {
	return s.mutated&o != 0 || s.chain.mutating.matches(s.at(o).mutating, i, o)
}

// Differs reports whether a policy may match one operation on the resource and not the other.
func (s *Scoped) Differs(i *resource.Info, a, b Operation) bool {
	return s.at(a).differs(s.at(b), i, a, b)
}

// NeedsOld reports whether a policy that may match the request reads the stored object.
func (s *Scoped) NeedsOld(i *resource.Info, o Operation) bool { return s.at(o).needsOld(i, o) }

// ReadsCarried reports whether a validator that may match an update reads fields that a server carries over from the
// stored object.
func (s *Scoped) ReadsCarried() bool { return readsCarried(s.at(Update).validating) }

// Mutate runs the mutators that match the request, as [Chain.Mutate] does.
func (s *Scoped) Mutate(ctx context.Context, a *Attributes, r *Report) error {
	return s.chain.mutate(ctx, s.at(a.Operation).mutating, a, r)
}

// Validate runs the validators that match the request, all of them, and collects what they find in the report.
func (s *Scoped) Validate(ctx context.Context, a *Attributes, r *Report) {
	at := s.at(a.Operation)
	s.chain.validate(ctx, at.validating, at.matched, a, r)
}

// Concerns reports whether any policy may concern the operation on the resource.
func (c *Chain) Concerns(i *resource.Info, o Operation) bool {
	var m, v room
	return c.at(&m, &v, i, o).concerns(i, o)
}

// CanPrefilter reports whether a request's [resource.Prefilter] may know of any policy that it is not about the
// request.
func (c *Chain) CanPrefilter() bool { return c.mutating.canPrefilter || c.validating.canPrefilter }

// IsNamed reports whether a rule of any policy names the operation on the resource, whatever else the policy says, and
// whatever the subresource is.
func (c *Chain) IsNamed(i *resource.Info, o Operation) bool {
	var m room
	key := keyOf(i)
	return len(c.mutating.rules.FindInAll(m[:0], &key, uint16(o))) > 0 ||
		len(c.validating.rules.FindInAll(m[:0], &key, uint16(o))) > 0
}

// Validates reports whether any validating policy may concern the operation on the resource.
func (c *Chain) Validates(i *resource.Info, o Operation) bool {
	var v room
	return c.validating.matches(c.validating.find(&v, i, o), i, o)
}

// Mutates reports whether a mutating policy may concern the operation.
func (c *Chain) Mutates(i *resource.Info, o Operation) bool {
	var m room
	return c.mutating.matches(c.mutating.find(&m, i, o), i, o)
}

// Differs reports whether a policy may concern one operation on the resource and not the other.
func (c *Chain) Differs(i *resource.Info, a, b Operation) bool {
	var m, v, n, w room
	return c.at(&m, &v, i, a).differs(c.at(&n, &w, i, b), i, a, b)
}

// NeedsOld reports whether a policy that may concern the request reads the stored object.
func (c *Chain) NeedsOld(i *resource.Info, o Operation) bool {
	var m, v room
	return c.at(&m, &v, i, o).needsOld(i, o)
}

// ReadsCarried reports whether a validator that may concern an update reads fields that a server carries over from the
// stored object.
func (c *Chain) ReadsCarried(i *resource.Info) bool {
	var v room
	return readsCarried(c.validating.find(&v, i, Update))
}

// Mutate runs the mutators that concern the request. The error is the answer,
// a *status.Error. Failures that were ignored are noted in the report.
//
// As in Kubernetes what a policy matches is decided by the object as it is when its stage begins,
// all policies run though one of them failed, and if a policy was able to change the object, the
// policies that ask for it run a second time. So do the policies that set defaults, if something
// was changed after them.
func (c *Chain) Mutate(ctx context.Context, a *Attributes, r *Report) error {
	var m room
	return c.mutate(ctx, c.mutating.find(&m, a.Info, a.Operation), a, r)
}

// Validate runs the validators that concern the request, all of them, and
// collects what they find in the report.
func (c *Chain) Validate(ctx context.Context, a *Attributes, r *Report) {
	var v room
	c.validate(ctx, c.validating.find(&v, a.Info, a.Operation), nil, a, r)
}

// at looks up the policies for an operation on a resource.
func (c *Chain) at(m, v *room, i *resource.Info, o Operation) operation {
	return operation{chain: c, mutating: c.mutating.find(m, i, o), validating: c.validating.find(v, i, o)}
}

// An operation is the policies of a chain that may match an operation on a resource.
type operation struct {
	chain                *Chain
	mutating, validating found
	matched              positions // validators among them that match for sure
}

func (p operation) concerns(i *resource.Info, o Operation) bool {
	return p.chain.mutating.matches(p.mutating, i, o) || p.chain.validating.matches(p.validating, i, o)
}

func (p operation) differs(other operation, i *resource.Info, a, b Operation) bool {
	return p.chain.mutating.differs(p.mutating, other.mutating, i, a, b) ||
		p.chain.validating.differs(p.validating, other.validating, i, a, b)
}

func (p operation) needsOld(i *resource.Info, o Operation) bool {
	return p.chain.mutating.needsOld(p.mutating, i, o) || p.chain.validating.needsOld(p.validating, i, o)
}
