package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func loadTelemetry(t *testing.T, text string) (*Configuration, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: a, endpoints: [http://127.0.0.1:1]}]\n" + text
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file, Flags{})
}

func TestTelemetryDefaults(t *testing.T) {
	c, err := loadTelemetry(t, "telemetry: {log: {format: JSON}}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Log{Level: "Info", Format: "JSON", Requests: LogRefusedAndFailed, SampleOneIn: 100,
		FieldNames: OpenTelemetryNames}
	if c.Telemetry.Log != want || c.Telemetry.RequestIDs != IDsOnRefusals {
		t.Errorf("got %+v", c.Telemetry)
	}
}

func TestTelemetryProblems(t *testing.T) {
	_, err := loadTelemetry(t, "telemetry:\n  log: {level: Loud, format: XML, requests: Some, sampleOneIn: 1, fieldNames: Mine}\n  requestIDs: Never\n")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"telemetry.log.level: must be 'Debug', 'Info', 'Warn' or 'Error', not 'Loud'",
		"telemetry.log.format: must be 'Text' or 'JSON', not 'XML'",
		"telemetry.log.requests: must be 'None', 'RefusedAndFailed', 'Sampled' or 'All', not 'Some'",
		"telemetry.log.sampleOneIn: must be between 2 and 1000000, inclusive, not 1",
		"telemetry.log.fieldNames: must be 'OpenTelemetry' or 'ECS', not 'Mine'",
		"telemetry.requestIDs: must be 'Refusals' or 'Answers', not 'Never'",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error\n%v\ndoes not have\n%s", err, want)
		}
	}
}
