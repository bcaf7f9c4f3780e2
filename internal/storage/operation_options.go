package storage

import (
	"encoding/json"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// OperationOptions returns the options of the write as the admission of an API server has them:
// CreateOptions, UpdateOptions (of patches too, which have no `force` there) or DeleteOptions, made
// of the query and of the body of a deletion. It is invalid if the operation has none. It is made
// on the first call, so that it costs nothing if no policy reads it. complete completes the options
// of a deletion as the server does before its admission; nil does nothing.
func (w *Write) OperationOptions(operation admission.Operation, l *Limits, complete func(*metav1.DeleteOptions)) (
	document.Node, error) {
	if w.shownOptions.document != nil && w.shownOptions.of == operation {
		return w.shownOptions.document.Root(), nil
	}
	text, err := w.operationOptions(operation, complete)
	if text == nil || err != nil {
		return document.Node{}, err
	}
	d, err := w.Exchanges.Parse(text, l.Sent)
	if err != nil {
		return document.Node{}, err
	}
	if w.shownOptions.document != nil {
		w.shownOptions.document.Release()
	}
	w.shownOptions.of, w.shownOptions.document = operation, d
	return d.Root(), nil
}

// The options of an operation that the request names none for.
var (
	bareCreateOptions = []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)
	bareUpdateOptions = []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)
)

// operationOptions returns the options as JSON; nil for none.
func (w *Write) operationOptions(operation admission.Operation, complete func(*metav1.DeleteOptions)) ([]byte, error) {
	switch operation {
	case admission.Create:
		if w.Info.Query == "" {
			return bareCreateOptions, nil
		}
		o := &metav1.CreateOptions{}
		if err := decodeOptions(w.Info.Query, o); err != nil {
			return nil, err
		}
		o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
		return json.Marshal(o)
	case admission.Update:
		if w.Info.Query == "" {
			return bareUpdateOptions, nil
		}
		o := &metav1.UpdateOptions{}
		if err := decodeOptions(w.Info.Query, o); err != nil {
			return nil, err
		}
		o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
		return json.Marshal(o)
	case admission.Delete:
		o := metav1.DeleteOptions{}
		if w.Options != nil {
			o = *w.Options // the client's, without the precondition by which the gateway pins the deletion
		}
		if complete != nil {
			complete(&o)
		}
		o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
		return json.Marshal(&o)
	}
	return nil, nil
}

// decodeOptions reads options in a query as API servers do.
func decodeOptions(query string, into runtime.Object) error {
	values, err := url.ParseQuery(query)
	if err == nil {
		err = scheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, into)
	}
	if err != nil {
		return status.BadRequest("%s", err.Error())
	}
	return nil
}
