package telemetry

import (
	"context"
	"log/slog"
)

// NamedLevels returns a logger for libraries, whose messages have levels beside the four that have names, such as
// 'DEBUG+3': each gets the named one below.
func NamedLevels(to *slog.Logger) *slog.Logger { return slog.New(namedLevels{to.Handler()}) }

type namedLevels struct{ slog.Handler }

// Handle implements slog.Handler.
func (h namedLevels) Handle(ctx context.Context, r slog.Record) error {
	//nolint:gocritic // the interface has it by value
	switch {
	case r.Level >= slog.LevelError:
		r.Level = slog.LevelError
	case r.Level >= slog.LevelWarn:
		r.Level = slog.LevelWarn
	case r.Level >= slog.LevelInfo:
		r.Level = slog.LevelInfo
	default:
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h namedLevels) WithAttrs(attrs []slog.Attr) slog.Handler {
	return namedLevels{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h namedLevels) WithGroup(name string) slog.Handler {
	return namedLevels{h.Handler.WithGroup(name)}
}
