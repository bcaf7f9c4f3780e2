package kubernetes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// The storage of some kinds writes into the options of a deletion before a server's own admission
// sees them: the storage of Pods writes the grace period of the Pod, and the storage of Namespaces
// and definitions the uid. Both follow from the stored object. For a collection the admission sees
// the options as they were sent.

// OperationOptions implements storage.Strategy: policies see what the server's own admission has.
func (s *Store) OperationOptions(w *storage.Write, operation admission.Operation) (document.Node, error) {
	if operation != admission.Delete || w.Info.Name == "" {
		return w.OperationOptions(operation, s.Limits, nil)
	}
	complete := optionsCompleterOf(&w.Info)
	if complete != nil && w.Existing.Object == nil {
		// The policy reads the options and not the object, so the object has not been read yet.
		if w.Failed == nil {
			w.Failed = s.Get(w)
		}
		if w.Failed != nil {
			return document.Node{}, w.Failed
		}
	}
	return w.OperationOptions(operation, s.Limits, func(o *metav1.DeleteOptions) {
		if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds < 0 {
			o.GracePeriodSeconds = seconds(1)
		}
		if complete != nil && w.Existing.Object != nil {
			complete(o, w.Existing.Root())
		}
	})
}

// optionsCompleterOf returns what completes the options of a deletion by the stored object; nil for nothing.
func optionsCompleterOf(i *resource.Info) func(*metav1.DeleteOptions, document.Node) {
	switch {
	case i.Subresource != "" || i.APIPrefix == "":
	case i.Group == "" && i.Resource == "pods":
		return setGracePeriod
	case i.IsNamespaces(), i.Group == "apiextensions.k8s.io" && i.Resource == "customresourcedefinitions":
		return requireUID
	}
	return nil
}

// setGracePeriod sets the grace that a Pod gets: none if it runs nowhere, or no longer.
func setGracePeriod(o *metav1.DeleteOptions, pod document.Node) {
	metadata, _ := pod.Get("metadata")
	if deleted, found := metadata.Get("deletionTimestamp"); found && deleted.Kind() == document.String {
		setPendingGracePeriod(o, metadata)
		return
	}
	spec, _ := pod.Get("spec")
	state, _ := pod.Get("status")
	phase := storage.TextIn(state, "phase")
	switch {
	case storage.TextIn(spec, "nodeName") == "", phase == "Failed", phase == "Succeeded":
		o.GracePeriodSeconds = seconds(0)
	case o.GracePeriodSeconds != nil:
	default:
		period, _ := spec.Get("terminationGracePeriodSeconds")
		n, _ := period.Int64()
		if n < 0 {
			n = 1
		}
		o.GracePeriodSeconds = seconds(n)
	}
}

// setPendingGracePeriod sets the grace of a Pod that is being deleted, if the client names none.
func setPendingGracePeriod(o *metav1.DeleteOptions, metadata document.Node) {
	pending, _ := metadata.Get("deletionGracePeriodSeconds")
	if n, ok := pending.Int64(); ok && n > 0 && o.GracePeriodSeconds == nil {
		o.GracePeriodSeconds = seconds(n)
	}
}

// requireUID makes the uid of an object a precondition of its deletion.
func requireUID(o *metav1.DeleteOptions, object document.Node) {
	metadata, _ := object.Get("metadata")
	uid := types.UID(storage.TextIn(metadata, "uid"))
	if uid == "" || o.Preconditions != nil && o.Preconditions.UID != nil {
		return
	}
	preconditions := metav1.Preconditions{UID: &uid}
	if o.Preconditions != nil {
		preconditions.ResourceVersion = o.Preconditions.ResourceVersion
	}
	o.Preconditions = &preconditions // the client's are sent as they are
}

func seconds(n int64) *int64 { return &n }
