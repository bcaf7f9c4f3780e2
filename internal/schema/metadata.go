package schema

import (
	"context"
	"strings"
	"time"

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
)

// newMetadata is the shape of metadata. It says how ObjectMeta is read, not what is right in it; where keepUnknown is
// set, fields that it does not name are left alone.
func newMetadata(keepUnknown bool) *Shape {
	text := func() *Shape { return newShape(document.String, "string") }
	instant := func() *Shape {
		s := text()
		s.text = &textRules{minLength: -1, maxLength: -1, format: &format{
			name: "date-time", quick: quickDateTime, decide: func(s string) bool {
				_, err := time.Parse(time.RFC3339, s)
				return err == nil
			},
		}}
		return s
	}
	integer := func() *Shape {
		s := newShape(document.Number, "integer")
		s.accepts[document.Number] = integral
		return s
	}
	truth := func() *Shape { return newShape(document.Bool, "boolean") }
	texts := func() *Shape {
		s := newShape(document.Object, "object")
		s.extends, s.additional = true, text()
		s.additional.zeroesNull = true
		return s
	}
	list := func(items *Shape) *Shape {
		s := newShape(document.Array, "array")
		s.items = items
		return s
	}
	object := func(members map[string]*Shape) *Shape {
		s := newShape(document.Object, "object")
		for name, shape := range members {
			s.properties = append(s.properties, Property{Name: name, Shape: shape})
		}
		s.link()
		return s
	}
	anything := &Shape{preserves: true, accepts: anyKind}
	anything.summarise()
	meta := object(map[string]*Shape{
		"name": text(), "generateName": text(), "namespace": text(), "selfLink": text(), "uid": text(), "resourceVersion": text(),
		"generation": integer(), "creationTimestamp": instant(), "deletionTimestamp": instant(),
		"deletionGracePeriodSeconds": integer(), "labels": texts(), "annotations": texts(), "finalizers": list(text()),
		"ownerReferences": list(object(map[string]*Shape{
			"apiVersion": text(), "kind": text(), "name": text(), "uid": text(), "controller": truth(), "blockOwnerDeletion": truth(),
		})),
		"managedFields": list(object(map[string]*Shape{
			"manager": text(), "operation": text(), "apiVersion": text(), "time": instant(), "fieldsType": text(),
			"fieldsV1": anything, "subresource": text(),
		})),
	})
	meta.preserves = keepUnknown
	for i := range meta.properties {
		meta.properties[i].meta = metaField(metaNames.Index(meta.properties[i].Name)) + metaName
	}
	return meta
}

// metaField tells the members of metadata apart about which there is something to check.
type metaField uint8

const (
	_ metaField = iota // none of them
	metaName
	metaGenerateName
	metaNamespace
	metaGeneration
	metaLabels
	metaAnnotations
	metaFinalizers
	metaOwners
	metaManagers
)

// metaNames are the names of those members, from metaName on.
var metaNames = document.NewNames([]string{
	"name", "generateName", "namespace", "generation", "labels", "annotations", "finalizers", "ownerReferences", "managedFields",
})

// newShape is a value of one kind. Null is readable everywhere, as what stands for nothing.
func newShape(kind document.Kind, name string) *Shape {
	s := &Shape{typeName: name}
	s.accepts[kind], s.accepts[document.Null] = match, match
	return s
}

// metadataRules are what is checked of the metadata of a resource.
type metadataRules struct {
	namespaced bool
	embedded   bool // only what holds for any kind of resource
	anyName    bool // the name may be any segment of a path
}

