package proxy

import (
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

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
