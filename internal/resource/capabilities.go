package resource

// Capabilities are what Kubernetes' clients expect of an API server and an
// ordinary JSON API may lack: a set of bits.
type Capabilities uint16

const (
	// StatusSubresource keeps the status apart: a write to the object leaves it
	// as it is, and one to /status changes nothing else.
	StatusSubresource Capabilities = 1 << iota
	// ScaleSubresource is /scale, which reads and writes the number of replicas.
	ScaleSubresource
	// ResourceVersions are metadata.resourceVersion in every object, and a
	// refusal of writes that name another one than the stored object's.
	ResourceVersions
	// PatchVerb is PATCH.
	PatchVerb
	// GeneratedNames are names made of metadata.generateName.
	GeneratedNames
	// SystemMetadata are uid, creationTimestamp and generation.
	SystemMetadata
	// Selectors are labelSelector, fieldSelector, limit and continue on lists.
	Selectors
	// DryRun is dryRun=All.
	DryRun
	// Deletion is DELETE with its options, preconditions and finalizers.
	Deletion
	// ListEnvelope is the kind, apiVersion and metadata of lists.
	ListEnvelope
	// ExistingNames is the refusal to create what exists already. It is not of
	// the presets: an API's POST is expected not to replace anything.
	ExistingNames
)

// Preset returns what the gateway supplies for objects of that envelope on a
// backend with nothing but GET, list, POST, PUT, DELETE and ETag. A backend of
// Kubernetes' own dialect has everything.
func Preset(e Envelope) Capabilities {
	const all = StatusSubresource | ScaleSubresource | ResourceVersions | PatchVerb | GeneratedNames | SystemMetadata |
		Selectors | DryRun | Deletion | ListEnvelope
	if e == Bare {
		// There is no metadata to keep anything in, and lists are the API's own.
		return StatusSubresource | ScaleSubresource | ResourceVersions | PatchVerb | DryRun
	}
	return all
}

// needPrecondition are the capabilities that are a read followed by a write
// which depends on what was read.
const needPrecondition = StatusSubresource | ScaleSubresource | ResourceVersions | PatchVerb | SystemMetadata | Deletion

// capabilityNames are the names in policy files, in the order of the bits.
var capabilityNames = [...]string{
	"status", "scale", "versions", "patch", "generateName", "systemMetadata", "selectors", "dryRun", "deletion", "listEnvelope", "existingNames",
}

// NeedPrecondition returns the names of those capabilities that the gateway
// cannot supply unless writes can be pinned to the version that was read.
func (c Capabilities) NeedPrecondition() []string {
	var names []string
	for i, name := range capabilityNames {
		if c&needPrecondition&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// CapabilityNames returns the names of all capabilities in policy files.
func CapabilityNames() []string { return capabilityNames[:] }

// CapabilityNamed returns the capability of that name in policy files, 0 where
// there is none.
func CapabilityNamed(name string) Capabilities {
	for i, one := range capabilityNames {
		if one == name {
			return 1 << i
		}
	}
	return 0
}

// Versions say how a backend tells one version of an object from the next, and
// what a write can be made to depend on.
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
	// NoVersions: nothing tells them apart, and no write can be pinned.
	NoVersions
)

// String returns the name that policy files use.
func (v Versions) String() string {
	return [...]string{"ETag", "Field", "Native", "None"}[v]
}

// Scaling says where objects keep what the scale subresource reads and writes.
type Scaling struct {
	Replicas       FieldPath // in the spec
	StatusReplicas FieldPath
	Selector       FieldPath // nil where there is none
}
