package proxy

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A PUT of a name that nothing is stored under creates the object on many backends. Policies about creations have to judge
// it as one then, and nothing in between may turn the one into the other.

// namesObject tells whether the request is a PUT of a whole object, which may turn out to create it.
func (x *exchange) namesObject() bool {
	return x.info.Verb == resource.VerbUpdate && x.info.Subresource == "" && (x.res == nil || x.res.CreateOnUpdate)
}

// mayCreate tells whether it matters to policies if a PUT creates the object, so that it has to be known.
func (x *exchange) mayCreate() bool {
	if !x.namesObject() || !x.set.Admission().Concerns(&x.info, admission.Create) {
		return false
	}
	if x.upstream.plain {
		return x.set.Admission().Differs(&x.info, admission.Create, admission.Update)
	}
	// An API server creates no object whose uid the client names, so that updates of what clients have read need no question.
	return textIn(metadataOf(x.doc), "uid") == ""
}

// pinCreation makes the PUT that was judged as a creation fail on a Kubernetes API server where there is an object by then:
// with a version that no object has. Where there is none the server does not look at it.
func (x *exchange) pinCreation() {
	x.creates = true
	if metadata := ensureMetadata(x.doc); textIn(metadata, "resourceVersion") == "" {
		x.doc.SetString(metadata, "resourceVersion", noVersion)
		x.versioned = true
	}
}

// pinIdentity makes the PUT that was judged as an update fail where the object is gone by then: as one of that very object.
func (x *exchange) pinIdentity(metadata document.Node) {
	uid := textIn(metadataOf(x.old), "uid")
	if uid != "" && x.namesObject() && textIn(metadata, "uid") == "" {
		x.doc.SetString(metadata, "uid", uid)
	}
}
