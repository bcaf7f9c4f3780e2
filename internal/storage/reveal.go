package storage

import (
	"bytes"

	storagenames "k8s.io/apiserver/pkg/storage/names"

	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// An API server sets the namespace of an object and the kind that it leaves out before its admission, and a name that
// it generates before policies validate. Policies of the gateway see them in the object, too, although it is sent as
// the client wrote it: the server sets them itself, and makes a name of its own.

// revealed are the members that policies see and the server does not get.
type revealed struct {
	apiVersion, kind hidden
	namespace, name  hidden // of metadata
	metadata         hidden
	revision         uint64 // of the object with them
	isPristine       bool   // the object had not been edited before
	isShown          bool   // the object has members now that only policies may see
}

// hidden is a member as it was before it was revealed.
type hidden struct {
	isRevealed bool
	before     []byte // nil if there was none
	shown      []byte // what policies see; another value is a policy's
}

// Reveal sets what policies see of a new or replaced object, although the client left it out. A generated name is only
// seen by the policies that validate.
func (w *Write) Reveal(validates bool) {
	if w.Object == nil || w.Result != nil || w.Patch != nil || !w.Info.HasBody() {
		return
	}
	root := w.Object.Root()
	metadata, found := root.Get("metadata")
	if root.Kind() != document.Object || found && metadata.Kind() != document.Object &&
		metadata.Kind() != document.Null {
		return
	}
	namespace, name := UnsaidNamespace(metadata, &w.Info), ""
	switch base := TextIn(metadata, "generateName"); {
	case !validates || TextIn(metadata, "name") != "":
	case IsTokenRequest(&w.Info):
		name = w.Info.Name // which the server gives a TokenRequest
	case base != "" && w.Info.Verb == resource.VerbCreate && w.Info.Name == "" && w.Info.Subresource == "":
		name = storagenames.SimpleNameGenerator.GenerateName(base)
	}
	apiVersion, kind := UnsaidType(root, w.Served)
	if namespace == "" && name == "" && apiVersion == "" && kind == "" {
		return
	}
	r := &w.revealed
	if r.isShown {
		r.isPristine = r.isPristine && w.Object.Revision() == r.revision
	} else {
		r.isPristine = w.isPristine()
	}
	if apiVersion != "" {
		r.apiVersion.reveal(w.Object, root, "apiVersion", document.AppendString(nil, apiVersion))
	}
	if kind != "" {
		r.kind.reveal(w.Object, root, "kind", document.AppendString(nil, kind))
	}
	if metadata.Kind() != document.Object && (namespace != "" || name != "") {
		metadata = r.metadata.reveal(w.Object, root, "metadata", []byte("{}"))
	}
	if namespace != "" {
		r.namespace.reveal(w.Object, metadata, "namespace", document.AppendString(nil, namespace))
	}
	if name != "" {
		r.name.reveal(w.Object, metadata, "name", document.AppendString(nil, name))
	}
	r.revision, r.isShown = w.Object.Revision(), true
}

// UnsaidType returns the apiVersion and the kind that an object leaves out and the API server knows; empty if it leaves
// out none.
func UnsaidType(root document.Node, served *discovery.Resource) (apiVersion, kind string) {
	if served == nil {
		return "", ""
	}
	if TextIn(root, "apiVersion") == "" {
		apiVersion = served.Kind.GroupVersion().String()
	}
	if TextIn(root, "kind") == "" {
		kind = served.Kind.Kind
	}
	return apiVersion, kind
}

// IsTokenRequest reports whether a request asks for a token of a service account.
func IsTokenRequest(i *resource.Info) bool {
	return i.Subresource == "token" && i.Resource == "serviceaccounts" && i.Group == ""
}

// UnsaidNamespace returns the namespace that the URL says and the object's metadata leaves out; empty if there is none.
func UnsaidNamespace(metadata document.Node, i *resource.Info) string {
	if TextIn(metadata, "namespace") != "" {
		return ""
	}
	return i.ObjectNamespace()
}

// Conceal takes out of the object what was revealed. It returns false if nothing was.
func (w *Write) Conceal() bool {
	r := &w.revealed
	if !r.isShown || w.Object == nil {
		return false
	}
	isPristine := r.isPristine && w.Object.Revision() == r.revision
	root := w.Object.Root()
	metadata, _ := root.Get("metadata")
	r.namespace.conceal(w.Object, metadata, "namespace")
	r.name.conceal(w.Object, metadata, "name")
	if metadata.Len() == 0 {
		r.metadata.conceal(w.Object, root, "metadata")
	}
	r.apiVersion.conceal(w.Object, root, "apiVersion")
	r.kind.conceal(w.Object, root, "kind")
	*r = revealed{}
	w.pristine.is, w.pristine.revision = isPristine, w.Object.Revision()
	return true
}

func (h *hidden) reveal(d *document.Document, in document.Node, key string, raw []byte) document.Node {
	if at, found := in.Get(key); found {
		h.before = bytes.Clone(at.Raw())
	}
	h.isRevealed, h.shown = true, raw
	return d.Set(in, key, raw)
}

func (h *hidden) conceal(d *document.Document, in document.Node, key string) {
	at, found := in.Get(key)
	switch {
	case !h.isRevealed || !found:
	case key != "metadata" && !bytes.Equal(at.Raw(), h.shown):
		// The server judges what a policy made of it.
	case h.before == nil:
		d.Remove(at)
	default:
		d.Replace(at, h.before)
	}
}
