package kubernetes

import (
	"strconv"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A server carries fields over from the stored object before its own validating admission sees an
// update: the fields of metadata that it sets itself, and a status that is a subresource
// (rest.BeforeUpdate and the PrepareForUpdate of each kind in k8s.io/apiserver). Validating
// policies see the object so, in Write.Result. What is sent stays the client's.

// showsCarried reports whether validating policies see fields of a PUT that the server carries over.
func (s *Store) showsCarried(i *resource.Info) bool {
	return i.Verb == resource.VerbUpdate && (!s.hasOwnKind || i.Subresource == "scale") && !s.PreviewsWrites &&
		s.Policies.Validates(i, admission.Update)
}

// carry makes the object that validating policies see of a PUT to an object.
func (s *Store) carry(w *storage.Write) {
	existing := w.Existing.Root()
	seen := w.Object.Clone()
	carryType(seen, existing)
	carryNamespace(seen, &w.Info)
	carryMetadata(seen, existing)
	if s.resetsStatus(w) {
		setStatus(seen, existing)
	}
	countChange(seen, existing, &w.Info)
	w.Result = seen
}

// carryStatus makes the object that validating policies see of a PUT to a status. Of custom
// resources the server takes all the rest from what is stored. Its own kinds take different fields
// from the client.
func (s *Store) carryStatus(w *storage.Write) {
	existing := w.Existing.Root()
	if s.Resource == nil && isOwnGroup(w.Info.Group) {
		w.Result = w.Object.Clone()
		carryType(w.Result, existing)
		carryNamespace(w.Result, &w.Info)
		carryMetadata(w.Result, existing)
		return
	}
	w.Result = w.Existing.Object.Clone()
	setStatus(w.Result, w.Object.Root())
}

// carryScale makes the object that validating policies see of a PUT to a scale. The server makes it of the object
// that it scales.
func carryScale(w *storage.Write) {
	seen, existing := w.Object.Clone(), w.Existing.Root()
	carryType(seen, existing)
	carryNamespace(seen, &w.Info)
	carryMetadata(seen, existing)
	setStatus(seen, existing)
	w.Result = seen
}

// recount makes the object that validating policies see of a patch whose result policies have changed in a way that the
// server counts. Its answer to the patch alone did not count.
func (s *Store) recount(w *storage.Write) {
	if s.hasOwnKind || w.Info.Subresource != "" || w.Existing.Object == nil || !w.Object.Edited() ||
		!s.Policies.Validates(&w.Info, admission.Update) {
		return
	}
	existing := w.Existing.Root()
	stored, _ := existing.Get("metadata")
	before, _ := stored.Get("generation")
	after, _ := storage.Metadata(w.Object).Get("generation")
	n, known := before.Int64()
	if m, ok := after.Int64(); !known || !ok || n == 0 || n != m || !isChange(w.Object, existing, &w.Info) {
		return
	}
	w.Result = w.Object.Clone()
	w.Result.Set(storage.EnsureMetadata(w.Result), "generation", strconv.AppendInt(nil, n+1, 10))
}

// resetsStatus reports whether a PUT to the object leaves the status as it is stored.
func (s *Store) resetsStatus(w *storage.Write) bool {
	served := w.Served
	return s.Status != nil || s.Resource == nil && (isOwnGroup(w.Info.Group) || served != nil && served.HasStatus)
}

// carryType sets kind and apiVersion, which the URL says too.
func carryType(d *document.Document, existing document.Node) {
	for _, name := range [...]string{"apiVersion", "kind"} {
		if storage.TextIn(d.Root(), name) != "" {
			continue
		}
		if stored, found := existing.Get(name); found {
			d.Set(d.Root(), name, stored.Raw())
		}
	}
}

// carryNamespace sets the namespace that the URL names, as the server does before any admission.
func carryNamespace(d *document.Document, i *resource.Info) {
	if namespace := storage.UnsaidNamespace(storage.Metadata(d), i); namespace != "" {
		d.Set(storage.EnsureMetadata(d), "namespace", document.AppendString(nil, namespace))
	}
}

// carryMetadata sets what of the metadata is the server's. A client that sends managedFields
// changes them.
func carryMetadata(d *document.Document, existing document.Node) {
	var sent []byte
	if managed, found := storage.Metadata(d).Get("managedFields"); found && managed.Len() > 0 {
		sent = managed.AppendRaw(nil)
	}
	meta.Carry(d, existing)
	if sent != nil {
		d.Set(storage.EnsureMetadata(d), "managedFields", sent)
	}
}

// setStatus gives an object the status of another.
func setStatus(d *document.Document, from document.Node) {
	status, found := from.Get("status")
	sent, isSent := d.Root().Get("status")
	switch {
	case found && isSent && document.EqualNodes(sent, status):
	case found:
		d.Set(d.Root(), "status", status.AppendRaw(nil))
	case isSent:
		d.Remove(sent)
	}
}

// countChange counts the generation of an object that has one, if anything beside its metadata changes, or what
// counts of it. The status is the stored one already if it does not count.
func countChange(d *document.Document, existing document.Node, i *resource.Info) {
	stored, _ := existing.Get("metadata")
	generation, _ := stored.Get("generation")
	if n, ok := generation.Int64(); ok && n != 0 && isChange(d, existing, i) {
		d.Set(storage.EnsureMetadata(d), "generation", strconv.AppendInt(nil, n+1, 10))
	}
}

// isChange reports whether what a server counts of an object is another than in the stored one.
func isChange(d *document.Document, existing document.Node, i *resource.Info) bool {
	stored, _ := existing.Get("metadata")
	return !storage.EqualBeside(d.Root(), existing, "metadata") || !equalMaps(storage.Metadata(d), stored,
		countedIn(i.Group, i.Resource))
}

// countedIn returns the member of metadata that counts in the generation of objects; empty for none.
func countedIn(group, plural string) string {
	switch {
	case group == "apps" && plural == "deployments":
		return "annotations"
	case group == "discovery.k8s.io" && plural == "endpointslices":
		return "labels"
	}
	return ""
}

// equalMaps reports whether two objects have the same member, counting an empty one as missing.
func equalMaps(a, b document.Node, name string) bool {
	if name == "" {
		return true
	}
	left, _ := a.Get(name)
	right, _ := b.Get(name)
	if left.Len() == 0 || right.Len() == 0 {
		return left.Len() == right.Len()
	}
	return document.EqualNodes(left, right)
}

// isOwnGroup reports whether a group is one of Kubernetes itself.
func isOwnGroup(group string) bool {
	switch group {
	case "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
		"authentication.k8s.io",
		"authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io",
		"events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io",
		"networking.k8s.io",
		"node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
		"storagemigration.k8s.io":
		return true
	}
	return false
}
