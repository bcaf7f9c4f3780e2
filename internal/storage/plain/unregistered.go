package plain

import (
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// unregistered stands for a resource that no policy file describes: its objects get nothing but
// what a patch and a dry run need.
var unregistered = resource.Resource{
	Envelope: resource.Bare,
	Writes:   resource.Writes{CreateOnUpdate: true, UnconditionalUpdate: true},
	Backend:  resource.Backend{Patch: resource.PatchEmulated, Emulated: resource.DryRun | resource.StatusSubresource},
}

// An unregisteredStore is the storage of objects that no policy file describes.
type unregisteredStore struct{ Store }

// IsOpaque implements storage.Strategy.
func (s *unregisteredStore) IsOpaque(i *resource.Info) bool { return s.isOpaque(i) }

// Complete implements storage.Strategy.
func (s *unregisteredStore) Complete(w *storage.Write) error { return s.completeUnregistered(w) }

// An unregisteredSubresource is the storage of a subresource of such objects.
type unregisteredSubresource struct{ subresourceStore }

// IsOpaque implements storage.Strategy.
func (s *unregisteredSubresource) IsOpaque(i *resource.Info) bool { return s.isOpaque(i) }

// Complete implements storage.Strategy.
func (s *unregisteredSubresource) Complete(w *storage.Write) error { return s.completeUnregistered(w) }

func (s *definition) isOpaque(i *resource.Info) bool {
	return s.status == nil && !s.ChecksNames && !storage.IsConcerned(s.Policies, i)
}

func (s *strategy) completeUnregistered(w *storage.Write) error {
	if err := storage.CheckIdentity(w); err != nil || !s.ChecksNames {
		return err
	}
	return storage.CheckName(w)
}
