package proxy

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
)

// emulatesLists tells whether the gateway makes the lists of a backend that has nothing but all of a collection (RES-6).
func (x *exchange) emulatesLists() bool {
	switch x.info.Verb {
	case resource.VerbList, resource.VerbWatch, resource.VerbDeleteCollection:
		return x.info.Subresource == "" && x.emulatesMetadata(resource.Selectors)
	}
	return false
}

// readListOptions reads what a request asks of a list, as Kubernetes does and with its words.
func (x *exchange) readListOptions() error {
	if !x.emulatesLists() {
		return nil
	}
	l := &listPass{selection: selection{namespace: x.info.Namespace, resource: x.res}}
	x.listing = l
	if x.info.Query == "" {
		return nil
	}
	o := &l.options
	values, err := url.ParseQuery(x.info.Query)
	if err == nil {
		err = scheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, o)
	}
	if err != nil {
		return status.BadRequest("%s", err.Error())
	}
	if x.info.Verb == resource.VerbDeleteCollection {
		o.Watch = false
	}
	internalversion.SetListOptionsDefaults(o, true)
	if failures := validation.ValidateListOptions(o, true); len(failures) > 0 {
		return status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", failures, 0)
	}
	if o.FieldSelector != nil {
		if l.fields, err = o.FieldSelector.Transform(x.fieldLabel); err != nil {
			return status.BadRequest("%s", err.Error())
		}
		if l.fields.Empty() {
			l.fields = nil
		}
	}
	if l.labels = o.LabelSelector; l.labels != nil && l.labels.Empty() {
		l.labels = nil
	}
	if o.Continue == "" || o.Watch {
		return nil
	}
	if err := l.after.read(o.Continue); err != nil {
		return status.BadRequest("invalid continue token: continue key is not valid: %s", err.Error())
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return status.BadRequest("specifying resource version is not allowed when using continue")
	}
	l.skipping = true
	return nil
}

// checkListVersion prepares the list for the version of the answer, and holds it to the one that was asked for.
func (x *exchange) checkListVersion() error {
	if x.listing == nil || x.info.Verb != resource.VerbList {
		return nil
	}
	x.listing.setVersion(x.backendETag())
	return x.listing.checkVersion()
}

// fieldLabel knows the fields that a selector may name.
func (x *exchange) fieldLabel(label, value string) (string, string, error) {
	if label == "metadata.name" || label == "metadata.namespace" && x.res.Namespaced {
		return label, value, nil
	}
	for _, path := range x.res.Selectable {
		if strings.Join(path, ".") == label {
			return label, value, nil
		}
	}
	return "", "", fmt.Errorf("field label not supported: %s", short(label))
}

// listTarget is the target of a list at the backend: without what only the gateway reads.
func (x *exchange) listTarget() []byte {
	x.target = append(x.target[:0], x.info.Path...)
	separator := byte('?')
	for rest := x.info.Query; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		switch key, _, _ := strings.Cut(pair, "="); key {
		case "", "labelSelector", "fieldSelector", "limit", "continue", "resourceVersionMatch":
			continue
		case "resourceVersion":
			if x.info.Verb != resource.VerbWatch {
				continue
			}
		case "dryRun", "watch", "propagationPolicy", "gracePeriodSeconds", "orphanDependents":
			if x.info.Verb == resource.VerbDeleteCollection {
				continue
			}
		}
		x.target = append(append(x.target, separator), pair...)
		separator = '&'
	}
	return x.target
}

// A selection is which objects a request is about. It reads them where they stand, for the selectors of Kubernetes.
type selection struct {
	labels    labels.Selector // nil selects all
	fields    fields.Selector
	resource  *resource.Resource
	namespace string // of the URL
	labelled  labelled
	object    document.Node
}

// selects tells whether an object is of the selection.
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
		return textIn(metadata, "name")
	case "metadata.namespace":
		return s.namespaceOf(metadata)
	}
	for _, path := range s.resource.Selectable {
		if strings.Join(path, ".") != field {
			continue
		}
		switch at, _ := find(s.object, path); at.Kind() {
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
	if namespace := textIn(metadata, "namespace"); namespace != "" {
		return namespace
	}
	return s.namespace
}

// labelled are the labels of an object. It implements labels.Labels.
type labelled struct{ labels document.Node }

// Has tells whether the label is set.
func (l *labelled) Has(label string) bool { _, found := l.Lookup(label); return found }

// Get is the value of the label.
func (l *labelled) Get(label string) string { value, _ := l.Lookup(label); return value }

// Lookup is the value of the label, and whether it is set.
func (l *labelled) Lookup(label string) (string, bool) {
	at, found := l.labels.Get(label)
	return at.Str(), found && at.Kind() == document.String
}
