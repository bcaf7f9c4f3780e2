package schema

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// The library finds words for everything that is wrong with metadata, and compares what it found with each other. What
// a request can make it find is bounded here: of labels, annotations and the like, the library is shown no more that are
// wrong than an answer could name.

// maxWrong is how many members of labels, annotations, finalizers, ownerReferences and managedFields, each, that are
// surely wrong the library is shown.
const maxWrong = 64

// bounded is the text of metadata, without members beyond maxWrong that are surely wrong, and how many those are.
func bounded(meta document.Node) (raw []byte, left int) {
	if suspects(meta, nil) <= maxWrong {
		return meta.Raw(), 0
	}
	d := meta.Clone()
	defer d.Release()
	suspects(d.Root(), func(member metaField) func(document.Node, bool) {
		wrong := 0
		return func(m document.Node, again bool) {
			switch {
			case wrong == maxWrong:
				d.Remove(m)
				left++
			case again || surelyWrong(member, m):
				wrong++
			}
		}
	})
	return d.Root().AppendRaw(nil), left
}

// suspects counts the members of labels and the like that are not surely right, and shows them, if anybody asks. again
// tells that a second owner is the controller.
func suspects(meta document.Node, show func(metaField) func(m document.Node, again bool)) (suspects int) {
	for c := meta.Children(); c.Valid(); c.Next() {
		member := metaField(c.Find(&metaNames)) + metaName
		see := func(document.Node, bool) {}
		if show != nil {
			see = show(member)
		}
		controlled := false
		for m := c.Node().Children(); m.Valid(); m.Next() {
			again := false
			if member == metaOwners && controls(m.Node()) {
				again, controlled = controlled, true
			}
			if again || !surelyRight(member, &m) {
				suspects++
				see(m.Node(), again)
			}
		}
	}
	return suspects
}

// surelyRight tells whether a member of labels and the like is right at a glance.
func surelyRight(member metaField, c *document.Cursor) bool {
	switch member {
	case metaLabels:
		value, ok := c.Text()
		return ok && isLabelKey(c.Key(), false) && isLabelValue(value)
	case metaAnnotations:
		return c.Kind() == document.String && isLabelKey(c.Key(), true)
	case metaFinalizers:
		return isLabelKey(c.Node().Str(), false)
	case metaOwners:
		_, right := quickOwner(c.Node())
		return right
	case metaManagers:
		return quickManager(c.Node())
	}
	return true
}

// surelyWrong tells whether the library would refuse it.
func surelyWrong(member metaField, m document.Node) bool {
	switch member {
	case metaLabels:
		return m.Kind() != document.String || len(content.IsLabelKey(m.Key())) > 0 || len(content.IsLabelValue(m.Str())) > 0
	case metaAnnotations:
		return m.Kind() != document.String || len(content.IsLabelKey(strings.ToLower(m.Key()))) > 0
	case metaFinalizers:
		return len(content.IsLabelKey(m.Str())) > 0
	case metaOwners:
		for _, name := range [...]string{"apiVersion", "kind", "name", "uid"} {
			if v, found := m.Get(name); !found || v.Is("") {
				return true
			}
		}
	case metaManagers:
		v, found := m.Get("operation")
		return !found || !v.Is(string(metav1.ManagedFieldsOperationUpdate)) && !v.Is(string(metav1.ManagedFieldsOperationApply))
	}
	return false
}

func controls(owner document.Node) bool {
	v, found := owner.Get("controller")
	return found && v.Bool()
}

// curtailed shortens what an error shows of metadata.
func curtailed(err *field.Error) *field.Error {
	err.Detail = clip(err.Detail)
	switch value := err.BadValue.(type) {
	case string:
		err.BadValue = clip(value)
	case metav1.ManagedFieldsOperationType:
		err.BadValue = clip(string(value))
	case []string:
		if len(strings.Join(value, ",")) > maxShown {
			err.BadValue = omitted
		}
	case []metav1.OwnerReference:
		if raw, broken := json.Marshal(value); broken != nil || len(raw) > maxShown {
			err.BadValue = omitted
		}
	}
	return err
}
