package apiserver

import (
	"context"
	"encoding/json"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// witness is a validating admission plugin, as ValidatingAdmissionPolicy is one. It allows everything, and keeps what
// it was shown.
type witness struct {
	*admission.Handler
	mu   sync.Mutex
	seen map[string][]byte
}

var _ admission.ValidationInterface = (*witness)(nil)

// Validate implements admission.ValidationInterface.
func (w *witness) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetObject() == nil {
		return nil
	}
	shown := a.GetObject()
	if _, isUnstructured := shown.(runtime.Unstructured); !isUnstructured &&
		a.GetResource().Group == apiextensionsv1.GroupName {
		var err error
		if shown, err = apiserver.Scheme.ConvertToVersion(shown,
			schema.GroupVersion{Group: apiextensionsv1.GroupName, Version: "v1"}); err != nil {
			return err
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[a.GetResource().Resource+"/"+a.GetName()] = text
	return nil
}

// Witnessed returns the object of the last write to a resource and a name as validating admission saw it.
func (s *Server) Witnessed(resource, name string) []byte {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	return s.witness.seen[resource+"/"+name]
}
