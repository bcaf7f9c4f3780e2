package proxy

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
)

// heldToConventions tells whether a policy may want to hold the object to API conventions.
func (x *exchange) heldToConventions() (admission.Operation, bool) {
	operation, ok := admission.OperationOf(x.info.Verb)
	return operation, ok && x.set.Conventions().Concern(&x.info, operation)
}

// holdToConventions adds to the result of validation what policies find that breaks the API conventions.
func (x *exchange) holdToConventions(result *schema.Result) error {
	operation, held := x.heldToConventions()
	if !held {
		return nil
	}
	x.describeAs(operation)
	o := conventions.Object{Root: x.doc.Root(), Bare: x.res != nil && x.res.Envelope == resource.Bare, Schema: x.schema(), Status: x.statusPath()}
	switch {
	case x.info.Subresource == "status":
		o.Part = conventions.StatusAlone
		if o.Status == nil {
			o.Status = kubernetesStatus
		}
	case o.Status != nil:
		o.Part = conventions.WithoutStatus
	case !o.Bare:
		// Nothing keeps clients from writing a status that the resource does not set apart.
		if _, found := o.Root.Get("status"); found {
			o.Status = kubernetesStatus
		}
	}
	if x.old != nil {
		o.Old = x.old.Root()
	}
	found, err := x.set.Conventions().Check(context.Background(), &x.attributes, o)
	if err != nil {
		var answer *status.Error
		if errors.As(err, &answer) {
			return answer
		}
		return status.Internal("a ConventionPolicy cannot tell whether it is about the request: %v", err)
	}
	for _, f := range found.Errors {
		// A field that its schema refuses already, such as a date, is not refused twice.
		if !slices.ContainsFunc(result.Errors, func(e *field.Error) bool { return e.Field == f.Field }) {
			result.Errors = append(result.Errors, f)
		}
	}
	result.More += found.More
	result.Warnings = append(result.Warnings, found.Warnings...)
	return nil
}
