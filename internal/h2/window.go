package h2

import "math"

// InitialWindow is the size of each window until settings say otherwise (RFC 9113, 6.9.2).
const InitialWindow = 65535

// A SendWindow is how many bytes of data the peer takes at the moment. It is negative if the peer has
// lowered the initial size of windows meanwhile.
type SendWindow struct{ n int64 }

// NewSendWindow returns a window of that size.
func NewSendWindow(size int64) SendWindow { return SendWindow{size} }

// Take takes at most n bytes of the window, and returns how many it took.
func (w *SendWindow) Take(n int) int {
	n = int(min(int64(n), max(w.n, 0)))
	w.n -= int64(n)
	return n
}

// Give puts back bytes that were taken and not sent.
func (w *SendWindow) Give(n int) { w.n += int64(n) }

// Available returns how many bytes can be taken.
func (w *SendWindow) Available() int64 { return max(w.n, 0) }

// Add makes the window larger, or smaller if delta is negative. It reports whether the window is one
// that a peer may have: at most 2^31-1 bytes.
func (w *SendWindow) Add(delta int64) bool {
	w.n += delta
	return w.n <= math.MaxInt32
}

// A ReceiveWindow is how many bytes of data the peer may send.
type ReceiveWindow struct {
	size int // that the window has if all that was received is consumed
	left int // that the peer may send
	used int // that were consumed, and that the peer does not know of
}

// NewReceiveWindow returns a window of that size.
func NewReceiveWindow(size int) ReceiveWindow { return ReceiveWindow{size: size, left: size} }

// Size returns the size that the window has if all that was received is consumed.
func (w *ReceiveWindow) Size() int { return w.size }

// Receive notes that n bytes have come. It reports whether the peer was allowed to send them.
func (w *ReceiveWindow) Receive(n int) bool {
	w.left -= n
	return w.left >= 0
}

// Consume notes that n bytes are used. It returns by how much the peer is to be told that its window
// grows; 0 if that can wait: one frame for each half of the window is enough.
func (w *ReceiveWindow) Consume(n int) (update int) {
	if w.used += n; w.used < w.size/2 {
		return 0
	}
	update, w.used = w.used, 0
	w.left += update
	return update
}

// Grow makes the window larger. It returns by how much the peer is to be told that.
func (w *ReceiveWindow) Grow(size int) (update int) {
	if size <= w.size {
		return 0
	}
	update = size - w.size
	w.size = size
	w.left += update
	return update
}
