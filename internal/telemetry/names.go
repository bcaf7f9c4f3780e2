package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// names are how metrics and the labels of requests are called: as Prometheus has it, or as OpenTelemetry does.
type names struct{ areSemantic bool }

// semanticNames are the names of OpenTelemetry's semantic conventions that there are; other names get dots for the
// prefix alone.
var semanticNames = map[string]string{
	"gateway_request_duration":          "http.server.request.duration",
	"gateway_upstream_request_duration": "http.client.request.duration",
}

// metric returns the name of a metric.
func (n names) metric(name string) string {
	if !n.areSemantic {
		return name
	}
	if semantic, known := semanticNames[name]; known {
		return semantic
	}
	return "gateway." + strings.TrimPrefix(name, "gateway_")
}

func (n names) label(name string) attribute.Key {
	if !n.areSemantic {
		return attribute.Key(name)
	}
	if semantic, known := semanticNames[name]; known {
		return attribute.Key(semantic)
	}
	return attribute.Key("gateway." + name)
}

// set returns the set of labels and their values.
func (n names) set(pairs ...string) attribute.Set { return n.with(attribute.Set{}, pairs...) }

// with returns a set with further labels.
func (n names) with(set attribute.Set, pairs ...string) attribute.Set {
	all := set.ToSlice()
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, n.label(pairs[i]).String(pairs[i+1]))
	}
	return attribute.NewSet(all...)
}

// view gives the SDK's instruments their names.
func (n names) view(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
	return sdkmetric.Stream{Name: n.metric(i.Name), Description: i.Description, Unit: i.Unit}, true
}
