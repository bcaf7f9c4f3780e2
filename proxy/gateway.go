// Package proxy is the data plane: it serves each request that internal/server reads by the stages of its
// scope, and answers it. serve, below, is the way of every request; stages.go has the stages in their order, and the
// way of a verb is in the file of its name. What the backend is like is behind storage.Storage.
package proxy

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
)

// runStages is the way of one request, from its head to its answer. A step that returns an error ends it:
// refusal.go turns the error into a Status, and nothing that was not admitted has reached the backend.
func runStages(r *request) error {
	if r.incoming.Refusal != nil {
		return r.incoming.Refusal // the head cannot be read in one way only
	}
	if err := findListener(r); err != nil { // by which listener it comes
		return err
	}
	if err := resolve(r); err != nil { // which operation it asks for
		return err
	}
	stages := r.scope.stages
	if r.incoming.Head.Has(message.FieldXAdmissionExplain) { // what would become of it
		stages = r.scope.explained
	}
	for i := range stages {
		if err := stages[i].run(r); err != nil {
			if err == errServed {
				return nil
			}
			return err
		}
	}
	return nil
}

// findListener finds the listener that takes the request. A request that another one would take must come by a
// connection to that one: a client that goes on using a connection for all hosts of its certificate must not get around
// what a listener asks.
func findListener(r *request) error {
	head, peer := &r.incoming.Head, r.incoming.Peer()
	l, taking := r.gateway.listening.set.Take(peer.At, peer.Made, peer.HasName, head.Host)
	switch taking {
	case listeners.Unknown:
		return status.NoSuchPath("no listener takes requests for the host '%s'", head.Host)
	case listeners.Misdirected:
		return status.Coded(http.StatusMisdirectedRequest, "the host '"+string(head.Host)+
			"' is not served on this connection: ask for it on a new one")
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

// isOfACME reports whether a path is one by which an authority looks who has a host (RFC 8555, 8.3). It does so by
// plain HTTP.
func isOfACME(path string) bool {
	return strings.HasPrefix(path, "/.well-known/acme-challenge/")
}

// handle hands a request to the Gateway that serves now.
func (s *common) handle(r *server.Request) {
	g := s.serving.Load()
	for !g.uses.enter(g, &s.serving) {
		g = s.serving.Load()
	}
	if d := g.answer(r); d != nil {
		r.GoOn(d.send)
	}
}

// uses counts the requests that a Gateway serves. A Gateway that no longer gets requests lets go of what is its own
// when the last of them is answered.
type uses struct {
	requests atomic.Int64
	retired  atomic.Bool
	letGo    sync.Once
}

// enter begins a request; false if another Gateway serves by now.
func (u *uses) enter(g *Gateway, serving *atomic.Pointer[Gateway]) bool {
	u.requests.Add(1)
	if serving.Load() == g {
		return true
	}
	g.leave() // whoever retired it may have seen this request
	return false
}

// leave ends a request.
func (g *Gateway) leave() {
	if g.uses.requests.Add(-1) == 0 && g.uses.retired.Load() {
		g.letGo()
	}
}

// answer serves one request of a connection. What it returns is to be sent, and needs the Gateway no longer.
func (g *Gateway) answer(incoming *server.Request) *detachedAnswer {
	defer g.leave()
	r := g.takeRequest()
	r.begin(g, incoming, g.policies())
	g.metrics.RequestStarted()
	return respond(r)
}
