// Package recorded reads requests that others have recorded: HTTP archives of browsers and proxies, and
// audit logs of Kubernetes.
package recorded

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Request is a request as it was sent, as far as the record says.
type Request struct {
	// Path is the path with the query.
	Method, Path string
	Headers      [][2]string
	ContentType  string
	Body         []byte
	// User is who sent it; empty if the record does not say.
	User   string
	Groups []string
	// Unknown says what the record does not tell; empty if it tells everything.
	Unknown string
}

// har is an HTTP archive, as far as it is read.
type har struct {
	Log struct {
		Entries []struct {
			Request struct {
				Method, URL string
				Headers     []struct{ Name, Value string }
				PostData    *struct{ MimeType, Text, Encoding string }
			}
		}
	}
}

// ownHeaders are not taken over: they are about the connection of the record, or say who asks.
var ownHeaders = map[string]bool{
	"host": true, "connection": true, "content-length": true, "transfer-encoding": true, "accept-encoding": true, "content-type": true,
	"upgrade": true, "keep-alive": true, "te": true, "trailer": true, "expect": true, "proxy-connection": true, "x-admission-explain": true,
	"accept": true, "forwarded": true, "via": true,
}

func isOwn(name string) bool {
	name = strings.ToLower(name)
	return ownHeaders[name] || strings.HasPrefix(name, ":") || strings.HasPrefix(name, "x-remote-") ||
		strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "impersonate-")
}

// HAR returns the entry of an HTTP archive with the number, from 1.
func HAR(data []byte, entry int) (*Request, error) {
	var archive har
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &archive); err != nil {
		return nil, fmt.Errorf("must be an HTTP archive: %w", err)
	}
	entries := archive.Log.Entries
	switch {
	case len(entries) == 0:
		return nil, errors.New("must be an HTTP archive with entries")
	case entry < 1 || entry > len(entries):
		return nil, fmt.Errorf("has the entries 1 to %d, and not %d", len(entries), entry)
	}
	from := &entries[entry-1].Request
	target, err := url.Parse(from.URL)
	if err != nil || from.Method == "" {
		return nil, fmt.Errorf("the entry %d has no method, or no URL that can be read", entry)
	}
	r := &Request{Method: from.Method, Path: target.RequestURI()}
	for _, h := range from.Headers {
		if strings.EqualFold(h.Name, "content-type") {
			r.ContentType = h.Value
		}
		if !isOwn(h.Name) {
			r.Headers = append(r.Headers, [2]string{h.Name, h.Value})
		}
	}
	if body := from.PostData; body != nil {
		if r.ContentType == "" {
			r.ContentType = body.MimeType
		}
		r.Body = []byte(body.Text)
		if body.Encoding == "base64" {
			if r.Body, err = base64.StdEncoding.DecodeString(body.Text); err != nil {
				return nil, fmt.Errorf("the body of the entry %d is no base64: %w", entry, err)
			}
		}
	}
	return r, nil
}

// event is an event of audit.k8s.io, as far as it is read.
type event struct {
	AuditID, Level, Stage, Verb, RequestURI string
	User                                    struct {
		Username string
		Groups   []string
	}
	ImpersonatedUser *struct {
		Username string
		Groups   []string
	}
	RequestObject json.RawMessage
}

// maxEvent bounds an event of an audit log, in bytes.
const maxEvent = 16 << 20

// Audit returns the request of an event in an audit log, which has an event a line: the one with the id,
// or else the first one that has an object.
func Audit(log io.Reader, id string) (*Request, error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxEvent)
	known := false
	for lines.Scan() {
		var e event
		if len(bytes.TrimSpace(lines.Bytes())) == 0 || json.Unmarshal(lines.Bytes(), &e) != nil || e.RequestURI == "" {
			continue
		}
		if id != "" && e.AuditID != id {
			continue
		}
		known = true
		if len(e.RequestObject) == 0 && resource.VerbNamed(e.Verb).HasBody() {
			continue // another event of the request may have it
		}
		if id == "" && len(e.RequestObject) == 0 {
			continue
		}
		return requestOf(&e)
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case known:
		return nil, errors.New("has no event with a requestObject: the audit Policy must record the level Request or RequestResponse")
	case id != "":
		return nil, fmt.Errorf("has no event with the id '%s'", id)
	}
	return nil, errors.New("must have events of audit.k8s.io, one a line")
}

func requestOf(e *event) (*Request, error) {
	verb := resource.VerbNamed(e.Verb)
	if !verb.OfResource() {
		return nil, fmt.Errorf("the event '%s' has the verb '%s', which is none of the API's", e.AuditID, e.Verb)
	}
	r := &Request{Method: verb.Method(), Path: e.RequestURI, User: e.User.Username, Groups: e.User.Groups}
	if i := e.ImpersonatedUser; i != nil {
		r.User, r.Groups = i.Username, i.Groups
	}
	if len(e.RequestObject) > 0 && string(e.RequestObject) != "null" {
		r.Body, r.ContentType = e.RequestObject, "application/json"
	}
	if verb == resource.VerbPatch {
		r.ContentType = "application/merge-patch+json"
		if bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("[")) {
			r.ContentType = "application/json-patch+json"
		} else {
			r.Unknown = "an audit event does not say the type of a patch: it is taken for a merge patch"
		}
	}
	return r, nil
}
