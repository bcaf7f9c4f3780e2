package apis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

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
- {name: all, upstream: backend}
%s`, upstream, map[bool]string{true: "{insecureSkipTLSVerify: true}", false: "null"}[strings.HasPrefix(upstream, "https:")], lines))
	args := []string{"serve", "--admin", admin, "--config", config}
	for i, text := range policies {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("policies-%d.yaml", i))
		write(t, file, text)
		args = append(args, "--policies", file)
	}
	return start(t, "http://"+admin+"/readyz", func(address string) *exec.Cmd {
		return exec.Command(gatewayProgram, append(args, "--listen", address)...)
	})
}

// TestGRPC runs gRPC's interop tests through the gateway: all four kinds of call, with trailers, deadlines, cancellation and
// errors, by TLS on both sides and on none.
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
				c.Env = append(os.Environ(), "INTEROP_CASE="+name, "INTEROP_TARGET="+p.address, "INTEROP_TLS="+flag, "E2E_SKIP_BUILD=1")
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

var _ = http.StatusOK
