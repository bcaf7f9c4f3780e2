package schema

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/format"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// newMetadata is the shape of metadata. It says how ObjectMeta is read, not what is right in it; if
// keepUnknown is set, fields that it does not name are left alone.
func newMetadata(keepUnknown bool) *Shape {
	text, integer, truth := newShape(document.String, "string"), newShape(document.Number, "integer"),
		newShape(document.Bool, "boolean")
	integer.accepts[document.Number] = integral
	instant := newShape(document.String, "string")
	instant.text = &keyword.Text{Least: -1, Most: -1, Format: &format.Format{
		Name: "date-time", Quick: format.QuickDateTime, Decide: func(s string) bool {
			_, err := time.Parse(time.RFC3339, s)
			return err == nil
		},
	}}
	value := newShape(document.String, "string")
	value.null = nullIsEmpty
	texts := newShape(document.Object, "object")
	texts.object.others, texts.object.additional = othersAllowed, value
	list := func(items *Shape) *Shape {
		s := newShape(document.Array, "array")
		s.list.items = items
		return s
	}
	object := func(members map[string]*Shape) *Shape {
		s := newShape(document.Object, "object")
		for name, shape := range members {
			s.object.properties = append(s.object.properties, Property{Name: name, Shape: shape})
		}
		s.link()
		return s
	}
	anything := &Shape{preserves: true, accepts: anyKind}
	anything.summarise()
	meta := object(map[string]*Shape{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": integer, "creationTimestamp": instant, "deletionTimestamp": instant,
		"deletionGracePeriodSeconds": integer, "labels": texts, "annotations": texts, "finalizers": list(text),
		"ownerReferences": list(object(map[string]*Shape{
			"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": truth,
			"blockOwnerDeletion": truth,
		})),
		"managedFields": list(object(map[string]*Shape{
			"manager": text, "operation": text, "apiVersion": text, "time": instant, "fieldsType": text,
			"fieldsV1": anything, "subresource": text,
		})),
	})
	meta.preserves = keepUnknown
	return meta
}

// newShape is a value of one kind. Null is readable everywhere, and means "not set".
func newShape(kind document.Kind, name string) *Shape {
	s := &Shape{typeName: name}
	s.accepts[kind], s.accepts[document.Null] = match, match
	return s
}

// metadata checks labels, annotations, names and references. What looks right at a glance is right; everything else
// is decoded and left to the library.
func (w *validator) metadata(r meta.Rules, v document.Node) {
	if v.Kind() != document.Object || r.Quick(w.locator.meta.object.notes, v) {
		return
	}
	if w.fails() {
		return
	}
	errs, left, err := r.Check(v, func() *field.Path { return w.path(v) })
	if err != nil {
		w.ofResource(v, wording.Omitted, "must be valid metadata: "+wording.Clip(err.Error()))
		return
	}
	for _, err := range errs {
		if w.fails() {
			return
		}
		w.failures.add(failure{err: err, at: v.Index(), class: ofResource})
	}
	w.failures.more += left
}

// embedded checks kind, apiVersion and metadata of a resource inside another one, as apiextensions' objectmeta does.
func (w *validator) embedded(v document.Node) {
	var apiVersion, kind bool
	for m := v.First(); m.Valid(); m = m.Next() {
		switch m.Key() {
		case "apiVersion":
			apiVersion = true
			if s := m.Str(); m.Kind() != document.String {
				w.ofResource(m, wording.ValueOf(m), "must be a string")
			} else if s == "" {
				w.ofResource(m, "", "must not be empty")
			} else if !quickGroupVersion(s) {
				if _, err := schema.ParseGroupVersion(s); err != nil {
					w.ofResource(m, wording.Clip(s), "must be '<group>/<version>' or '<version>'")
				}
			}
		case "kind":
			kind = true
			if s := m.Str(); m.Kind() != document.String {
				w.ofResource(m, wording.ValueOf(m), "must be a string")
			} else if s == "" {
				w.ofResource(m, "", "must not be empty")
			} else if !meta.IsKind(s) {
				if messages := utilvalidation.IsDNS1035Label(strings.ToLower(s)); len(messages) > 0 {
					w.ofResource(m, wording.Clip(s), "may have mixed case, but must otherwise match: "+
						strings.Join(messages, ","))
				}
			}
		case "metadata":
			w.metadata(meta.Rules{Embedded: true}, m)
		}
	}
	if !apiVersion {
		w.missing(v, "apiVersion", ofResource)
	}
	if !kind {
		w.missing(v, "kind", ofResource)
	}
}

func quickGroupVersion(s string) bool {
	group, version, found := strings.Cut(s, "/")
	return group != "" && (!found || version != "") && strings.IndexByte(version, '/') < 0
}

func (w *validator) ofResource(at document.Node, value any, detail string) {
	if !w.fails() {
		w.failures.add(failure{err: field.Invalid(w.path(at), value, detail), at: at.Index(), class: ofResource})
	}
}

// missing notes that an object has no member with this name.
func (w *validator) missing(object document.Node, name string, c class) {
	if !w.fails() {
		w.failures.add(failure{err: wording.Required(w.path(object).Child(name)), at: object.Index(), class: c})
	}
}
