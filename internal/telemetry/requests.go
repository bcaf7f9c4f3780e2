package telemetry

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

const (
	// maxResources bounds the resources, by the ways that lead to them, that get series of their own, so that neither
	// clients nor a long life of many policy files can make /metrics grow without end. Later ones are counted under
	// other.
	maxResources = 1000
	// maxAnswers bounds the pairs of verb and code of one of them. Later ones are counted by the class of the code.
	maxAnswers = 24
)

// other is the label value of everything that has no value of its own.
const other = "other"

// RequestDone counts a request that is over, in the series of its operation; nil looks them up. It keeps none of the
// strings that it is given.
func (t *Telemetry) RequestDone(r *Record, in *Series) {
	if !isMeasured {
		return
	}
	t.refusals.add(r)
	code := knownCode(r.Outcome.Code)
	s := in.of(t, r, code)
	s.count.Add(1)
	if s.duration != nil {
		s.duration.add(r.Usage.Took, &r.Trace)
	}
	if r.Usage.Backend > 0 && !t.requests.names.areSemantic { // Exchanges measures then
		t.requests.backendOf(r.Routing, in).add(r.Usage.Backend, &r.Trace)
	}
}

// A Series remembers the series of the requests of one operation: of those that have the same verb, come by the same
// way and name the same resource. It spares RequestDone to look them up. The zero value is one that remembers nothing
// yet.
type Series struct {
	last    [6]atomic.Pointer[codeSeries] // by the class of the code; most operations have one code of a class
	backend atomic.Pointer[histogram]
}

// codeSeries are the series of requests that are answered by one code.
type codeSeries struct {
	code     int
	shape    shape
	count    *atomic.Uint64
	duration *histogram // nil if durations are not counted
}

// of returns the series of a request.
func (s *Series) of(t *Telemetry, r *Record, code int) codeSeries {
	var last *atomic.Pointer[codeSeries]
	shape := t.requests.shapeOf(r, code)
	if class := code / 100; s != nil && class < len(s.last) {
		last = &s.last[class]
		if last := last.Load(); last != nil && last.code == code && last.shape == shape {
			return *last
		}
	}
	p, verb := t.requests.placeOf(r), resource.VerbNamed(r.Resource.Verb)
	found := codeSeries{code, shape, p.count(verb, code), p.durationOf(verb, code)}
	if found.duration != nil && t.requests.names.areSemantic {
		found.duration = p.timedBy(shape)
	}
	if last != nil {
		kept := found
		last.Store(&kept)
	}
	return found
}

// backendOf returns the histogram of the time that backends take.
func (q *requests) backendOf(way Routing, s *Series) *histogram {
	if s != nil {
		if h := s.backend.Load(); h != nil {
			return h
		}
	}
	h := q.backends.get(way, maxResources, newBackendSeries).orOther()
	if s != nil {
		s.backend.Store(h)
	}
	return h
}

// routedResource is a resource, and the route by which requests reach it.
type routedResource struct {
	group, resource string
	way             Routing
}

// resourceSeries are the series of a routedResource.
type resourceSeries struct {
	routedResource
	answers       intern[verbAndCode, atomic.Uint64]
	reads, writes histogram
	timed         intern[shape, histogram] // in place of both with the names of OpenTelemetry
}

// verbAndCode is a verb and a code; both are always of a small set. A code of a class, such as 4, has VerbOther for its
// verb.
type verbAndCode struct {
	verb resource.Verb
	code int
}

// count returns the counter of a verb and a code.
func (p *resourceSeries) count(verb resource.Verb, code int) *atomic.Uint64 {
	if n := p.answers.get(verbAndCode{verb, code}, maxAnswers, newCounter); n != nil {
		return n
	}
	return p.answers.get(verbAndCode{resource.VerbOther, code / 100}, math.MaxInt, newCounter) // there are six classes
}

func newCounter(a verbAndCode) (verbAndCode, *atomic.Uint64) { return a, new(atomic.Uint64) }

// durationOf returns the histogram of a request; nil for what lasts as long as a client likes.
func (p *resourceSeries) durationOf(verb resource.Verb, code int) *histogram {
	switch {
	case verb.Lasts() || code == 101:
		return nil
	case verb.IsSafe():
		return &p.reads
	}
	return &p.writes
}

func (q *requests) shapeOf(r *Record, code int) shape {
	if !q.names.areSemantic {
		return shape{}
	}
	return shape{methodNamed(r.Request.Method), r.Request.Scheme == "https", code, r.Resource.Template}
}

// timedBy returns the histogram of the requests of a shape.
func (p *resourceSeries) timedBy(s shape) *histogram {
	if h := p.timed.get(s, maxShapes, newShape); h != nil {
		return h
	}
	return p.timed.get(shape{isSecure: s.isSecure, code: unknownCode}, math.MaxInt, newShape)
}

// requests holds the series of requests. It is the SDK's metric producer for them.
type requests struct {
	start    time.Time
	names    names
	known    intern[routedResource, resourceSeries]
	backends intern[Routing, histogram]

	exchanges intern[server, Exchanges] // in place of backends with the names of OpenTelemetry
}

// ExchangesWith returns what measures the exchanges with a backend, by its name and the URL of its first server. It is
// nil with the names of Prometheus, under which the time that backends take is a part of the requests'.
func ExchangesWith(t *Telemetry, upstream, first string) *Exchanges {
	if !t.requests.names.areSemantic {
		return nil
	}
	return t.requests.exchanges.get(server{upstream, first}, maxResources, newExchanges)
}

