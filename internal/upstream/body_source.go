package upstream

import (
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// bodySource is the body of one answer while it comes, in the framing of its protocol. One goroutine at a time reads
// it; interrupt may be called by any other.
type bodySource interface {
	// arm bounds the reads that wait from now on to about d, or to exactly by if that is set and earlier.
	arm(now time.Time, d time.Duration, by time.Time) error
	// read reads bytes of the body; io.EOF comes after the last of a complete body alone. If wait is unset it takes
	// only what has arrived, and returns 0 and no error if that is nothing.
	read(p []byte, wait bool) (int, error)
	// buffered returns how many bytes have arrived, framing included.
	buffered() int
	// hasMore reports whether more than that has arrived, most likely.
	hasMore() bool
	// isOver reports whether a read would find the end.
	isOver() bool
	// wait waits until a read would find something, and takes no memory meanwhile.
	wait() error
	// prepare is called before reads of a goroutine that has made few calls.
	prepare()
	// interrupt makes a read or a wait in progress return.
	interrupt()
	// trailers returns the fields behind the body, once it was read to its end.
	trailers() []message.Header
	// release ends the use of the connection. The answer is whole if it was read to its end, and the request was sent
	// to its own.
	release(isWhole bool, o balance.Outcome)
}

// uploadSink takes the body of a request that is sent while it comes. One goroutine sends; the other methods may be
// called by any other.
type uploadSink interface {
	// sendPart sends the n bytes of part behind uploadRoom, of the upload of a request. The last part ends the upload.
	sendPart(part *[uploadPart]byte, n int, isLast bool, req *Request) error
	// boundAnswer says for how long the head of the answer is still waited for.
	boundAnswer(d time.Duration)
	// answered says that the head has come.
	answered()
	// breakOff makes the one who waits for the answer return, and the backend learn that the request is not whole.
	breakOff()
	// stopSending makes sendPart return.
	stopSending()
}
