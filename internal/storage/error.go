package storage

import (
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A BackendError is the Status of an error that the backend answered with, and the header fields of that answer
// that hold for the Status too.
type BackendError struct {
	refusal *status.Error
	kept    [len(keptOfErrors)][]string
}

// keptOfErrors are the header fields by which a backend says what may become of an error's body, which credentials it
// asks for, and, as kube-apiserver does, by which flow schema and priority level it judged the request, and how it
// calls the request in its audit log.
var keptOfErrors = [...]string{
	"Cache-Control", "X-Content-Type-Options", "WWW-Authenticate",
	"X-Kubernetes-PF-FlowSchema-UID", "X-Kubernetes-PF-PriorityLevel-UID", "Audit-Id",
}

// NewBackendError returns the Status of an error that the backend answered with.
func NewBackendError(i *resource.Info, m *message.Response) error {
	var body []byte
	if len(m.Header(headerContentEncoding)) == 0 {
		body = m.Body()
	}
	if m.Status() < 400 {
		return status.BadGateway("the backend answered a read of the stored object with a code that the gateway cannot use")
	}
	return &BackendError{refusal: status.FromBackend(status.ErrorResponse{
		Code:        m.Status(),
		ContentType: string(m.Header(headerContentType)),
		RetryAfter:  string(m.Header(headerRetryAfter)),
		Body:        body,
		Resource:    i.GroupResource(),
		Name:        i.Name,
		Verb:        i.Verb.String(),
	}), kept: keptHeaders(m)}
}

func keptHeaders(m *message.Response) (kept [len(keptOfErrors)][]string) {
	for i, name := range keptOfErrors {
		kept[i] = m.Headers(name)
	}
	return kept
}

// Error implements error.
func (e *BackendError) Error() string { return e.refusal.Error() }

// Unwrap returns the Status.
func (e *BackendError) Unwrap() error { return e.refusal }

// SetHeaders sets the header fields of the backend's answer.
func (e *BackendError) SetHeaders(r *message.Response) {
	for i, values := range e.kept {
		for j, value := range values {
			if j == 0 {
				r.Set(keptOfErrors[i], value)
			} else {
				r.Add(keptOfErrors[i], value)
			}
		}
	}
}
