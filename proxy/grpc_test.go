package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/storage"
)

// TestGRPCCodes compares the codes with gRPC's own names.
func TestGRPCCodes(t *testing.T) {
	for code, want := range map[int32]grpccodes.Code{
		400: grpccodes.InvalidArgument, 401: grpccodes.Unauthenticated, 403: grpccodes.PermissionDenied,
		404: grpccodes.Unimplemented, 405: grpccodes.Unimplemented,
		408: grpccodes.DeadlineExceeded, 409: grpccodes.Aborted, 412: grpccodes.FailedPrecondition,
		413: grpccodes.ResourceExhausted, 415: grpccodes.InvalidArgument,
		421: grpccodes.Unavailable, 422: grpccodes.InvalidArgument, 428: grpccodes.FailedPrecondition,
		429: grpccodes.ResourceExhausted, 431: grpccodes.ResourceExhausted,
		499: grpccodes.Canceled, 500: grpccodes.Internal, 501: grpccodes.Unimplemented, 502: grpccodes.Unavailable,
		503: grpccodes.Unavailable, 504: grpccodes.DeadlineExceeded,
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
	if s.Code != grpcResourceExhausted || s.Message != "too many" || len(s.Details) != 1 ||
		s.Details[0].UnmarshalTo(&info) != nil || info.RetryDelay.Seconds != 7 {
		t.Errorf("%v, %v", &s, &info)
	}
	if got := percentEncoded("a%b\né"); got != "a%25b%0A%C3%A9" {
		t.Errorf("the message is %q", got)
	}
}

// frontOf returns a client of a gateway before one upstream, which a test may change.
func frontOf(t *testing.T, upstream string, change func(*config.Configuration)) (*Gateway, *h2test.Client) {
	t.Helper()
	c, err := config.Load("", config.Flags{Upstream: upstream, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	g := newTestGateway(t, c, noPolicies)
	return g, h2test.Dial(t, serveGateway(t, g, nil))
}

// byHTTP2 makes the upstream one of HTTP/2.
func byHTTP2(c *config.Configuration) { c.Upstreams[0].Protocol = config.HTTP2Protocol }

// callOfGRPC returns the fields of a call.
func callOfGRPC(path string, more ...string) []string {
	return append(append(h2test.Post(path), "content-type: application/grpc", "te: trailers"), more...)
}

// serveHTTP2 serves HTTP/2 without TLS.
func serveHTTP2(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// TestResetCalls: a call whose stream the backend ends is ended in the same way, before its answer and within it, so
// that the client knows why. Another request is refused, and learns of it in words.
func TestResetCalls(t *testing.T) {
	failing := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.B/Begun" {
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond) // for the client to have the head
		}
		panic(http.ErrAbortHandler)
	})
	_, begun := frontOf(t, failing, byHTTP2)
	_, silent := frontOf(t, failing, func(c *config.Configuration) {
		byHTTP2(c)
		c.Upstreams[0].CircuitBreaker = &config.CircuitBreaker{ConsecutiveFailures: 1, OpenSeconds: 3600}
	})
	for i, c := range []struct {
		client *h2test.Client
		fields []string
		status string // of the answer, or of what there is of it; "" for none
		code   http2.ErrCode
	}{
		{begun, callOfGRPC("/a.B/Begun"), "200", http2.ErrCodeInternal},
		{silent, callOfGRPC("/a.B/Silent"), "", http2.ErrCodeInternal},
		{silent, h2test.Post("/a"), "503", 0}, // the circuit is open
	} {
		id := uint32(2*i + 1)
		c.client.Head(t, id, true, c.fields...)
		a := c.client.Read(t, id)[id]
		if a.Status() != c.status || a.Reset != c.code {
			t.Errorf("%d: the answer is %q, its end %s %+v", i, a.Status(), a.Reset, a)
		}
	}
}

// TestCallDeadlines: the gateway itself ends a call whose deadline passes, before its answer, within it, and while the
// client sends: by DEADLINE_EXCEEDED, which is no failure of the backend, and by a reset of the backend's stream.
func TestCallDeadlines(t *testing.T) {
	ended := make(chan struct{}, 10)
	backend := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.B/Begun" {
			w.Header().Set("Content-Type", "application/grpc")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	_, client := frontOf(t, backend, func(c *config.Configuration) {
		byHTTP2(c)
		c.Upstreams[0].CircuitBreaker = &config.CircuitBreaker{ConsecutiveFailures: 1, OpenSeconds: 3600}
	})
	for i, c := range []struct {
		path  string
		isEnd bool
	}{{"/a.B/Silent", true}, {"/a.B/Begun", true}, {"/a.B/Silent", false}, {"/a.B/Begun", false}} {
		id := uint32(2*i + 1)
		client.Head(t, id, c.isEnd, callOfGRPC(c.path, "grpc-timeout: 30m")...)
		if !c.isEnd {
			h2test.Must(t, client.WriteData(id, false, []byte("message")))
		}
		a := client.Read(t, id)[id]
		fields := strings.Join(append(a.Fields, a.Trailers...), "; ")
		if a.Status() != "200" || !strings.Contains(fields, "grpc-status: 4") {
			t.Errorf("%d: the answer is %s, its end %s", i, fields, a.Reset)
		}
		<-ended
	}
}

