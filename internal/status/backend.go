package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxBackendText bounds how much of a backend's own error text a Status repeats, in bytes.
const maxBackendText = 1024

// ReasonOf gives the reason that the conventions pair with an HTTP code, or Unknown ("") where they name none (ERR-2).
func ReasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusBadRequest:
		return metav1.StatusReasonBadRequest
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
	}
	switch {
	case code >= 500:
		return metav1.StatusReasonInternalError
	case code >= 400:
		return metav1.StatusReasonBadRequest
	}
	return metav1.StatusReasonUnknown
}

// IsStatus tells whether a backend's JSON answer is a Status already, which is then passed on as it came.
func IsStatus(body []byte) bool {
	var head struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	return len(bytes.TrimSpace(body)) > 0 && json.Unmarshal(body, &head) == nil && head.Kind == "Status" && head.APIVersion == "v1"
}

// BackendAnswer is what of a backend's error answer its Status is made from.
type BackendAnswer struct {
	Code        int
	ContentType string
	RetryAfter  string // the header as it came
	Body        []byte // may be cut
	Resource    schema.GroupResource
	Name        string
	Verb        string
}

// FromBackend makes a Status of an error answer that is none, keeping its code and, if it is plain text, its words (ERR-1, ERR-5).
func FromBackend(a BackendAnswer) *Error {
	code := a.Code
	if code == http.StatusPreconditionFailed {
		// Kubernetes knows no 412: a version that is not the current one is a Conflict.
		code = http.StatusConflict
	}
	e := failure(code, ReasonOf(code), backendMessage(a, code))
	e.ErrStatus.Details = &metav1.StatusDetails{Group: a.Resource.Group, Kind: a.Resource.Resource, Name: a.Name}
	if code == http.StatusConflict && a.Verb == "create" {
		e.ErrStatus.Reason = metav1.StatusReasonAlreadyExists
	}
	if s, err := strconv.Atoi(strings.TrimSpace(a.RetryAfter)); err == nil && s > 0 && s < 1<<31 {
		e.ErrStatus.Details.RetryAfterSeconds = int32(s)
	}
	return e
}

// backendMessage keeps Kubernetes' own sentence where the code has one and adds what the backend said in plain text.
func backendMessage(a BackendAnswer, code int) string {
	said := plainText(a.ContentType, a.Body)
	known := a.Resource.Resource != "" && a.Name != ""
	switch {
	case code == http.StatusNotFound && known:
		return fmt.Sprintf("%s %q not found", a.Resource.String(), a.Name)
	case code == http.StatusConflict && known && a.Verb == "create":
		return fmt.Sprintf("%s %q already exists", a.Resource.String(), a.Name)
	case code == http.StatusConflict && known:
		return fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", a.Resource.String(), a.Name, ModifiedMessage)
	case said != "":
		return said
	case http.StatusText(a.Code) != "":
		return fmt.Sprintf("the backend answered %d %s", a.Code, http.StatusText(a.Code))
	}
	return fmt.Sprintf("the backend answered %d", a.Code)
}

// plainText gives a text answer as one line of bounded length; markup, JSON and binary answers give none.
func plainText(contentType string, body []byte) string {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	if media = strings.TrimSpace(media); media != "" && media != "text/plain" {
		return ""
	}
	text := strings.Join(strings.Fields(string(body[:min(len(body), maxBackendText)])), " ")
	for len(text) > 0 && !utf8.ValidString(text) && len(body) > maxBackendText {
		text = text[:len(text)-1]
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.HasPrefix(text, "<") {
		return ""
	}
	return text
}
