package server

import (
	"time"

	"github.com/admission-gateway/gateway/internal/peek"
)

// A closeWatch notices that the client closes the connection while it reads an answer that may last. Most such clients
// send nothing: no goroutine waits before something comes.
type closeWatch struct {
	conn    *conn
	gone    func()
	wait    func() error
	waiting peek.Wait
	over    chan struct{} // is closed when the goroutine ends
}

// onClose calls gone, from another goroutine, when the client closes the connection, until stop is
// called. What the client sends meanwhile is kept for later, as far as there is room: beyond that
// the client is no longer watched, and a write shows it in time.
func (c *conn) onClose(gone func()) (stop func()) {
	wait := waiter(c.socket.Conn)
	if wait == nil {
		return func() {}
	}
	c.socket.setReadDeadline(time.Time{})
	c.watched.turns.Add(1) // the poller need not ask about it
	d := &closeWatch{conn: c, gone: gone, wait: wait, over: make(chan struct{})}
	if !c.server.watch(&d.waiting, c.silentSocket(), time.Time{}, func(bool) { go d.watch() }) {
		go d.watch()
	}
	return d.stop
}

func (d *closeWatch) stop() {
	c := d.conn
	c.watched.turns.Add(1)
	if c.server.forget(&d.waiting) {
		return
	}
	c.socket.setReadDeadline(time.Unix(1, 0))
	<-d.over
	c.socket.setReadDeadline(time.Time{})
}

func (d *closeWatch) watch() {
	defer close(d.over)
	if d.hasClosed() {
		d.gone()
	}
}

// hasClosed reads what the client sends into the buffer, which nothing else uses meanwhile. It returns
// true when the client has closed the connection.
func (d *closeWatch) hasClosed() (gone bool) {
	in := &d.conn.in
	for {
		if err := d.wait(); err != nil {
			return !isTimeout(err)
		}
		if in.borrow(); in.w == len(in.buf) {
			return false
		}
		if _, err := in.fill(); err != nil {
			return !isTimeout(err)
		}
	}
}
