// Package recorded reads requests that others have recorded: HTTP archives (HAR) of browsers and
// proxies, and audit logs of Kubernetes. What it returns is what the gateway would see of such a
// request from a client that it has no reason to trust: header lines by which only a proxy could
// name the user, or the client's address, are left out.
package recorded

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A Request is a request as it was sent, as far as the record says.
type Request struct {
	// Method is empty for the event of a verb that the API does not have. Target is the path with
	// the query.
	Method, Target string
	// Origin is the scheme and the host that the request was sent to; empty if the record does not say.
	Origin string
	// Headers has neither Content-Type nor lines about the connection.
	Headers     [][2]string
	ContentType string
	Body        []byte // nil if there is none
	// User is who sent it; nil if the record does not say.
	User *identity.User
	// Old is the stored object before the request, and Answer the JSON of the answer, in an audit log
	// only an object; nil if they are not known.
	Old, Answer []byte
	// AnswerType is the media type of the answer; empty if the record does not say.
	AnswerType string
	// Code is the answer's; 0 if it is not known.
	Code int
	// AuditID, Stage and Verb say which event of an audit log it is of; they are empty for other
	// records.
	AuditID, Stage, Verb string
	// Unknown says what the record leaves open and was assumed; empty for nothing.
	Unknown string
}

// ownHeaders are not taken over: they belong to the connection of the record, or name the user.
var ownHeaders = map[string]bool{
	"host": true, "connection": true, "content-length": true, "transfer-encoding": true, "accept-encoding": true,
	"content-type": true,
	"upgrade":      true, "keep-alive": true, "te": true, "trailer": true, "expect": true, "proxy-connection": true,
	"x-admission-explain": true,
	"accept":              true, "forwarded": true, "via": true,
}

func isOwn(name string) bool {
	name = strings.ToLower(name)
	return ownHeaders[name] || strings.HasPrefix(name, ":") || strings.HasPrefix(name, "x-remote-") ||
		strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "impersonate-")
}

// Entry reads an entry of an HTTP archive. A *document.Error means that it is no JSON, or exceeds the limits.
func Entry(text []byte, limits document.Limits) (*Request, error) {
	d, err := document.Parse(text, limits)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	sent, answer := member(d.Root(), "request"), member(d.Root(), "response")
	r := &Request{Method: textOf(member(sent, "method")), Code: codeOf(member(answer, "status"))}
	address := textOf(member(sent, "url"))
	target, err := url.Parse(address)
	if err != nil || address == "" || r.Method == "" {
		return nil, errors.New("the entry has no method, or no URL that can be read")
	}
	r.Target = target.RequestURI()
	if target.Host != "" {
		r.Origin = target.Scheme + "://" + target.Host
	}
	each(member(sent, "headers"), func(h document.Node) {
		switch name, value := textOf(member(h, "name")), textOf(member(h, "value")); {
		case strings.EqualFold(name, "content-type"):
			r.ContentType = value
		case !isOwn(name):
			r.Headers = append(r.Headers, [2]string{name, value})
		}
	})
	body := member(sent, "postData")
	if r.ContentType == "" {
		r.ContentType = textOf(member(body, "mimeType"))
	}
	if s := textOf(member(body, "text")); s != "" {
		r.Body = []byte(s)
	}
	if textOf(member(body, "encoding")) == "base64" {
		if r.Body, err = base64.StdEncoding.DecodeString(string(r.Body)); err != nil {
			return nil, fmt.Errorf("the body of the entry is no base64: %w", err)
		}
	}
	content := member(answer, "content")
	r.AnswerType = textOf(member(content, "mimeType"))
	if text := textOf(member(content, "text")); text != "" && IsJSON(r.AnswerType) {
		r.Answer = []byte(text)
		if textOf(member(content, "encoding")) == "base64" {
			if r.Answer, err = base64.StdEncoding.DecodeString(text); err != nil {
				r.Answer = nil // an answer that cannot be read is as one that is not known
			}
		}
	}
	return r, nil
}

