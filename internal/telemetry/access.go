package telemetry

import (
	"context"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/quote"
)

// AccessOptions say which requests have a line in the log, and how its fields are called.
type AccessOptions struct {
	// Refused logs requests that were refused or failed.
	Refused bool
	// OneIn logs one of so many other requests: 1 is all, 0 none.
	OneIn int32
	// ECS names fields as the Elastic Common Schema does, instead of OpenTelemetry.
	ECS bool
}

// An AccessLog has a line for each request that is to have one. It is safe for concurrent use.
type AccessLog struct {
	options AccessOptions
	handler slog.Handler
	lines   sync.Pool // of *[]slog.Attr
}

func newAccessLog(h slog.Handler, o AccessOptions) *AccessLog {
	l := &AccessLog{options: o, handler: h}
	l.lines.New = func() any { return new([]slog.Attr) }
	return l
}

// Add writes the line of a request, if it is to have one.
func (l *AccessLog) Add(r *Record) {
	if !l.wants(&r.Outcome) {
		return
	}
	level := slog.LevelInfo
	if r.Outcome.Code >= 500 {
		level = slog.LevelWarn
	}
	fields := l.lines.Get().(*[]slog.Attr)
	for i := range AccessFields {
		*fields = AccessFields[i].appendTo(*fields, r, l.options.ECS)
	}
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(slog.Attr{Value: slog.GroupValue(*fields...)}) // a group without a name is its fields
	_ = l.handler.Handle(context.Background(), line)             // Lines return no error
	clear(*fields)
	*fields = (*fields)[:0]
	l.lines.Put(fields)
}

func (l *AccessLog) wants(o *Outcome) bool {
	if o.IsRefusedOrFailed() {
		return l.options.Refused
	}
	switch n := l.options.OneIn; n {
	case 0, 1:
		return n == 1
	default:
		return rand.Int32N(n) == 0
	}
}

// An AccessField is a field of the lines. It has one of text, number and duration.
type AccessField struct {
	// OpenTelemetry and ECS are its names, and Meaning describes it.
	OpenTelemetry, ECS, Meaning string

	text     func(*Record) string
	number   func(*Record) int64
	duration func(*Record) time.Duration
}

