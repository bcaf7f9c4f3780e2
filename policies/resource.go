package policies

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/schema"
)

// loadedResource is a resource and the part of a file that it comes from.
type loadedResource struct {
	*resource.Resource
	compiled compiledResource
	at       origin
	rollout  *rollout.ResourceSpec // nil: it is enforced for all requests
	// rolloutAt is the place of the rollout; "" is spec.rollout.
	rolloutAt string
	made      madeNames
}

// madeNames says which names of a resource no author gave. They give way to others.
type madeNames struct{ plural, kind bool }

// An origin is the place in a file that describes a resource.
type origin struct {
	from *manifest.Object
	path string
}

// showsItems reports whether policies see the items of the described list, one after the other.
func (r *loadedResource) showsItems() bool { return r.ShowsItems() && r.compiled.schema.IsList() }

// compiledResource has what the files say of a resource beyond how it is found.
type compiledResource struct {
	schema *schema.Schema
	props  *apiextensionsv1.JSONSchemaProps // the schema as it is written; nil if there is none
	// unfilled are the fields with a default that is left to the API; nil if there are none.
	unfilled *cel.Unfilled
	warning  string
	// convertible reports whether objects of its versions differ in apiVersion alone.
	convertible bool
	// mergeType is how objects are merged; nil if nothing is known of them.
	mergeType func() *merge.Type
	// create, update, patch and read are the schemas of objects that are created, that replace others, that result from
	// patches, and that are read, if varies reports that they have schemas of their own.
	varies                      bool
	create, update, patch, read *schema.Schema
	// contract checks everything but the bodies of requests against a document; nil if the document
	// says nothing of that.
	contract *contract.Contract
	// ownedOnCreate, ownedOnUpdate and ownedOnPatch say what the API itself sets in objects; nil if that is not known.
	ownedOnCreate, ownedOnUpdate, ownedOnPatch *contract.Members
	// hidden says what the API takes and does not show; nil if nothing is known.
	hidden *contract.Members
}

// outsideCollections finds APIResources whose objects are not below their collection: one of the two is most likely
// misspelled.
func outsideCollections(resources []loadedResource) []Finding {
	var f findings
	for _, r := range resources {
		isItem := func(path string) bool { return strings.Contains(path, "{name}") }
		collections := slices.DeleteFunc(slices.Clone(r.Paths), isItem)
		if r.at.from.Kind != "APIResource" || len(collections) == 0 {
			continue
		}
		for _, item := range r.Paths {
			isBelow := func(collection string) bool { // what stands before the last segment may have other variables
				collection = strings.TrimSuffix(collection, "/")
				above := item[:strings.LastIndexByte(strings.TrimSuffix(item, "/"), '/')]
				return above[strings.LastIndexByte(above, '/')+1:] == collection[strings.LastIndexByte(collection, '/')+
					1:]
			}
			if isItem(item) && !slices.ContainsFunc(collections, isBelow) {
				f.At(r.at.from, Warning, "spec.paths.item", "is not below the collection '%s': objects at '%s/{name}' are not held to this file", collections[0], collections[0])
			}
		}
	}
	return f.Found
}
