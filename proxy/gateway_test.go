package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// gatewayFor makes a gateway in front of a plain backend. Words change its settings: policies=NAME
// loads testdata/policies/NAME.yaml, kubernetes sets the dialect, protect-unregistered the setting
// of that name.
func gatewayFor(t testing.TB, dir, backend string, words []string) *Gateway {
	t.Helper()
	paths := []string{dir}
	c, err := config.Load("", config.Flags{Upstream: "http://" + backend, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	var clock func() time.Time
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "policies":
			paths = append(paths, filepath.Join("testdata", "policies", value+".yaml"))
		case "tls": // at both ends
			secureEnds(t, c, true, true)
		case "judge-results":
			c.AdmitOn = config.AdmitOnDryRunResult
		case "kubernetes":
			c.Upstreams[0].Dialect = config.Kubernetes
		case "protect-unregistered":
			c.UnregisteredResources.ProtectStatus = true
		case "check-names":
			c.UnregisteredResources.CheckNames = true
		case "identity": // by the headers of proxies on this machine; others are refused, or anonymous
			c.Identity = headerIdentity(config.Anonymous(value))
		case "explain": // to the group team-a
			c.Telemetry.Explanations = &config.Explanations{Groups: []string{"team-a"},
				Values: config.ExplainedValues(value)}
		case "credentials":
			c.Upstreams[0].Credentials = config.Credentials(value)
		case "token":
			c.Upstreams[0].TokenFile = filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(c.Upstreams[0].TokenFile, []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		case "underscores":
			c.UnderscoreHeaders = config.UnderscoreHeaders(value)
		case "memory": // so many bytes for all requests, and heavy work for one at a time
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.Limits.BodiesInFlightBytes, c.Limits.HeavyRequests = n, 1
		case "drain": // a client must take so much of an answer in a second, and each part of it within one
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.Limits.DrainBytesPerSecond, c.Timeouts.WriteTimeoutSeconds = n, 1
		case "trust":
			c.TrustedProxies = []config.Prefix{{Prefix: netip.MustParsePrefix(value)}}
		case "at": // the time by which rollouts and exceptions are judged
			at, err := time.Parse(time.RFC3339, value)
			if err != nil {
				t.Fatal(err)
			}
			clock = func() time.Time { return at }
		case "template": // of refusals about the upstream's paths
			c.Upstreams[0].ErrorFormat, c.Upstreams[0].ErrorTemplate = config.TemplateErrors, value
		case "undescribed":
			c.Upstreams[0].Undescribed = config.Undescribed(value)
		case "down": // no server listens where the backend was
			c.Upstreams[0].Endpoints = []string{"http://127.0.0.1:1"}
		case "circuit": // opens after so many failures
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			c.Upstreams[0].CircuitBreaker = &config.CircuitBreaker{ConsecutiveFailures: int32(n), OpenSeconds: 60,
				MaxOpenSeconds: 60}
		default:
			t.Fatalf("unknown setting %q", word)
		}
	}
	secureEnds(t, c, overTLS(t), behindTLS(t))
	set := policiestest.LoadFiles(t, paths...)
	g := newTestGateway(t, c, func() *policies.Set { return set })
	g.clock = clock
	return g
}

// noPolicies returns a set without any policy.
func noPolicies() *policies.Set {
	set, _ := policies.Load(nil)
	return set
}

func newTestGateway(t testing.TB, c *config.Configuration, set func() *policies.Set) *Gateway {
	t.Helper()
	return newObserved(t, c, set, nil)
}

// newObserved returns a gateway that makes spans with a tracer; nil makes none.
func newObserved(t testing.TB, c *config.Configuration, set func() *policies.Set, tracer *tracing.Tracer) *Gateway {
	t.Helper()
	return newWith(t, Options{Config: c, Policies: set, Tracer: tracer})
}

// newTabled returns a gateway with a table of routes beside those of its configuration.
func newTabled(t testing.TB, c *config.Configuration, table *routing.Table, set func() *policies.Set) *Gateway {
	t.Helper()
	return newWith(t, Options{Config: c, Policies: set, Routing: table})
}

// newWith returns a gateway by options, to which it adds what every gateway needs.
func newWith(t testing.TB, o Options) *Gateway {
	t.Helper()
	c := o.Config
	isSemantic := string(c.Telemetry.Metrics.Names) == string(config.OpenTelemetryNames)
	metrics, err := telemetry.New(telemetry.Options{Version: "test", AreNamesSemantic: isSemantic})
	if err != nil {
		t.Fatal(err)
	}
	o.Limiter, o.States, o.Metrics, o.Log = ratelimit.New(0), newStates(t, o.Policies()), metrics,
		slog.New(slog.DiscardHandler)
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newStates keeps what the policies of a set read.
func newStates(t testing.TB, set *policies.Set) *state.Manager {
	t.Helper()
	m, err := state.NewManager(state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Apply(set.States())
	return m
}

// waitForStates waits until everything that policies read was read once, or could not be.
func waitForStates(t testing.TB, g *Gateway) {
	t.Helper()
	testutil.Becomes(t, nil, g.states.Synced)
}

// startGateway serves on a free port of loopback until the test ends, and returns the address.
func startGateway(t testing.TB, g *Gateway) string {
	t.Helper()
	address := serveGateway(t, g, nil)
	if overTLS(t) {
		return h1test.SecureScheme + address
	}
	return address
}

// serveGateway serves on a free port of loopback until the test ends. The connections come through counted, if it is
// set.
func serveGateway(t testing.TB, g *Gateway, counted *countingListener) (address string) {
	t.Helper()
	return serveBy(t, g, counted, g.Serve)
}

// serveBy is serveGateway with a function that serves.
func serveBy(t testing.TB, g *Gateway, counted *countingListener, serve func(net.Listener) error) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = ln.Addr().String()
	if counted != nil {
		counted.Listener = ln
		ln = counted
	}
	done := make(chan error, 1)
	go func() { done <- serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testutil.Patience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return address
}