// IsJSON reports whether a media type is one of JSON.
func IsJSON(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// entriesOf returns the entries of an HTTP archive.
func entriesOf(data []byte) ([]json.RawMessage, error) {
	var archive struct {
		Log struct{ Entries []json.RawMessage }
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &archive); err != nil {
		return nil, fmt.Errorf("must be an HTTP archive: %w", err)
	}
	if len(archive.Log.Entries) == 0 {
		return nil, errors.New("must be an HTTP archive with entries")
	}
	return archive.Log.Entries, nil
}

// Archive returns the entries of an HTTP archive that can be used, and how many cannot.
func Archive(data []byte) (all []*Request, unusable int, err error) {
	entries, err := entriesOf(data)
	if err != nil {
		return nil, 0, err
	}
	for _, text := range entries {
		if r, err := Entry(text, single); err == nil {
			all = append(all, r)
		} else {
			unusable++
		}
	}
	return all, unusable, nil
}

// HAR returns the entry of an HTTP archive with the number, from 1.
func HAR(data []byte, entry int) (*Request, error) {
	entries, err := entriesOf(data)
	switch {
	case err != nil:
		return nil, err
	case entry < 1 || entry > len(entries):
		return nil, fmt.Errorf("has the entries 1 to %d, and not %d", len(entries), entry)
	}
	r, err := Entry(entries[entry-1], single)
	if err != nil {
		return nil, fmt.Errorf("the entry %d cannot be used: %w", entry, err)
	}
	return r, nil
}

// maxRecord bounds one entry or event that is looked for, in bytes.
const maxRecord = 16 << 20

// single are the limits of one entry or event.
var single = document.Limits{Bytes: maxRecord, Nodes: maxRecord, Depth: document.DefaultDepth}

// errNoEvent is the error of JSON that is not an event.
var errNoEvent = errors.New("it is no audit event")

// Event reads an event of an audit log (audit.k8s.io). A *document.Error means that it is no JSON, or exceeds the
// limits.
func Event(text []byte, limits document.Limits) (*Request, error) {
	d, err := document.Parse(text, limits)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	root := d.Root()
	if textOf(member(root, "kind")) != "Event" {
		return nil, errNoEvent
	}
	r := &Request{
		Target: textOf(member(root, "requestURI")), Code: codeOf(member(member(root, "responseStatus"), "code")),
		AuditID: textOf(member(root, "auditID")), Stage: textOf(member(root, "stage")),
		Verb: textOf(member(root, "verb")),
	}
	if r.Target == "" {
		return nil, errors.New("the event has no requestURI")
	}
	if verb := resource.VerbNamed(r.Verb); verb.OfResource() {
		r.Method = verb.Method()
	}
	if r.User = userOf(member(root, "impersonatedUser")); r.User == nil {
		r.User = userOf(member(root, "user"))
	}
	if sent := member(root, "requestObject"); sent.Valid() && sent.Kind() != document.Null {
		r.Body, r.ContentType = sent.AppendRaw(nil), "application/json"
	}
	if r.Method == http.MethodPatch {
		r.ContentType = "application/merge-patch+json"
		if bytes.HasPrefix(r.Body, []byte("[")) {
			r.ContentType = "application/json-patch+json"
		} else {
			r.Unknown = "an audit event does not say the type of a patch: it is taken for a merge patch"
		}
	}
	if old := member(root, "oldObject"); old.Kind() == document.Object { // of gateways and webhooks that note it
		r.Old = old.AppendRaw(nil)
	}
	if answer := member(root, "responseObject"); answer.Kind() == document.Object &&
		!member(answer, "kind").Is("Status") {
		r.Answer = answer.AppendRaw(nil)
	}
	return r, nil
}

// Audit returns the request of an event in an audit log, which has an event a line: the one with the id, or else the
// first one that has an object.
func Audit(log io.Reader, id string) (*Request, error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxRecord)
	known := false
	for lines.Scan() {
		r, err := Event(lines.Bytes(), single)
		if err != nil || id != "" && r.AuditID != id {
			continue
		}
		known = true
		if len(r.Body) == 0 && (id == "" || r.sends()) {
			continue // another event of the request may have it
		}
		if r.Method == "" {
			return nil, fmt.Errorf("the event '%s' has the verb '%s', which is none of the API's", r.AuditID, r.Verb)
		}
		return r, nil
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

// Changes reports whether the request changes an object that is stored already, unless a PUT
// creates it.
func (r *Request) Changes() bool {
	return r.Method == http.MethodPut || r.Method == http.MethodPatch || r.Method == http.MethodDelete
}

// sends reports whether the request has a body that an event may leave out.
func (r *Request) sends() bool {
	return r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch
}

// userOf reads a user of an event; nil if it has no name.
func userOf(n document.Node) *identity.User {
	name := textOf(member(n, "username"))
	if name == "" {
		return nil
	}
	u := &identity.User{Name: name, UID: textOf(member(n, "uid")), Groups: textsOf(member(n, "groups"))}
	if extra := member(n, "extra"); extra.Kind() == document.Object {
		u.Extra = map[string][]string{}
		for m := extra.First(); m.Valid(); m = m.Next() {
			u.Extra[strings.Clone(m.Key())] = textsOf(m)
		}
	}
	return u
}

// member returns a member of an object; an invalid node if there is none.
func member(n document.Node, key string) document.Node {
	m, _ := n.Get(key)
	return m
}

// textOf returns a string of its own; empty if the node is not one.
func textOf(n document.Node) string {
	if n.Kind() != document.String {
		return ""
	}
	return strings.Clone(n.Str())
}

// textsOf returns the strings of a list.
func textsOf(list document.Node) (all []string) {
	each(list, func(n document.Node) {
		if n.Kind() == document.String {
			all = append(all, strings.Clone(n.Str()))
		}
	})
	return all
}

// codeOf returns the code of an answer; 0 if the node is not one.
func codeOf(n document.Node) int {
	if n.Kind() != document.Number {
		return 0
	}
	code, _ := n.Int64()
	return int(code)
}

func each(list document.Node, f func(document.Node)) {
	if list.Kind() != document.Array {
		return
	}
	for n := list.First(); n.Valid(); n = n.Next() {
		f(n)
	}
}
