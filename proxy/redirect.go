package proxy

import (
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
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
		r.gateway.log.Warn("requests of a route are refused", "route", place.Route, "rule", place.Rule, "cause",
			obstacle.cause, "times", times)
	}
	return obstacle.status
}

// editAnswer changes the header lines of an answer as the route says.
func editAnswer(r *request) {
	if r.upgrade.tunnel == nil {
		r.Response.Edit(r.route.answerEdits)
	}
}

// redirection is the answer that sends a client to another URL. It is an error, which ends the request.
type redirection struct {
	code int
	url  string
}

func (e *redirection) Error() string { return "the request is sent to " + e.url }

// redirectedBy returns the answer of a listener that sends clients to https.
func redirectedBy(r *listeners.Redirect, host, target []byte) error {
	if len(host) == 0 {
		return status.BadRequest("the request must have the header 'Host'")
	}
	url := "https://" + string(listeners.WithoutPort(host))
	if r.Port != 443 {
		url += ":" + strconv.Itoa(r.Port)
	}
	return &redirection{r.Code, url + string(target)}
}

func (e *redirection) write(r *storage.Response) {
	r.Start(e.code)
	r.Add("Location", e.url)
}
