package tracing

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/trace"
)

// sampling decides which requests are traced, before anything is made of the trace: so that others
// cost next to nothing. It decides as the SDK's samplers of the same names do.
type sampling struct {
	followsParent bool
	// bound is how many of the 2^63 values of a trace's id are sampled.
	bound uint64
}

const whole = 1 << 63

// samplingByName returns the sampling that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name.
func samplingByName(name, argument string) (sampling, error) {
	ratio := func(follows bool) (sampling, error) {
		if argument == "" {
			return sampling{follows, whole}, nil
		}
		part, err := strconv.ParseFloat(argument, 64)
		if err != nil || !(part >= 0 && part <= 1) {
			return sampling{}, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not '%s'", argument)
		}
		return sampling{follows, uint64(part * whole)}, nil
	}
	switch name {
	case "", "parentbased_always_on":
		return sampling{true, whole}, nil
	case "parentbased_always_off":
		return sampling{true, 0}, nil
	case "parentbased_traceidratio":
		return ratio(true)
	case "always_on":
		return sampling{false, whole}, nil
	case "always_off":
		return sampling{false, 0}, nil
	case "traceidratio":
		return ratio(false)
	}
	return sampling{}, fmt.Errorf("OTEL_TRACES_SAMPLER must be one of the samplers always_on, always_off, traceidratio and the same with parentbased_, not '%s'", name)
}

// samples reports whether a request is traced. An invalid parent counts as none.
func (s sampling) samples(parent trace.SpanContext, id trace.TraceID) bool {
	if s.followsParent && parent.IsValid() {
		return parent.IsSampled()
	}
	return binary.BigEndian.Uint64(id[8:])>>1 < s.bound
}
