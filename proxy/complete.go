package proxy

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// envelopeFields are the members of a Kubernetes object that some backends would also find under another case,
// metadataFields those members of metadata that decide which object a request is about and who may change it.
var (
	envelopeFields = document.NewFoldSet("apiVersion", "kind", "metadata", "spec", "status")
	metadataFields = document.NewFoldSet("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers", "ownerReferences", "managedFields")
)

// complete holds the object to the URL: what the URL says must not be contradicted by the body (400), and on
// a plain backend is written into a body that leaves it out (RES-2).
func (x *exchange) complete() error {
	root := x.doc.Root()
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", article(root.Kind()))
	}
	if x.res != nil && x.res.Envelope == resource.Bare {
		return x.completeBare(root)
	}
	if err := exactCase(root, envelopeFields, ""); err != nil {
		return err
	}
	if err := x.completeType(root); err != nil {
		return err
	}
	return x.completeMetadata(root)
}

// fills tells whether the gateway writes what the body leaves out; a Kubernetes backend does so itself.
func (x *exchange) fills() bool {
	return x.res != nil && x.upstream.plain && (x.info.Subresource == "" || x.info.Subresource == "status")
}

// completeType compares kind and apiVersion with the resource that the URL names.
func (x *exchange) completeType(root document.Node) error {
	version, err := x.text(root, "apiVersion", "")
	if err != nil {
		return err
	}
	kind, err := x.text(root, "kind", "")
	if err != nil {
		return err
	}
	if x.info.Subresource != "" && x.info.Subresource != "status" {
		// The objects of scale, eviction, binding and the like are of a kind and group of their own.
		return nil
	}
	if x.info.Verb == resource.VerbPatch && x.emulatesMetadata(resource.PatchVerb) {
		return x.keepsType(root, kind, version)
	}
	if version != "" && !isGroupVersion(version, &x.info) {
		return status.BadRequest("the API version in the data (%.253s) does not match the expected API version (%s)", version, groupVersion(&x.info))
	}
	if kind != "" && x.res != nil && kind != x.res.Kind {
		return status.BadRequest("the kind in the data (%.253s) does not match the expected kind (%s)", kind, x.res.Kind)
	}
	if !x.fills() {
		return nil
	}
	if kind == "" {
		x.doc.SetString(root, "kind", x.res.Kind)
	}
	if version == "" {
		x.doc.SetString(root, "apiVersion", groupVersion(&x.info))
	}
	return nil
}

// keepsType holds the result of a patch to the kind and apiVersion that were there before, as Kubernetes validates them.
func (x *exchange) keepsType(root document.Node, kind, version string) error {
	var failures field.ErrorList
	if kind == "" && textIn(x.old.Root(), "kind") != "" {
		return x.unreadable("Object 'Kind' is missing")
	}
	if kind != "" && kind != x.res.Kind {
		failures = append(failures, field.Invalid(field.NewPath("kind"), short(kind), "must be "+x.res.Kind))
	}
	if expected := groupVersion(&x.info); version != expected && (version != "" || textIn(x.old.Root(), "apiVersion") != "") {
		failures = append(failures, field.Invalid(field.NewPath("apiVersion"), short(version), "must be "+expected))
	}
	if len(failures) > 0 {
		return status.Invalid(groupKind(x), x.info.Name, failures, 0)
	}
	if kind == "" {
		x.doc.SetString(root, "kind", x.res.Kind)
	}
	if version == "" {
		x.doc.SetString(root, "apiVersion", groupVersion(&x.info))
	}
	return nil
}

