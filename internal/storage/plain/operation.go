package plain

import (
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// An operationStore is the storage of an operation, which stores nothing that the gateway knows of: its body is
// admitted and sent on, and the answer passes.
type operationStore struct{ subresourceStore }

// IsOpaque implements storage.Strategy. A form that the document declares is held to it if a rule names the resource.
func (s *operationStore) IsOpaque(i *resource.Info) bool {
	operation := i.Verb.Operation()
	return s.Schema(i.Verb) == nil && !s.Policies.IsNamed(i, operation)
}

// CheckOptions implements storage.Strategy. The query belongs to the backend.
func (s *operationStore) CheckOptions(*storage.Write) error { return nil }

// Complete implements storage.Strategy. The body is whatever the schema says, and the URL does not name it.
func (s *operationStore) Complete(*storage.Write) error { return nil }

// PrepareForUpdate implements storage.Strategy.
func (s *operationStore) PrepareForUpdate(*storage.Write) error { return nil }

// NeedsExisting implements storage.Updater.
func (s *operationStore) NeedsExisting(*storage.Write) bool { return false }

// Get implements storage.Updater. There is nothing to read.
func (s *operationStore) Get(*storage.Write) error { return nil }

// Lock implements storage.Updater.
func (s *operationStore) Lock(*storage.Request, bool) error { return nil }
