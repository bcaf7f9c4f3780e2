package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/secure"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// endpoint is one address of the backend. The pool's lock guards it.
type endpoint = balance.Endpoint[connections]

// conn is a connection of HTTP/1.1 to the backend with what one exchange on it needs. It is a link with one slot.
type conn struct {
	net.Conn
	transport *transport // nil for a health check
	held      *connection
	br        *bufio.Reader // over it, while an answer is read

	socket  socket
	isHasty bool        // reads take what has arrived, and do not wait
	near    arrivedRead // the answer, while its bytes are read without waiting
	isUsed  bool        // the connection has carried an exchange before
	written int         // bytes of the request, if it was written at once; 0 if not
	isEarly bool        // the first bytes of the answer came before any byte of the request had arrived
	isMore  bool        // the last read filled all its room: more has arrived, most likely

	readBy, writeBy time.Time // the deadlines that are set

	answer message.ResponseHead
	frame  frame
	parts  [2][]byte
	vector net.Buffers
}

// arrivedRead reads bytes that have arrived. The read of the first bytes of an answer is made in the wait for them,
// which spares a second call that could wait.
type arrivedRead struct {
	isOn   bool // reads are of the socket fd, and do not wait
	fd     uintptr
	failed error // of the read, for the one that follows
}

// socket is a connection's raw socket, if the system gives access to it, and the functions that look at it and write to
// it. They are made once, so that a call allocates nothing.
type socket struct {
	raw     syscall.RawConn // nil without access
	look    func(fd uintptr)
	turn    func(fd uintptr) bool
	take    func(fd uintptr) bool
	outward pendingWrite
	inward  []byte  // take reads into it
	taken   int     // by take
	found   arrival // by look

	unacknowledged func(fd uintptr)
	isUnheard      bool // what unacknowledged found: not one byte of the request has arrived
}

// arrival is what has come on a connection that was not asked for anything.
type arrival uint8

const (
	nothing arrival = iota
	ended           // or broken
	surplus         // bytes
)

// look looks at a socket.
func look(fd uintptr) arrival {
	switch closed, waits := peek.Closed(fd); {
	case waits || !peek.IsAble:
		return nothing
	case closed:
		return ended
	}
	return surplus
}

// openSocket gives the connection access to its raw socket.
func (cn *conn) openSocket() {
	sc, ok := cn.Conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sc.SyscallConn(); err == nil {
		s := &cn.socket
		s.raw, s.turn, s.take = raw, cn.turn, cn.take
		s.look = func(fd uintptr) { s.found = look(fd) }
		s.unacknowledged = func(fd uintptr) { s.isUnheard = cn.isUnheard(fd) }
	}
}

// begin implements link.
func (cn *conn) begin(held *connection) { cn.held = held }

// isStale implements link. What has come on the connection is looked at right before the request is written, which gets
// another one then: an earlier look would be one more call of the system, and in vain if something comes after it.
func (cn *conn) isStale() bool { return false }

var (
	errEnded   = errors.New("the connection had ended while it was unused")
	errSurplus = errors.New("the backend sent bytes that it was not asked for")
)

// unasked returns why no request may be sent on an unused connection: it has ended, or has bytes that were not asked
// for. Those are counted.
func (cn *conn) unasked() error {
	s := &cn.socket
	if s.raw == nil {
		return nil
	}
	s.found = ended
	if err := s.raw.Control(s.look); err != nil {
		return errEnded
	}
	if s.found == surplus {
		s.found = cn.decrypt()
	}
	return cn.judge(s.found)
}

// judge is the error for what was found on an unused connection.
func (cn *conn) judge(found arrival) error {
	switch found {
	case ended:
		return errEnded
	case surplus:
		cn.countSurplus()
		return errSurplus
	}
	return nil
}

// decrypt tells what the bytes are that have come on an unused connection. Those of TLS may be none of HTTP, but
// tickets for further sessions.
func (cn *conn) decrypt() arrival {
	s, isSecure := cn.Conn.(*secure.Conn)
	if !isSecure {
		return surplus
	}
	hasEnded := s.HasEnded(func(p []byte) (n int, waits bool, err error) {
		if failed := cn.socket.raw.Control(func(fd uintptr) { n, waits, err = peek.Read(fd, p) }); failed != nil {
			return 0, false, failed
		}
		return n, waits, err
	})
	bytes, end := cn.ahead()
	switch {
	case bytes:
		return surplus
	case hasEnded || end:
		return ended
	}
	return nothing
}

// countSurplus counts the connection as one on which bytes came that were not asked for.
func (cn *conn) countSurplus() {
	if cn.transport != nil {
		cn.transport.surplus.Add(1)
	}
}

