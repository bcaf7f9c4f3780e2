// Package otlp reads the environment's settings for OTLP, in OpenTelemetry's standard variables, as
// far as the SDK leaves that to programs.
package otlp

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Resource describes the gateway in what it sends by OTLP. The instance is an id of the process, the same for all that
// it sends.
func Resource(ctx context.Context, version, instance string) (*resource.Resource, error) {
	r, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "admission-gateway"), attribute.String("service.version", version),
		attribute.String("service.instance.id", instance),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// IsWanted reports whether the environment asks for a signal ("TRACES", "METRICS") to be sent by
// OTLP.
func IsWanted(signal string) (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	wanted := false
	switch exporters := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporters {
	case "":
		wanted = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	default:
		for name := range strings.SplitSeq(exporters, ",") {
			switch strings.TrimSpace(name) {
			case "otlp":
				wanted = true
			case "none":
			case "prometheus":
				if signal == "METRICS" {
					continue // is always there
				}
				fallthrough
			default:
				return false, fmt.Errorf("OTEL_%s_EXPORTER must be 'otlp' or 'none', not '%s'", signal, name)
			}
		}
	}
	return wanted, nil
}

// IsGRPC reports whether the environment asks for gRPC for a signal; HTTP is the default.
func IsGRPC(signal string) (bool, error) {
	protocol := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL")
	if protocol == "" {
		protocol = os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "", "http/protobuf":
		return false, nil
	case "grpc":
		return true, nil
	}
	return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL must be 'grpc' or 'http/protobuf', not '%s'", protocol)
}
