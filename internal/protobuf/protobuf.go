// Package protobuf reads the bodies in which clients of Kubernetes send objects of its own kinds by
// default: application/vnd.kubernetes.protobuf. What it reads it makes JSON of, the way Kubernetes
// itself would: by the kinds' generated code. That code skips what it does not know. So a body is
// checked against its kind before, and nothing in it goes unread.
package protobuf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/status"
)

// MediaType is the type of the bodies that a [Reader] reads.
const MediaType = runtime.ContentTypeProtobuf

// magic is the beginning of every such body.
var magic = [4]byte{'k', '8', 's', 0}

// Limits bound what a body may make the gateway do.
type Limits struct {
	// Bytes is the largest size of the JSON.
	Bytes int
	// Depth is how deeply messages may be nested.
	Depth int
	// Accepted lists the media types that the answer to a body of an unknown kind names.
	Accepted string
}

// A Reader reads bodies. The zero value is ready; it learns what the kinds are when it is given the first body. It is
// safe for concurrent use.
type Reader struct {
	once   sync.Once
	scheme *runtime.Scheme
	failed error

	mu     sync.Mutex
	shapes map[reflect.Type]*shape
}

// A Beyond is the refusal of a body that has in it what this version of the gateway does not know: a field, or the
// kind. A later version of Kubernetes may know it.
type Beyond struct{ refusal *status.Error }

// Error implements error.
func (b *Beyond) Error() string { return b.refusal.Error() }

// Unwrap returns the refusal.
func (b *Beyond) Unwrap() error { return b.refusal }

// A Message is a body that can be read.
type Message struct {
	// Memory is about how many bytes it takes to make JSON of the body, with the JSON.
	Memory int64

	kind   schema.GroupVersionKind
	object object
	raw    []byte
	limits Limits
}

// object is a kind that can be read from protobuf.
type object interface {
	runtime.Object
	Reset()
	Unmarshal([]byte) error
}

func (r *Reader) learn() { r.once.Do(func() { r.scheme, r.failed = newScheme() }) }

// Knows reports whether there are kinds of the version that can be read.
func (r *Reader) Knows(version schema.GroupVersion) bool {
	r.learn()
	return r.failed == nil && r.scheme.IsVersionRegistered(version)
}

// Read checks a body against its kind. Every error is a *status.Error, or wraps one: 415 for a kind
// that is not known, 413 for a body whose object would be too large, and 400 for one that cannot be
// read, or in which there is something that the kind does not have. The refusal of what is not
// known is a *[Beyond].
func (r *Reader) Read(body []byte, limits Limits) (*Message, error) {
	if r.learn(); r.failed != nil {
		return nil, r.failed
	}
	if !bytes.HasPrefix(body, magic[:]) {
		return nil, status.BadRequest("the body must be Kubernetes' protobuf, which begins with the bytes 'k8s' and 0")
	}
	if _, err := r.check(reflect.TypeFor[runtime.Unknown](), body[len(magic):], limits); err != nil {
		return nil, err
	}
	envelope := &runtime.Unknown{}
	if err := envelope.Unmarshal(body[len(magic):]); err != nil {
		return nil, unreadable(err)
	}
	version, err := schema.ParseGroupVersion(envelope.APIVersion)
	switch {
	case err != nil || version.Version == "" || envelope.Kind == "":
		return nil, status.BadRequest("the protobuf body must say in its envelope which `apiVersion` and `kind` it is of")
	case envelope.ContentEncoding != "" || envelope.ContentType != "" && envelope.ContentType != MediaType:
		return nil, status.BadRequest("the object in the protobuf body must be protobuf without any other encoding")
	}
	m := &Message{kind: version.WithKind(envelope.Kind), raw: envelope.Raw, limits: limits}
	if m.object = r.object(m.kind); m.object == nil {
		return nil, &Beyond{status.UnsupportedMediaType(limits.Accepted)}
	}
	m.Memory, err = r.check(reflect.TypeOf(m.object).Elem(), m.raw, limits)
	return m, err
}

// object is an empty object of a kind; nil if the kind is not known, or has no protobuf.
func (r *Reader) object(kind schema.GroupVersionKind) object {
	if kind.Kind == "DeleteOptions" {
		return &metav1.DeleteOptions{} // which clients send in the version of what they delete
	}
	made, err := r.scheme.New(kind)
	if err != nil {
		return nil
	}
	o, _ := made.(object)
	return o
}

// check checks a message against its type and returns about how much memory it takes to read it.
func (r *Reader) check(t reflect.Type, data []byte, limits Limits) (int64, error) {
	w := walker{depth: limits.Depth, room: roomFor(len(data))}
	err := w.message(r.shapeOf(t), data, 1)
	var m *misfit
	switch {
	case !errors.As(err, &m):
	case m.isUnknown:
		err = &Beyond{unreadable(m)}
	default:
		err = unreadable(m)
	}
	return w.used(), err
}

// JSON is the object as JSON, with its kind and apiVersion. Errors are as from [Reader.Read].
func (m *Message) JSON() (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = unreadable(fmt.Errorf("%v", p))
		}
	}()
	m.object.Reset()
	if err := m.object.Unmarshal(m.raw); err != nil {
		return nil, unreadable(err)
	}
	m.object.GetObjectKind().SetGroupVersionKind(m.kind)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m.object); err != nil {
		return nil, unreadable(err)
	}
	if b.Len()-1 > m.limits.Bytes {
		return nil, status.RequestEntityTooLarge("the object in the protobuf body must be at most %d bytes as JSON",
			m.limits.Bytes)
	}
	return b.Bytes()[:b.Len()-1], nil
}

// Identity returns the version and the uid that the object in a body names in its metadata, which
// is the first field of every kind that has one. It reads as the server does, whatever else is in
// the object; "" for what is not there. The version 0 counts as none: it lets the server overwrite
// any other.
func Identity(body []byte) (version, uid string) {
	var envelope runtime.Unknown
	var object metav1.PartialObjectMetadata
	if !bytes.HasPrefix(body, magic[:]) || envelope.Unmarshal(body[len(magic):]) != nil ||
		object.Unmarshal(envelope.Raw) != nil {
		return "", ""
	}
	if version = object.ResourceVersion; strings.Trim(version, "0") == "" {
		version = ""
	}
	return version, string(object.UID)
}

func unreadable(err error) *status.Error {
	return status.BadRequest("the body must be protobuf that can be read in one way only: %s", err.Error())
}
