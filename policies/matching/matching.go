// Package matching says which policies and limits of a set match a request, and why the others do
// not, as far as the request's method and path decide it.
package matching

import (
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
)

// A Forecast says of each policy and each limit of a set whether it matches a request.
type Forecast struct {
	// Mutating and Validating are in the order in which they run.
	Mutating, Validating, Conventions, Limits []resource.Applicability
	// Unbound are policies of the files that match no request at all.
	Unbound []resource.Applicability
}

// Of returns the forecast for a request that comes by a route.
func Of(s *policies.Set, i *resource.Info, r *resource.Resource, place *resource.RouteRef) Forecast {
	o := Forecast{Limits: s.Limits().Applicabilities(i, place, time.Now())}
	o.Mutating, o.Validating, o.Conventions = applicabilities(s, i, r, operationOf(i))
	if i.Verb == resource.VerbUpdate || i.Verb == resource.VerbPatch {
		mutating, validating, conventions := applicabilities(s, i, r, admission.Create)
		orCreate(o.Mutating, mutating)
		orCreate(o.Validating, validating)
		orCreate(o.Conventions, conventions)
	}
	o.Unbound = unbound(s, &o)
	return o
}

// operationOf returns the operation that a request is admitted as; 0 if nothing is admitted.
func operationOf(i *resource.Info) admission.Operation {
	switch {
	case i.Connect:
		return admission.Connect
	case !i.IsWrite():
		return 0
	}
	operation := i.Verb.Operation()
	return operation
}

func applicabilities(s *policies.Set, i *resource.Info, r *resource.Resource,
	operation admission.Operation) (mutating, validating, conventions []resource.Applicability) {
	a := &admission.Attributes{Info: i, Resource: r, Operation: operation}
	mutating, validating = s.Admission().Applicabilities(a)
	conventions = s.Conventions().Applicabilities(a)
	if operation != 0 {
		return mutating, validating, conventions
	}
	why := "the request writes nothing, and policies judge writes"
	switch {
	case i.Documented != nil:
		why = "the operation is no verb of a resource"
	case i.IsOtherMethod:
		why = "no policy file describes the method for the path"
	case i.IsUndescribed:
		why = "no policy file describes the path"
	}
	for _, all := range [][]resource.Applicability{mutating, validating, conventions} {
		for n, o := range all {
			all[n] = o.Unless(why)
		}
	}
	return mutating, validating, conventions
}

// orCreate adds to the applicabilities of an update what they are if the update creates the object.
func orCreate(update, create []resource.Applicability) {
	for n, o := range update {
		if o.Applies == resource.Never && create[n].Applies != resource.Never {
			o.Applies, o.Because = resource.Always, ""
			update[n] = o.If("the request creates the object")
		}
	}
}

// unbound finds the policies of the files that are in no other list.
func unbound(s *policies.Set, o *Forecast) (unbound []resource.Applicability) {
	type policy struct{ kind, name string }
	runs := map[policy]bool{}
	for _, all := range [][]resource.Applicability{o.Mutating, o.Validating} {
		for _, one := range all {
			runs[policy{one.Kind, one.Name}] = true
		}
	}
	for _, f := range s.Files() {
		for _, object := range f.Objects {
			one := resource.Applicability{Kind: object.Kind, Name: object.Name}
			if runs[policy{one.Kind, one.Name}] {
				continue
			}
			switch object.Kind {
			case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
				unbound = append(unbound, one.Unless("no binding names it"))
			case "DefaultingPolicy":
				unbound = append(unbound, one.Unless("its mode is Disabled"))
			}
		}
	}
	return unbound
}
