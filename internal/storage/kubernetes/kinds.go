package kubernetes

import (
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A strategy is what stores of objects, of their status and of other subresources do differently.
// Each method implements the exported method of Store with the same name.
type strategy interface {
	prepareForCreate(s *Store, w *storage.Write)
	prepareForUpdate(s *Store, w *storage.Write) error
	keepStatus(s *Store, w *storage.Write)
	validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result
	// carry makes the object that validating policies see of a PUT, with what the server carries over to it.
	carry(s *Store, w *storage.Write)
	// changes reports whether the gateway may have to change what the client sent.
	changes(s *Store) bool
}

// objectStrategy is the strategy of whole objects.
type objectStrategy struct{}

// prepareForCreate takes the client's status out (STAT-1).
func (objectStrategy) prepareForCreate(s *Store, w *storage.Write) { dropStatus(s, w) }

func (objectStrategy) prepareForUpdate(s *Store, w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	dropStatus(s, w)
	if err := s.getStale(w); err != nil {
		return err
	}
	if schema := s.Schema(w); schema != nil && w.Existing.Object != nil {
		schema.Carry(w.Object, w.Existing.Object.Root(), false)
	}
	return nil
}

func (objectStrategy) keepStatus(s *Store, w *storage.Write) { dropStatus(s, w) }

func (objectStrategy) validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

func (objectStrategy) carry(s *Store, w *storage.Write) { s.carry(w) }

func (objectStrategy) changes(s *Store) bool { return s.Resource != nil || s.Status != nil }

func dropStatus(s *Store, w *storage.Write) {
	if sent, found := storage.Find(w.Object.Root(), s.Status); found {
		w.Object.Remove(sent)
	}
}

// statusStrategy is the strategy of the status of objects. The server takes the rest from what is
// stored.
type statusStrategy struct{}

func (statusStrategy) prepareForCreate(*Store, *storage.Write) {}

func (statusStrategy) prepareForUpdate(s *Store, w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	if err := s.getStale(w); err != nil {
		return err
	}
	if schema := s.Schema(w); schema != nil && w.Existing.Object != nil {
		schema.CarryStatus(w.Object, w.Existing.Object.Root(), false)
	}
	return nil
}

func (statusStrategy) keepStatus(*Store, *storage.Write) {}

func (statusStrategy) validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.ValidateStatus(f, w.Object.Root(), w.Existing.Root())
}

func (statusStrategy) carry(s *Store, w *storage.Write) { s.carryStatus(w) }

// changes reports false for what no file describes: nothing is changed in a body of the status
// alone.
func (statusStrategy) changes(s *Store) bool { return s.Resource != nil }

// subresourceStrategy is the strategy of a subresource whose object is of a kind of its own, such
// as a Scale.
type subresourceStrategy struct{}

func (subresourceStrategy) prepareForCreate(*Store, *storage.Write) {}

func (subresourceStrategy) prepareForUpdate(*Store, *storage.Write) error { return nil }

func (subresourceStrategy) keepStatus(*Store, *storage.Write) {}

func (subresourceStrategy) validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

func (subresourceStrategy) carry(_ *Store, w *storage.Write) { carryScale(w) }

func (subresourceStrategy) changes(*Store) bool { return false }
