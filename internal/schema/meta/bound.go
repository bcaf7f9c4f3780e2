package meta

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// The library finds words for everything that is wrong with metadata, and compares what it found with each other. What
// a request can make it find is bounded here: of labels, annotations and the like, the library is shown no more that
// are wrong than an answer could name.

// MaxWrong is how many members of labels, annotations, finalizers, ownerReferences and managedFields, each, that are
// surely wrong the library is shown.
const MaxWrong = 64

// bounded is the text of metadata, without members beyond MaxWrong that are surely wrong, and how many those are.
func bounded(meta document.Node) (raw []byte, left int) {
	if suspects(meta, nil) <= MaxWrong {
		return meta.Raw(), 0
	}
	d := meta.Clone()
	defer d.Release()
	suspects(d.Root(), func(member part) func(document.Node, bool) {
		wrong := 0
		return func(m document.Node, again bool) {
			switch {
			case wrong == MaxWrong:
				d.Remove(m)
				left++
			case again || surelyWrong(member, m):
				wrong++
			}
		}
	})
	return d.Root().AppendRaw(nil), left
}

// suspects counts the members of labels and the like that are not surely right, and shows them, if
// asked for. again says that a second owner is the controller.
func suspects(meta document.Node, show func(part) func(m document.Node, again bool)) (suspects int) {
	for c := meta.Children(); c.Valid(); c.Next() {
		member := part(c.Find(&parts)) + partName
		see := func(document.Node, bool) {}
		if show != nil {
			see = show(member)
		}
		controlled := false
		for m := c.Node().Children(); m.Valid(); m.Next() {
			again := false
			if member == partOwners && controls(m.Node()) {
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

// surelyRight reports whether a member of labels and the like is right at a glance.
func surelyRight(member part, c *document.Cursor) bool {
	switch member {
	case partLabels:
		value, ok := c.Text()
		return ok && isLabelKey(c.Key(), false) && isLabelValue(value)
	case partAnnotations:
		return c.Kind() == document.String && isLabelKey(c.Key(), true)
	case partFinalizers:
		return isLabelKey(c.Node().Str(), false)
	case partOwners:
		_, right := quickOwner(c.Node())
		return right
	case partManagers:
		return quickManager(c.Node())
	}
	return true
}

// surelyWrong reports whether the library would refuse it.
func surelyWrong(member part, m document.Node) bool {
	switch member {
	case partLabels:
		return m.Kind() != document.String || len(content.IsLabelKey(m.Key())) > 0 ||
			len(content.IsLabelValue(m.Str())) > 0
	case partAnnotations:
		return m.Kind() != document.String || len(content.IsLabelKey(strings.ToLower(m.Key()))) > 0
	case partFinalizers:
		return len(content.IsLabelKey(m.Str())) > 0
	case partOwners:
		for _, name := range [...]string{"apiVersion", "kind", "name", "uid"} {
			if v, found := m.Get(name); !found || v.Is("") {
				return true
			}
		}
	case partManagers:
		v, found := m.Get("operation")
		return !found || !v.Is(string(metav1.ManagedFieldsOperationUpdate)) &&
			!v.Is(string(metav1.ManagedFieldsOperationApply))
	}
	return false
}

func controls(owner document.Node) bool {
	v, found := owner.Get("controller")
	return found && v.Bool()
}

// curtailed shortens what an error shows of metadata.
func curtailed(err *field.Error) *field.Error {
	err.Detail = wording.Clip(err.Detail)
	switch value := err.BadValue.(type) {
	case string:
		err.BadValue = wording.Clip(value)
	case metav1.ManagedFieldsOperationType:
		err.BadValue = wording.Clip(string(value))
	case []string:
		if len(strings.Join(value, ",")) > quote.MaxValue {
			err.BadValue = wording.Omitted
		}
	case []metav1.OwnerReference:
		if raw, broken := json.Marshal(value); broken != nil || len(raw) > quote.MaxValue {
			err.BadValue = wording.Omitted
		}
	}
	return err
}
