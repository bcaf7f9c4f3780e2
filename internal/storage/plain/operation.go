package plain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// operationBodies are the bodies that the document of an operation describes.
type operationBodies struct{ a *access }

// IsOpaque implements storage.Strategy. A form that the document declares is checked against it if
// a rule names the resource.
func (s operationBodies) IsOpaque(i *resource.Info) bool {
	return s.a.schema(i.Verb) == nil && !s.a.Policies.IsNamed(i.Verb.Operation())
}

// CheckOptions implements storage.Strategy. The query belongs to the backend.
func (operationBodies) CheckOptions(*storage.Write) error { return nil }

// Complete implements storage.Strategy. The body is whatever the schema says, and the URL does not name it.
func (operationBodies) Complete(*storage.Write) error { return nil }

// operationStrategy leaves bodies as they are.
type operationStrategy struct{}

// PrepareForCreate implements storage.Strategy.
func (operationStrategy) PrepareForCreate(*storage.Write) error { return nil }

// PrepareForUpdate implements storage.Strategy.
func (operationStrategy) PrepareForUpdate(*storage.Write) error { return nil }

// KeepStatus implements storage.Strategy.
func (operationStrategy) KeepStatus(*storage.Write) error { return nil }

// SetMetadata implements storage.Strategy.
func (operationStrategy) SetMetadata(*storage.Write) {}

// Validate implements storage.Strategy.
func (operationStrategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

// ValidateMetadata implements storage.Strategy.
func (operationStrategy) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy.
func (operationStrategy) Warn(*storage.Write) {}

// nothingStored is the precondition of an operation, which depends on nothing.
type nothingStored struct{}

// NeedsExisting implements storage.Updater.
func (nothingStored) NeedsExisting(*storage.Write) bool { return false }

// Get implements storage.Updater. There is nothing to read.
func (nothingStored) Get(*storage.Write) error { return nil }

// Lock implements storage.Updater.
func (nothingStored) Lock(*storage.Request, bool) error { return nil }
