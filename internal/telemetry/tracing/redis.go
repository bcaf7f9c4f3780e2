package tracing

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Redis says which Redis is asked.
type Redis struct {
	// Address is the host and port of the server; empty if there are several, and the request does not know which it
	// is.
	Address string
	// Database is the number of the database.
	Database int
}

// AskedRedis makes a span of a command that began at a time and is over. The failure is why there was no answer, in a
// word.
func (r *Request) AskedRedis(to *Redis, command string, began time.Time, failure string) {
	attributes := []attribute.KeyValue{
		attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", command),
		attribute.String("db.namespace", strconv.Itoa(to.Database)),
	}
	if to.Address != "" {
		address, port := serverOf("redis://" + to.Address)
		attributes = append(attributes, attribute.String("server.address", address), attribute.Int("server.port", port))
	}
	_, span := r.tracer.tracer.Start(r.Context(), command, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(began), trace.WithAttributes(attributes...))
	if failure != "" {
		fail(span, failure)
	}
	span.End()
}
