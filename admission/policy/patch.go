package policy

import (
	"errors"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// Limits bound what policies make of the target, which is the object of the request or a copy of it
// in another version.
func Limits(a *admission.Attributes, target *document.Document) (l document.Limits) {
	if a.Schema != nil {
		l = a.Schema.PatchLimits()
	}
	l.Memory = target.Memory() // what is made for a request is bounded as its object is
	return l
}

// ApplyPatch applies a JSON patch to the target. A patch whose test fails changes nothing and is no
// failure.
func ApplyPatch(target *document.Document, patch document.Node, limits document.Limits) (changed bool, err error) {
	if patch.Len() == 0 {
		return false, nil
	}
	before := typeMetaOf(target.Root())
	err = target.Atomically(func() error {
		if err := target.ApplyPolicyPatch(patch, limits); err != nil {
			return err
		}
		return before.check(target.Root())
	})
	var failed *document.PatchError
	if errors.As(err, &failed) && failed.Code == document.PatchTestFailed {
		return false, nil
	}
	return err == nil, err
}

// ApplyTarget takes over into the object what was changed in the target, and fills in what it leaves
// unset now.
func ApplyTarget(a *admission.Attributes, target *document.Document) error {
	if target != a.Object {
		back, _, err := a.Lookup.Convert(target, a.Info.GroupVersionResource())
		if err != nil {
			return ConversionFailed(err)
		}
		a.Object.Replace(a.Object.Root(), back.Root().Raw())
	}
	a.Changed()
	if a.Schema == nil {
		return nil
	}
	return a.Schema.SetDefaults()
}

// typeMeta records which of the members are there that say what an object is.
type typeMeta struct{ kind, version bool }

func typeMetaOf(root document.Node) typeMeta {
	return typeMeta{named(root, "kind"), named(root, "apiVersion")}
}

func named(root document.Node, member string) bool {
	n, ok := root.Get(member)
	return ok && n.Kind() == document.String && !n.Is("")
}

// check refuses the result of a patch that kube-apiserver could not read.
func (m typeMeta) check(root document.Node) error {
	switch {
	case root.Kind() != document.Object:
		return status.Internal("a JSON patch of a policy must leave an object, not %s", root.Kind().WithArticle())
	case m.kind && !named(root, "kind"):
		return status.Internal("a JSON patch of a policy must not take the object's `kind` away")
	case m.version && !named(root, "apiVersion"):
		return status.Internal("a JSON patch of a policy must not take the object's `apiVersion` away")
	}
	return nil
}
