// Package status is the one place where the gateway's errors get their form: a Kubernetes Status
// with a reason, a code and a sentence that says what to do (ERR-1, ERR-2).
package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Error is the error type of every step of a request: a Status that can be written as it is.
type Error = apierrors.StatusError

// failure builds a Status of the given code and reason.
func failure(code int, reason metav1.StatusReason, message string) *Error {
	return &Error{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	}}
}

// of completes a Status that a constructor of apimachinery built, which leaves kind and apiVersion out.
func of(e *Error) *Error {
	e.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return e
}

// retry sets after how many seconds the client may try again.
func retry(e *Error, seconds int) *Error {
	if e.ErrStatus.Details == nil {
		e.ErrStatus.Details = &metav1.StatusDetails{}
	}
	e.ErrStatus.Details.RetryAfterSeconds = int32(seconds)
	return e
}

// BadRequest is 400 for a request that can never be understood as it is.
func BadRequest(format string, args ...any) *Error {
	return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...))
}

// Unauthorized is 401 for a request whose client is not known and must be.
func Unauthorized(message string) *Error {
	return failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, message)
}

// Forbidden is 403: `gr "name" is forbidden: why`.
func Forbidden(gr schema.GroupResource, name, why string) *Error {
	return of(apierrors.NewForbidden(gr, name, errors.New(why)))
}

// NotFound is 404: `gr "name" not found`.
func NotFound(gr schema.GroupResource, name string) *Error {
	return of(apierrors.NewNotFound(gr, name))
}

// NoSuchPath is 404 for a path that names no resource.
func NoSuchPath(format string, args ...any) *Error {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf(format, args...))
}

// MethodNotAllowed is 405: `verb is not supported on resources of kind "gr"`.
func MethodNotAllowed(gr schema.GroupResource, verb string) *Error {
	return of(apierrors.NewMethodNotSupported(gr, verb))
}

// MethodNotAllowedf is 405 with the given message, for paths that are no resource.
func MethodNotAllowedf(format string, args ...any) *Error {
	return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, fmt.Sprintf(format, args...))
}

// NotAcceptable is 406 for an answer that the client's Accept header rules out.
func NotAcceptable(message string) *Error {
	return failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}

// AlreadyExists is 409 for a create of a name that is taken.
func AlreadyExists(gr schema.GroupResource, name string) *Error {
	return of(apierrors.NewAlreadyExists(gr, name))
}

// GenerateNameConflict is 409 for a generateName whose every try was taken; after the seconds fresh names are tried
// (META-3).
func GenerateNameConflict(gr schema.GroupResource, name string, seconds int) *Error {
	return of(apierrors.NewGenerateNameConflict(gr, name, seconds))
}

// Conflict is 409 for a write against a version that is no longer the stored one.
func Conflict(gr schema.GroupResource, name, why string) *Error {
	return of(apierrors.NewConflict(gr, name, errors.New(why)))
}

// PreconditionFailed is 412 for a request that names another state of the object than the stored one.
func PreconditionFailed(gr schema.GroupResource, name, why string) *Error {
	e := Conflict(gr, name, why)
	e.ErrStatus.Code = http.StatusPreconditionFailed
	return e
}

// ModifiedMessage is Kubernetes' message of a Conflict when another writer was first.
const ModifiedMessage = "the object has been modified; please apply your changes to the latest version and try again"

// Expired is 410 for a resourceVersion or a continue token that is too old: a fresh list helps.
func Expired(format string, args ...any) *Error {
	return failure(http.StatusGone, metav1.StatusReasonExpired, fmt.Sprintf(format, args...))
}

// RequestEntityTooLarge is 413 for a body, or a count inside one, over its limit.
func RequestEntityTooLarge(format string, args ...any) *Error {
	return failure(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		fmt.Sprintf(format, args...))
}

// UnsupportedMediaType is 415 in Kubernetes' sentence, with the media types that are read here.
func UnsupportedMediaType(accepted string) *Error {
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+accepted)
}

