package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Send sends a request and returns the answer's code and body.
type Send func(ctx context.Context, method, target, contentType string, body []byte) (code int, answer []byte,
	err error)

const (
	// patience is how long a backend may take for an event. After a failure it is left alone for pause.
	patience = 10 * time.Second
	pause    = 30 * time.Second
)

// A sink sends events to the backend. An event that it could not send is not tried again: a backend that is down must
// not be asked more often.
type sink struct {
	send   Send
	ended  func(Outcome, error)
	failed time.Time // when the backend last did not answer
}

// create sends an event that the backend does not have.
func (s *sink) create(ctx context.Context, e *eventsv1.Event) {
	typed := *e
	typed.TypeMeta = metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"}
	s.end(s.ask(ctx, http.MethodPost, "application/json", e, "", &typed))
}

// count sends how often the event of a series happened. If the backend has removed the event, it is created again.
func (s *sink) count(ctx context.Context, e *eventsv1.Event) {
	patch := struct {
		Series *eventsv1.EventSeries `json:"series"`
	}{e.Series}
	err := s.ask(ctx, http.MethodPatch, string(types.StrategicMergePatchType), e, "/"+url.PathEscape(e.Name), patch)
	if errors.Is(err, errGone) {
		s.create(ctx, e)
		return
	}
	s.end(err)
}

func (s *sink) end(err error) {
	if err != nil {
		s.ended(Lost, err)
		return
	}
	s.ended(Sent, nil)
}

// errGone says that the backend does not have an event.
var errGone = errors.New("the backend does not have the event")

func (s *sink) ask(ctx context.Context, method, contentType string, e *eventsv1.Event, name string, of any) error {
	if !s.failed.IsZero() && time.Since(s.failed) < pause {
		return apierrors.NewServiceUnavailable("the backend has just failed to take an event")
	}
	body, err := json.Marshal(of)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	target := "/apis/events.k8s.io/v1/namespaces/" + url.PathEscape(e.Namespace) + "/events" + name
	code, answer, err := s.send(ctx, method, target, contentType, body)
	if err == nil && code >= 500 {
		err = fmt.Errorf("it answers %d", code)
	}
	switch {
	case err != nil:
		s.failed = time.Now()
		return apierrors.NewServiceUnavailable("the backend takes no event: " + err.Error())
	case code < 300:
		return nil
	case code == http.StatusNotFound && method == http.MethodPatch:
		return errGone
	}
	var said metav1.Status
	if json.Unmarshal(answer, &said) == nil && said.Code == int32(code) {
		return &apierrors.StatusError{ErrStatus: said}
	}
	return apierrors.NewGenericServerResponse(code, method,
		schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"}, e.Name, "", 0, false)
}