// TestWhoMayLast: whether a call may last is the upstream's and the route's affair. What says of itself that it is a
// call, and is sent elsewhere, is bounded as any request is, and so is what is no call.
func TestWhoMayLast(t *testing.T) {
	for name, c := range map[string]struct {
		protocol config.HTTPProtocol
		isGRPC   bool // the route says so
		method   string
		media    string
		lasts    bool
	}{
		"a call by HTTP/2": {protocol: config.HTTP2Protocol, method: "POST", media: "application/grpc", lasts: true},
		"a call, with a subtype": {protocol: config.HTTP2Protocol, method: "POST",
			media: "application/grpc+proto", lasts: true},
		"a call by a route that says so": {protocol: config.HTTP1Protocol, isGRPC: true, method: "POST",
			media: "application/grpc", lasts: true},
		"the type alone":            {protocol: config.HTTP1Protocol, method: "POST", media: "application/grpc"},
		"the type alone, Auto":      {protocol: config.AutoProtocol, method: "POST", media: "application/grpc"},
		"a GET of that type":        {protocol: config.HTTP2Protocol, method: "GET", media: "application/grpc"},
		"a PUT of that type":        {protocol: config.HTTP2Protocol, isGRPC: true, method: "PUT", media: "application/grpc"},
		"another request by HTTP/2": {protocol: config.HTTP2Protocol, method: "POST", media: "application/json"},
		"gRPC-Web":                  {protocol: config.HTTP2Protocol, method: "POST", media: "application/grpc-web"},
		"another request by a route for gRPC": {protocol: config.HTTP1Protocol, isGRPC: true, method: "POST",
			media: "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			h := func(http.ResponseWriter, *http.Request) { <-release }
			url := ""
			if c.protocol == config.HTTP2Protocol {
				url = serveHTTP2(t, h)
			} else {
				s := httptest.NewServer(http.HandlerFunc(h))
				t.Cleanup(s.Close)
				url = s.URL
			}
			t.Cleanup(func() { close(release) })
			_, client := frontOf(t, url, func(conf *config.Configuration) {
				conf.Upstreams[0].Protocol, conf.Upstreams[0].ResponseTimeoutSeconds = c.protocol, 1
				conf.Routes[0].GRPC = c.isGRPC
			})
			client.Head(t, 1, true, append(append([]string{":method: " + c.method}, h2test.Get("/a.B/C")[1:]...),
				"content-type: "+c.media)...)
			client.Head(t, 3, true, append(append([]string{":method: " + c.method}, h2test.Get("/a.B/D")[1:]...),
				"content-type: "+c.media)...)
			if c.lasts {
				h2test.Must(t, client.Conn.SetReadDeadline(time.Now().Add(2500*time.Millisecond)))
				for {
					if e, err := client.Next(); err != nil {
						break
					} else if e.Kind == http2.FrameHeaders {
						t.Fatalf("the call ended: %v", e)
					}
				}
				return
			}
			for id, a := range client.Read(t, 1, 3) {
				if a.Status() != "504" && !strings.Contains(strings.Join(a.Fields, "; "), "grpc-status: 4") {
					t.Errorf("%d is answered %v", id, a.Fields)
				}
			}
		})
	}
}

// TestCancelledCall: a call that its client cancels is cancelled at the server, a unary one too, whose answer has not
// begun.
func TestCancelledCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began, ended := make(chan struct{}, 3), make(chan error, 3)
	backend := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		began <- struct{}{}
		<-s.Context().Done()
		ended <- s.Context().Err()
		return s.Context().Err()
	}))
	go func() { _ = backend.Serve(l) }() // until Stop
	defer backend.Stop()
	c, err := config.Load("", config.Flags{Upstream: "http://" + l.Addr().String(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	byHTTP2(c)
	address := serveGateway(t, newTestGateway(t, c, noPolicies), nil)
	client, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- client.Invoke(ctx, "/a.B/Unary", &emptypb.Empty{}, &emptypb.Empty{}) }()
	<-began
	cancel()
	if err := <-done; grpcstatus.Code(err) != grpccodes.Canceled {
		t.Errorf("the client has %v", err)
	}
	if err := <-ended; err != context.Canceled {
		t.Errorf("the server has %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Invoke(ctx, "/a.B/Unary", &emptypb.Empty{}, &emptypb.Empty{}); grpcstatus.Code(
		err) != grpccodes.DeadlineExceeded {
		t.Errorf("after its deadline the client has %v", err)
	}
	<-began
	if err := <-ended; err == nil {
		t.Error("the call goes on at the server")
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
