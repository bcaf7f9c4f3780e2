package upstream

import (
	"errors"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
)

// SmallBody is the size up to which an answer of known length is read whole instead of being streamed.
const SmallBody = 64 << 10

// Request is one request to the backend.
type Request struct {
	// Head is the whole head, the empty line included, with a Content-Length that fits Body. It is written byte for
	// byte.
	Head []byte
	Body []byte
	// Upload is the body if it is sent while it comes; nil if it is Body.
	Upload message.Upload
	// HeadOnly is set for HEAD, whose answer has no body.
	HeadOnly bool
	// Idempotent requests change nothing: they may be sent once more if the connection ended before a byte of the
	// answer came.
	Idempotent bool
	// Whole asks for the body in one piece, at most so many bytes; a larger one fails. Zero lets all but small bodies
	// be streamed.
	Whole int64
	// Memory, if set, is asked for the memory of a body that is read whole and not small: its length, which is for the
	// caller to give back. If it refuses, the exchange fails.
	Memory Memory
	// Start is when the request is made; if it is zero, Do asks the clock.
	Start time.Time
	// Deadline, if set, bounds the exchange up to the end of the head, or of the body if that is read whole.
	Deadline time.Time
	// Client is who waits for the answer; nil if nobody can leave. What Do waits for is abandoned when the client
	// leaves, and the exchange is cancelled at the backend.
	Client *presence.Client
	// RunsOn says that it matters when the backend has finished with a request that may have reached it: the request is
	// not cancelled when the client leaves. If the answer is too slow, the exchange is watched until it ends, which
	// [Error.Ended] tells.
	RunsOn bool
	// Outlives says that a request that may have reached the backend goes on when the client leaves.
	Outlives bool
	// IsCall is set for a call of gRPC, whose server knows its deadline, and cancels it when that has passed.
	IsCall bool
	// IsWatch is set for a watch: Config.Watches bounds the silence of its answer.
	IsWatch bool
	// Timeouts are this request's own; a zero one is the client's.
	Timeouts RequestTimeouts
	// Upgrade is the protocol that the head asks to go on in; nil for none. A backend that agrees does not answer:
	// Tunnel is set.
	Upgrade []byte
	Tunnel  *Tunnel
}

// RequestTimeouts bound the steps of one exchange as [Timeouts] bound all exchanges.
type RequestTimeouts struct{ Answer, Body time.Duration }

// answerTimeout returns what bounds the wait for the answer's head.
func (r *Request) answerTimeout(t *Timeouts) time.Duration {
	if r.Timeouts.Answer > 0 {
		return r.Timeouts.Answer
	}
	return t.Answer
}

// bodyTimeout returns what bounds each pause within a body of known length.
func (r *Request) bodyTimeout(t *Timeouts) time.Duration {
	if r.Timeouts.Body > 0 {
		return r.Timeouts.Body
	}
	return t.Body
}

// Memory grants memory.
type Memory interface {
	// Grow asks for so many bytes more, and reports whether they may be taken.
	Grow(bytes int) bool
	Shrink(bytes int)
}

// grant asks for memory for a body.
func (r *Request) grant(bytes int) bool { return r.Memory == nil || r.Memory.Grow(bytes) }

// giveBack gives back what was granted and is not used.
func (r *Request) giveBack(bytes int) {
	if r.Memory != nil {
		r.Memory.Shrink(bytes)
	}
}

// isImpatience reports whether an exchange ended because the client's own deadline passed, which shows nothing of the
// backend.
func (r *Request) isImpatience(e *Error) bool {
	if reset, is := errors.AsType[*h2.ResetError](e.Cause); is && r.IsCall && reset.Code == http2.ErrCodeCancel {
		return true
	}
	return e.Kind == TooSlow && !r.Deadline.IsZero() && !time.Now().Before(r.Deadline)
}

// await registers the wait for an answer, which ends when the client leaves. It returns false if the client has left
// before: nothing may be sent then.
func (r *Request) await(w presence.Waiter) bool {
	if r.RunsOn || r.Outlives {
		return !r.Client.HasLeft()
	}
	return r.Client.Await(w)
}

// done ends what await began.
func (r *Request) done() {
	if !r.RunsOn && !r.Outlives {
		r.Client.Over()
	}
}

// isAbandoned reports whether the exchange is to end because the client has left.
func (r *Request) isAbandoned() bool { return !r.RunsOn && !r.Outlives && r.Client.HasLeft() }

// orAbandoned returns the failure of an exchange, which is that the client has left if it has: what failed then has
// most likely failed for that.
func (r *Request) orAbandoned(err error) error {
	if err == nil || !r.isAbandoned() {
		return err
	}
	failure, is := errors.AsType[*Error](err)
	return newError(Abandoned, !is || failure.Sent, presence.ErrLeft)
}
