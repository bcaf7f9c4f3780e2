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
}

// OpenLog returns a log that is written to w. It has to be closed.
func OpenLog(w io.Writer, o LogOptions) (*Log, error) {
	l := &Log{}
	lines := NewLines(w, func(dropped uint64) {
		l.Messages.Warn("lines of the log were dropped, because it is read too slowly", "lines", dropped)
	})
	var err error
	if l.Messages, err = NewLogger(lines, o.Level, o.Format); err != nil {
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

// Dropped returns how many lines were dropped so far because the log is read too slowly.
func (l *Log) Dropped() uint64 { return l.lines.Dropped() }

// Close writes what waits, for as long as ctx lasts.
func (l *Log) Close(ctx context.Context) error { return l.lines.Close(ctx) }

// NewLogger returns a logger that writes records of at least the given level to w. Level and format are read without
// regard to case; empty means Info and Text.
func NewLogger(w io.Writer, level string, format LogFormat) (*slog.Logger, error) {
	options := &slog.HandlerOptions{}
	if level != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("log level '%s' must be one of 'Debug', 'Info', 'Warn', 'Error'", level)
		}
		options.Level = l
	}
	switch strings.ToLower(string(format)) {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("log format '%s' must be one of 'Text', 'JSON'", format)
}
