package resource

// Envelope says how the objects of a resource look.
type Envelope uint8

const (
	// Kubernetes objects have kind, apiVersion and metadata; lists have items.
	Kubernetes Envelope = iota
	// Bare objects are ordinary JSON objects; Fields says where the fields of an object are.
	Bare
)

// String returns the name that policy files use.
func (e Envelope) String() string {
	if e == Bare {
		return "Bare"
	}
	return "Kubernetes"
}

// FieldPath is the path of a value in an object: member names from the root. The empty path is the
// root itself.
type FieldPath []string

// Fields are the fields of a resource's objects that mean something to the
// gateway. Bare objects keep at Name, Version, Status and Items what Kubernetes
// objects keep in metadata, status and items; a nil path means that the objects
// have no such field.
type Fields struct {
	// Object is where request bodies have the object, Answer where answers have it; nil is the body, or the answer,
	// itself. All other paths begin at the body.
	Object, Answer FieldPath
	// Name is the field that repeats the name in the URL.
	Name FieldPath
	// Version is the field that changes with every write; nil means that no
	// field does. Kubernetes objects may have one too.
	Version FieldPath
	// Status is the field that only the backend's own components may write.
	Status FieldPath
	// Items is the array within a list answer; the empty, non-nil path is an
	// answer that is itself the array.
	Items FieldPath
	// Selectable are the fields that field selectors may name besides the name
	// and the namespace.
	Selectable []FieldPath
	// DataMaps are members whose keys, and the keys of everything in them, are
	// data: two of them may differ in case alone.
	DataMaps []FieldPath
}
