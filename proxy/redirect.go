package proxy

import (
	"time"
)

// redirectByRoute answers with the URL that the route says.
func redirectByRoute(h *handler) error {
	r := h.route.redirect
	location, err := r.appendLocation(append(h.target[:0], "Location: "...), &h.incoming.Head, h.incoming.Peer().Proto)
	if err != nil {
		return err
	}
	h.target = append(location, "\r\n"...)
	h.request.Response.Start(r.code)
	h.request.Response.AddLines(str(h.target))
	return errServed
}

// refuseByRoute refuses a request whose route cannot be followed, and says why in the log.
func refuseByRoute(h *handler) error {
	r := h.route.obstacle
	place := &h.route.place
	if times, tell := h.gateway.often.failures.Allow("route "+place.Route, time.Now()); tell {
		h.gateway.log.Warn("requests of a route are refused", "route", place.Route, "rule", place.Rule, "cause", r.cause, "times", times)
	}
	return r.status
}

// editAnswer changes the header lines of an answer as the route says.
func editAnswer(h *handler) {
	if h.upgrade.tunnel == nil {
		h.request.Response.Edit(h.route.answerEdits)
	}
}
