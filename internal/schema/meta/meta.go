// Package meta checks the metadata of Kubernetes' objects as k8s.io/apimachinery does, and gives an update the members
// that are the system's. What is right at a glance is right; the library decides about everything else, and words it.
package meta

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// part is a member of metadata about which there is something to check.
type part uint8

const (
	_ part = iota // none of them
	partName
	partGenerateName
	partNamespace
	partGeneration
	partLabels
	partAnnotations
	partFinalizers
	partOwners
	partManagers
)

// parts are the names of those members, from partName on.
var parts = document.NewNames([]string{
	"name", "generateName", "namespace", "generation", "labels", "annotations", "finalizers", "ownerReferences",
	"managedFields",
})

// Members are all members of metadata, sorted by name.
var Members = []string{
	"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
	"generation", "labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink",
	"uid",
}

var (
	members = document.NewNames(Members)
	partOf  = func() (all []part) {
		for _, name := range Members {
			all = append(all, part(parts.Index(name))+partName)
		}
		return all
	}()
)

// partAt returns the part that the member at a cursor is. notes wrote the places of Members on the members of metadata;
// it may be nil.
func partAt(c *document.Cursor, notes *document.Noter) part {
	at := c.Note(notes) - 1
	if at < 0 {
		at = c.Find(&members)
	}
	if at < 0 {
		return 0
	}
	return partOf[at]
}

// Rules say what is checked of the metadata of a resource.
type Rules struct {
	Namespaced bool
	Embedded   bool // only what holds for any kind of resource
	AnyName    bool // the name may be any segment of a path
}

// decode reads metadata as an API server does, as far as there is something to be said about it: left is how many
// members of labels and the like are wrong besides.
func decode(meta document.Node) (decoded *metav1.ObjectMeta, left int, err error) {
	raw, left := bounded(meta)
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, 0, err
	}
	decoded, _, err = objectmeta.GetObjectMeta(map[string]any{"metadata": members}, false)
	return decoded, left, err
}

// Check returns what the library finds wrong with metadata, worded as the API conventions ask, and how many members of
// labels and the like are wrong besides. The error says that the metadata cannot be read.
func (r Rules) Check(meta document.Node, path func() *field.Path) (errs field.ErrorList, left int, err error) {
	decoded, left, err := decode(meta)
	if err != nil {
		return nil, 0, err
	}
	errs = r.ask(decoded, path())
	for _, err := range errs {
		_ = curtailed(wording.Conformant(err))
	}
	inOrder(errs)
	return errs, left, nil
}

// inOrder sorts what is wrong with labels, and what with annotations: the library goes through them as Go's maps are,
// in another order each time.
func inOrder(errs field.ErrorList) {
	for len(errs) > 0 {
		n := 1
		for n < len(errs) && errs[n].Field == errs[0].Field {
			n++
		}
		if at := errs[0].Field; strings.HasSuffix(at, ".labels") || strings.HasSuffix(at, ".annotations") {
			slices.SortStableFunc(errs[:n], func(a, b *field.Error) int {
				// Of a text that is a key and a value too, what is wrong with the key comes first.
				return cmp.Or(strings.Compare(fmt.Sprint(a.BadValue), fmt.Sprint(b.BadValue)),
					cmp.Compare(rankOf(a), rankOf(b)))
			})
		}
		errs = errs[n:]
	}
}

// rankOf distinguishes failures of keys from failures of values.
func rankOf(err *field.Error) int {
	if strings.HasPrefix(err.Detail, "a valid label") {
		return 1
	}
	return 0
}

// ask asks the library.
func (r Rules) ask(meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	name, namespaced := validation.NameIsDNSSubdomain, r.Namespaced
	if r.Embedded || r.AnyName {
		name = segmentName
	}
	if r.Embedded {
		namespaced = meta.Namespace != ""
	}
	if meta.Name == "" && (r.Embedded || meta.GenerateName != "") {
		meta.Name = "generated" // the name is still to come, or not checked here
	}
	if namespaced && meta.Namespace == "" {
		meta.Namespace = "default" // it stands in the URL
	}
	return validation.ValidateObjectMetaDeclaratively(context.Background(), operation.Create, meta, nil, namespaced,
		name, path,
		utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta))
}

func segmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// isName reports whether a name is surely right.
func (r Rules) isName(s string) bool {
	if r.Embedded || r.AnyName {
		return isSegment(s)
	}
	return isSubdomain(s, false)
}

// Quick reports whether the metadata is surely right. notes is as in partAt: the author of its
// members' numbers, which are their places in [Members]; nil if they have none.
func (r Rules) Quick(notes *document.Noter, meta document.Node) bool {
	named := r.Embedded
	for c := meta.Children(); c.Valid(); c.Next() {
		switch m := c.Node(); partAt(&c, notes) {
		case partName:
			s := m.Str()
			if !r.isName(s) {
				return false
			}
			named = true
		case partNamespace:
			if !r.Embedded && !r.Namespaced || !isLabel(m.Str()) {
				return false
			}
		case partGeneration:
			if n, ok := m.Int64(); !ok || n < 0 {
				return false
			}
		case partLabels:
			for c := m.Children(); c.Valid(); c.Next() {
				value, ok := c.Text()
				if !ok || !isLabelKey(c.Key(), false) || !isLabelValue(value) {
					return false
				}
			}
		case partAnnotations:
			total := 0
			for c := m.Children(); c.Valid(); c.Next() {
				key := c.Key()
				if c.Kind() != document.String || !isLabelKey(key, true) {
					return false
				}
				total += len(key) + len(c.Node().Raw()) // quoted and escaped text is never shorter than the original
			}
			if total > validation.TotalAnnotationSizeLimitB {
				return false
			}
		case partFinalizers:
			for f := m.First(); f.Valid(); f = f.Next() {
				s := f.Str()
				if s == metav1.FinalizerOrphanDependents || s == metav1.FinalizerDeleteDependents ||
					!isLabelKey(s, false) {
					return false
				}
			}
		case partOwners:
			if !quickOwners(m) {
				return false
			}
		case partManagers:
			for f := m.First(); f.Valid(); f = f.Next() {
				if !quickManager(f) {
					return false
				}
			}
		case partGenerateName:
			s := m.Str()
			if s == "" {
				continue
			}
			if !r.isName(strings.TrimSuffix(s, "-")) {
				return false
			}
			named = true
		}
	}
	return named
}

func quickOwners(list document.Node) bool {
	controlled := false
	for o := list.First(); o.Valid(); o = o.Next() {
		controls, right := quickOwner(o)
		if !right || controls && controlled {
			return false
		}
		controlled = controlled || controls
	}
	return true
}

// quickOwner reports whether an owner is surely right, and whether it is the controller.
func quickOwner(o document.Node) (controls, right bool) {
	there, core, event := 0, false, false
	for m := o.First(); m.Valid(); m = m.Next() {
		switch m.Key() {
		case "apiVersion":
			group, version, found := strings.Cut(m.Str(), "/")
			if !found {
				core, version = true, group
			}
			if group == "" || !isSegment(version) {
				return false, false
			}
			there++
		case "kind", "name", "uid":
			if m.Kind() != document.String || len(m.Raw()) == len(`""`) {
				return false, false
			}
			event = event || m.Is("Event")
			there++
		case "controller":
			controls = m.Bool()
		}
	}
	return controls, there == 4 && !(core && event) // Events own nothing
}

func quickManager(entry document.Node) bool {
	operation := false
	for m := entry.First(); m.Valid(); m = m.Next() {
		switch m.Key() {
		case "operation":
			operation = m.Is(string(metav1.ManagedFieldsOperationUpdate)) ||
				m.Is(string(metav1.ManagedFieldsOperationApply))
		case "fieldsType":
			if !m.Is("FieldsV1") {
				return false
			}
		case "manager", "subresource":
			if s := m.Str(); len(s) > 128 || !isPrintable(s) {
				return false
			}
		}
	}
	return operation
}
