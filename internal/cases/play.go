package cases

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// A Player sends cases to a server. Requests are written by hand, one connection each: the recorded targets, methods
// and bodies are often what an HTTP client library would refuse or clean.
type Player struct {
	Address string        // host:port of the server
	Timeout time.Duration // for one request; 0 is 10 s
	// Identify returns the headers that make the server see the user; nil sends requests without a
	// user.
	Identify func(User) []Header
	// As is the user of the requests that name none; nil for no user.
	As *User
}

// A Header is one header line.
type Header struct{ Name, Value string }

// maxAnswer bounds the answers that a Player reads, in bytes.
const maxAnswer = 16 << 20

// Play makes the namespaces of the case, sends its setup requests, its request and the ones that follow, and compares
// the answers with the recorded ones. An error means that a request could not be sent, not that an answer is wrong.
func (p *Player) Play(c *Case) (*Result, error) {
	s := session{player: p}
	for _, name := range sortedKeys(c.Namespaces) {
		body, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name, "labels": c.Namespaces[name]},
		})
		if err != nil {
			return nil, err
		}
		r := Request{Method: http.MethodPost, Path: "/api/v1/namespaces", ContentType: "application/json", Body: body}
		if _, err := s.send(&r); err != nil {
			return nil, fmt.Errorf("%s: namespace %s: %w", c.ID, name, err)
		}
	}
	result := &Result{Case: c}
	for i := range c.Setup {
		got, err := s.send(&c.Setup[i])
		if err != nil {
			return nil, fmt.Errorf("%s: setup %d: %w", c.ID, i, err)
		}
		result.Setup = append(result.Setup, *got)
	}
	got, err := s.send(&c.Request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ID, err)
	}
	result.Got = *got
	for i := range c.Follow {
		got, err := s.send(&c.Follow[i])
		if err != nil {
			return nil, fmt.Errorf("%s: follow %d: %w", c.ID, i, err)
		}
		result.Got.Follow = append(result.Got.Follow, *got)
	}
	result.compare()
	return result, nil
}

// A session is the course of one case: what the last answer said about the object's version and uid.
type session struct {
	player               *Player
	resourceVersion, uid string
}

// send sends one request and reads its answer. A connection closed without an answer is an Answer with code 0.
func (s *session) send(r *Request) (_ *Response, err error) {
	head, body, err := s.render(r)
	if err != nil {
		return nil, err
	}
	timeout := s.player.Timeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	conn, err := net.DialTimeout("tcp", s.player.Address, timeout)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	// A server may refuse a request by its head and close: a failed write is no failure while an answer can be read.
	_, writeErr := conn.Write(append(head, body...))
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.Method})
	if err != nil {
		var timedOut net.Error
		if errors.As(err, &timedOut) && timedOut.Timeout() {
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && writeErr == nil && !isReset(err) {
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
		}
		return &Response{}, nil
	}
	defer func() {
		if e := response.Body.Close(); err == nil {
			err = e
		}
	}()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: the answer's body: %w", r.Method, r.Path, err)
	}
	s.remember(response.Header, raw)
	return answerOf(response, raw), nil
}

// isReset reports whether the peer cut the connection.
func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// render returns the request's head and body.
func (s *session) render(r *Request) (head, body []byte, err error) {
	fill := func(b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte("$RV"), []byte(s.resourceVersion))
		return bytes.ReplaceAll(b, []byte("$UID"), []byte(s.uid))
	}
	body, has, err := r.body()
	if err != nil {
		return nil, nil, err
	}
	if r.RawBodyBase64 == nil {
		body = fill(body)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", r.Method, fill([]byte(r.Path)),
		s.player.Address)
	if r.ContentType != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", r.ContentType)
	}
	for _, name := range sortedKeys(r.Headers) {
		fmt.Fprintf(&b, "%s: %s\r\n", name, r.Headers[name])
	}
	if user := cmp.Or(r.User, s.player.As); user != nil && s.player.Identify != nil {
		for _, h := range s.player.Identify(*user) {
			fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
		}
	}
	if has {
		fmt.Fprintf(&b, "Content-Length: %s\r\n", strconv.Itoa(len(body)))
	}
	b.WriteString("\r\n")
	return b.Bytes(), body, nil
}

// remember keeps what $RV and $UID of the next request stand for. An API that gives its version as an ETag is
// understood too.
func (s *session) remember(h http.Header, body []byte) {
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
			UID             string `json:"uid"`
		} `json:"metadata"`
	}
	// An answer that is no object leaves both empty.
	_ = json.Unmarshal(body, &object)
	s.resourceVersion, s.uid = object.Metadata.ResourceVersion, object.Metadata.UID
	if s.resourceVersion == "" {
		s.resourceVersion = strings.Trim(strings.TrimPrefix(h.Get("ETag"), "W/"), `"`)
	}
}

// answerOf puts a response into the form in which answers are recorded.
func answerOf(response *http.Response, raw []byte) *Response {
	a := &Response{Code: response.StatusCode, ContentType: response.Header.Get("Content-Type"),
		Warnings: response.Header.Values("Warning")}
	media, _, err := mime.ParseMediaType(a.ContentType)
	if err != nil || media != "application/json" || len(raw) == 0 || !json.Valid(raw) {
		text := string(raw)
		a.RawBody = &text
		return a
	}
	var status struct {
		Kind, Status, Reason, Message string
		Details                       struct{ Causes []Cause }
	}
	// A body that does not have the shape of a Status is an object.
	if json.Unmarshal(raw, &status) == nil && status.Kind == "Status" {
		a.Reason, a.Message, a.Causes = &status.Reason, status.Message, status.Details.Causes
		return a
	}
	a.Object = raw
	return a
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