// UnsupportedEncoding is 415 for a Content-Encoding that is not read here; accepted lists the ones that are.
func UnsupportedEncoding(encoding, accepted string) *Error {
	message := fmt.Sprintf("the body must not be encoded: Content-Encoding '%s' is not supported", encoding)
	if accepted != "" {
		message = fmt.Sprintf("the body must be encoded in one of %s, or not at all: Content-Encoding '%s' is not supported", accepted, encoding)
	}
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, message)
}

// UnusableForm is 415 for a form that the gateway would have to change.
func UnusableForm(why string) *Error {
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body must be JSON: "+why+", and what is no JSON is sent on as it is")
}

// TooManyRequests is 429; seconds, at least 1, is the time after which this very request can succeed (ERR-3).
func TooManyRequests(message string, seconds int) *Error {
	return retry(failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message), max(seconds, 1))
}

// Internal is 500 for a fault of the gateway or of its configuration; why is shown to the client.
func Internal(format string, args ...any) *Error {
	return of(apierrors.NewInternalError(fmt.Errorf(format, args...)))
}

// BadGateway is 502 with the reason InternalError, as Kubernetes' own clients name any answer over 500 that they cannot
// read.
func BadGateway(message string) *Error {
	return failure(http.StatusBadGateway, metav1.StatusReasonInternalError, message)
}

// ServiceUnavailable is 503: the backend is down or the gateway drains (ERR-4).
func ServiceUnavailable(message string, seconds int) *Error {
	return retry(failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message), seconds)
}

// Timeout is 504: the backend was too slow (ERR-4).
func Timeout(message string, seconds int) *Error {
	return retry(failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, message), seconds)
}

// ClientClosedRequest is the code of a request whose client has left before it was answered, as nginx has it. No client
// gets it but one that has closed only its own end of the connection.
const ClientClosedRequest = 499

// reasonClientLeft is the reason of ClientClosedRequest, for which the conventions name none.
const reasonClientLeft metav1.StatusReason = "ClientClosedRequest"

// ClientLeft is 499.
func ClientLeft() *Error {
	return failure(ClientClosedRequest, reasonClientLeft,
		"the client closed the connection, or its end of it, before the answer")
}

// Coded is an error whose code has no constructor of its own, such as 408 or 505; the reason follows the code.
func Coded(code int, message string) *Error {
	return failure(code, ReasonOf(code), message)
}

// ReasonOf gives the reason that belongs to an HTTP code (ERR-2). Codes for which the conventions name none get the
// reason with the same advice to the client: BadRequest (fix the request) for 4xx, 501 and 505, and InternalError for
// other 5xx.
func ReasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusMethodNotAllowed:
		return metav1.StatusReasonMethodNotAllowed
	case http.StatusNotAcceptable:
		return metav1.StatusReasonNotAcceptable
	case http.StatusConflict, http.StatusPreconditionFailed:
		return metav1.StatusReasonConflict
	case http.StatusGone:
		return metav1.StatusReasonGone
	case ClientClosedRequest:
		return reasonClientLeft
	case http.StatusRequestEntityTooLarge:
		return metav1.StatusReasonRequestEntityTooLarge
	case http.StatusUnsupportedMediaType:
		return metav1.StatusReasonUnsupportedMediaType
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return metav1.StatusReasonBadRequest
	}
	switch {
	case code >= 500:
		return metav1.StatusReasonInternalError
	case code >= 400:
		return metav1.StatusReasonBadRequest
	}
	return metav1.StatusReasonUnknown
}

// Deleted is the Status of a DELETE that succeeded (RW-4).
func Deleted(gr schema.GroupResource, name string, uid types.UID) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: name, Group: gr.Group, Kind: gr.Resource, UID: uid},
	}
}

// From gives the Status of an error, which must not be nil. Errors that carry a Status keep it, wrapped ones too, and a
// deadline becomes 504. Any other error becomes a 500 that does not show its text, which may name internals.
func From(err error) *Error {
	if e, is := errors.AsType[*Error](err); is {
		return e
	}
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		return of(&Error{ErrStatus: s.Status()})
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Timeout("the request did not complete within its deadline", 1)
	}
	return Internal("the gateway failed to handle the request; its log has the cause")
}
