package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/storage"
)

// TestGRPCCodes compares the codes with gRPC's own names.
func TestGRPCCodes(t *testing.T) {
	for code, want := range map[int32]grpccodes.Code{
		400: grpccodes.InvalidArgument, 401: grpccodes.Unauthenticated, 403: grpccodes.PermissionDenied, 404: grpccodes.Unimplemented, 405: grpccodes.Unimplemented,
		408: grpccodes.DeadlineExceeded, 409: grpccodes.Aborted, 412: grpccodes.FailedPrecondition, 413: grpccodes.ResourceExhausted, 415: grpccodes.InvalidArgument,
		421: grpccodes.Unavailable, 422: grpccodes.InvalidArgument, 428: grpccodes.FailedPrecondition, 429: grpccodes.ResourceExhausted, 431: grpccodes.ResourceExhausted,
		499: grpccodes.Canceled, 500: grpccodes.Internal, 501: grpccodes.Unimplemented, 502: grpccodes.Unavailable, 503: grpccodes.Unavailable, 504: grpccodes.DeadlineExceeded,
		505: grpccodes.Unknown,
	} {
		if got := grpccodes.Code(grpcCode(code)); got != want {
			t.Errorf("%d is %v, want %v", code, got, want)
		}
	}
}

// TestGRPCRetry reads what says when to come again by gRPC's own types.
func TestGRPCRetry(t *testing.T) {
	var s spb.Status
	if err := proto.Unmarshal(appendRetry(nil, grpcResourceExhausted, "too many", 7), &s); err != nil {
		t.Fatal(err)
	}
	var info errdetails.RetryInfo
	if s.Code != grpcResourceExhausted || s.Message != "too many" || len(s.Details) != 1 || s.Details[0].UnmarshalTo(&info) != nil || info.RetryDelay.Seconds != 7 {
		t.Errorf("%v, %v", &s, &info)
	}
	if got := percentEncoded("a%b\né"); got != "a%25b%0A%C3%A9" {
		t.Errorf("the message is %q", got)
	}
}

// TestResetCalls: a call whose stream the backend ends is ended in the same way, before its answer and within it, so that the
// client knows why: a server of gRPC cancels what has no time left. Another request is refused, and learns of it in words.
func TestResetCalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	backend := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(s); method == "/a.B/Begun" {
			if err := s.SendHeader(nil); err != nil {
				return err
			}
		}
		<-over // not for its context, whose end it would answer before the server resets the stream
		return nil
	}))
	go func() { _ = backend.Serve(l) }() // until Stop
	defer backend.Stop()
	defer close(over)
	failing := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	failing.Config.Protocols = new(http.Protocols)
	failing.Config.Protocols.SetUnencryptedHTTP2(true)
	failing.Start()
	defer failing.Close()
	front := func(upstream string) *h2test.Client {
		c, err := config.Load("", config.Flags{Upstream: upstream, Dialect: "Plain"})
		if err != nil {
			t.Fatal(err)
		}
		c.Upstreams[0].Protocol = config.HTTP2Protocol
		c.Upstreams[0].CircuitBreaker = &config.CircuitBreaker{ConsecutiveFailures: 1, OpenSeconds: 3600}
		return h2test.Dial(t, serveGateway(t, newTestGateway(t, c, noPolicies), nil))
	}
	calls, failures := front("http://"+l.Addr().String()), front(failing.URL)
	call := func(path string) []string {
		return append(h2test.Post(path), "content-type: application/grpc", "te: trailers", "grpc-timeout: 20m")
	}
	for i, c := range []struct {
		client *h2test.Client
		fields []string
		status string // of the answer, or of what there is of it; "" for none
		code   http2.ErrCode
	}{
		{calls, call("/a.B/Silent"), "", http2.ErrCodeCancel},
		{calls, call("/a.B/Begun"), "200", http2.ErrCodeCancel},
		{calls, call("/a.B/Silent"), "", http2.ErrCodeCancel}, // the circuit is closed: no failure was counted
		{failures, call("/a.B/Silent"), "", http2.ErrCodeInternal},
		{failures, h2test.Post("/a"), "503", 0}, // but now it is open
	} {
		id := uint32(2*i + 1)
		c.client.Head(t, id, true, c.fields...)
		a := c.client.Read(t, id)[id]
		if a.Status() != c.status || a.Reset != c.code {
			t.Errorf("%d: the answer is %q, its end %s %+v", i, a.Status(), a.Reset, a)
		}
	}
}

// TestCalls: of the methods that clients name only those that a backend has are kept, and not any number of them.
func TestCalls(t *testing.T) {
	var c calls
	answer := func(status int, line string) *storage.Response {
		r := &storage.Response{}
		r.Receive(status, fmt.Appendf(nil, "HTTP/1.1 %d X\r\n%s\r\n", status, line))
		return r
	}
	c.note([]byte("/a.B/C"), answer(200, ""))
	c.note([]byte("/a.B/None"), answer(200, "Grpc-Status: 12\r\n"))
	c.note([]byte("/a.B/Bad"), answer(503, ""))
	if !c.has([]byte("/a.B/C")) || c.has([]byte("/a.B/None")) || c.has([]byte("/a.B/Bad")) {
		t.Errorf("kept are %v", c.known)
	}
	for i := range 2 * mostCalls {
		c.note(fmt.Append(nil, "/a.B/", i), answer(200, ""))
	}
	if len(c.known) != mostCalls {
		t.Errorf("%d methods are kept", len(c.known))
	}
	for path, want := range map[string]string{"/a.B/C": "a.B C", "/C": " ", "a/b": " ", "/a/b/C": "a/b C"} {
		if service, method := callOf([]byte(path)); service+" "+method != want {
			t.Errorf("%s is the call %q %q", path, service, method)
		}
	}
}
