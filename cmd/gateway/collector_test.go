package main

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestCollectorFails: a collector that is absent, or silent, or refuses, fails no request and no end. What is lost is
// counted, and shown by the metrics, /readyz?verbose, `gateway status` and the log.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) string{
		"absent": func(t *testing.T) string { return testutil.FreeAddress(t) },
		"silent": listenSilently,
		"refusing": func(t *testing.T) string {
			api, addr := startBackend(t)
			_ = api // which knows no such path
			return addr
		},
	} {
		for _, protocol := range []string{"HTTP", "GRPC"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				_, addr := startBackend(t)
				collector := start(t)
				config := write(t, "gateway.yaml", `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams: [{name: api, dialect: Plain, endpoints: ["http://`+addr+`"]}]
drainSeconds: 0
telemetry:
  tracing: {endpoint: "http://`+collector+`", protocol: `+protocol+`, samplingRatePerMillion: 1000000}
  metrics: {push: {endpoint: "http://`+collector+`", protocol: `+protocol+`, periodSeconds: 1}}
`)
				p := newProcess(testutil.FreeAddress(t), testutil.FreeAddress(t), "--config", config)
				p.Env = append(p.Env, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_BSP_EXPORT_TIMEOUT=300",
					"OTEL_METRIC_EXPORT_TIMEOUT=300")
				p.start(t)
				testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
				testutil.Eventually(t, "spans and metrics are lost", func() bool {
					if got := fetch("http://" + p.listen + "/v2/orders"); got.code != 200 {
						t.Fatalf("a request is answered %+v", got)
					}
					return p.value(t, "gateway_tracing_lost_spans_total") > 0 &&
						p.value(t, "gateway_metrics_push_failures_total") > 0
				})
				testutil.Eventually(t, "/readyz?verbose says so", func() bool {
					ready := p.get("/readyz?verbose")
					return ready.code == http.StatusOK && strings.Contains(ready.body, "[+]telemetry ok, but: ")
				})
				if status := run("status", "--admin", p.admin); !strings.Contains(status.stdout, " span") ||
					!strings.Contains(status.stdout, "metrics sent in vain") {
					t.Errorf("gateway status says\n%s%s", status.stdout, status.stderr)
				}
				testutil.Eventually(t, "the log says so",
					func() bool { return strings.Contains(p.log.String(), `msg="telemetry cannot be sent" cause=`) })
				p.signal(t, syscall.SIGTERM)
				if err := p.Wait(); err != nil {
					t.Errorf("the process ends with %v, want exit code 0", err)
				}
				log := p.log.String()
				for _, want := range []string{`msg="all requests are finished"`,
					`msg="the last telemetry could not be sent" signal=spans cause=`,
					`msg="the last telemetry could not be sent" signal=metrics cause=`} {
					if !strings.Contains(log, want) {
						t.Errorf("the log does not say %s", want)
					}
				}
			})
		}
	}
}

// listenSilently returns the address of a server that accepts connections and says nothing.
func listenSilently(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = nc.Close() })
		}
	}()
	return l.Addr().String()
}
