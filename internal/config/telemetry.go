package config

import (
	"slices"
	"strings"
)

// LogLevel is the least level of messages in the log.
type LogLevel string

// LogFormat is how lines of the log are written.
type LogFormat string

// LoggedRequests says which requests have a line in the log.
type LoggedRequests string

// FieldNames says how the fields of these lines are called.
type FieldNames string

// RequestIDs says which answers have the id of their request.
type RequestIDs string

const (
	// LogNone logs no request.
	LogNone LoggedRequests = "None"
	// LogRefusedAndFailed logs requests that were refused or failed: with the codes from 400 on, or without an answer.
	LogRefusedAndFailed LoggedRequests = "RefusedAndFailed"
	// LogSampled logs some of the others too.
	LogSampled LoggedRequests = "Sampled"
	// LogAll logs all requests.
	LogAll LoggedRequests = "All"

	// OpenTelemetryNames are the names of OpenTelemetry's semantic conventions, ECSNames the names of the Elastic
	// Common Schema.
	OpenTelemetryNames FieldNames = "OpenTelemetry"
	ECSNames           FieldNames = "ECS"

	// IDsOnRefusals shows the id on answers of the gateway itself, IDsOnAnswers on all answers.
	IDsOnRefusals RequestIDs = "Refusals"
	IDsOnAnswers  RequestIDs = "Answers"
)

var (
	logLevels      = []LogLevel{"Debug", "Info", "Warn", "Error"}
	logFormats     = []LogFormat{"Text", "JSON"}
	loggedRequests = []LoggedRequests{LogNone, LogRefusedAndFailed, LogSampled, LogAll}
	fieldNames     = []FieldNames{OpenTelemetryNames, ECSNames}
	requestIDs     = []RequestIDs{IDsOnRefusals, IDsOnAnswers}
)

// Telemetry says what is reported of requests.
type Telemetry struct {
	// Log configures the log, which goes to stderr.
	Log Log `json:"log"`
	// RequestIDs says which answers have the X-Request-Id of their request.
	RequestIDs RequestIDs `json:"requestIDs"`
	// Audit says where events of requests go; nil records none.
	Audit *Audit `json:"audit"`
	// DecisionLogs says where decisions of policies in Rego and of constraints go; nil logs none.
	DecisionLogs *DecisionLogs `json:"decisionLogs"`
	// Tracing says where spans go; nil leaves it to the environment.
	Tracing *Tracing `json:"tracing"`
	// Metrics says how metrics are called and where they are sent.
	Metrics Metrics `json:"metrics"`
	// Explanations says which users may ask what becomes of a request; nil if none may.
	Explanations *Explanations `json:"explanations"`
}

// Protocol is how OTLP is spoken.
type Protocol string

const (
	// OTLPOverHTTP and OTLPOverGRPC are the two ways that collectors understand.
	OTLPOverHTTP Protocol = "HTTP"
	OTLPOverGRPC Protocol = "GRPC"
)

// Tracing says where spans go, and how many.
type Tracing struct {
	// Endpoint is the URL of a collector, without a path.
	Endpoint string   `json:"endpoint"`
	Protocol Protocol `json:"protocol"`
	// SamplingRatePerMillion is how many of a million requests are traced that do not come with a decision.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion"`
}

// MetricNames says how metrics are called.
type MetricNames string

// PrometheusNames are names such as gateway_requests_total.
const PrometheusNames MetricNames = "Prometheus"

// Metrics says how metrics are called, and where they are sent beside /metrics.
type Metrics struct {
	Names MetricNames `json:"names"`
	// Push says where they are sent by OTLP; nil leaves it to the environment.
	Push *MetricsPush `json:"push"`
}

// MetricsPush says where metrics are sent.
type MetricsPush struct {
	// Endpoint is the URL of a collector, without a path.
	Endpoint      string   `json:"endpoint"`
	Protocol      Protocol `json:"protocol"`
	PeriodSeconds Seconds  `json:"periodSeconds"`
}

var (
	protocols   = []Protocol{OTLPOverHTTP, OTLPOverGRPC}
	metricNames = []MetricNames{PrometheusNames, MetricNames(OpenTelemetryNames)}
)

func defaultTracing() Tracing {
	return Tracing{Protocol: OTLPOverHTTP, SamplingRatePerMillion: 10_000}
}

func defaultPush() MetricsPush { return MetricsPush{Protocol: OTLPOverHTTP, PeriodSeconds: 60} }

// collector checks where a collector is.
func (v *validator) collector(path, endpoint string, p Protocol) {
	problem := endpointProblem(endpoint)
	if _, rest, _ := strings.Cut(endpoint, "://"); problem == "" && strings.Contains(rest, "/") {
		problem = "must have no path"
	}
	v.check(path+".endpoint", problem)
	oneOf(v, path+".protocol", p, protocols)
}

// Log says what the log has, which goes to stderr.
type Log struct {
	Level  LogLevel  `json:"level"`
	Format LogFormat `json:"format"`
	// Requests says which requests have a line.
	Requests LoggedRequests `json:"requests"`
	// SampleOneIn is how many requests there are for each line with LogSampled, beside the refused and failed ones.
	SampleOneIn int32 `json:"sampleOneIn"`
	// FieldNames says how the fields of these lines are called.
	FieldNames FieldNames `json:"fieldNames"`
}

func defaultTelemetry() Telemetry {
	return Telemetry{
		Log: Log{Level: "Info", Format: "Text", Requests: LogRefusedAndFailed, SampleOneIn: 100,
			FieldNames: OpenTelemetryNames},
		RequestIDs: IDsOnRefusals,
		Metrics:    Metrics{Names: PrometheusNames},
	}
}

func (v *validator) telemetry(path string, t *Telemetry) {
	oneOf(v, path+".log.level", t.Log.Level, logLevels)
	oneOf(v, path+".log.format", t.Log.Format, logFormats)
	oneOf(v, path+".log.requests", t.Log.Requests, loggedRequests)
	between(v, path+".log.sampleOneIn", t.Log.SampleOneIn, 2, 1_000_000)
	oneOf(v, path+".log.fieldNames", t.Log.FieldNames, fieldNames)
	oneOf(v, path+".requestIDs", t.RequestIDs, requestIDs)
	v.audit(path+".audit", t.Audit)
	if t.Tracing != nil {
		v.collector(path+".tracing", t.Tracing.Endpoint, t.Tracing.Protocol)
		between(v, path+".tracing.samplingRatePerMillion", t.Tracing.SamplingRatePerMillion, 0, 1_000_000)
	}
	oneOf(v, path+".metrics.names", t.Metrics.Names, metricNames)
	if p := t.Metrics.Push; p != nil {
		v.collector(path+".metrics.push", p.Endpoint, p.Protocol)
		v.within(path+".metrics.push.periodSeconds", p.PeriodSeconds, 1, maxSeconds)
	}
}

// oneOf checks that a word is one of the known ones.
func oneOf[E ~string](v *validator, path string, value E, known []E) {
	if !slices.Contains(known, value) {
		v.check(path, notOneOf(string(value), known))
	}
}
