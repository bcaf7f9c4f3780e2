package proxy

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// An outside finds the policies that do not match the request before the gateway reads an object or makes a dry run for
// them: by labels of the namespace, and by match conditions that need no object. It asks each policy once. It implements
// resource.Foresight.
type outside struct {
	admitter   *admitter
	attributes admission.Attributes // without an object
	known      []foreseen
}

// foreseen is the answer of a policy.
type foreseen struct {
	outsideKey
	isOutside bool
}

// outsideKey identifies a policy and the request that it was asked about.
type outsideKey struct {
	policy                                   any
	operation                                admission.Operation
	verb                                     resource.Verb
	resource, subresource, namespace, object string
}

// IsOutside implements resource.Foresight.
func (o *outside) IsOutside(policy any, i *resource.Info, operation admission.Operation) bool {
	key := outsideKey{policy, operation, i.Verb, i.Resource, i.Subresource, i.Namespace, i.Name}
	for n := range o.known {
		if o.known[n].outsideKey == key {
			return o.known[n].isOutside
		}
	}
	isOutside := o.ask(policy.(admission.Foreseer), i, operation)
	o.known = append(o.known, foreseen{key, isOutside})
	return isOutside
}

// ask asks a policy. One that fails is left to the steps of the request.
func (o *outside) ask(p admission.Foreseer, i *resource.Info, operation admission.Operation) (isOutside bool) {
	defer func() {
		if recover() != nil {
			isOutside = false
		}
	}()
	a, to := o.admitter, &o.attributes
	to.Info, to.Resource, to.Operation = i, a.request.Resource, operation
	to.Received, to.User, to.HTTP = a.gateway.timeOf(a.request), &a.who.user, (*storage.HTTP)(a.request)
	to.DryRun = i.Options.DryRun
	a.referred.Begin(a.context(), a.scope.set, a.gateway.states, a.scope.backend, i, a.permission, a.request.Deadline())
	to.Lookup, to.Frame = &a.referred, a.frame()
	if s := to.Frame.Tracer(); s != nil { // which is reported when the policy itself is evaluated
		to.Frame.Trace(nil)
		defer to.Frame.Trace(s)
	}
	return p.IsOutside(a.context(), to)
}

// reset forgets the request.
func (o *outside) reset() {
	clear(o.known)
	*o = outside{known: o.known[:0]}
}
