package proxy

import (
	"time"
)

// redirectByRoute answers with the URL that the route says.
func redirectByRoute(r *request) error {
	to := r.route.redirect
	location, err := to.appendLocation(append(r.target[:0], "Location: "...), &r.incoming.Head, r.incoming.Peer().Proto)
	if err != nil {
		return err
	}
	r.target = append(location, "\r\n"...)
	r.Response.Start(to.code)
	r.Response.AddLines(str(r.target))
	return errServed
}

// refuseByRoute refuses a request whose route cannot be followed, and says why in the log.
func refuseByRoute(r *request) error {
	obstacle := r.route.obstacle
	place := &r.route.place
	if times, tell := r.gateway.often.failures.Allow("route "+place.Route, time.Now()); tell {
		r.gateway.log.Warn("requests of a route are refused", "route", place.Route, "rule", place.Rule, "cause", obstacle.cause, "times", times)
	}
	return obstacle.status
}

// editAnswer changes the header lines of an answer as the route says.
func editAnswer(r *request) {
	if r.upgrade.tunnel == nil {
		r.Response.Edit(r.route.answerEdits)
	}
}