// isUnheard reports whether the backend has acknowledged no byte of the request. Then what it has sent is no answer to
// it. The bytes of the request that TLS has sent are more than those that were written, by less than one segment.
func (cn *conn) isUnheard(fd uintptr) bool {
	if !cn.isUsed || cn.written == 0 {
		return false
	}
	n, ok := peek.Unacknowledged(fd)
	return ok && n >= cn.written
}

// hasEarly reports whether what was read came before the backend had any byte of the request, once for each request.
func (cn *conn) hasEarly() bool {
	if s := &cn.socket; !cn.isEarly && cn.isUsed && cn.written > 0 && s.raw != nil {
		s.isUnheard = false
		_ = s.raw.Control(s.unacknowledged) // a connection that has broken is found broken
		cn.isEarly = s.isUnheard
	}
	cn.written = 0
	return cn.isEarly
}

// await waits until there is something to read, an end or an error included.
func (s *socket) await() error {
	if !peek.IsAble || s.raw == nil {
		return nil
	}
	return s.raw.Read(peek.Arrived)
}

// pendingWrite is a write to a socket from which an answer is read next.
type pendingWrite struct {
	rest []byte // to be written
	err  error
	over bool // the next call is after the socket became readable
	// looks says that nothing may have come before the write, and found is what has.
	looks bool
	found arrival
}

// turn writes on its first call, and asks to be called again when the socket is readable. That must have been so after
// the write, because waiting began before it: what was readable earlier does not count. Then it reads.
func (cn *conn) turn(fd uintptr) bool {
	t := &cn.socket.outward
	if t.over {
		return cn.readNear(fd)
	}
	if t.looks {
		// After this look whatever comes makes the socket readable anew, since the wait for that has begun.
		if t.found = look(fd); t.found != nothing {
			return true
		}
	}
	n, waits, err := peek.Write(fd, t.rest)
	if waits || err != nil {
		t.err = err
		return true
	}
	t.rest, t.over = t.rest[n:], true
	return len(t.rest) > 0
}

// readNear reads the first bytes of the answer into a buffer over the connection, and returns false if nothing has
// come.
func (cn *conn) readNear(fd uintptr) bool {
	if cn.transport == nil {
		return true // who makes a health check has a reader of its own
	}
	cn.br = cn.transport.reader(cn)
	cn.near = arrivedRead{isOn: true, fd: fd}
	_, err := cn.br.Peek(1)
	cn.near.isOn = false
	if err == errNotYet {
		cn.dropReader()
		return false
	}
	cn.near.failed = err
	cn.isEarly = err == nil && cn.isUnheard(fd)
	cn.written = 0 // it has been asked for
	return true
}

// take reads what has come, and does not wait. The read that follows returns an error.
func (cn *conn) take(fd uintptr) bool {
	r, s := &cn.near, &cn.socket
	r.fd = fd
	if s.taken, r.failed = r.read(s.inward, cn.Conn); r.failed == errNotYet {
		r.failed = nil
	}
	return true
}

// readMore reads what has come of an answer of which the last read left some, most likely.
func (cn *conn) readMore(p []byte) (int, error) {
	s := &cn.socket
	s.inward, s.taken = p, 0
	err := s.raw.Read(s.take)
	s.inward = nil
	if cn.isMore = s.taken == len(p); s.taken > 0 {
		return s.taken, nil
	}
	if cn.near.failed == nil {
		cn.near.failed = err
	}
	return 0, errNotYet
}

