package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
)

// TestNamedLevels: whatever the level of a message, its line has one of the four, and attributes and groups are kept.
func TestNamedLevels(t *testing.T) {
	var b bytes.Buffer
	to, err := NewLogger(&b, "Debug", LogJSON)
	if err != nil {
		t.Fatal(err)
	}
	for level, want := range map[slog.Level]string{-4: "DEBUG", -1: "DEBUG", 0: "INFO", 3: "INFO", 4: "WARN", 7: "WARN",
		8: "ERROR", 12: "ERROR"} {
		b.Reset()
		NamedLevels(to).With("a", 1).WithGroup("g").Log(context.Background(), level, "m", "b", 2)
		var line struct {
			Level string
			A     int
			G     struct{ B int }
		}
		if err := json.Unmarshal(b.Bytes(), &line); err != nil || line.Level != want || line.A != 1 || line.G.B != 2 {
			t.Errorf("%v: %s, want %s (%v)", level, b.String(), want, err)
		}
	}
}
