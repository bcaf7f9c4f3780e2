package plain

import (
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// unregistered represents a resource that no policy file describes: its objects get nothing but
// what a patch and a dry run need.
var unregistered = resource.Resource{
	Envelope: resource.Bare,
	Writes:   resource.Writes{CreateOnUpdate: true, UnconditionalUpdate: true},
	Backend:  resource.Backend{Patch: resource.PatchEmulated, Emulated: resource.DryRun | resource.StatusSubresource},
}

// undescribedBodies are the bodies of objects that no policy file describes, and of their
// subresources.
type undescribedBodies struct{ a *access }

// IsOpaque implements storage.Strategy.
func (s undescribedBodies) IsOpaque(i *resource.Info) bool {
	return s.a.status == nil && !s.a.ChecksNames && !storage.IsConcerned(s.a.Policies, i)
}

// CheckOptions implements storage.Strategy. The query belongs to the backend.
func (undescribedBodies) CheckOptions(*storage.Write) error { return nil }

// Complete implements storage.Strategy.
func (s undescribedBodies) Complete(w *storage.Write) error {
	if err := storage.CheckIdentity(w); err != nil || !s.a.ChecksNames {
		return err
	}
	return storage.CheckName(w)
}