// AccessFields are the fields of a line in their order. Texts that are empty are left out.
var AccessFields = []AccessField{
	textField("http.request.id", "http.request.id", "the `X-Request-Id` that the backend gets",
		func(r *Record) string { return r.ID }),
	textField("http.request.method", "http.request.method", "the method",
		func(r *Record) string { return r.Request.Method }),
	textField("url.path", "url.path", "the path as the client sent it, without its query",
		func(r *Record) string { return r.Request.Path }),
	numberField("http.response.status_code", "http.response.status_code",
		"the status code; 499 if the client left before an answer",
		func(r *Record) int64 { return int64(r.Outcome.Code) }),
	textField("gateway.reason", "gateway.reason", "the reason of the Status by which the gateway refused",
		func(r *Record) string { return r.Outcome.Reason }),
	textField("network.protocol.version", "network.protocol.version", "the version of HTTP, if it is not 1.1",
		func(r *Record) string {
			if r.Request.Version == "1.1" {
				return ""
			}
			return r.Request.Version
		}),
	textField("gateway.policy", "gateway.policy", "the policy that refused",
		func(r *Record) string { return r.Outcome.Policy }),
	textField("gateway.binding", "gateway.binding", "its binding",
		func(r *Record) string { return r.Outcome.Binding }),
	textField("gateway.field", "gateway.field", "the first field that is wrong",
		func(r *Record) string { return r.Outcome.Field }),
	textField("gateway.would_deny", "gateway.would_deny", "the policies that would have refused, were they [enforced](../policies/rollout.md)",
		func(r *Record) string { return r.Outcome.WouldDeny }),
	textField("gateway.exceptions", "gateway.exceptions", "the [exceptions](../policies/rollout.md#exceptions) by which policies were not asked",
		func(r *Record) string { return r.Outcome.Exceptions }),
	textField("gateway.configuration.hash", "gateway.configuration.hash", "of a request that was refused or failed: the beginning of the `hash` of the configuration, as the status has it",
		func(r *Record) string { return r.refusedBy(r.InForce.Configuration) }),
	textField("gateway.policies.hash", "gateway.policies.hash",
		"of such a request: the beginning of the `hash` of the policy files",
		func(r *Record) string { return r.refusedBy(r.InForce.Policies) }),
	textField("user.name", "user.name", "who asked",
		func(r *Record) string { return r.User }),
	textField("client.address", "client.ip", "the address that the request came from",
		func(r *Record) string { return addressText(r.Client) }),
	textField("gateway.verb", "gateway.verb", "the verb of the API; for a path that is no resource the method",
		func(r *Record) string { return r.Resource.Verb }),
	textField("gateway.group", "gateway.group", "the group of the resource",
		func(r *Record) string { return r.Resource.Group }),
	textField("gateway.resource", "gateway.resource", "the resource",
		func(r *Record) string { return r.Resource.Resource }),
	textField("gateway.subresource", "gateway.subresource", "the subresource",
		func(r *Record) string { return r.Resource.Subresource }),
	textField("gateway.namespace", "gateway.namespace", "the namespace",
		func(r *Record) string { return r.Resource.Namespace }),
	textField("gateway.name", "gateway.name", "the name of the object",
		func(r *Record) string { return r.Resource.Name }),
	textField("gateway.route", "gateway.route", "the name of the route",
		func(r *Record) string { return r.Routing.Route }),
	textField("gateway.rule", "gateway.rule", "the rule of an HTTPRoute, or of another object that `gateway.route` names: its name or its number",
		func(r *Record) string { return r.Routing.Rule }),
	textField("gateway.listener", "gateway.listener", "the listener by which a request came to such a route: namespace and name of the Gateway, and its own name",
		func(r *Record) string { return r.Routing.Listener }),
	textField("gateway.upstream", "gateway.upstream", "the upstream",
		func(r *Record) string { return r.Routing.Upstream }),
	durationField("gateway.duration", "event.duration", "from the request's first byte to the answer's last",
		func(r *Record) time.Duration { return r.Usage.Took }),
	durationField("gateway.upstream.duration", "gateway.upstream.duration",
		"the part of it in which the backend was asked",
		func(r *Record) time.Duration { return r.Usage.Backend }),
	numberField("http.request.body.size", "http.request.body.bytes", "the length of the request's body",
		func(r *Record) int64 { return r.Usage.Received }),
	numberField("http.response.body.size", "http.response.body.bytes", "the length of the answer's body",
		func(r *Record) int64 { return r.Usage.Sent }),
	textField("server.address", "url.domain", "the `Host` that the client asked",
		func(r *Record) string { return r.Request.Host }),
	textField("user_agent.original", "user_agent.original", "the `User-Agent`",
		func(r *Record) string { return r.Request.UserAgent }),
	textField("trace_id", "trace.id", "the trace, if it is sampled",
		func(r *Record) string { return hexText(r.Trace.Sampled, r.Trace.ID[:]) }),
	textField("span_id", "span.id", "the span of the request in it",
		func(r *Record) string { return hexText(r.Trace.Sampled, r.Trace.Span[:]) }),
}

func textField(otel, ecs, meaning string, text func(*Record) string) AccessField {
	return AccessField{OpenTelemetry: otel, ECS: ecs, Meaning: meaning, text: text}
}

func numberField(otel, ecs, meaning string, number func(*Record) int64) AccessField {
	return AccessField{OpenTelemetry: otel, ECS: ecs, Meaning: meaning, number: number}
}

func durationField(otel, ecs, meaning string, duration func(*Record) time.Duration) AccessField {
	return AccessField{OpenTelemetry: otel, ECS: ecs, Meaning: meaning, duration: duration}
}

// appendTo appends the field of a request, under its name of ECS or of OpenTelemetry. OpenTelemetry
// gives durations in seconds, ECS in nanoseconds.
func (f *AccessField) appendTo(fields []slog.Attr, r *Record, ecs bool) []slog.Attr {
	name := f.OpenTelemetry
	if ecs {
		name = f.ECS
	}
	switch {
	case f.number != nil:
		return append(fields, slog.Int64(name, f.number(r)))
	case f.duration != nil && ecs:
		return append(fields, slog.Int64(name, f.duration(r).Nanoseconds()))
	case f.duration != nil:
		return append(fields, slog.Float64(name, f.duration(r).Seconds()))
	}
	if text := f.text(r); text != "" {
		return append(fields, slog.String(name, quote.Cut(text, maxText)))
	}
	return fields
}

// maxText is how much of a text a line has, in bytes.
const maxText = 1024

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func hexText(known bool, id []byte) string {
	if !known {
		return ""
	}
	return hex.EncodeToString(id)
}
