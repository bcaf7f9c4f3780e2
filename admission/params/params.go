// Package params finds the parameter objects that a policy's binding refers to,
// as kube-apiserver's plugins for policies do.
package params

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// A Ref is a compiled paramRef of a binding. It is immutable and safe for
// concurrent use. A nil Ref refers to nothing.
type Ref struct {
	namespace, name string
	selector        labels.Selector // nil: by name
	deny            bool            // if there are none
}

// Compile checks and compiles the paramRef of a binding; nil for none. With
// findings the Ref is nil.
func Compile(r *admissionv1.ParamRef, fldPath *field.Path) (*Ref, field.ErrorList) {
	if r == nil {
		return nil, nil
	}
	if errs := validate(r, fldPath); len(errs) > 0 {
		return nil, errs
	}
	compiled := &Ref{namespace: r.Namespace, name: r.Name, deny: *r.ParameterNotFoundAction == admissionv1.DenyAction}
	if r.Selector != nil {
		var err error
		if compiled.selector, err = metav1.LabelSelectorAsSelector(r.Selector); err != nil {
			return nil, field.ErrorList{field.Invalid(fldPath.Child("selector"), r.Selector, err.Error())}
		}
	}
	return compiled, nil
}

func validate(r *admissionv1.ParamRef, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Name != "" {
		for _, why := range content.IsPathSegmentName(r.Name) {
			errs = append(errs, field.Invalid(fldPath.Child("name"), r.Name, why))
		}
		if r.Selector != nil {
			errs = append(errs, field.Forbidden(fldPath.Child("name"), "name and selector are mutually exclusive"))
		}
	}
	if r.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(r.Selector,
			metav1validation.LabelSelectorValidationOptions{}, fldPath.Child("selector"))...)
		if r.Name != "" {
			errs = append(errs, field.Forbidden(fldPath.Child("selector"), "name and selector are mutually exclusive"))
		}
	}
	if r.Name == "" && r.Selector == nil {
		errs = append(errs, field.Required(fldPath, "one of name or selector must be specified"))
	}
	switch action := r.ParameterNotFoundAction; {
	case action == nil || *action == "":
		errs = append(errs, field.Required(fldPath.Child("parameterNotFoundAction"), ""))
	case *action != admissionv1.DenyAction && *action != admissionv1.AllowAction:
		errs = append(errs, field.NotSupported(fldPath.Child("parameterNotFoundAction"), *action,
			[]admissionv1.ParameterNotFoundActionType{admissionv1.DenyAction, admissionv1.AllowAction}))
	}
	return errs
}

// ValidateKind checks the paramKind of a policy.
func ValidateKind(k *admissionv1.ParamKind, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	version := fldPath.Child("apiVersion")
	parsed, err := schema.ParseGroupVersion(k.APIVersion)
	switch {
	case k.APIVersion == "":
		errs = append(errs, field.Required(version, ""))
	case err != nil:
		errs = append(errs, field.Invalid(version, k.APIVersion, err.Error()))
	default:
		if parsed.Group != "" {
			for _, why := range validation.IsDNS1123Subdomain(parsed.Group) {
				errs = append(errs, field.Invalid(version, parsed.Group, why))
			}
		}
		for _, why := range validation.IsDNS1035Label(parsed.Version) {
			errs = append(errs, field.Invalid(version, parsed.Version, why))
		}
	}
	if k.Kind == "" {
		return append(errs, field.Required(fldPath.Child("kind"), ""))
	}
	for _, why := range validation.IsDNS1035Label(strings.ToLower(k.Kind)) {
		errs = append(errs, field.Invalid(fldPath.Child("kind"), k.Kind,
			"may have mixed case, but must otherwise match: "+why))
	}
	return errs
}

// Kind is the kind that a policy's paramKind names; false for none, or one that
// validation has refused.
func Kind(k *admissionv1.ParamKind) (schema.GroupVersionKind, bool) {
	if k == nil {
		return schema.GroupVersionKind{}, false
	}
	version, err := schema.ParseGroupVersion(k.APIVersion)
	return version.WithKind(k.Kind), err == nil
}

var (
	errNoParams = errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	errNoLookup = errors.New("parameters of policies are not known")
)

// none are the parameters of a binding without any: the policy is evaluated once,
// with the variable params being null.
var none = []document.Node{{}}

// References returns what the reference asks for, if parameters are of a kind; the zero kind means
// no parameters.
func (r *Ref) References(kind schema.GroupVersionKind) []admission.ParamReference {
	if r == nil || kind.Empty() {
		return nil
	}
	return []admission.ParamReference{{Kind: kind, Namespace: r.namespace, Name: r.name}}
}

// Find returns the parameter objects for a request: the policy is evaluated once for each. None at
// all means that the binding does not apply. The kind is the policy's paramKind; the zero kind for
// none.
func (r *Ref) Find(ctx context.Context, kind schema.GroupVersionKind,
	a *admission.Attributes) ([]document.Node, error) {
	if r == nil || kind.Empty() {
		return none, nil
	}
	if a.Lookup == nil {
		return nil, errNoLookup
	}
	namespace, err := r.namespaceFor(ctx, kind, a)
	if err != nil {
		return nil, err
	}
	var found []document.Node
	if r.selector != nil {
		found, err = a.Lookup.Objects(ctx, kind, namespace, r.selector)
	} else {
		var one document.Node
		if one, err = a.Lookup.Object(ctx, kind, namespace, r.name); one.Valid() {
			found = []document.Node{one}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0 && r.deny:
		return nil, errNoParams
	}
	return found, nil
}

// namespaceFor returns the namespace of the parameters: the reference's, else the request's.
func (r *Ref) namespaceFor(ctx context.Context, kind schema.GroupVersionKind, a *admission.Attributes) (string, error) {
	namespaced, err := a.Lookup.Namespaced(ctx, kind)
	switch {
	case err != nil:
		return "", fmt.Errorf("the paramKind '%s' of '%s' is not known: %w", kind.Kind, kind.GroupVersion(), err)
	case !namespaced && r.namespace != "":
		return "", errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !namespaced:
		return "", nil
	case r.namespace != "":
		return r.namespace, nil
	case a.Namespace() == "":
		return "", errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	return a.Namespace(), nil
}
