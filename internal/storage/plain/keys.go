package plain

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// dataKeys know which keys of the objects of a resource are data. They implement document.DataKeys.
type dataKeys struct {
	schema   *schema.Schema
	resource *resource.Resource // nil if no policy file describes it
}

// dataKeysByVerb are the keys of the objects that are created, that replace others, and that result from patches.
type dataKeysByVerb struct{ create, update, patch dataKeys }

func keysOf(o *Options) dataKeysByVerb {
	return dataKeysByVerb{
		create: dataKeys{o.Schemas.Create, o.Resource}, update: dataKeys{o.Schemas.Update, o.Resource},
		patch: dataKeys{o.Schemas.Patch, o.Resource},
	}
}

// IsData implements document.DataKeys.
func (k *dataKeys) IsData(object document.Node) bool {
	if k.schema != nil && k.schema.HasDataKeys(object) {
		return true
	}
	for n := object; n.Parent().Valid(); n = n.Parent() {
		if n.Parent().Kind() != document.Object {
			continue
		}
		if k.isDataMap(n) {
			return true
		}
	}
	return false
}

// isDataMap reports whether the keys of a member, and of everything in it, are data.
func (k *dataKeys) isDataMap(member document.Node) bool {
	if k.resource == nil {
		return kubernetesMaps[member.Key()]
	}
	if k.resource.Envelope == resource.Kubernetes && (isAt(member, "metadata", "labels") ||
		isAt(member, "metadata", "annotations") || isAt(member, "metadata", "managedFields")) {
		return true
	}
	for _, path := range k.resource.Fields.DataMaps {
		if isAt(member, path...) {
			return true
		}
	}
	return false
}

// isAt reports whether a value is at a path, in which the items of lists are not counted.
func isAt(n document.Node, path ...string) bool {
	for ; n.Parent().Valid(); n = n.Parent() {
		if n.Parent().Kind() != document.Object {
			continue
		}
		if len(path) == 0 || n.Key() != path[len(path)-1] {
			return false
		}
		path = path[:len(path)-1]
	}
	return len(path) == 0
}

// kubernetesMaps are the fields of Kubernetes' own kinds that are maps: of objects that nothing but their path
// describes.
var kubernetesMaps = map[string]bool{
	"allocatable": true, "allocatedResourceStatuses": true, "allocatedResources": true, "annotations": true,
	"attachmentMetadata": true, "attestations": true, "attributes": true, "binaryData": true, "capacity": true,
	"consumedCapacity": true, "counters": true, "data": true, "default": true, "defaultRequest": true,
	"deprecatedTopology": true, "disruptedPods": true, "extra": true, "hard": true, "labels": true, "limits": true,
	"matchLabels": true, "max": true, "maxLimitRequestRatio": true, "min": true, "nodeAllocatableResources": true,
	"nodeSelector": true, "options": true, "overhead": true, "parameters": true, "podFixed": true, "requests": true,
	"selector": true, "stringData": true, "topology": true, "unverifiedUserAnnotations": true,
	"updatedAnnotations": true,
	"used":               true, "userAnnotations": true, "volumeAttributes": true,

	"fieldsV1": true, // has the keys of its resource
}