func (q *requests) placeOf(r *Record) *resourceSeries {
	key := routedResource{group: other, resource: other, way: r.Routing}
	if r.Resource.IsDescribed {
		key.group, key.resource = r.Resource.Group, r.Resource.Resource
	}
	if p := q.known.get(key, maxResources, newResourceSeries); p != nil {
		return p
	}
	return q.known.get(routedResource{other, other, Routing{Route: other, Upstream: other}}, math.MaxInt,
		newResourceSeries)
}

func newResourceSeries(p routedResource) (routedResource, *resourceSeries) {
	p.group, p.resource, p.way = strings.Clone(p.group), strings.Clone(p.resource), p.way.clone()
	return p, &resourceSeries{routedResource: p}
}

func (w Routing) clone() Routing {
	return Routing{strings.Clone(w.Route), strings.Clone(w.Upstream), strings.Clone(w.Rule), strings.Clone(w.Listener)}
}

func newBackendSeries(w Routing) (Routing, *histogram) { return w.clone(), new(histogram) }

// verbLabel returns the label of a verb.
func verbLabel(v resource.Verb) string {
	if v == resource.VerbOther {
		return other
	}
	return v.String()
}

// knownCode maps what is not an HTTP status code to 0.
func knownCode(code int) int {
	if code < 100 || code > 599 {
		return 0
	}
	return code
}

// codeText writes a code, or a class of codes.
func codeText(code int) string {
	if 0 < code && code < 10 {
		return strconv.Itoa(code) + "xx"
	}
	return strconv.Itoa(code)
}

// ofAnswer returns a set with the verb and the code of requests. OpenTelemetry's codes are numbers, which a class of
// them is not.
func (q *requests) ofAnswer(set attribute.Set, a verbAndCode) attribute.Set {
	n := q.names
	switch {
	case !n.areSemantic:
		return n.with(set, "verb", verbLabel(a.verb), "code", codeText(a.code))
	case a.code == 0:
		return n.with(set, "verb", verbLabel(a.verb))
	case a.code < 10:
		return n.with(set, "verb", verbLabel(a.verb), "code_class", codeText(a.code))
	}
	labelled := n.with(set, "verb", verbLabel(a.verb))
	return attribute.NewSet(append(labelled.ToSlice(), attribute.Int("http.response.status_code", a.code))...)
}

// Produce is called by the SDK for each scrape.
func (q *requests) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	var counts []metricdata.DataPoint[int64]
	var durations, backends []metricdata.HistogramDataPoint[float64]
	for _, p := range q.known.all() {
		labels := q.names.set(append(p.way.labels(), "group", p.group, "resource", p.resource)...)
		for a, n := range p.answers.all() {
			counts = append(counts, metricdata.DataPoint[int64]{
				Attributes: q.ofAnswer(labels, a), StartTime: q.start, Time: now, Value: int64(n.Load()),
			})
		}
		for kind, h := range map[string]*histogram{"read": &p.reads, "write": &p.writes} {
			if point := h.point(q.names.with(labels, "kind", kind), q.start, now); point.Count > 0 {
				durations = append(durations, point)
			}
		}
		for s, h := range p.timed.all() {
			durations = append(durations, h.point(s.attributes(labels.ToSlice()), q.start, now))
		}
	}
	for _, e := range q.exchanges.all() {
		backends = append(backends, e.points(q.start, now)...)
	}
	for way, h := range q.backends.all() {
		backends = append(backends, h.point(q.names.set(way.labels()...), q.start, now))
	}
	if len(counts) == 0 {
		return nil, nil
	}
	metrics := []metricdata.Metrics{{
		Name:        q.names.metric("gateway_requests"),
		Description: "Requests answered, by API verb, resource and HTTP status code; code 499 means that the client left before an answer.",
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
			DataPoints: counts},
	}}
	for _, m := range []struct {
		name, description string
		points            []metricdata.HistogramDataPoint[float64]
	}{
		{"gateway_request_duration", "Time from a request's first byte to its answer's last, without watches and upgraded connections.", durations},
		{"gateway_upstream_request_duration", "Time in which backends were asked for a request, up to the heads of their answers.", backends},
	} {
		if len(m.points) > 0 {
			metrics = append(metrics, metricdata.Metrics{
				Name: q.names.metric(m.name), Description: m.description, Unit: "s",
				Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality,
					DataPoints: m.points},
			})
		}
	}
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: "github.com/admission-gateway/gateway"}, Metrics: metrics,
	}}, nil
}

// Refusals returns the last requests that the gateway refused, the newest first.
func (t *Telemetry) Refusals() []Refusal { return t.refusals.list() }

// RequestCounts counts the answers to requests for a resource since the start. What no file describes is counted as a
// resource with the name other.
type RequestCounts struct {
	Group, Resource string
	// Refused are those with codes from 400 to 498, Failed those from 500 and what is no code of HTTP; both are in All,
	// as those are whose client left.
	All, Refused, Failed uint64
}

// RequestCounts returns the counts of all resources.
func (t *Telemetry) RequestCounts() []RequestCounts {
	counts := map[[2]string]*RequestCounts{}
	var order [][2]string
	for _, p := range t.requests.known.all() {
		key := [2]string{p.group, p.resource}
		if counts[key] == nil {
			counts[key] = &RequestCounts{Group: p.group, Resource: p.resource}
			order = append(order, key)
		}
		for a, n := range p.answers.all() {
			counts[key].add(a.code, n.Load())
		}
	}
	all := make([]RequestCounts, 0, len(order))
	for _, key := range order {
		all = append(all, *counts[key])
	}
	return all
}

func (a *RequestCounts) add(code int, n uint64) {
	if 0 < code && code < 10 {
		code *= 100 // a class
	}
	a.All += n
	switch {
	case code >= 500 || code == 0:
		a.Failed += n
	case code >= 400 && code != status.ClientClosedRequest:
		a.Refused += n
	}
}
