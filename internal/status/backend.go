package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxBackendText is how many bytes of a backend's own words a Status repeats.
const maxBackendText = 1024

// ErrorResponse has the parts of a backend's error answer from which its Status is made.
type ErrorResponse struct {
	Code        int
	ContentType string
	RetryAfter  string // the header as it was received: seconds or a date
	Body        []byte // may be cut
	Resource    schema.GroupResource
	Name        string
	Verb        string
	Now         time.Time // what a date in RetryAfter is compared with; zero means time.Now()
}

// FromBackend makes a Status of a backend's error answer, keeping its code and what it says (ERR-1,
// ERR-5): its text is the message if Kubernetes has no sentence of its own for the code, and a
// cause of reason UnexpectedServerResponse in any case. Of JSON the usual members for a message are
// read, of an HTML page its title. An answer that is a Status under another media type is taken as
// it is; IsStatus finds answers that need no change at all.
func FromBackend(a ErrorResponse) *Error {
	if a.Code < 400 || a.Code > 599 {
		return BadGateway(fmt.Sprintf("the backend answered with the code %d, which is no error code of HTTP", a.Code))
	}
	members := jsonObject(a.Body)
	if isStatus(members) {
		var s metav1.Status
		if json.Unmarshal(a.Body, &s) == nil {
			s.Code = int32(a.Code)
			return &Error{ErrStatus: s}
		}
	}
	code := a.Code
	if code == http.StatusPreconditionFailed {
		// Kubernetes knows no 412: a version that is not the current one is a Conflict.
		code = http.StatusConflict
	}
	said := backendText(a.ContentType, a.Body, members)
	e := failure(code, ReasonOf(code), backendMessage(a, code, said))
	if code == http.StatusConflict && a.Verb == "create" {
		e.ErrStatus.Reason = metav1.StatusReasonAlreadyExists
	}
	d := metav1.StatusDetails{Group: a.Resource.Group, Kind: a.Resource.Resource, Name: a.Name}
	d.RetryAfterSeconds = retryAfter(a.RetryAfter, a.Now)
	if said != "" {
		d.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Message: said}}
	}
	e.ErrStatus.Details = &d
	return e
}

// backendMessage is Kubernetes' own sentence if the code has one, else what the backend said.
func backendMessage(a ErrorResponse, code int, said string) string {
	known := a.Resource.Resource != "" && a.Name != ""
	switch {
	case code == http.StatusNotFound && known:
		return NotFound(a.Resource, a.Name).ErrStatus.Message
	case code == http.StatusConflict && known && a.Verb == "create":
		return AlreadyExists(a.Resource, a.Name).ErrStatus.Message
	case code == http.StatusConflict && known:
		return Conflict(a.Resource, a.Name, ModifiedMessage).ErrStatus.Message
	case said != "":
		return said
	case http.StatusText(a.Code) != "":
		return fmt.Sprintf("the backend answered %d %s", a.Code, http.StatusText(a.Code))
	}
	return fmt.Sprintf("the backend answered %d", a.Code)
}

// backendText returns the backend's message as one line of bounded length, or "" if its answer has none.
func backendText(contentType string, body []byte, members map[string]json.RawMessage) string {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	markup := bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
	switch {
	case members != nil:
		return oneLine(jsonMessage(members))
	case markup:
		return oneLine(htmlTitle(body))
	case mediaType == "text/plain" || mediaType == "":
		text := body[:min(len(body), 4*maxBackendText)]
		if bytes.IndexByte(text, 0) >= 0 {
			return "" // binary
		}
		return oneLine(string(text))
	}
	return ""
}

// IsStatus reports whether a backend's JSON answer is a Status already, which is then passed on
// unchanged.
func IsStatus(body []byte) bool { return isStatus(jsonObject(body)) }

// jsonObject returns the members of a body that is one JSON object, else nil.
func jsonObject(body []byte) map[string]json.RawMessage {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	return members
}

// isStatus reports whether the members make a failure Status that a client can use without knowing
// the HTTP answer around it.
func isStatus(members map[string]json.RawMessage) bool {
	return jsonString(members["kind"]) == "Status" && jsonString(members["apiVersion"]) == "v1" &&
		jsonString(members["status"]) == metav1.StatusFailure
}

func jsonString(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// jsonMessage finds the sentence in the error formats in common use: RFC 9457
// (detail, title), and message or error, the latter also as an object.
func jsonMessage(members map[string]json.RawMessage) string {
	for _, key := range [...]string{"message", "detail", "error_description", "error", "title"} {
		raw, ok := members[key]
		if !ok {
			continue
		}
		if s := jsonString(raw); s != "" {
			return s
		}
		if inner := jsonObject(raw); inner != nil {
			if s := jsonString(inner["message"]); s != "" {
				return s
			}
		}
	}
	return ""
}

func htmlTitle(body []byte) string {
	body = body[:min(len(body), 8*maxBackendText)]
	lower := bytes.ToLower(body)
	if len(lower) != len(body) {
		return "" // offsets in lower are not offsets in body
	}
	_, rest, found := bytes.Cut(lower, []byte("<title>"))
	if !found {
		return ""
	}
	start := len(lower) - len(rest)
	end := bytes.Index(rest, []byte("</title>"))
	if end < 0 {
		return ""
	}
	return html.UnescapeString(string(body[start : start+end]))
}

// oneLine makes a bounded line of a text: white space and control characters
// become single spaces, invalid UTF-8 is marked.
func oneLine(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = b.Len() > 0
			continue
		}
		if b.Len()+utf8.UTFMax >= maxBackendText {
			b.WriteString("...")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// retryAfter reads a Retry-After header: whole seconds, at least 1 if a time is given, and 0 if
// there is none that can be read.
func retryAfter(header string, now time.Time) int32 {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0
	}
	const most = 1<<31 - 1
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return int32(max(seconds, 1))
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	if now.IsZero() {
		now = time.Now()
	}
	wait := at.Sub(now)
	return int32(min(max((wait+time.Second-1)/time.Second, 1), most))
}