// completeMetadata compares name and namespace with those of the URL.
func (x *exchange) completeMetadata(root document.Node) error {
	var name, namespace string
	metadata, found := root.Get("metadata")
	if found && metadata.Kind() != document.Null {
		if metadata.Kind() != document.Object {
			return status.BadRequest("`metadata` must be an object, not %s", article(metadata.Kind()))
		}
		if err := exactCase(metadata, metadataFields, "metadata."); err != nil {
			return err
		}
		var err error
		if name, err = x.text(metadata, "name", "metadata."); err != nil {
			return err
		}
		if namespace, err = x.text(metadata, "namespace", "metadata."); err != nil {
			return err
		}
		if _, err = x.text(metadata, "generateName", "metadata."); err != nil {
			return err
		}
	} else {
		metadata = document.Node{}
	}
	if namespace != "" && namespace != x.info.ObjectNamespace() {
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if x.info.Name != "" && name != "" && name != x.info.Name {
		return status.BadRequest("the name of the object (%.253s) does not match the name on the URL (%s)", name, x.info.Name)
	}
	if x.info.Verb == resource.VerbCreate && x.info.Name == "" {
		x.info.Name = name
	}
	if err := x.checkName(); err != nil {
		return err
	}
	if !x.fills() {
		return nil
	}
	return x.fillMetadata(root, metadata, name, namespace)
}

// checkName holds the name of an object that no schema checks to the form that Kubernetes gives most names, where the
// configuration asks for it (RES-3).
func (x *exchange) checkName() error {
	if x.res != nil || !x.gateway.unregistered.CheckNames || !x.info.IsResource || x.info.Name == "" || x.info.Subresource != "" {
		return nil
	}
	problems := validation.NameIsDNSSubdomain(x.info.Name, false)
	if len(problems) == 0 {
		return nil
	}
	at := field.NewPath("metadata", "name")
	failures := make(field.ErrorList, 0, len(problems))
	for _, p := range problems {
		failures = append(failures, field.Invalid(at, x.info.Name, p))
	}
	return status.Invalid(groupKind(x), x.info.Name, failures, 0)
}

// fillMetadata writes the URL's name and namespace into metadata that leaves them out.
func (x *exchange) fillMetadata(root, metadata document.Node, name, namespace string) error {
	named, spaced := name != "" || x.info.Name == "", namespace != "" || x.info.ObjectNamespace() == ""
	if named && spaced {
		return nil
	}
	if !metadata.Valid() {
		metadata = x.doc.Set(root, "metadata", []byte("{}"))
	}
	if !named {
		x.doc.SetString(metadata, "name", x.info.Name)
	}
	if !spaced {
		x.doc.SetString(metadata, "namespace", x.info.ObjectNamespace())
	}
	return nil
}

// completeBare compares the name of an ordinary API's object with that of the URL; such an object gets nothing added.
func (x *exchange) completeBare(root document.Node) error {
	at, found := find(root, x.res.Fields.Name)
	if !found || at.Kind() == document.Null {
		return nil
	}
	var name string
	switch {
	case at.Kind() == document.String && !at.HasNUL():
		name = at.Str()
	case at.Kind() == document.Number:
		name = string(at.Raw())
	default:
		return status.BadRequest("`%s` must be a string without NUL characters", at.Path())
	}
	if x.info.Name != "" && name != x.info.Name {
		return status.BadRequest("the name of the object (%.253s) does not match the name on the URL (%s)", name, x.info.Name)
	}
	x.info.Name = name
	return nil
}

// find follows a path of member names; the empty path is the node itself, a nil one is nowhere.
func find(at document.Node, path resource.FieldPath) (document.Node, bool) {
	if path == nil {
		return document.Node{}, false
	}
	for _, key := range path {
		next, found := at.Get(key)
		if !found {
			return document.Node{}, false
		}
		at = next
	}
	return at, true
}

// statusPath is where objects of the resource keep their status; nil where they have none to protect.
func (x *exchange) statusPath() resource.FieldPath {
	switch {
	case x.res == nil:
		if x.gateway.unregistered.ProtectStatus && x.info.IsResource && x.info.APIPrefix != "" {
			return kubernetesStatus
		}
		return nil
	case !x.res.Status:
		return nil
	case x.res.Envelope == resource.Bare:
		return x.res.Fields.Status
	}
	return kubernetesStatus
}

var kubernetesStatus = resource.FieldPath{"status"}

// protectStatus takes a status that the client sent out of the object, and on a plain backend puts the stored
// one in its place, so that a PUT leaves it as it is (STAT-1).
func (x *exchange) protectStatus() error {
	path := x.statusPath()
	switch {
	case path == nil:
		return nil
	case x.emulatesStatus():
		return x.replaceStatus(path)
	case x.info.Subresource != "":
		return nil
	}
	if sent, found := find(x.doc.Root(), path); found {
		x.doc.Remove(sent)
	}
	if x.old == nil || !x.upstream.plain || !x.protectsStatus() {
		return nil
	}
	if stored, found := find(x.old.Root(), path); found {
		return x.misplace(setAt(x.doc, path, stored.Raw()))
	}
	return nil
}

// emulatesStatus tells whether the request is about the status subresource of a backend that has none.
func (x *exchange) emulatesStatus() bool {
	return x.info.Subresource == "status" && x.res != nil && x.res.Status && x.emulates(resource.StatusSubresource)
}

// protectsStatus tells whether it is the gateway that keeps the status of a plain backend's objects apart.
func (x *exchange) protectsStatus() bool {
	return x.res == nil || x.emulates(resource.StatusSubresource)
}

// holdStatus makes sure, after the mutating policies, that a write to an object has not changed its status, and one to the
// status nothing else.
func (x *exchange) holdStatus() error {
	path := x.statusPath()
	switch {
	case path == nil || x.scaling && x.info.Subresource != "":
		return nil
	case x.emulatesStatus():
		if len(path) == 1 && sameBeside(x.doc.Root(), x.old.Root(), path[0]) {
			return nil
		}
		return x.replaceStatus(path)
	}
	var stored document.Node
	if x.old != nil && x.upstream.plain && x.protectsStatus() {
		stored, _ = find(x.old.Root(), path)
	}
	if set, _ := find(x.doc.Root(), path); document.EqualNodes(set, stored) {
		return nil
	}
	return x.protectStatus()
}

// replaceStatus makes of a write to the status subresource the stored object with the status that was sent; the rest
// of what was sent does not count (STAT-2).
func (x *exchange) replaceStatus(path resource.FieldPath) error {
	sent, found := find(x.doc.Root(), path)
	merged := x.old.Clone()
	var misplaced error
	if stored, had := find(merged.Root(), path); found {
		misplaced = setAt(merged, path, sent.Raw())
	} else if had {
		merged.Remove(stored)
	}
	x.doc.Release()
	x.doc, x.rebuilt = merged, true
	return x.misplace(misplaced)
}

// setAt sets the member at a path. Parents that are missing or null are made, so that a status within another object
// does not depend on whether the client sent that one. The error is a [*field.Error] about a parent that is no object.
func setAt(d *document.Document, path resource.FieldPath, raw []byte) error {
	last := len(path) - 1
	parent := d.Root()
	for i, key := range path[:last] {
		next, found := parent.Get(key)
		switch {
		case !found || next.Kind() == document.Null:
			next = d.Set(parent, key, []byte("{}"))
		case next.Kind() != document.Object:
			return status.Type(joined(path[:i+1]), next.Kind().String(), "object")
		}
		parent = next
	}
	d.Set(parent, path[last], raw)
	return nil
}

func joined(path resource.FieldPath) string {
	var b []byte
	for _, key := range path {
		b = document.AppendPathKey(b, key)
	}
	return string(b)
}

// text is the function of that name; where a patch makes a member something else, it is the patch that cannot be read.
func (x *exchange) text(object document.Node, key, prefix string) (string, error) {
	s, err := text(object, key, prefix)
	if err != nil && x.info.Verb == resource.VerbPatch && x.emulatesMetadata(resource.PatchVerb) {
		return "", x.unreadable(err.Error())
	}
	return s, err
}

// text reads a member that must be a string where it is given; the empty string and null are the same as none.
func text(object document.Node, key, prefix string) (string, error) {
	at, found := object.Get(key)
	if !found || at.Kind() == document.Null {
		return "", nil
	}
	if at.Kind() != document.String {
		return "", status.BadRequest("`%s%s` must be a string, not %s", prefix, key, article(at.Kind()))
	}
	if at.HasNUL() {
		return "", status.BadRequest("`%s%s` must not have a NUL character in it", prefix, key)
	}
	return at.Str(), nil
}

// exactCase refuses members that a backend which folds case would read as one of the known ones.
func exactCase(object document.Node, known *document.FoldSet, prefix string) error {
	if variant, name := object.CaseVariant(known); variant.Valid() {
		return status.BadRequest("unknown field '%s%.253s': field names are case-sensitive, it must be written `%s%s`", prefix, variant.Key(), prefix, name)
	}
	return nil
}

// isGroupVersion compares without building the string.
func isGroupVersion(s string, info *resource.Info) bool {
	if info.Group == "" {
		return s == info.Version
	}
	n := len(info.Group)
	return len(s) == n+1+len(info.Version) && s[:n] == info.Group && s[n] == '/' && s[n+1:] == info.Version
}

func groupVersion(info *resource.Info) string {
	if info.Group == "" {
		return info.Version
	}
	return info.Group + "/" + info.Version
}

// article names a kind of JSON value in a sentence.
func article(k document.Kind) string {
	switch k {
	case document.Object:
		return "an object"
	case document.Array:
		return "a list"
	case document.String:
		return "a string"
	case document.Number:
		return "a number"
	case document.Bool:
		return "a boolean"
	}
	return "null"
}
