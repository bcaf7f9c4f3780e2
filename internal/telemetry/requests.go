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
)

// maxSeries bounds the combinations of verb, resource and code that get series of their own, so that neither clients nor
// a long life of many policy files can make /metrics grow without end. Later ones are counted under other.
const maxSeries = 5000

// other is the label value of everything that has no value of its own.
const other = "other"

// durationBounds are the upper bounds of the duration histogram in seconds. The lowest ones resolve the gateway's own
// share, the highest ones a backend near its deadline.
var durationBounds = [...]float64{
	0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
}

// Request is one answered request.
type Request struct {
	// Verb is the API verb (get, list, …); for a path that is no resource the method in lower case.
	Verb string
	// Group and Resource name the resource. They are used only if Registered is set: a client can invent any number of
	// resources, but not one that a policy file describes.
	Group, Resource string
	Registered      bool
	// Code is the HTTP status code sent; 0 if the client went away before an answer.
	Code int
	// Took is the time from the request's first byte to the answer's last.
	Took time.Duration
}

// RequestDone counts an answered request. It keeps none of the strings it is given.
func (t *Telemetry) RequestDone(r Request) {
	t.requests.series(r).add(r.Took)
}

// seriesKey identifies a time series; verb and code are always of a small set.
type seriesKey struct {
	verb, group, resource string
	code                  int
}

// series counts the requests of one key by duration; its request count is the sum of its buckets.
type series struct {
	attributes attribute.Set
	buckets    [len(durationBounds) + 1]atomic.Uint64
	nanos      atomic.Int64
}

func (s *series) add(took time.Duration) {
	seconds := took.Seconds()
	i := 0
	for i < len(durationBounds) && seconds > durationBounds[i] {
		i++
	}
	s.buckets[i].Add(1)
	s.nanos.Add(int64(took))
}

// requests holds the request series. It is the SDK's metric producer for them.
type requests struct {
	start time.Time
	known intern[seriesKey, series]
}

func (q *requests) series(r Request) *series {
	key := seriesKey{verb: knownVerb(r.Verb), group: other, resource: other, code: knownCode(r.Code)}
	if r.Registered {
		key.group, key.resource = r.Group, r.Resource
	}
	if s := q.known.get(key, maxSeries, newSeries); s != nil {
		return s
	}
	key.group, key.resource = other, other
	// Verbs and codes are of small sets, so this last resort needs no limit of its own.
	return q.known.get(key, math.MaxInt, newSeries)
}

func newSeries(k seriesKey) (seriesKey, *series) {
	k.group, k.resource = strings.Clone(k.group), strings.Clone(k.resource)
	return k, &series{attributes: attribute.NewSet(
		attribute.String("verb", k.verb),
		attribute.String("group", k.group),
		attribute.String("resource", k.resource),
		attribute.String("code", strconv.Itoa(k.code)),
	)}
}

// knownVerb maps a verb to a constant, which also cuts it loose from memory it may borrow.
func knownVerb(verb string) string {
	switch verb {
	case "get":
		return "get"
	case "list":
		return "list"
	case "watch":
		return "watch"
	case "create":
		return "create"
	case "update":
		return "update"
	case "patch":
		return "patch"
	case "delete":
		return "delete"
	case "deletecollection":
		return "deletecollection"
	case "post":
		return "post"
	case "put":
		return "put"
	case "head":
		return "head"
	case "options":
		return "options"
	}
	return other
}

// knownCode maps what is not an HTTP status code to 0.
func knownCode(code int) int {
	if code < 100 || code > 599 {
		return 0
	}
	return code
}

// Produce is called by the SDK for each scrape.
func (q *requests) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	known := q.known.values()
	counts := make([]metricdata.DataPoint[int64], 0, len(known))
	durations := make([]metricdata.HistogramDataPoint[float64], 0, len(known))
	for _, s := range known {
		buckets := make([]uint64, len(s.buckets))
		var count uint64
		for i := range s.buckets {
			buckets[i] = s.buckets[i].Load()
			count += buckets[i]
		}
		counts = append(counts, metricdata.DataPoint[int64]{
			Attributes: s.attributes, StartTime: q.start, Time: now, Value: int64(count),
		})
		durations = append(durations, metricdata.HistogramDataPoint[float64]{
			Attributes: s.attributes, StartTime: q.start, Time: now, Count: count, Bounds: durationBounds[:],
			BucketCounts: buckets, Sum: time.Duration(s.nanos.Load()).Seconds(),
		})
	}
	if len(known) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: "github.com/admission-gateway/gateway"},
		Metrics: []metricdata.Metrics{{
			Name:        "gateway_requests",
			Description: "Requests answered, by API verb, resource and HTTP status code; code 0 means that the client left before an answer.",
			Data:        metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: counts},
		}, {
			Name:        "gateway_request_duration",
			Description: "Time from a request's first byte to its answer's last.",
			Unit:        "s",
			Data:        metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: durations},
		}},
	}}, nil
}
