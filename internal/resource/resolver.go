package resource

// A Resolver reads the method and target of requests to one kind of backend.
type Resolver interface {
	// Resolve finds the verb and the resource of a request: see [Registry.Resolve] and [Plain.Resolve].
	Resolve(method string, target []byte) (Info, *Resource, error)
	// IsDescribed reports whether any file says something about requests to the backend.
	IsDescribed() bool
	// Methods returns the methods that requests may have, as the header Allow lists them.
	Methods() []string
}