// metadata checks labels, annotations, names and references. What looks right at a glance is right; everything else
// is decoded and left to the library.
func (w *validator) metadata(r metadataRules, meta document.Node) {
	if meta.Kind() != document.Object || r.quick(w.locator.meta, meta) {
		return
	}
	if w.fails() {
		return
	}
	decoded, left, err := decodeMetadata(meta)
	if err != nil {
		w.ofResource(meta, omitted, "must be valid metadata: "+clip(err.Error()))
		return
	}
	for _, err := range r.judge(decoded, w.path(meta)) {
		if w.fails() {
			return
		}
		w.failures.add(failure{err: curtailed(conformant(err)), at: meta.Index(), class: ofResource})
	}
	w.failures.more += left
}

// decodeMetadata reads metadata as an API server does, as far as there is something to be said about it: left is how many
// members of labels and the like are wrong besides.
func decodeMetadata(meta document.Node) (decoded *metav1.ObjectMeta, left int, err error) {
	raw, left := bounded(meta)
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, 0, err
	}
	decoded, _, err = objectmeta.GetObjectMeta(map[string]any{"metadata": members}, false)
	return decoded, left, err
}

// judge asks the library.
func (r metadataRules) judge(meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	name, namespaced := validation.NameIsDNSSubdomain, r.namespaced
	if r.embedded || r.anyName {
		name = segmentName
	}
	if r.embedded {
		namespaced = meta.Namespace != ""
	}
	if meta.Name == "" && (r.embedded || meta.GenerateName != "") {
		meta.Name = "generated" // the name is still to come, or nobody's business
	}
	if namespaced && meta.Namespace == "" {
		meta.Namespace = "default" // it stands in the URL
	}
	return validation.ValidateObjectMetaDeclaratively(context.Background(), operation.Create, meta, nil, namespaced, name, path,
		utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta))
}

func segmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// named tells whether a name is surely right.
func (r metadataRules) named(s string) bool {
	if r.embedded || r.anyName {
		return isSegment(s)
	}
	return isSubdomain(s, false)
}

// quick tells whether the metadata is surely right. The shape is that of every metadata.
func (r metadataRules) quick(shape *Shape, meta document.Node) bool {
	named := r.embedded
	for c := meta.Children(); c.Valid(); c.Next() {
		at := shape.placeAt(&c)
		if at < 0 {
			continue
		}
		switch m := c.Node(); shape.properties[at].meta {
		case metaName:
			s := m.Str()
			if !r.named(s) {
				return false
			}
			named = true
		case metaNamespace:
			if !r.embedded && !r.namespaced || !isLabel(m.Str()) {
				return false
			}
		case metaGeneration:
			if n, ok := m.Int64(); !ok || n < 0 {
				return false
			}
		case metaLabels:
			for c := m.Children(); c.Valid(); c.Next() {
				value, ok := c.Text()
				if !ok || !isLabelKey(c.Key(), false) || !isLabelValue(value) {
					return false
				}
			}
		case metaAnnotations:
			total := 0
			for c := m.Children(); c.Valid(); c.Next() {
				key := c.Key()
				if c.Kind() != document.String || !isLabelKey(key, true) {
					return false
				}
				total += len(key) + len(c.Node().Raw()) // what is quoted and escaped is never shorter than what it stands for
			}
			if total > validation.TotalAnnotationSizeLimitB {
				return false
			}
		case metaFinalizers:
			for f := m.First(); f.Valid(); f = f.Next() {
				s := f.Str()
				if s == metav1.FinalizerOrphanDependents || s == metav1.FinalizerDeleteDependents || !isLabelKey(s, false) {
					return false
				}
			}
		case metaOwners:
			if !quickOwners(m) {
				return false
			}
		case metaManagers:
			for f := m.First(); f.Valid(); f = f.Next() {
				if !quickManager(f) {
					return false
				}
			}
		case metaGenerateName:
			s := m.Str()
			if s == "" {
				continue
			}
			if !r.named(strings.TrimSuffix(s, "-")) {
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

// quickOwner tells whether an owner is surely right, and whether it is the controller.
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
			operation = m.Is(string(metav1.ManagedFieldsOperationUpdate)) || m.Is(string(metav1.ManagedFieldsOperationApply))
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
