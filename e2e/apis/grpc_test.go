package apis

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

// interopCases are the tests of gRPC's own interop suite that need no account of a cloud.
var interopCases = map[string]func(ctx context.Context, c testgrpc.TestServiceClient, conn *grpc.ClientConn){
	"empty_unary": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoEmptyUnaryCall(ctx, c)
	},
	"large_unary": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoLargeUnaryCall(ctx, c)
	},
	"client_stream": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoClientStreaming(ctx, c)
	},
	"server_stream": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoServerStreaming(ctx, c)
	},
	"ping_pong": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoPingPong(ctx, c)
	},
	"empty_stream": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoEmptyStream(ctx, c)
	},
	"timeout": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoTimeoutOnSleepingServer(ctx, c)
	},
	"cancel_begin": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoCancelAfterBegin(ctx, c)
	},
	"cancel_first": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoCancelAfterFirstResponse(ctx, c)
	},
	"custom_metadata": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoCustomMetadata(ctx, c)
	},
	"status_code": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoStatusCodeAndMessage(ctx, c)
	},
	"special_status": func(ctx context.Context, c testgrpc.TestServiceClient, _ *grpc.ClientConn) {
		interop.DoSpecialStatusMessage(ctx, c)
	},
	"unimplemented_service": func(ctx context.Context, _ testgrpc.TestServiceClient, conn *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
	},
	"unimplemented_method": func(ctx context.Context, _ testgrpc.TestServiceClient, conn *grpc.ClientConn) {
		interop.DoUnimplementedMethod(ctx, conn)
	},
}

// TestInteropCase is one case of TestGRPC, in a process of its own: the suite ends the process that fails.
func TestInteropCase(t *testing.T) {
	name, target := os.Getenv("INTEROP_CASE"), os.Getenv("INTEROP_TARGET")
	if name == "" {
		t.Skip("TestGRPC runs it for each case")
	}
	how := insecure.NewCredentials()
	if os.Getenv("INTEROP_TLS") != "" {
		how = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(how))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	interopCases[name](ctx, testgrpc.NewTestServiceClient(conn), conn)
}

