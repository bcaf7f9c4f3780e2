package plain

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// readListOptions reads the list options of a request, as Kubernetes does and with its messages.
func readListOptions(r *resource.Resource, i *resource.Info) (*listPass, error) {
	l := &listPass{selection: selection{namespace: i.Namespace, resource: r}}
	if i.Query == "" {
		return l, nil
	}
	o := &l.options
	values, err := url.ParseQuery(i.Query)
	if err == nil {
		err = scheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, o)
	}
	if err != nil {
		return nil, status.BadRequest("%s", err.Error())
	}
	if i.Verb == resource.VerbDeleteCollection {
		o.Watch = false
	}
	internalversion.SetListOptionsDefaults(o, true)
	if failures := validation.ValidateListOptions(o, true); len(failures) > 0 {
		return nil, status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", failures, 0)
	}
	if o.FieldSelector != nil {
		known := func(label, value string) (string, string, error) { return fieldLabel(r, label, value) }
		if l.fields, err = o.FieldSelector.Transform(known); err != nil {
			return nil, status.BadRequest("%s", err.Error())
		}
		if l.fields.Empty() {
			l.fields = nil
		}
	}
	if l.labels = o.LabelSelector; l.labels != nil && l.labels.Empty() {
		l.labels = nil
	}
	if o.Continue == "" || o.Watch {
		return l, nil
	}
	if err := l.after.read(o.Continue); err != nil {
		return nil, status.BadRequest("invalid continue token: continue key is not valid: %s", err.Error())
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return nil, status.BadRequest("specifying resource version is not allowed when using continue")
	}
	l.skipping = true
	return l, nil
}

// fieldLabel knows the fields that a selector may name.
func fieldLabel(r *resource.Resource, label, value string) (string, string, error) {
	if label == "metadata.name" || label == "metadata.namespace" && r.Namespaced {
		return label, value, nil
	}
	for _, path := range r.Fields.Selectable {
		if strings.Join(path, ".") == label {
			return label, value, nil
		}
	}
	return "", "", fmt.Errorf("field label not supported: %s", storage.Short(label))
}

// listTarget returns the target of a list at the backend: without what only the gateway reads.
func listTarget(e *storage.Exchanges, i *resource.Info) []byte {
	return e.Target(func(dst []byte) []byte {
		dst = append(dst, i.Path...)
		separator := byte('?')
		for rest := i.Query; rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, "&")
			if !isForBackend(i.Verb, pair) {
				continue
			}
			dst = append(append(dst, separator), pair...)
			separator = '&'
		}
		return dst
	})
}

// isForBackend reports whether the backend reads a parameter of a list too.
func isForBackend(verb resource.Verb, pair string) bool {
	switch key, _, _ := strings.Cut(pair, "="); key {
	case "", "labelSelector", "fieldSelector", "limit", "continue", "resourceVersionMatch":
		return false
	case "resourceVersion":
		return verb == resource.VerbWatch
	case "dryRun", "watch", "propagationPolicy", "gracePeriodSeconds", "orphanDependents":
		return verb != resource.VerbDeleteCollection
	}
	return true
}

// A selection is the objects that a request selects. It reads them in place, for the selectors of
// Kubernetes.
type selection struct {
	labels    labels.Selector // nil selects all
	fields    fields.Selector
	resource  *resource.Resource
	namespace string // of the URL
	labelled  labelled
	object    document.Node
}

// selects reports whether an object is of the selection.
func (s *selection) selects(object document.Node) bool {
	metadata, _ := object.Get("metadata")
	if s.labels != nil {
		s.labelled.labels, _ = metadata.Get("labels")
		if !s.labels.Matches(&s.labelled) {
			return false
		}
	}
	s.object = object
	return s.fields == nil || s.fields.Matches(s)
}

// Has implements fields.Fields.
func (s *selection) Has(string) bool { return true }

// Get implements fields.Fields.
func (s *selection) Get(field string) string {
	metadata, _ := s.object.Get("metadata")
	switch field {
	case "metadata.name":
		return storage.TextIn(metadata, "name")
	case "metadata.namespace":
		return s.namespaceOf(metadata)
	}
	for _, path := range s.resource.Fields.Selectable {
		if strings.Join(path, ".") != field {
			continue
		}
		switch at, _ := storage.Find(s.object, path); at.Kind() {
		case document.String:
			return at.Str()
		case document.Number, document.Bool:
			return string(at.Raw())
		}
	}
	return ""
}

// namespaceOf is the namespace of an object; a backend whose paths have it may leave it out.
func (s *selection) namespaceOf(metadata document.Node) string {
	if namespace := storage.TextIn(metadata, "namespace"); namespace != "" {
		return namespace
	}
	return s.namespace
}

// labelled are the labels of an object. It implements labels.Labels.
type labelled struct{ labels document.Node }

// Has reports whether the label is set.
func (l *labelled) Has(label string) bool { _, found := l.Lookup(label); return found }

// Get is the value of the label.
func (l *labelled) Get(label string) string { value, _ := l.Lookup(label); return value }

// Lookup is the value of the label, and whether it is set.
func (l *labelled) Lookup(label string) (string, bool) {
	at, found := l.labels.Get(label)
	return at.Str(), found && at.Kind() == document.String
}
