package status

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/quote"
)

// ProblemType is the media type of problem details.
const ProblemType = "application/problem+json"

// AppendProblem appends the Status as problem details (RFC 9457). Beside the members that the RFC knows they have the
// Status' reason, and all causes as `errors`, each with the field, the reason and the words of the Status' own cause.
func AppendProblem(dst []byte, s *metav1.Status) []byte {
	start := len(dst)
	title := http.StatusText(int(s.Code))
	if title == "" {
		title = string(s.Reason)
	}
	dst = appendMember(dst, "type", "about:blank")
	dst = appendMember(dst, "title", title)
	dst = appendNumber(dst, "status", int64(s.Code))
	dst = appendMember(dst, "detail", s.Message)
	dst = appendMember(dst, "reason", string(s.Reason))
	if d := s.Details; d != nil {
		dst = appendErrors(dst, d.Causes)
		dst = appendNumber(dst, "retryAfterSeconds", int64(d.RetryAfterSeconds))
	}
	return closeObject(dst, start)
}

// appendErrors appends the causes of a problem.
func appendErrors(dst []byte, causes []metav1.StatusCause) []byte {
	if len(causes) == 0 {
		return dst
	}
	dst = append(dst, `,"errors":[`...)
	for i := range causes {
		if i > 0 {
			dst = append(dst, ',')
		}
		c := &causes[i]
		item := len(dst)
		dst = append(dst, `,"detail":`...)
		dst = quote.AppendHTML(dst, c.Message)
		dst = appendMember(dst, "field", c.Field)
		dst = appendMember(dst, "reason", string(c.Type))
		dst = closeObject(dst, item)
	}
	return append(dst, ']')
}
