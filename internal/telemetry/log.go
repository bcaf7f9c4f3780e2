package telemetry

import (
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
