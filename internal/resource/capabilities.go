package resource

// Capabilities are features that Kubernetes' clients expect of an API server and that an ordinary
// JSON API may lack: a set of bits.
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
	const all = StatusSubresource | ScaleSubresource | ResourceVersions | GeneratedNames | SystemMetadata |
		Selectors | DryRun | Deletion | ListEnvelope
	if e == Bare {
		// There is no metadata to keep anything in, and lists are the API's own.
		return StatusSubresource | ScaleSubresource | ResourceVersions | DryRun
	}
	return all
}

// needPrecondition are the capabilities that are a read followed by a write
// which depends on what was read.
const needPrecondition = StatusSubresource | ScaleSubresource | ResourceVersions | SystemMetadata | Deletion

// capabilityNames are the names in policy files, in the order of the bits.
var capabilityNames = [...]string{
	"status", "scale", "versions", "generateName", "systemMetadata", "selectors", "dryRun", "deletion", "listEnvelope",
	"existingNames",
}

// CapabilityNames returns the names of all capabilities in policy files.
func CapabilityNames() []string { return capabilityNames[:] }

// CapabilityNamed returns the capability of that name in policy files, 0 if
// there is none.
func CapabilityNamed(name string) Capabilities {
	for i, one := range capabilityNames {
		if one == name {
			return 1 << i
		}
	}
	return 0
}