// read reads what has come.
func (r *arrivedRead) read(p []byte, c net.Conn) (int, error) {
	n, waits, err := peek.Read(r.fd, p)
	switch {
	case waits:
		return 0, errNotYet
	case err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// ahead returns what TLS has read from the socket and has not handed out: bytes, or the end of
// the connection. On a socket without TLS isStale finds it.
func (cn *conn) ahead() (bytes, end bool) {
	s, ok := cn.Conn.(*secure.Conn)
	if !ok {
		return false, false
	}
	bytes, err := s.Buffered()
	return bytes, err != nil
}

// await waits until there is something to read, an end or an error included, and takes no buffer for the time: a stream
// may be silent for hours. The deadline of reads holds. If the system has no way to wait so, the Read that follows
// waits.
func (cn *conn) await() error {
	switch nc := cn.Conn.(type) {
	case *secure.Conn:
		if err := nc.Wait(); err != io.EOF {
			return err
		}
		return nil // the next Read finds the end again
	case *net.TCPConn:
		return cn.socket.await()
	}
	return nil
}

// errNotYet is the error of a read that may not wait and finds nothing.
var errNotYet = errors.New("nothing has arrived")

// Read reads from the connection for the buffer over it. In haste it takes what TLS has taken off the socket, and asks
// the socket only behind a read that may have left some: to ask costs a system call, mostly in vain.
func (cn *conn) Read(p []byte) (n int, err error) {
	switch r := &cn.near; {
	case r.isOn:
		n, err = r.read(p, cn.Conn)
	case r.failed != nil && cn.isHasty:
		return 0, errNotYet
	case r.failed != nil:
		err, r.failed = r.failed, nil
		return 0, err
	case !cn.isHasty:
		n, err = cn.Conn.Read(p)
	default:
		return cn.readArrived(p)
	}
	cn.isMore = n == len(p)
	return n, err
}

// readArrived is Read in haste.
func (cn *conn) readArrived(p []byte) (int, error) {
	switch nc := cn.Conn.(type) {
	case *secure.Conn:
		if n, err := nc.ReadArrived(p); n > 0 || err != nil {
			return n, err
		}
	case *net.TCPConn:
		if cn.isMore && peek.IsAble && cn.socket.raw != nil {
			return cn.readMore(p)
		}
	}
	return 0, errNotYet
}

// write writes the request, head and body in one go; a small body has been copied behind its head. sent reports whether
// a byte of it may have left.
func (cn *conn) write(head, body []byte) (sent bool, err error) {
	var n int64
	tcp, isPlain := cn.Conn.(*net.TCPConn)
	looks := cn.isUsed
	if looks && (!isPlain || len(body) > 0 || cn.socket.raw == nil) {
		looks = false
		if err := cn.unasked(); err != nil {
			return false, err
		}
	}
	cn.isEarly, cn.written = false, len(head)+len(body)
	if !isPlain && cn.written > maxSecure {
		cn.written = 0
	}
	switch {
	case len(body) == 0:
		n, err = cn.writeAndWait(head, isPlain, looks)
	case isPlain:
		cn.parts[0], cn.parts[1] = head, body
		cn.vector = cn.parts[:]
		n, err = cn.vector.WriteTo(tcp)
		cn.parts[0], cn.parts[1] = nil, nil
	default:
		if n, err = count(cn.Conn.Write(head)); err == nil {
			_, err = cn.Conn.Write(body)
		}
	}
	// Of TLS a record may have left although no byte of it is reported.
	return n > 0 || err == nil || !isPlain, err
}

// maxSecure is the size up to which a request by TLS has so few records that what they add is less than any segment.
const maxSecure = 16 << 10

func count(n int, err error) (int64, error) { return int64(n), err }

// writeAndWait writes p and waits until there is something to read, an end or an error included. An ordinary read tries
// before it waits, in vain as the answer takes a moment: that is a system call for each request.
func (cn *conn) writeAndWait(p []byte, isPlain, looks bool) (int64, error) {
	if cn.socket.raw == nil || !isPlain {
		return count(cn.Conn.Write(p))
	}
	t := &cn.socket.outward
	*t = pendingWrite{rest: p, looks: looks}
	waited := cn.socket.raw.Read(cn.socket.turn)
	written, rest, err := len(p)-len(t.rest), t.rest, t.err
	if unasked := cn.judge(t.found); unasked != nil {
		err = unasked
	}
	*t = pendingWrite{}
	switch {
	case err != nil:
		return int64(written), err
	case len(rest) > 0:
		n, err := cn.Conn.Write(rest)
		return int64(written + n), err
	case written == 0:
		return 0, waited // the connection is closed
	}
	// What is wrong with the wait will be wrong with the read that follows.
	return int64(written), nil
}

// armRead sets the deadline of reads to about d from now, or to exactly by if that is set and earlier. Setting a
// deadline costs as much as a good part of a system call, so one that is at most an eighth too late is kept.
func (cn *conn) armRead(now time.Time, d time.Duration, by time.Time) error {
	until, keep := armed(cn.readBy, now, d, by)
	if keep {
		return nil
	}
	cn.readBy = until
	return cn.Conn.SetReadDeadline(until)
}

// armWrite is armRead for writes.
func (cn *conn) armWrite(now time.Time, d time.Duration, by time.Time) error {
	until, keep := armed(cn.writeBy, now, d, by)
	if keep {
		return nil
	}
	cn.writeBy = until
	return cn.Conn.SetWriteDeadline(until)
}

func armed(set, now time.Time, d time.Duration, by time.Time) (until time.Time, keep bool) {
	if d <= 0 {
		return by, set.Equal(by)
	}
	if !by.IsZero() && by.Sub(now) < d {
		return by, set.Equal(by)
	}
	most := d + d/8
	if left := set.Sub(now); d <= left && left <= most {
		return set, true
	}
	return now.Add(most), false
}
