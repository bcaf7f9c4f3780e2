package backend

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// Request is a request as it arrived.
type Request struct {
	Method string
	Target string // the request target, byte for byte
	Proto  string // such as HTTP/1.1
	Host   string
	Header http.Header // without Host; names in canonical case
	Body   []byte
	Err    error // why the body could not be read, if so; Body is then incomplete
}

// Recorder keeps what a Server receives, until Reset: the requests that net/http understood and, apart from them, every
// byte that arrived on its listeners. The zero value is ready; one Recorder may serve several Servers.
type Recorder struct {
	mu       sync.Mutex
	requests []Request
	conns    []*recordedConn
}

// Requests returns the requests so far in the order in which their bodies were complete.
func (r *Recorder) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Bytes returns, for each connection accepted so far, the bytes that arrived on it.
func (r *Recorder) Bytes() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([][]byte, len(r.conns))
	for i, c := range r.conns {
		all[i] = slices.Clone(c.received)
	}
	return all
}

// Reset forgets what was recorded; open connections stay known and start anew.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
	r.conns = slices.DeleteFunc(r.conns, func(c *recordedConn) bool { return c.closed })
	for _, c := range r.conns {
		c.received = nil
	}
}

func (r *Recorder) add(q *Request) {
	copied := *q
	copied.Header = q.Header.Clone()
	copied.Body = slices.Clone(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, copied)
}

func (r *Recorder) listen(l net.Listener) net.Listener { return recordedListener{l, r} }

type recordedListener struct {
	net.Listener
	recorder *Recorder
}

func (l recordedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	rc := &recordedConn{Conn: c, recorder: l.recorder}
	l.recorder.mu.Lock()
	defer l.recorder.mu.Unlock()
	l.recorder.conns = append(l.recorder.conns, rc)
	return rc, nil
}

type recordedConn struct {
	net.Conn
	recorder *Recorder
	received []byte // guarded by recorder.mu, as closed is
	closed   bool
}

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.recorder.mu.Lock()
		c.received = append(c.received, p[:n]...)
		c.recorder.mu.Unlock()
	}
	return n, err
}

func (c *recordedConn) Close() error {
	c.recorder.mu.Lock()
	c.closed = true
	c.recorder.mu.Unlock()
	return c.Conn.Close()
}
