package match

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-gateway/gateway/admission"
)

// AsksForNames reports whether a selector of namespaces asks for nothing but their names, which every namespace has as
// a label.
func AsksForNames(s labels.Selector) bool {
	requirements, _ := s.Requirements()
	return !slices.ContainsFunc(requirements,
		func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
}

// JudgeNamespace says whether a selector selects the namespace of a request, as far as that is known. One that asks for
// names alone is decided by the name. The attributes may be nil if nothing but the URL is known.
func JudgeNamespace(ctx context.Context, s labels.Selector, asksForNames bool, name string, known Known,
	a *admission.Attributes) (Verdict, error) {
	switch {
	case asksForNames:
		return VerdictOf(s.Matches(NamespaceName(name))), nil
	case known == ByURL:
		return Open, nil
	}
	namespace, err := a.LookUpNamespace(ctx)
	if err == nil && !namespace.Valid() {
		err = errors.New("the request names no namespace, whose labels the policy selects by")
	}
	switch {
	case err == nil:
		return VerdictOf(admission.Selects(s, namespace)), nil
	case known < ByObject:
		return Open, nil // which fails, or does not, when the policy itself is asked
	}
	return No, err
}
