package admission

import (
	"context"

	"github.com/admission-gateway/gateway/internal/index"
	"github.com/admission-gateway/gateway/internal/resource"
)

// FailurePolicy says what happens when a policy cannot decide.
type FailurePolicy uint8

const (
	// Fail refuses the request.
	Fail FailurePolicy = iota
	// Ignore goes on as if the policy were not there.
	Ignore
)

// Policy has what the [Chain] knows of a compiled policy. It is immutable and safe for concurrent
// use.
type Policy interface {
	// Name is the policy's name, unique among the policies of its kind; policies run in the order
	// of their names.
	Name() string
	// Rules select the requests that the policy may match. The policy itself looks closer: the
	// chain calls it for any request that one of them matches.
	Rules() []Rule
	// FailurePolicy is for what the policy itself does not handle: panics and
	// errors that its methods return.
	FailurePolicy() FailurePolicy
	// NeedsOld reports whether the policy reads the stored object.
	NeedsOld() bool
}

// A CarriedReader is a policy that says whether it reads fields of the object of an update that a server carries over
// from the stored object: fields of metadata that are the server's, and the status.
type CarriedReader interface{ ReadsCarried() bool }

// A Narrower is a policy that knows of requests which its rules name that it is not about them.
type Narrower interface {
	// Excludes reports whether the policy is certainly not about an operation, whatever the object is.
	// It is asked before anything is read.
	Excludes(i *resource.Info, o Operation) bool
}

// An Insistent policy is a Narrower that knows for which resources it excludes no request.
type Insistent interface {
	// NeverExcludes reports whether the policy is not excluded from the operation on the resource, whatever the
	// namespace and the name are.
	NeverExcludes(i *resource.Info, o Operation) bool
}

// A Decided policy knows which requests it matches whatever they say.
type Decided interface {
	// AlwaysMatches reports whether the policy, by each of its bindings, matches the operation on the resource as it
	// is, whatever the object, the namespace and the name are.
	AlwaysMatches(i *resource.Info, o Operation) bool
}

// A Prefilter is a policy that may find out without an object that it is not about a request, by more than a [Narrower]
// has: by labels of the namespace, or by who asks.
type Prefilter interface {
	// CanPrefilter reports whether the policy can find that out of any request.
	CanPrefilter() bool
	// IsFilteredOut reports whether the policy is certainly not about the request, whatever its object is. The
	// attributes have none. What cannot be found out is left to the policy itself: it is not outside then.
	IsFilteredOut(ctx context.Context, a *Attributes) bool
}

// An OldReader is a policy that knows for which requests it reads the stored object.
type OldReader interface {
	// ReadsOld reports whether it may read the stored object for the operation.
	ReadsOld(i *resource.Info, o Operation) bool
}

// A Mutator changes the object of a request.
type Mutator interface {
	Policy
	// Stage is when it runs.
	Stage() Stage
	// Plan appends its runs for the request, none if it does not match it. It changes nothing. An
	// error is handled as the failure policy says; failures that it handles itself it adds to the
	// report.
	Plan(ctx context.Context, a *Attributes, to []Run, r *Report) ([]Run, error)
	// Mutate edits a.Object for a run, and reports that with [Attributes.Changed]. A *status.Error
	// is the answer to the request; any other error is handled as the failure policy says, and
	// failures that it handles itself it adds to the report.
	Mutate(ctx context.Context, a *Attributes, run *Run, r *Report) error
}

// A Validator judges a request.
type Validator interface {
	Policy
	// Validate adds everything that is wrong to the report. A *status.Error is the answer to the
	// request; any other error means that it could not decide, and is handled as the failure policy
	// says.
	Validate(ctx context.Context, a *Attributes, r *Report) error
}

// A Rule names requests by group, resource and operation; "*" stands for any
// group or resource. The policy itself looks at all that the rule leaves open.
type Rule struct {
	Group, Resource string
	Operations      Operation // one or more
	// Versions are the only ones that the policy matches; none: it may match any.
	Versions []string
	// Subresources are the only ones that the policy matches, "" the resource itself; none: it may
	// match any.
	Subresources []string
	// Namespaces are the names of the only namespaces that the policy matches, besides objects in
	// no namespace; none: it may match any.
	Namespaces []string
	// The object or the stored object must have one of Labels; none: the policy may match any
	// object. It is for validators: the objects that a mutator matches change with its mutations.
	Labels []Label
	// NeedsOld is set if the policy reads the stored object for requests that the rule names, though it
	// does not for all of its rules.
	NeedsOld bool
	// ReadsCarried is set if the policy reads fields that a server carries over, for requests that the rule names.
	ReadsCarried bool
}

// Names reports whether the rule names the resource of a request.
func (r *Rule) Names(i *resource.Info) bool {
	return (r.Group == anyName || r.Group == i.Group) && (r.Resource == anyName || r.Resource == i.Resource)
}

// A Label is a label with its value.
type Label = index.Label
