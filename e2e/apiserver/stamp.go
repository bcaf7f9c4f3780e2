package apiserver

import (
	"context"
	"fmt"

	metav1unstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// StampedNamespace is where the server's own mutating admission sets fields of widgets: the labels
// `team`, which is 'a', and `parts`, how many parts there are.
const StampedNamespace = "stamped"

// stamp is a mutating admission plugin, as MutatingAdmissionPolicy is one.
type stamp struct{ *admission.Handler }

var _ admission.MutationInterface = stamp{}

// Admit implements admission.MutationInterface.
func (stamp) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetNamespace() != StampedNamespace || a.GetResource().Resource != "widgets" || a.GetSubresource() != "" {
		return nil
	}
	object, ok := a.GetObject().(*metav1unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the object is a %T", a.GetObject())
	}
	parts, _, err := metav1unstructured.NestedSlice(object.Object, "spec", "parts")
	if err != nil {
		return err
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["team"], labels["parts"] = "a", fmt.Sprint(len(parts))
	object.SetLabels(labels)
	return nil
}
