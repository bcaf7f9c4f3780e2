package rego

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/admission-gateway/gateway/internal/outbound"
)

// maxAnswer is how long an answer to http.send may be, in bytes.
const maxAnswer = 1 << 20

// roundTripper sends what http.send asks for: to the allowed hosts only, redirections too, and with
// a bound on the answer. The time is bounded by the request's context.
func (p *Program) roundTripper(t *http.Transport) http.RoundTripper {
	direct := outbound.Options{Direct: true, MaxBytes: maxAnswer} // a proxy would be another host
	return confined{outbound.Confine(t, direct), p.options.Hosts}
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
	return c.next.RoundTrip(r)
}
