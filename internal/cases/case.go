// Package cases reads recorded answers of real API servers and plays them against the gateway: the
// requests of a case go out byte for byte, and the answer is compared with the real server's,
// aspect by aspect. It supports tests only; nothing that ships imports it.
package cases

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
)

// A Case is one recorded exchange with a real API server: what it had to know, what it was asked, what it answered.
type Case struct {
	ID     string `json:"id"`
	Source string `json:"source"`

	// PolicyFiles are files and directories relative to the suites' folder; PolicyObjects are policies in place.
	PolicyFiles   []string          `json:"policyFiles"`
	PolicyObjects []json.RawMessage `json:"policyObjects"`

	// Namespaces have to exist before the case starts: name to labels.
	Namespaces map[string]map[string]string `json:"namespaces"`

	// Setup requests come before Request and are not judged; Follow requests come after it and are.
	Setup   []Request `json:"setup"`
	Request Request   `json:"request"`
	Follow  []Request `json:"follow"`

	Expect Response `json:"expect"`
	// ExpectKube is the full Kubernetes API server's answer if it differs from Expect; nil if it
	// does not.
	ExpectKube *Response `json:"expectKube"`
	// Oracle names the server that gave Expect.
	Oracle string `json:"oracle"`
	Note   string `json:"note"`
	// OrderUnstable marks an answer whose causes come in random order.
	OrderUnstable bool `json:"orderUnstable"`
}

// A Request is sent as it stands: Path is the raw request target, never cleaned. $RV and $UID in Path and body stand
// for the resource version and the uid in the answer before.
type Request struct {
	Method      string            `json:"method"`
	Path        string            `json:"path"`
	ContentType string            `json:"contentType"`
	Headers     map[string]string `json:"headers"`
	User        *User             `json:"user"`

	// At most one of the three is set; without any the request has no body.
	Body          json.RawMessage `json:"body"`
	RawBody       *string         `json:"rawBody"`
	RawBodyBase64 *string         `json:"rawBodyBase64"`
}

// A User is the sender of a request.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
}

// A Response is a recorded or received response.
type Response struct {
	// Code is the HTTP status; 0 means that the connection was closed without an answer.
	Code        int      `json:"code"`
	ContentType string   `json:"contentType"`
	Warnings    []string `json:"warnings"` // values of the Warning headers

	// Reason, Message and Causes come from a Status that reports a failure; Reason is nil in any
	// other answer.
	Reason  *string `json:"reason"`
	Message string  `json:"message"`
	Causes  []Cause `json:"causes"`

	// Object is the body of any other JSON answer. Recorded objects lack the metadata that differs from run to run.
	Object json.RawMessage `json:"object"`
	// RawBody is the body of an answer that is not JSON.
	RawBody *string `json:"rawBody"`

	// Follow are the recorded answers to the Follow requests.
	Follow []Response `json:"follow"`
}

// A Cause is one entry of a Status' details.causes.
type Cause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Field   string `json:"field"`
}

// body returns the bytes to send and whether there are any.
func (r *Request) body() ([]byte, bool, error) {
	switch {
	case r.Body != nil:
		return r.Body, true, nil
	case r.RawBody != nil:
		return []byte(*r.RawBody), true, nil
	case r.RawBodyBase64 != nil:
		b, err := base64.StdEncoding.DecodeString(*r.RawBodyBase64)
		return b, true, err
	}
	return nil, false, nil
}

// Read returns the cases of a file with one JSON object a line. An error names the file and the line.
func Read(file string) (_ []Case, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	var all []Case
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if c.ID == "" || seen[c.ID] {
			return nil, fmt.Errorf("%s:%d: the case's id %q is missing or not unique", file, n, c.ID)
		}
		seen[c.ID] = true
		all = append(all, c)
	}
	return all, lines.Err()
}
