package resource

// Backend says what a plain backend does itself, and what is left to the
// gateway. A backend of Kubernetes' own dialect does everything.
type Backend struct {
	// Versions say how it gives versions, Concurrency how writes depend on them.
	Versions    Versions
	Concurrency Concurrency
	// Preconditions say who compares what clients name in If-Match and the like.
	Preconditions Preconditions
	Patch         PatchMode
	// Emulated are the features that the gateway supplies.
	Emulated Capabilities
}

// NeedPrecondition returns the names of what the gateway cannot supply unless
// writes can be pinned to the version that was read.
func (b *Backend) NeedPrecondition() []string {
	var names []string
	for i, name := range capabilityNames {
		if b.Emulated&needPrecondition&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if b.Patch == PatchEmulated {
		names = append(names, "patch")
	}
	return names
}

// PatchMode says what becomes of PATCH.
type PatchMode uint8

const (
	// PatchNative leaves patches to the backend.
	PatchNative PatchMode = iota
	// PatchEmulated applies them to the stored object and sends the result as a PUT.
	PatchEmulated
	// PatchRefused answers with 405.
	PatchRefused
	// PatchValidated validates the object that results, and sends the patch itself.
	PatchValidated
)

// String returns the name that policy files use.
func (p PatchMode) String() string {
	return [...]string{"Native", "Emulated", "Refused", "Validated"}[p]
}

// Concurrency says how a write that depends on the stored object is pinned.
type Concurrency uint8

const (
	// Optimistic pins every such write to the version that was read (by
	// resourceVersion, or by ETag and If-Match); a backend that changed in
	// between answers with a conflict.
	Optimistic Concurrency = iota
	// BestEffort does without a precondition if the backend has none. The writes of one gateway to
	// one object come one after the other; another writer between the read and the write goes
	// unnoticed.
	BestEffort
)

// String returns the name that policy files use.
func (c Concurrency) String() string {
	if c == BestEffort {
		return "BestEffort"
	}
	return "Optimistic"
}

// Preconditions say who compares the preconditions of requests for objects: If-Match, If-None-Match,
// If-Unmodified-Since and If-Modified-Since.
type Preconditions uint8

const (
	// AutoPreconditions leave them to a backend that is known to compare them. Else the gateway compares
	// them, if its locks keep all writers through gateways apart.
	AutoPreconditions Preconditions = iota
	// GatewayPreconditions are compared by the gateway, with ETags that it makes of what the backend shows.
	GatewayPreconditions
	// BackendPreconditions are the backend's.
	BackendPreconditions
)

// String returns the name that policy files use.
func (p Preconditions) String() string {
	return [...]string{"Auto", "Gateway", "Backend"}[p]
}

// PreconditionsNamed returns the value that policy files write so.
func PreconditionsNamed(name string) Preconditions {
	switch name {
	case "Gateway":
		return GatewayPreconditions
	case "Backend":
		return BackendPreconditions
	}
	return AutoPreconditions
}

// Versions say how a backend distinguishes one version of an object from the next, and what a write
// can be made to depend on.
type Versions uint8

const (
	// ETagVersions are in the ETag of an answer about an object; If-Match and
	// If-None-Match pin a write.
	ETagVersions Versions = iota
	// FieldVersions are in a field of the object (Fields.Version); the backend
	// refuses a write whose field is not the stored one.
	FieldVersions
	// NativeVersions are metadata.resourceVersion, which the backend keeps
	// itself as Kubernetes does.
	NativeVersions
	// NoVersions: versions cannot be distinguished, and no write can be pinned.
	NoVersions
)

// String returns the name that policy files use.
func (v Versions) String() string {
	return [...]string{"ETag", "Field", "Native", "None"}[v]
}
