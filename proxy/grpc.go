package proxy

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// The codes of gRPC (google.golang.org/grpc/codes) that refusals have.
const (
	grpcCancelled          = 1
	grpcUnknown            = 2
	grpcInvalidArgument    = 3
	grpcDeadlineExceeded   = 4
	grpcPermissionDenied   = 7
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcUnimplemented      = 12
	grpcInternal           = 13
	grpcUnavailable        = 14
	grpcUnauthenticated    = 16
)

// grpcCode returns the code of gRPC that says what an HTTP status code does. What is not served here is UNIMPLEMENTED,
// as gRPC's own mapping of 404 has it.
func grpcCode(code int32) int {
	switch code {
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return grpcUnimplemented
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return grpcDeadlineExceeded
	case http.StatusConflict:
		return grpcAborted
	case http.StatusPreconditionFailed, http.StatusPreconditionRequired:
		return grpcFailedPrecondition
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusTooManyRequests:
		return grpcResourceExhausted
	case http.StatusMisdirectedRequest, http.StatusBadGateway, http.StatusServiceUnavailable:
		return grpcUnavailable
	case 499:
		return grpcCancelled
	case http.StatusInternalServerError:
		return grpcInternal
	}
	if code >= 400 && code < 500 {
		return grpcInvalidArgument
	}
	return grpcUnknown
}

// writeGRPC makes a Status the answer to a call of gRPC: an answer without messages, whose status is in its head. If
// the client may try again later, a RetryInfo says when.
func writeGRPC(r *storage.Response, s *status.Error) {
	code := grpcCode(s.ErrStatus.Code)
	r.Start(http.StatusOK)
	r.Add("Content-Type", "application/grpc")
	r.Add("Grpc-Status", strconv.Itoa(code))
	r.Add("Grpc-Message", percentEncoded(s.ErrStatus.Message))
	if d := s.ErrStatus.Details; d != nil && d.RetryAfterSeconds > 0 {
		r.Add("Grpc-Status-Details-Bin",
			base64.RawStdEncoding.EncodeToString(appendRetry(nil, code, s.ErrStatus.Message, d.RetryAfterSeconds)))
	}
}

// percentEncoded writes a message as gRPC's field for it wants it: visible ASCII without '%', the rest in percent.
func percentEncoded(message string) string {
	var b strings.Builder
	for i := range len(message) {
		if c := message[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// appendRetry appends a google.rpc.Status with a google.rpc.RetryInfo.
func appendRetry(dst []byte, code int, message string, seconds int32) []byte {
	// a Duration's seconds
	delay := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(seconds))
	info := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), delay)
	detail := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType),
		"type.googleapis.com/google.rpc.RetryInfo")
	detail = protowire.AppendBytes(protowire.AppendTag(detail, 2, protowire.BytesType), info)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, 1, protowire.VarintType), uint64(code))
	dst = protowire.AppendString(protowire.AppendTag(dst, 2, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(dst, 3, protowire.BytesType), detail)
}

// calls are the methods of gRPC that backends have answered to. A client can name any number of methods, but only those
// that a backend has are kept, and no more than mostCalls: metrics have a series for each.
type calls struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

const mostCalls = 1000

// note keeps a method that a backend has answered to, unless it says that there is none.
func (c *calls) note(path []byte, r *storage.Response) {
	if r.Status() != http.StatusOK || string(r.Header("Grpc-Status")) == strconv.Itoa(grpcUnimplemented) ||
		c.has(path) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]struct{}{}
	}
	if len(c.known) < mostCalls {
		c.known[string(path)] = struct{}{}
	}
}

// has reports whether a method is known.
func (c *calls) has(path []byte) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, known := c.known[string(path)]
	return known
}

// callOf returns service and method of a call of gRPC by its path, "/package.Service/Method".
func callOf(path []byte) (service, method string) {
	name, found := bytes.CutPrefix(path, []byte("/"))
	i := bytes.LastIndexByte(name, '/')
	if !found || i <= 0 {
		return "", ""
	}
	return str(name[:i]), str(name[i+1:])
}
