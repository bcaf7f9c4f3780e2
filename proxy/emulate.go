package proxy

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// emulates tells whether the gateway supplies one of the capabilities for this request. A backend of Kubernetes' dialect
// has all of them.
func (x *exchange) emulates(c resource.Capabilities) bool {
	return x.res != nil && x.res.Emulated&c != 0 && x.upstream.plain
}

// emulatesMetadata tells whether the gateway supplies one of the capabilities in the metadata of objects.
func (x *exchange) emulatesMetadata(c resource.Capabilities) bool {
	return x.emulates(c) && x.res.Envelope == resource.Kubernetes
}

// writesWhole tells whether the write is that of a whole object, whose answer the gateway makes an object with a version.
func (x *exchange) writesWhole() bool {
	return x.emulatesMetadata(resource.ResourceVersions) && x.info.HasBody() && (x.info.Subresource == "" || x.emulatesStatus())
}

// aboutObject tells whether the request is about the object itself, of which its status and an emulated scale are views.
// Any other subresource, such as the scale that a backend keeps itself, has an object of its own.
func (x *exchange) aboutObject() bool {
	return x.info.Subresource == "" || x.info.Subresource == "status" || x.emulatesScale()
}

// passesPatch tells whether a patch is left to a backend that knows patches: the resource says so, and nothing has to be
// known of the object that results from it.
func (x *exchange) passesPatch() bool {
	if x.info.Verb != resource.VerbPatch || x.res == nil || !x.upstream.plain || x.emulates(resource.PatchVerb) || x.schema() != nil {
		return false
	}
	return x.statusPath() == nil && !x.readsToWrite() && !x.set.Admission().Concerns(&x.info, admission.Update)
}

// readsToWrite tells whether the write of an object depends on what is stored beyond its status: for what the system owns of
// the metadata, for the version that it may name, or because it must not create the object.
func (x *exchange) readsToWrite() bool {
	if x.res == nil || x.info.Subresource != "" {
		return false
	}
	if x.emulatesMetadata(resource.SystemMetadata|resource.Deletion) || !x.res.CreateOnUpdate {
		return true
	}
	return x.emulates(resource.ResourceVersions) && (x.res.Versions != resource.ETagVersions || x.res.Fields.Version != nil)
}

// metadataOf is the metadata of an object; invalid where it has none.
func metadataOf(d *document.Document) document.Node {
	if d == nil {
		return document.Node{}
	}
	if metadata, _ := d.Root().Get("metadata"); metadata.Kind() == document.Object {
		return metadata
	}
	return document.Node{}
}

// ensureMetadata is the metadata of an object, made where there is none.
func ensureMetadata(d *document.Document) document.Node {
	if metadata := metadataOf(d); metadata.Valid() {
		return metadata
	}
	return d.Set(d.Root(), "metadata", []byte("{}"))
}

// textIn is a member that is a string; "" where it is none.
func textIn(object document.Node, key string) string {
	at, _ := object.Get(key)
	return at.Str()
}

// given is a member that is there and not null.
func given(object document.Node, key string) (document.Node, bool) {
	at, found := object.Get(key)
	return at, found && at.Kind() != document.Null
}

// checkVersion holds a write to the version and the uid that it names: another one than the stored object's is a Conflict,
// none is Invalid where the resource asks for one (RW-1).
func (x *exchange) checkVersion() error {
	switch {
	case x.info.Verb == resource.VerbCreate, !x.aboutObject():
		return nil
	case x.versioned && x.info.Verb == resource.VerbPatch:
		if textIn(metadataOf(x.doc), "resourceVersion") != textIn(metadataOf(x.old), "resourceVersion") {
			return x.conflict()
		}
		return x.checkUID(metadataOf(x.doc))
	case x.emulates(resource.ResourceVersions) && x.res.Envelope == resource.Bare:
		return x.checkBareVersion()
	case x.asksForVersion(textIn(metadataOf(x.doc), "resourceVersion")):
		return x.versionless("metadata", "resourceVersion")
	case !x.emulatesMetadata(resource.ResourceVersions | resource.SystemMetadata):
		return nil
	}
	metadata := metadataOf(x.doc)
	if err := x.checkUID(metadata); err != nil {
		return err
	}
	if !x.emulates(resource.ResourceVersions) {
		return nil
	}
	named, err := x.text(metadata, "resourceVersion", "metadata.")
	if err != nil {
		return err
	}
	return x.holdTo(named, "metadata", "resourceVersion")
}

// checkUID is the precondition that a uid in a PUT is. A patch starts from the stored one, so that it can only try to
// change it, which the schema's checks refuse.
func (x *exchange) checkUID(metadata document.Node) error {
	if x.info.Verb != resource.VerbUpdate || x.old == nil && !x.creates || !x.emulates(resource.SystemMetadata) {
		return nil
	}
	named, err := x.text(metadata, "uid", "metadata.")
	if err != nil || named == "" {
		return err
	}
	if stored := textIn(metadataOf(x.old), "uid"); named != stored {
		return status.Conflict(x.info.GroupResource(), x.info.Name, "Precondition failed: UID in precondition: "+short(named)+", UID in object meta: "+stored)
	}
	return nil
}

// checkBareVersion is checkVersion for an object that keeps its version in a field of its own.
func (x *exchange) checkBareVersion() error {
	named := versionOf(nil, x.res, x.doc.Root(), nil)
	return x.holdTo(string(named), x.res.Fields.Version...)
}

// holdTo holds a write to the version that it names at a path; Kubernetes reads "0" as none.
func (x *exchange) holdTo(named string, path ...string) error {
	switch {
	case named == "" || named == "0":
		if !x.res.UnconditionalUpdate && !x.creates && !x.namesETag() {
			return x.versionless(path...)
		}
		if x.old != nil && x.res.Envelope == resource.Kubernetes && len(x.version) > 0 {
			setVersion(x.doc, x.doc.Root(), x.version)
		}
	case x.creates, x.old != nil && named != str(x.version):
		return x.conflict()
	case x.old == nil:
		return x.pinToNamed(named)
	case x.info.Verb == resource.VerbUpdate && !x.scaling: // in a patch, and in what a Scale stands for, it is the stored one
		x.named = true
	}
	return nil
}

// versionless refuses an update that does not say of which version it is one.
func (x *exchange) versionless(path ...string) error {
	kind := schema.GroupKind{Group: x.info.Group, Kind: x.info.Resource}
	at := field.NewPath(path[0], path[1:]...)
	return status.Invalid(kind, x.info.Name, field.ErrorList{field.Invalid(at, 0, "must be specified for an update")}, 0)
}

// pinToNamed pins a write to the version that the client names, without a look at what is stored.
func (x *exchange) pinToNamed(version string) error {
	etag, ok := appendETag(x.pinned[:0], version)
	if x.pinned = etag; !ok {
		return x.conflict()
	}
	x.pin, x.named = pinMatch, true
	return nil
}

// namesETag tells whether the client named the version in a header.
func (x *exchange) namesETag() bool {
	version, found := x.conn.head.Lookup("If-Match")
	return found && len(version) > 0 && string(version) != "*"
}

// unchanged tells whether the write leaves the stored object as it is; as in Kubernetes nothing is stored then, and the
// version stays.
func (x *exchange) unchanged() bool {
	return x.old != nil && !x.filledOld && x.writesWhole() && len(x.version) > 0 && document.EqualNodes(x.doc.Root(), x.old.Root())
}

// short cuts what a client sent to a length that fits a message.
func short(s string) string {
	const most = 128
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
