package tracing

import (
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-gateway/gateway/internal/telemetry"
)

// ParseTraceparent reads the header of W3C Trace Context (level 2, 3.2). It reports false for what
// is not one, after which a new trace begins.
func ParseTraceparent(value []byte) (trace.SpanContext, bool) {
	const size = len("00-00000000000000000000000000000000-0000000000000000-00")
	if len(value) < size || value[2] != '-' || value[35] != '-' || value[52] != '-' {
		return trace.SpanContext{}, false
	}
	var version, flags [1]byte
	c := trace.SpanContextConfig{Remote: true}
	if !decode(version[:], value[:2]) || !decode(c.TraceID[:], value[3:35]) || !decode(c.SpanID[:], value[36:52]) ||
		!decode(flags[:], value[53:55]) {
		return trace.SpanContext{}, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(value) > size, len(value) > size && value[size] != '-':
		return trace.SpanContext{}, false
	}
	c.TraceFlags = trace.TraceFlags(flags[0]) & trace.FlagsSampled
	parent := trace.NewSpanContext(c)
	return parent, parent.IsValid()
}

// decode reads hexadecimal digits in lower case.
func decode(to, digits []byte) bool {
	for i := range to {
		high, low := digit(digits[2*i]), digit(digits[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

const traceparent = "traceparent: 00-"

// appendTraceparent appends the header line that passes the trace to a backend.
func appendTraceparent(dst []byte, id trace.TraceID, span trace.SpanID, sampled bool) []byte {
	dst = telemetry.AppendHex(append(dst, traceparent...), binary.BigEndian.Uint64(id[:8]))
	dst = telemetry.AppendHex(dst, binary.BigEndian.Uint64(id[8:]))
	dst = telemetry.AppendHex(append(dst, '-'), binary.BigEndian.Uint64(span[:]))
	if sampled {
		return append(dst, "-01\r\n"...)
	}
	return append(dst, "-00\r\n"...)
}

// appendSpan appends the header line of a span that is sampled.
func appendSpan(dst []byte, span trace.Span) []byte {
	c := span.SpanContext()
	return appendTraceparent(dst, c.TraceID(), c.SpanID(), true)
}

// headerOf returns the value of the header of a span that is sampled.
func headerOf(span trace.Span) string {
	line := appendSpan(nil, span)
	return string(line[len("traceparent: ") : len(line)-len("\r\n")])
}

// newTraceID and newSpanID return random ids, which are never zero.
func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
		binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.LittleEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
