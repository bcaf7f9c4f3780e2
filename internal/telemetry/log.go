package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// LogFormat is how log records are written.
type LogFormat string

// The log formats.
const (
	// LogText writes key=value pairs, for people.
	LogText LogFormat = "Text"
	// LogJSON writes one JSON object a line, for collectors.
	LogJSON LogFormat = "JSON"
)

// LogOptions configure OpenLog. The zero value writes messages from Info on as text, and no requests.
type LogOptions struct {
	// Level is the least level of messages: Debug, Info, Warn or Error.
	Level  string
	Format LogFormat
	Access AccessOptions
}

// A Log has messages for operators of the gateway, and a line for each request that is to have one.
// Its writers never wait for its reader.
type Log struct {
	Messages *slog.Logger
	// Access has the lines about requests.
	Access *AccessLog
	lines  *Lines
	level  *slog.LevelVar // of Messages
}

// OpenLog returns a log that is written to w. It has to be closed.
func OpenLog(w io.Writer, o LogOptions) (*Log, error) {
	l := &Log{}
	lines := NewLines(w, func(t Trouble) {
		if t.Cause == nil {
			l.Messages.Warn("lines of the log were dropped, because it is read too slowly", "lines", t.Dropped)
			return
		}
		l.Messages.Error("the log could not be written", "cause", t.Cause, "times", t.Failures, "lines", t.Dropped)
	})
	var err error
	if l.level, err = parseLevel(o.Level); err != nil {
		return nil, err
	}
	if l.Messages, err = newLogger(lines, l.level, o.Format); err != nil {
		return nil, err
	}
	// Whether a request has a line does not depend on the level of messages.
	requests, err := NewLogger(lines, "", o.Format)
	if err != nil {
		return nil, err
	}
	l.lines, l.Access = lines, newAccessLog(requests.Handler(), o.Access)
	return l, nil
}

// Failure returns why the log cannot be written now; nil if it can.
func (l *Log) Failure() error { return l.lines.Failure() }

// SetFailed has f called with the error of each write of the log that fails. It must not wait.
func (l *Log) SetFailed(f func(why error)) { l.lines.SetFailed(f) }

// Dropped returns how many lines were dropped so far, because the log is read too slowly or cannot be written.
func (l *Log) Dropped() uint64 { return l.lines.Dropped() }

// SetLevel changes the least level of messages.
func (l *Log) SetLevel(level string) error {
	next, err := parseLevel(level)
	if err == nil {
		l.level.Set(next.Level())
	}
	return err
}

// AccessFor returns a log of requests with other options, whose lines go where those of Access go.
func (l *Log) AccessFor(o AccessOptions) *AccessLog { return newAccessLog(l.Access.handler, o) }

// Close writes what waits, for as long as ctx lasts.
func (l *Log) Close(ctx context.Context) error { return l.lines.Close(ctx) }

// NewLogger returns a logger that writes records of at least the given level to w. Level and format are read without
// regard to case; empty means Info and Text.
func NewLogger(w io.Writer, level string, format LogFormat) (*slog.Logger, error) {
	least, err := parseLevel(level)
	if err != nil {
		return nil, err
	}
	return newLogger(w, least, format)
}

// parseLevel reads a level; empty means Info.
func parseLevel(level string) (*slog.LevelVar, error) {
	least := new(slog.LevelVar)
	if level != "" {
		if err := least.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("log level '%s' must be one of 'Debug', 'Info', 'Warn', 'Error'", level)
		}
	}
	return least, nil
}

func newLogger(w io.Writer, least slog.Leveler, format LogFormat) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: least}
	switch strings.ToLower(string(format)) {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("log format '%s' must be one of 'Text', 'JSON'", format)
}
