package rego

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// maxAnswer is how long an answer to http.send may be, in bytes.
const maxAnswer = 1 << 20

// roundTripper sends what http.send asks for: to the allowed hosts only, redirections too, and with
// bounds on time, which the request's context has, and on the answer.
func (p *Program) roundTripper(t *http.Transport) http.RoundTripper {
	if t == nil { // the request asks for nothing special
		t = &http.Transport{}
	}
	t.Proxy = nil // the environment's
	t.DisableKeepAlives = true
	return confined{t, p.options.Hosts}
}

type confined struct {
	next  http.RoundTripper
	hosts []string
}

func (c confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("http.send: the scheme '%s' is not allowed", r.URL.Scheme)
	}
	if !slices.Contains(c.hosts, r.URL.Hostname()) {
		return nil, fmt.Errorf("http.send: the host '%s' is not among the allowed hosts", r.URL.Hostname())
	}
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limited{answer.Body, maxAnswer}
	return answer, nil
}

// limited is a body that must not be longer than left.
type limited struct {
	io.ReadCloser
	left int
}

var errAnswerLength = errors.New("http.send: the answer is too long")

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b[:min(len(b), l.left+1)])
	if l.left -= n; l.left < 0 {
		return 0, errAnswerLength
	}
	return n, err
}
