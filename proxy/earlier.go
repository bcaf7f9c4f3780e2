package proxy

import (
	"errors"
	"net/http"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Kubernetes API server looks for the stored object before it judges what is to replace it. The gateway looks only where a
// policy depends on it; what the server would have said first is found out when there is another refusal to be given.

// asksForVersion tells whether a Kubernetes API server refuses a PUT of an object with this resourceVersion because it names
// none: custom resources are updated by version alone.
func (x *exchange) asksForVersion(named string) bool {
	return (named == "" || named == "0") && x.info.Verb == resource.VerbUpdate && x.replacesStored()
}

// replacesStored tells whether the request is a PUT before a Kubernetes API server that neither creates nor overwrites.
func (x *exchange) replacesStored() bool {
	return !x.upstream.plain && x.res != nil && x.res.Envelope == resource.Kubernetes && x.aboutObject() &&
		!x.res.CreateOnUpdate && !x.res.UnconditionalUpdate
}

// orEarlier is the refusal of a write: that an object is not there, or is of another version, comes before what is wrong
// with the one that was sent.
func (x *exchange) orEarlier(refusal error) error {
	var s *status.Error
	if x.info.Verb != resource.VerbUpdate || x.old != nil || !errors.As(refusal, &s) || !x.replacesStored() ||
		s.ErrStatus.Code != http.StatusUnprocessableEntity && s.ErrStatus.Code != http.StatusForbidden {
		return refusal
	}
	if x.get(x.oldPath()) != nil {
		return refusal
	}
	switch x.oldAnswer.StatusCode() {
	case http.StatusNotFound:
		return status.NotFound(x.info.GroupResource(), x.info.Name)
	case http.StatusOK:
		old, err := document.Parse(x.oldAnswer.Body(), x.gateway.storedLimits)
		if err != nil {
			return refusal
		}
		x.old = old
		named := textIn(metadataOf(x.doc), "resourceVersion")
		if !x.asksForVersion(named) && named != textIn(metadataOf(old), "resourceVersion") {
			return x.conflict()
		}
	}
	return refusal
}
