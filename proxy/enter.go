package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// enter finds the listener that takes the request. A request that another one would take must come by a connection to that
// one: a client that goes on using a connection for all hosts of its certificate must not get around what a listener asks.
func enter(r *request) error {
	head, peer := &r.incoming.Head, r.incoming.Peer()
	l, taking := r.gateway.listening.set.Take(peer.At, peer.Made, peer.HasName, head.Host)
	switch taking {
	case listeners.Unknown:
		return status.NoSuchPath("no listener takes requests for the host '%s'", head.Host)
	case listeners.Misdirected:
		return status.Coded(http.StatusMisdirectedRequest, "the host '"+string(head.Host)+"' is not served on this connection: ask for it on a new one")
	}
	r.listener = l
	if peer.Made != nil && peer.Made.Name == l.Name {
		peer.Made = l // the certificates of clients are judged as its settings have it now
	}
	if l.Redirect == nil {
		return nil
	}
	path := str(pathOf(head.Target))
	isChallenge := isOfACME(path)
	if isChallenge && readings.Any(path, func(reading string) bool { return !isOfACME(reading) }) {
		return status.BadRequest("the request path '%s' is refused: it could be read as one that is asked for by https alone", path)
	}
	if !isChallenge {
		return redirectedBy(l.Redirect, head.Host, head.Target)
	}
	return nil
}

// isOfACME reports whether a path is one by which an authority looks who has a host (RFC 8555, 8.3). It does so by plain HTTP.
func isOfACME(path string) bool {
	return strings.HasPrefix(path, "/.well-known/acme-challenge/")
}

// elsewhere is the answer that sends a client to another URL. It is an error, which ends the request.
type elsewhere struct {
	code int
	url  string
}

func (e *elsewhere) Error() string { return "the request is sent to " + e.url }

// redirectedBy returns the answer of a listener that sends clients to https.
func redirectedBy(r *listeners.Redirect, host, target []byte) error {
	if len(host) == 0 {
		return status.BadRequest("the request must have the header 'Host'")
	}
	url := "https://" + string(listeners.WithoutPort(host))
	if r.Port != 443 {
		url += ":" + strconv.Itoa(r.Port)
	}
	return &elsewhere{r.Code, url + string(target)}
}

func (e *elsewhere) write(r *storage.Response) {
	r.Start(e.code)
	r.Add("Location", e.url)
}

// strictTransport is the header by which browsers learn to use https alone.
const strictTransport = "Strict-Transport-Security"

// showTransport says in an answer over TLS that browsers are to use https alone, if the listener asks for it. What a backend
// says of it is not for the host that the browser knows.
func showTransport(r *request, answer *storage.Response) {
	l := r.listener
	if l == nil {
		l = r.incoming.Peer().Made
	}
	if l != nil && l.TLS != nil && l.StrictTransport != "" {
		answer.Set(strictTransport, l.StrictTransport)
	}
}
