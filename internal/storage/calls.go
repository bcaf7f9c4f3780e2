package storage

import (
	"net/http"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// lastingCall bounds a call of gRPC that may go on for hours without a word. The client bounds it by its deadline, if
// at all.
const lastingCall = 365 * 24 * time.Hour

// IsLastingCall reports whether the request is a call of gRPC that the route lets last. Whatever else says that it is
// one is bounded as any request is.
func (e *Exchanges) IsLastingCall() bool {
	return e.Limits != nil && e.Limits.LastsCalls && e.Head.IsGRPC() && string(e.Head.Method) == http.MethodPost
}

// deadlineOfCall returns when the deadline of a call of gRPC passes; zero for none.
func (e *Exchanges) deadlineOfCall() time.Time {
	if !e.Head.IsGRPC() {
		return time.Time{}
	}
	value, _ := e.Head.Lookup("grpc-timeout")
	d, ok := timeoutOfCall(str(value))
	if !ok {
		return time.Time{}
	}
	return e.Started.Add(d)
}

// timeoutOfCall reads a timeout of gRPC: at most eight digits, and a unit. One that cannot be read is the server's to
// refuse.
func timeoutOfCall(text string) (d time.Duration, ok bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if err != nil {
		return 0, false
	}
	var unit time.Duration
	switch text[len(text)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0, false
	}
	return min(time.Duration(n), lastingCall/unit) * unit, true
}

// deadlineExceeded are the trailers of a call whose deadline passes within its answer.
var deadlineExceeded = []message.Header{
	{Name: []byte("grpc-status"), Value: []byte("4")},
	{Name: []byte("grpc-message"), Value: []byte("the deadline of the call has passed")},
}
