package otlp

import (
	"strings"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// What is sent names the service and the process, and the environment has the last word.
func TestResource(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=v9,deployment.environment.name=test")
	r, err := Resource(t.Context(), "v1", "0d6b")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"deployment.environment.name=test", string(semconv.ServiceInstanceIDKey) + "=0d6b",
		string(semconv.ServiceNameKey) + "=admission-gateway", string(semconv.ServiceVersionKey) + "=v9",
	}
	if got := r.String(); got != strings.Join(want, ",") {
		t.Errorf("the resource is %s, want %s", got, want)
	}
}
