package plain

import (
	"bytes"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// isPlaced reports whether bodies or answers have the object within them.
func isPlaced(r *resource.Resource) bool {
	return r.Fields.Object != nil || r.Fields.Answer != nil
}

// parseShown parses the answer to a GET of an object, in the shape of the body of a PUT.
func parseShown(r *resource.Resource, w *storage.Write, body []byte) (*document.Document, error) {
	d, err := w.Exchanges.ParseStored(body)
	if err != nil || !isPlaced(r) {
		return d, err
	}
	defer d.Release()
	object, found := storage.Find(d.Root(), pathOf(r.Fields.Answer))
	if !found || object.Kind() != document.Object {
		return nil, status.BadGateway("the backend's answer to a GET must have the object in `" +
			storage.PathString(r.Fields.Answer) + "`, as `fields.answer` says")
	}
	return w.Exchanges.ParseStored(appendWithin(nil, r.Fields.Object, object))
}

// pathOf returns a path that leads to the root if it is nil.
func pathOf(path resource.FieldPath) resource.FieldPath {
	if path == nil {
		return resource.FieldPath{}
	}
	return path
}

// appendWithin appends an object at a path of members.
func appendWithin(dst []byte, path resource.FieldPath, object document.Node) []byte {
	for _, key := range path {
		dst = append(document.AppendString(append(dst, '{'), key), ':')
	}
	dst = object.AppendRaw(dst)
	for range path {
		dst = append(dst, '}')
	}
	return dst
}

// asAnswered returns a body in the shape of an answer.
func asAnswered(r *resource.Resource, body []byte, object *document.Document) []byte {
	if !isPlaced(r) || object == nil {
		return bytes.Clone(body)
	}
	inner, found := storage.Find(object.Root(), pathOf(r.Fields.Object))
	if !found {
		return bytes.Clone(body)
	}
	return appendWithin(nil, r.Fields.Answer, inner)
}

// checkShown refuses an object of which the schema knows no member, although it names some: the object is most likely
// within the answer.
func (c *collection) checkShown(w *storage.Write, object document.Node) error {
	if c.knows(c.Schemas.For(resource.VerbPatch), object) {
		return nil
	}
	return status.BadGateway("the backend's answer to a GET of '" + w.Info.GroupResource().String() +
		"' has no member that the schema knows, " +
		"so that it is not the stored object: `fields.answer` of the resource says where in the answer it is")
}

// knows reports whether a schema knows a member of an object, or cannot tell. The schemas of a document say where the
// object is.
func (c *collection) knows(of *schema.Schema, object document.Node) bool {
	if c.Resource.Envelope != resource.Bare || of == nil || c.Schemas.BlamesPatches || object.Len() == 0 ||
		!of.Root().NamesAllMembers() {
		return true
	}
	for m := object.First(); m.Valid(); m = m.Next() {
		if of.Root().Property(m.Key()) != nil {
			return true
		}
	}
	return false
}

// isUnshown reports whether the answer to a GET is not known to show the stored object.
func isUnshown(r *resource.Resource) bool { return r.Unshown != resource.IsShown }

// needsUnshown returns what needs the stored object of a write although it is not known; "" if nothing does.
func (s storedReader) needsUnshown(i *resource.Info) string {
	isPatch := i.Verb == resource.VerbPatch
	switch {
	case !i.IsObject():
		return ""
	case i.Subresource != "" && isPartOf(s.Resource, i):
		return "a subresource that the gateway keeps"
	case isPatch && appliesPatches(s.Resource) && s.Resource.Backend.Patch == resource.PatchEmulated:
		return "a patch that becomes a PUT"
	case s.Resource.Unshown == resource.UnshownRefused:
		return "`unknownObject: Refuse`"
	case s.Resource.Unshown == resource.UnshownPassed:
		return ""
	case isPatch && s.Policies.Concerns(i, admission.Update), storage.ReadsExisting(s.Policies, i):
		return "a policy"
	case i.Verb == resource.VerbDelete:
		return ""
	case s.status != nil && (isPatch || keepsStatus(s.Resource)):
		return "the status, which a write has to keep,"
	case s.Resource.Backend.Versions == resource.FieldVersions && s.Resource.Backend.Concurrency != resource.BestEffort:
		return "the version in `" + storage.PathString(s.Resource.Fields.Version) + "`"
	}
	switch of := s.schema(i.Verb); {
	case of == nil:
	case of.NeedsOld():
		return "an immutable field or a rule about changes"
	case isPatch && of.HasRules():
		return "a rule of the schema"
	}
	return ""
}

// refuseUnshown refuses a write that needs the stored object, if that is not known.
func (s storedReader) refuseUnshown(i *resource.Info) error {
	needs := s.needsUnshown(i)
	if needs == "" {
		return nil
	}
	return unshown(i, needs)
}

// unshown returns the answer to a write that needs the stored object although it is not known.
func unshown(i *resource.Info, needs string) error {
	return status.MethodNotAllowedf("%s is not supported on '%s': %s needs the stored object, and the answer to a GET is not known to show it: "+
		"`fields.answer` of the resource says where it does", i.Verb.Method(), i.GroupResource(), needs)
}

// checkUnshownName refuses a patch of an object that is not known if it gives the object another name than the URL.
func checkUnshownName(r *resource.Resource, w *storage.Write) error {
	path := r.Fields.Name
	if len(path) == 0 || r.Writes.NameMayChange || r.Unshown == resource.UnshownPassed {
		return nil
	}
	if w.PatchType != storage.JSONPatch {
		named, found := storage.Find(w.Patch.Root(), path)
		if !found || named.Is(w.Info.Name) || named.Kind() == document.Number && string(named.Raw()) == w.Info.Name {
			return nil
		}
		return unshown(&w.Info, "a change of the name in `"+storage.PathString(path)+"`")
	}
	var name []byte
	for _, key := range path {
		name = appendPointer(name, key)
	}
	for op := w.Patch.Root().First(); op.Valid(); op = op.Next() {
		for _, key := range [...]string{"path", "from"} {
			if at, _ := op.Get(key); at.Kind() == document.String && meetsPointer(at.Str(), string(name)) {
				return unshown(&w.Info, "a change of the name in `"+storage.PathString(path)+"`")
			}
		}
	}
	return nil
}

// meetsPointer reports whether one of two JSON pointers leads to a value that the other is in.
func meetsPointer(one, other string) bool {
	return strings.HasPrefix(one+"/", other+"/") || strings.HasPrefix(other+"/", one+"/")
}
