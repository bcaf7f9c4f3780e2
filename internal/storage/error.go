package storage

import (
	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/status"
)

// A BackendError is the Status of an error that the backend answered with, and the header fields of that answer
// that hold for the Status too.
type BackendError struct {
	refusal *status.Error
	kept    [len(keptOfErrors)]string
}

// keptOfErrors are the header fields by which a backend says what may become of an error's body.
var keptOfErrors = [...]string{"Cache-Control", "X-Content-Type-Options"}

func keptHeaders(m *http1.Response) (kept [len(keptOfErrors)]string) {
	for i, name := range keptOfErrors {
		kept[i] = string(m.Header(name))
	}
	return kept
}

// Error implements error.
func (e *BackendError) Error() string { return e.refusal.Error() }

// Unwrap returns the Status.
func (e *BackendError) Unwrap() error { return e.refusal }

// SetHeaders sets the header fields of the backend's answer.
func (e *BackendError) SetHeaders(r *http1.Response) {
	for i, value := range e.kept {
		if value != "" {
			r.Set(keptOfErrors[i], value)
		}
	}
}
