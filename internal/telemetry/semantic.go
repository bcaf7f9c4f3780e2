package telemetry

import (
	"math"
	"net"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/admission-gateway/gateway/internal/status"
)

// With the names of OpenTelemetry, durations of requests have the attributes that its semantic conventions for HTTP
// require.

// maxShapes bounds the durations of a resource, or of a backend, that get series of their own. Later ones share one.
const maxShapes = 64

// unknownCode is the code of the series that requests share which have none of their own.
const unknownCode = -1

// clientLeft is the error of a request that ended before an answer, because its client went away.
const clientLeft = "client_left"

// A method is one of the methods of HTTP; what clients make up is otherMethod.
type method uint8

const otherMethod method = 0

var methods = [...]string{"_OTHER", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE",
	"QUERY"}

func methodNamed[T ~string | ~[]byte](name T) method {
	switch string(name) {
	case "GET":
		return 1
	case "POST":
		return 2
	case "PUT":
		return 3
	case "PATCH":
		return 4
	case "DELETE":
		return 5
	case "HEAD":
		return 6
	case "OPTIONS":
		return 7
	case "CONNECT":
		return 8
	case "TRACE":
		return 9
	case "QUERY":
		return 10
	}
	return otherMethod
}

// A shape has the attributes by which durations of requests are divided, beside their place. It is zero with the names
// of Prometheus.
type shape struct {
	method   method
	isSecure bool
	code     int
	template string // of the path
}

// newShape keeps the template, which belongs to a set of policies and no request.
func newShape(s shape) (shape, *histogram) { return s, new(histogram) }

// attributes returns the attributes of a shape, beside others.
func (s *shape) attributes(all []attribute.KeyValue) attribute.Set {
	scheme := "http"
	if s.isSecure {
		scheme = "https"
	}
	all = append(all, attribute.String("http.request.method", methods[s.method]),
		attribute.String("url.scheme", scheme))
	if s.template != "" {
		all = append(all, attribute.String("http.route", s.template))
	}
	switch {
	case s.code > 0:
		all = append(all, attribute.Int("http.response.status_code", s.code))
		switch {
		case s.code == status.ClientClosedRequest:
			all = append(all, attribute.String("error.type", clientLeft))
		case s.code >= 500:
			all = append(all, attribute.String("error.type", strconv.Itoa(s.code)))
		}
	case s.code == 0: // which is no code of HTTP
		all = append(all, attribute.String("error.type", "_OTHER"))
	}
	return attribute.NewSet(all...)
}

// Exchanges measures the exchanges with the servers of a backend. Nil measures none.
type Exchanges struct {
	server attribute.Set
	timed  intern[exchange, histogram]
}

// exchange is what an exchange with a backend was. The failure is one of a few words.
type exchange struct {
	method  method
	code    int // 0 without an answer
	failure string
}

// server names the servers of a backend.
type server struct{ upstream, url string }

func newExchanges(s server) (server, *Exchanges) {
	all := []attribute.KeyValue{attribute.String("gateway.upstream", s.upstream)}
	if u, err := url.Parse(s.url); err == nil {
		port := u.Port()
		if port == "" {
			port = u.Scheme // the port of its name
		}
		all = append(all, attribute.String("server.address", u.Hostname()))
		if number, err := net.LookupPort("tcp", port); err == nil {
			all = append(all, attribute.Int("server.port", number))
		}
	}
	return s, &Exchanges{server: attribute.NewSet(all...)}
}

// Add counts an exchange: the code of the answer, or why there was none, in a word of a small set.
func (e *Exchanges) Add(method []byte, code int, failure string, took time.Duration) {
	if e == nil {
		return
	}
	of := exchange{methodNamed(method), code, failure}
	if code == 0 && failure == "" {
		of.failure = "_OTHER" // of the convention: an answer that is none
	}
	h := e.timed.get(of, maxShapes, newExchange)
	if h == nil {
		h = e.timed.get(exchange{code: unknownCode}, math.MaxInt, newExchange)
	}
	h.add(took, &Trace{})
}

func newExchange(e exchange) (exchange, *histogram) { return e, new(histogram) }

func (e *exchange) attributes(all []attribute.KeyValue) attribute.Set {
	all = append(all, attribute.String("http.request.method", methods[e.method]))
	if e.code > 0 {
		all = append(all, attribute.Int("http.response.status_code", e.code))
	}
	switch {
	case e.failure != "":
		all = append(all, attribute.String("error.type", e.failure))
	case e.code >= 400:
		all = append(all, attribute.String("error.type", strconv.Itoa(e.code)))
	}
	return attribute.NewSet(all...)
}

// points returns the durations of the exchanges as they are now.
func (e *Exchanges) points(start, now time.Time) (points []metricdata.HistogramDataPoint[float64]) {
	for of, h := range e.timed.all() {
		points = append(points, h.point(of.attributes(e.server.ToSlice()), start, now))
	}
	return points
}
