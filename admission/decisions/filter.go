package decisions

import (
	"bytes"
	"context"
	"errors"

	"github.com/admission-gateway/gateway/internal/audit"
)

// A Filter decides which events are logged, and what they show.
type Filter interface {
	// Apply returns the event as it is logged, on one line; nil if it is not. The error is ErrNotReady if
	// this is not known yet.
	Apply(ctx context.Context, event []byte) ([]byte, error)
}

// ErrNotReady is the error of a Filter whose rules are not there. Events wait until they are.
var ErrNotReady = errors.New("the rules that mask decision logs are not loaded")

// masking is the sink that filters events for other sinks.
type masking struct {
	filter  Filter
	to      *audit.Log
	dropped func(sink string, events int, why Reason)
}

// Name implements audit.Sink.
func (m *masking) Name() string { return before }

// Close implements audit.Sink.
func (m *masking) Close() error { return nil }

// Write implements audit.Sink. An event that cannot be masked is lost.
func (m *masking) Write(ctx context.Context, lines []byte) (kept int, err error) {
	for kept < len(lines) {
		end := kept + bytes.IndexByte(lines[kept:], '\n') + 1
		event, err := m.filter.Apply(ctx, lines[kept:end-1])
		switch {
		case errors.Is(err, ErrNotReady):
			return kept, err
		case err != nil:
			m.dropped(before, 1, MaskFailed)
		case event != nil:
			m.to.Offer(append(event, '\n'))
		}
		kept = end
	}
	return kept, nil
}
