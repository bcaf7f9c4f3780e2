package access

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// subjectReview is the question as kube-apiserver's own webhook for authorization puts it.
func subjectReview(about authorizer.Attributes) *authorizationv1.SubjectAccessReview {
	r := &authorizationv1.SubjectAccessReview{}
	r.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"))
	setUser(&r.Spec, about.GetUser())
	r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes = attributesOf(about)
	return r
}

// selfReview is the same question for the user who asks it.
func selfReview(about authorizer.Attributes) *authorizationv1.SelfSubjectAccessReview {
	r := &authorizationv1.SelfSubjectAccessReview{}
	r.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes = attributesOf(about)
	return r
}

// attributesOf returns the attributes of a request for a review.
func attributesOf(
	about authorizer.Attributes) (*authorizationv1.ResourceAttributes, *authorizationv1.NonResourceAttributes) {
	if !about.IsResourceRequest() {
		return nil, &authorizationv1.NonResourceAttributes{Path: about.GetPath(), Verb: about.GetVerb()}
	}
	r := &authorizationv1.ResourceAttributes{
		Namespace: about.GetNamespace(), Verb: about.GetVerb(), Group: about.GetAPIGroup(),
		Version:  about.GetAPIVersion(),
		Resource: about.GetResource(), Subresource: about.GetSubresource(), Name: about.GetName(),
	}
	if fields := fieldRequirements(about); len(fields) > 0 {
		r.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: fields}
	}
	if labels := labelRequirements(about); len(labels) > 0 {
		r.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: labels}
	}
	return r, nil
}

func setUser(s *authorizationv1.SubjectAccessReviewSpec, u user.Info) {
	if u == nil {
		return
	}
	s.User, s.UID, s.Groups = u.GetName(), u.GetUID(), u.GetGroups()
	for name, values := range u.GetExtra() {
		if s.Extra == nil {
			s.Extra = map[string]authorizationv1.ExtraValue{}
		}
		s.Extra[name] = values
	}
}

// fieldRequirements returns the requirements of a field selector. Requirements only narrow: one
// that cannot be expressed is left out, which asks for more than is needed.
func fieldRequirements(about authorizer.Attributes) []metav1.FieldSelectorRequirement {
	var all []metav1.FieldSelectorRequirement
	selected, _ := about.GetFieldSelector()
	for _, r := range selected {
		one := metav1.FieldSelectorRequirement{Key: r.Field, Values: []string{r.Value}}
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			one.Operator = metav1.FieldSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			one.Operator = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		all = append(all, one)
	}
	return all
}

// labelRequirements returns the requirements of a label selector.
func labelRequirements(about authorizer.Attributes) []metav1.LabelSelectorRequirement {
	var all []metav1.LabelSelectorRequirement
	selected, _ := about.GetLabelSelector()
	for _, r := range selected {
		one := metav1.LabelSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			one.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			one.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			one.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			one.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			continue
		}
		all = append(all, one)
	}
	return all
}
