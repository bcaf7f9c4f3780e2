package admin

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/descriptors"
)

// connSlots has the connections to the listener. Health must be answered whatever other clients do, and which page a
// connection is for is known once its first head was read. So a new connection always gets a place: if there is none,
// the connection that waits longest for its next request, or for its head to be complete, gives up its own. Pages other
// than health keep their places until they are answered, and may not have all of them.
type connSlots struct {
	descriptors.Listener

	mu      sync.Mutex
	all     map[*connSlot]struct{}
	private int // pages that are being answered
}

// A connSlot is a connection to the listener. The fields are guarded by connSlots.mu.
type connSlot struct {
	net.Conn
	of *connSlots

	since     time.Time // it waits for a request
	isAsked   bool      // a request is being answered
	isPrivate bool      // with a page that keeps the place
	isGivenUp bool
}

func newConnSlots(l net.Listener, log *slog.Logger) *connSlots {
	p := &connSlots{all: map[*connSlot]struct{}{}}
	p.Listener = descriptors.Listener{Listener: l, Failed: func(error) { p.giveUp() },
		Tell: func(cause error, times int) {
			log.Warn("a connection to the admin listener could not be accepted", "cause", cause, "times", times)
		}}
	return p
}

// Accept returns the next connection, for which another one may have given up its place.
func (p *connSlots) Accept() (net.Conn, error) {
	nc, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &connSlot{Conn: nc, of: p, since: time.Now()}
	if !descriptors.MayAdminister(nc) {
		p.giveUp()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.all) >= maxConnections {
		p.giveUpOne()
	}
	p.all[one] = struct{}{}
	return one, nil
}

func (p *connSlots) giveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveUpOne()
}

// giveUpOne closes the connection that waits longest, or if all are being answered, the oldest of them.
func (p *connSlots) giveUpOne() {
	var oldest *connSlot
	for one := range p.all {
		if oldest == nil || !one.isPrivate && oldest.isPrivate || one.isPrivate == oldest.isPrivate &&
			one.since.Before(oldest.since) {
			oldest = one
		}
	}
	if oldest == nil {
		return
	}
	oldest.isGivenUp = true
	p.forget(oldest)
	_ = oldest.NetConn().Close() // the end of TLS would wait for the client
}

func (p *connSlots) forget(one *connSlot) {
	delete(p.all, one)
	one.leavePage()
}

func (one *connSlot) leavePage() {
	if one.isPrivate {
		one.isPrivate = false
		one.of.private--
	}
}

// NetConn returns the socket.
func (one *connSlot) NetConn() net.Conn {
	if over, is := one.Conn.(interface{ NetConn() net.Conn }); is {
		return over.NetConn()
	}
	return one.Conn
}

// Read reads on from the client, which has got the answer to the request before.
func (one *connSlot) Read(b []byte) (int, error) {
	p := one.of
	p.mu.Lock()
	if one.isAsked {
		one.isAsked, one.since = false, time.Now()
		one.leavePage()
	}
	p.mu.Unlock()
	n, err := one.Conn.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.isGivenUp {
		return 0, io.ErrUnexpectedEOF // no error of the listener that would be logged
	}
	return n, err
}

// Close ends the connection.
func (one *connSlot) Close() error {
	one.of.mu.Lock()
	one.of.forget(one)
	one.of.mu.Unlock()
	return one.Conn.Close()
}

// asked notes that a request of a connection is being answered.
func asked(ctx *fasthttp.RequestCtx) {
	if one, is := ctx.Conn().(*connSlot); is {
		one.of.mu.Lock()
		defer one.of.mu.Unlock()
		one.isAsked = true
		one.leavePage() // of a request that came together with this one
	}
}

// keepPlace has a connection keep its place until its page is answered. False: as many do as may.
func keepPlace(ctx *fasthttp.RequestCtx) bool {
	one, is := ctx.Conn().(*connSlot)
	if !is {
		return true
	}
	p := one.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.private >= maxPages || one.isGivenUp {
		return false
	}
	one.isPrivate = true
	p.private++
	return true
}
