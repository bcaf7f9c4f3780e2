package events

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Send sends a request and returns the answer's code and body.
type Send func(ctx context.Context, method, target, contentType string, body []byte) (code int, answer []byte, err error)

const (
	// patience is how long a backend may take for an event. After a failure it is left alone for pause.
	patience = 10 * time.Second
	pause    = 30 * time.Second
)

// A sink sends events to the backend. It implements events.EventSink. Its errors are such that no event is tried again:
// a backend that is down is not to be asked more often.
type sink struct {
	send   Send
	ended  func(Outcome, error)
	failed atomic.Int64 // when the backend last did not answer, in nanoseconds
}

// Create implements events.EventSink.
func (s *sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.write(ctx, http.MethodPost, "application/json", e, "")
}

// Update implements events.EventSink.
func (s *sink) Update(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.write(ctx, http.MethodPut, "application/json", e, "/"+url.PathEscape(e.Name))
}

// Patch implements events.EventSink.
func (s *sink) Patch(ctx context.Context, e *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.ask(ctx, http.MethodPatch, string(types.StrategicMergePatchType), e, "/"+url.PathEscape(e.Name), data)
}

func (s *sink) write(ctx context.Context, method, contentType string, e *eventsv1.Event, name string) (*eventsv1.Event, error) {
	typed := *e
	typed.TypeMeta = metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"}
	body, err := json.Marshal(&typed)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return s.ask(ctx, method, contentType, e, name, body)
}

func (s *sink) ask(ctx context.Context, method, contentType string, e *eventsv1.Event, name string, body []byte) (_ *eventsv1.Event, err error) {
	isGone := false // the event of a series, which is created again
	defer func() {
		switch {
		case err == nil:
			s.ended(Sent, nil)
		case !isGone:
			s.ended(Lost, err)
		}
	}()
	if at := s.failed.Load(); at != 0 && time.Since(time.Unix(0, at)) < pause {
		return nil, apierrors.NewServiceUnavailable("the backend has just failed to take an event")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	target := "/apis/events.k8s.io/v1/namespaces/" + url.PathEscape(e.Namespace) + "/events" + name
	code, answer, err := s.send(ctx, method, target, contentType, body)
	if err != nil || code >= 500 {
		s.failed.Store(time.Now().UnixNano())
		if err == nil {
			err = fmt.Errorf("it answers %d", code)
		}
		return nil, apierrors.NewServiceUnavailable("the backend takes no event: " + err.Error())
	}
	if code >= 300 {
		isGone = method == http.MethodPatch && code == http.StatusNotFound
		var said metav1.Status
		if json.Unmarshal(answer, &said) == nil && said.Code == int32(code) {
			return nil, &apierrors.StatusError{ErrStatus: said}
		}
		return nil, apierrors.NewGenericServerResponse(code, method, schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"}, e.Name, "", 0, false)
	}
	written := &eventsv1.Event{}
	if err := json.Unmarshal(answer, written); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return written, nil
}