// startInterop serves gRPC's interop service until the test ends; it returns its address.
func startInterop(t testing.TB, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := grpc.NewServer(options...)
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	go func() { _ = s.Serve(l) }() // until Stop
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// startGatewayTo runs the gateway before an upstream of HTTP/2, with further lines of the configuration.
func startGatewayTo(t testing.TB, upstream, lines string, policies ...string) *program {
	t.Helper()
	config, admin := filepath.Join(t.TempDir(), "gateway.yaml"), testutil.FreeAddress(t)
	write(t, config, fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
drainSeconds: 0
shutdownDeadlineSeconds: 1
upstreams:
- {name: backend, endpoints: [%s], dialect: Plain, protocol: HTTP2, tls: %s}
routes:
- {name: all, upstream: backend%s}
%s`, upstream, map[bool]string{true: "{insecureSkipTLSVerify: true}", false: "null"}[strings.HasPrefix(upstream, "https:")],
		map[bool]string{true: ", undescribed: Deny"}[lines == "#Deny"], lines))
	args := []string{"serve", "--admin", admin, "--config", config}
	for i, text := range policies {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("policies-%d.yaml", i))
		write(t, file, text)
		args = append(args, "--policies", file)
	}
	p := start(t, "http://"+admin+"/readyz", func(address string) *exec.Cmd {
		return exec.Command(gatewayProgram, append(args, "--listen", address)...)
	})
	p.admin = admin
	return p
}

// TestGRPC runs gRPC's interop tests through the gateway: all four kinds of call, with trailers, deadlines,
// cancellation and errors, by TLS on both sides and on none.
func TestGRPC(t *testing.T) {
	for _, isTLS := range []bool{false, true} {
		lines, upstream, flag := "", "http://"+startInterop(t), ""
		if isTLS {
			var file string
			lines, file = certificate(t)
			pair, err := tls.LoadX509KeyPair(file, strings.TrimSuffix(file, "crt")+"key")
			must(t, err)
			upstream = "https://" + startInterop(t, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
			flag = "yes"
		}
		p := startGatewayTo(t, upstream, lines)
		for name := range interopCases {
			t.Run(fmt.Sprintf("TLS %v/%s", isTLS, name), func(t *testing.T) {
				c := exec.Command(os.Args[0], "-test.run=^TestInteropCase$", "-test.timeout=90s")
				c.Env = append(os.Environ(), "INTEROP_CASE="+name, "INTEROP_TARGET="+p.address, "INTEROP_TLS="+flag,
					"E2E_SKIP_BUILD=1")
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// TestGRPCRefusals: what the gateway itself refuses is a status of gRPC to a client of gRPC, with the time to come
// again.
func TestGRPCRefusals(t *testing.T) {
	backend := "http://" + startInterop(t)
	call := func(p *program, method string) error {
		conn, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		must(t, err)
		defer func() { _ = conn.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return conn.Invoke(ctx, method, &testgrpc.Empty{}, &testgrpc.Empty{})
	}
	const empty = "/grpc.testing.TestService/EmptyCall"
	t.Run("429", func(t *testing.T) {
		p := startGatewayTo(t, backend, "", `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: calls}
spec:
  requests: 1
  periodSeconds: 3600
`)
		if err := call(p, empty); err != nil {
			t.Fatal(err)
		}
		err := call(p, empty)
		s := grpcstatus.Convert(err)
		if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
			t.Fatalf("%v, details %v", err, s.Details())
		}
		info, ok := s.Details()[0].(*errdetails.RetryInfo)
		if !ok || info.RetryDelay.AsDuration() < time.Minute {
			t.Errorf("the detail is %v", s.Details()[0])
		}
	})
	for name, test := range map[string]struct {
		upstream, lines string
		code            codes.Code
	}{
		"401": {backend, "identity: {anonymous: Deny, authenticators: [{requestHeader: {addresses: [10.1.2.3]}}]}\ntrustedProxies: [10.1.2.3]\n", codes.Unauthenticated},
		"404": {backend, "#Deny", codes.Unimplemented},
		"503": {"http://" + testutil.FreeAddress(t), "", codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := startGatewayTo(t, test.upstream, test.lines)
			if err := call(p, empty); grpcstatus.Code(err) != test.code {
				t.Errorf("%v, want %v", err, test.code)
			}
		})
	}
}

// TestGRPCLasts: a call may be silent for longer than any timeout for other requests, whoever is silent, and its
// messages may be of 4 MB. Metrics name the calls that the backend has.
func TestGRPCLasts(t *testing.T) {
	backend := "http://" + startInterop(t, grpc.MaxRecvMsgSize(8<<20))
	p := startGatewayTo(t, backend, "timeouts: {bodyDeadlineSeconds: 1, idleTimeoutSeconds: 1, headerDeadlineSeconds: 1}\n")
	conn, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(8<<20)))
	must(t, err)
	defer func() { _ = conn.Close() }()
	c := testgrpc.NewTestServiceClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	both, err := c.FullDuplexCall(ctx)
	must(t, err)
	for range 2 {
		must(t,
			both.Send(&testgrpc.StreamingOutputCallRequest{
				ResponseParameters: []*testgrpc.ResponseParameters{{Size: 4 << 20}},
				Payload:            &testgrpc.Payload{Body: make([]byte, 4<<20)}}))
		got, err := both.Recv()
		must(t, err)
		if n := len(got.GetPayload().GetBody()); n != 4<<20 {
			t.Fatalf("a message of %d bytes", n)
		}
		time.Sleep(3 * time.Second) // both are silent
	}
	must(t, both.CloseSend())
	if _, err := both.Recv(); err != io.EOF {
		t.Errorf("the call ends with %v", err)
	}
	one, err := c.StreamingInputCall(ctx)
	must(t, err)
	time.Sleep(3 * time.Second) // before the first message and the head of the answer
	must(t, one.Send(&testgrpc.StreamingInputCallRequest{Payload: &testgrpc.Payload{Body: make([]byte, 10)}}))
	sum, err := one.CloseAndRecv()
	must(t, err)
	if sum.GetAggregatedPayloadSize() != 10 {
		t.Errorf("%v", sum)
	}
	if err := conn.Invoke(ctx, "/grpc.testing.TestService/NoSuchCall", &testgrpc.Empty{},
		&testgrpc.Empty{}); grpcstatus.Code(err) != codes.Unimplemented {
		t.Errorf("a call that the server does not have: %v", err)
	}
	resp, err := http.Get("http://" + p.admin + "/metrics")
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	if !strings.Contains(string(text), `gateway_requests_total{code="200",group="grpc.testing.TestService",resource="FullDuplexCall"`) || strings.Contains(string(text), "NoSuchCall") {
		t.Errorf("the metrics are %s", text)
	}
}

// TestGRPCHead: the server of a call learns that trailers reach the client, and the client gets them. A request that is
// no call of gRPC has no TE.
func TestGRPCHead(t *testing.T) {
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what is missing shows in the trailers
		w.Header().Set("Trailer", "Grpc-Status, X-Seen")
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.WriteString(w, "answer") // the client shows what is missing
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set("X-Seen", fmt.Sprint(r.Header["Te"], r.Proto))
	}))
	backend.Config.Protocols = new(http.Protocols)
	backend.Config.Protocols.SetUnencryptedHTTP2(true)
	backend.Start()
	t.Cleanup(backend.Close)
	p := startGatewayTo(t, backend.URL, "")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	for media, want := range map[string]string{
		"application/grpc+proto": "[trailers]HTTP/2.0", "application/grpc-web": "[]HTTP/2.0",
		"application/json": "[]HTTP/2.0",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url()+"/a.B/C",
			io.MultiReader(strings.NewReader("body")))
		must(t, err)
		r.Header.Set("Content-Type", media)
		r.Header.Set("Te", "trailers")
		resp, err := transport.RoundTrip(r)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		_ = resp.Body.Close()
		if string(body) != "answer" || resp.Trailer.Get("X-Seen") != want || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s: %q, trailers %v, want %s", media, body, resp.Trailer, want)
		}
	}
}
