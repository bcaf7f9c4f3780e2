package apis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

// A collector is the OTLP receiver of OpenTelemetry's collector, with sinks behind it.
type collector struct {
	url     string
	traces  consumertest.TracesSink
	metrics consumertest.MetricsSink
}

// startCollector runs a collector for a protocol of the configuration until the test ends.
func startCollector(t *testing.T, protocol string) *collector {
	t.Helper()
	factory, address := otlpreceiver.NewFactory(), testutil.FreeAddress(t)
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	if protocol == "GRPC" {
		config.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = address
		config.Protocols.HTTP = configoptional.None[otlpreceiver.HTTPConfig]()
	} else {
		config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	}
	c := &collector{url: "http://" + address}
	settings, ctx := receivertest.NewNopSettings(factory.Type()), context.Background()
	traces, err := factory.CreateTraces(ctx, settings, config, &c.traces)
	if err != nil {
		t.Fatal(err)
	}
	// It is the same receiver, which gets a second consumer, and is started and stopped once.
	if _, err = factory.CreateMetrics(ctx, settings, config, &c.metrics); err != nil {
		t.Fatal(err)
	}
	if err = traces.Start(ctx, componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := traces.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

// varies finds what no two runs have in common. Bodies have versions of objects, which are hashes.
var varies = regexp.MustCompile(`(127\.0\.0\.1:|server\.port=|response\.body\.size=|service\.version=|service\.instance\.id=|\.hash=|` +
	`telemetry\.sdk\.version=|scope \S+ ")[^/"\n]+`)

// spansText writes the spans that arrived as trees, by resource and scope, without times and the ids of spans.
func (c *collector) spansText() string {
	groups := map[string][]ptrace.Span{}
	for _, batch := range c.traces.AllTraces() {
		for _, of := range batch.ResourceSpans().All() {
			for _, scope := range of.ScopeSpans().All() {
				source := sourceText(of.Resource(), of.SchemaUrl(), scope.Scope(), scope.SchemaUrl())
				for _, s := range scope.Spans().All() {
					groups[source] = append(groups[source], s)
				}
			}
		}
	}
	var b strings.Builder
	for _, source := range slices.Sorted(maps.Keys(groups)) {
		b.WriteString(source)
		writeTrees(&b, groups[source])
	}
	return varies.ReplaceAllString(b.String(), "$1*")
}

// writeTrees begins with the spans whose parent is not among the spans.
func writeTrees(b *strings.Builder, spans []ptrace.Span) {
	slices.SortFunc(spans, func(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) })
	children, ids := map[pcommon.SpanID][]ptrace.Span{}, map[pcommon.SpanID]bool{}
	for _, s := range spans {
		children[s.ParentSpanID()] = append(children[s.ParentSpanID()], s)
		ids[s.SpanID()] = true
	}
	var write func(s ptrace.Span, indent string)
	write = func(s ptrace.Span, indent string) {
		fmt.Fprintf(b, "%s%s\n%s  kind=%s status=%s %q\n", indent, s.Name(), indent, s.Kind(), s.Status().Code(),
			s.Status().Message())
		fmt.Fprintf(b, "%s  trace=%s state=%q flags=%#x links=%d dropped=%d\n", indent, s.TraceID(),
			s.TraceState().AsRaw(), s.Flags(),
			s.Links().Len(), s.DroppedAttributesCount()+s.DroppedEventsCount()+s.DroppedLinksCount())
		if s.EndTimestamp() < s.StartTimestamp() {
			fmt.Fprintf(b, "%s  ends before it starts\n", indent)
		}
		writeAttributes(b, indent+"  ", s.Attributes())
		for _, e := range s.Events().All() {
			fmt.Fprintf(b, "%s  event %s\n", indent, e.Name())
			writeAttributes(b, indent+"    ", e.Attributes())
		}
		for _, child := range children[s.SpanID()] {
			write(child, indent+"  ")
		}
	}
	for _, s := range spans {
		if !ids[s.ParentSpanID()] {
			fmt.Fprintf(b, "below %s\n", s.ParentSpanID())
			write(s, "  ")
		}
	}
}

func writeAttributes(b *strings.Builder, indent string, attributes pcommon.Map) {
	for key, value := range attributes.All() {
		fmt.Fprintf(b, "%s%s=%s\n", indent, key, value.AsString())
	}
}

// sourceText writes who sent spans or metrics.
func sourceText(of pcommon.Resource, schema string, scope pcommon.InstrumentationScope, scopeSchema string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "resource, schema %q\n", schema)
	writeAttributes(&b, "  ", of.Attributes())
	fmt.Fprintf(&b, "scope %s %q, schema %q\n", scope.Name(), scope.Version(), scopeSchema)
	writeAttributes(&b, "  ", scope.Attributes())
	return b.String()
}

// metricsText writes the name, type and unit of each metric that arrived, and what the last ones say of requests.
func (c *collector) metricsText() string {
	groups := map[string]map[string]bool{}
	counted := map[string]string{}
	for _, batch := range c.metrics.AllMetrics() {
		for _, of := range batch.ResourceMetrics().All() {
			for _, scope := range of.ScopeMetrics().All() {
				source := sourceText(of.Resource(), of.SchemaUrl(), scope.Scope(), scope.SchemaUrl())
				if groups[source] == nil {
					groups[source] = map[string]bool{}
				}
				for _, m := range scope.Metrics().All() {
					groups[source][metricText(m)] = true
					measure(counted, m)
				}
			}
		}
	}
	var b strings.Builder
	for _, source := range slices.Sorted(maps.Keys(groups)) {
		b.WriteString(source)
		for _, line := range slices.Sorted(maps.Keys(groups[source])) {
			b.WriteString(line)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(counted)) {
		fmt.Fprintf(&b, "%s\n  %s\n", of, counted[of])
	}
	return varies.ReplaceAllString(b.String(), "$1*")
}

// measure notes what two of the metrics say of requests.
func measure(counted map[string]string, m pmetric.Metric) {
	switch m.Name() {
	case "gateway_requests":
		for _, p := range m.Sum().DataPoints().All() {
			counted[m.Name()+attributesText(p.Attributes())] = fmt.Sprint(p.IntValue())
		}
	case "gateway_request_duration":
		for _, p := range m.Histogram().DataPoints().All() {
			traces := map[string]bool{}
			for _, e := range p.Exemplars().All() {
				traces[e.TraceID().String()] = true
			}
			counted[m.Name()+attributesText(p.Attributes())] = fmt.Sprintf("%d, exemplars of traces %s", p.Count(),
				slices.Sorted(maps.Keys(traces)))
		}
	}
}

func attributesText(attributes pcommon.Map) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(attributes.AsRaw())) {
		value, _ := attributes.Get(key)
		fmt.Fprintf(&b, " %s=%s", key, value.AsString())
	}
	return b.String()
}

func metricText(m pmetric.Metric) string {
	kind := m.Type().String()
	switch m.Type() {
	case pmetric.MetricTypeSum:
		kind += " " + m.Sum().AggregationTemporality().String()
		if m.Sum().IsMonotonic() {
			kind += " monotonic"
		}
	case pmetric.MetricTypeHistogram:
		kind += " " + m.Histogram().AggregationTemporality().String()
	case pmetric.MetricTypeExponentialHistogram:
		kind += " " + m.ExponentialHistogram().AggregationTemporality().String()
	}
	return fmt.Sprintf("  %s %s unit=%q\n", m.Name(), kind, m.Unit())
}
