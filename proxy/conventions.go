package proxy

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// checkConventions adds to the result of validation what policies find that breaks the API conventions.
func (a *admitter) checkConventions(s storage.Storage, w *storage.Write, result *schema.Result) error {
	operation, _ := operationOf(w)
	a.describeAs(w, operation)
	o := conventions.Object{Root: w.Object.Root(), Bare: a.isBare(), Schema: s.Schema(w.Info.Verb), Status: s.StatusPath(), Old: w.Existing.Root()}
	switch {
	case w.Info.Subresource == "status":
		o.Part = conventions.StatusAlone
		if o.Status == nil {
			o.Status = storage.KubernetesStatus
		}
	case o.Status != nil:
		o.Part = conventions.WithoutStatus
	case !o.Bare:
		// Nothing keeps clients from writing a status that the resource does not set apart.
		if _, found := o.Root.Get("status"); found {
			o.Status = storage.KubernetesStatus
		}
	}
	found, err := a.set.Conventions().Check(a.context(), &a.attributes, o)
	if err != nil {
		var answer *status.Error
		if errors.As(err, &answer) {
			return answer
		}
		return status.Internal("a ConventionPolicy cannot decide if it is about the request: %v", err)
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
