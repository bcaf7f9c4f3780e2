package proxy

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// beginPrefilter is the stage that lets policies be asked before an object is read, if that may spare it. A new object
// is all in the request.
func beginPrefilter(r *request) error {
	f := r.prefilter
	f.request, f.attributes.IsUncounted = r, r.gateway.isUncounted
	r.Info.Prefilter = f
	return nil
}

// A prefilter finds the policies that do not match the request before the gateway reads an object or makes a dry run
// for them: by labels of the namespace, and by match conditions that need no object. It asks each policy once. It
// implements resource.Prefilter.
type prefilter struct {
	request    *request             // nil until it is to be asked
	attributes admission.Attributes // without an object
	known      []prefiltered
}

// prefiltered is the answer of a policy.
type prefiltered struct {
	prefilterKey
	isFilteredOut bool
}

// prefilterKey identifies a policy and the request that it was asked about.
type prefilterKey struct {
	policy                                   any
	operation                                admission.Operation
	verb                                     resource.Verb
	resource, subresource, namespace, object string
}

// IsFilteredOut implements resource.Prefilter.
func (f *prefilter) IsFilteredOut(policy any, i *resource.Info, operation admission.Operation) bool {
	key := prefilterKey{policy, operation, i.Verb, i.Resource, i.Subresource, i.Namespace, i.Name}
	for n := range f.known {
		if f.known[n].prefilterKey == key {
			return f.known[n].isFilteredOut
		}
	}
	isFilteredOut := f.ask(policy.(admission.Prefilter), i, operation)
	f.known = append(f.known, prefiltered{key, isFilteredOut})
	return isFilteredOut
}

// ask asks a policy. One that fails is left to the steps of the request.
func (f *prefilter) ask(p admission.Prefilter, i *resource.Info, operation admission.Operation) (isFilteredOut bool) {
	defer func() {
		if recover() != nil {
			isFilteredOut = false
		}
	}()
	r, to := f.request, &f.attributes
	to.Info, to.Resource, to.Operation = i, r.Resource, operation
	to.Received, to.User, to.HTTP = r.gateway.timeOf(r.Request), &r.who.user, (*storage.HTTP)(r.Request)
	to.DryRun = i.Options.DryRun
	r.attempt.referred.Begin(r.context(), r.scope.set, r.gateway.states, r.scope.backend, i, (*gate)(r), r.Deadline())
	to.Lookup, to.Frame = &r.attempt.referred, r.frame()
	if s := to.Frame.Tracer(); s != nil { // which is reported when the policy itself is evaluated
		to.Frame.Trace(nil)
		defer to.Frame.Trace(s)
	}
	return p.IsFilteredOut(r.context(), to)
}

// reset forgets the request.
func (f *prefilter) reset() {
	clear(f.known)
	*f = prefilter{known: f.known[:0]}
}
