// Package h2conn is the client's end of a connection of HTTP/2 to a backend (RFC 9113), and the streams on it.
//
// Frames and HPACK are golang.org/x/net's; streams are the gateway's own. One goroutine reads the connection and hands
// what comes to the streams. It never writes, so that two ends that both wait for room to write do not wait for each
// other. Whoever has something to write appends it to what is pending, under the lock that also orders streams. If no
// goroutine is writing, it writes until nothing is pending; else the one that is writing writes that, too.
//
// What a stream holds is bounded by its window, which grows again by what its reader takes, and granted by the budget
// for requests. The window of the connection grows by what arrives, so that a stream that is read slowly does not hold
// up the others.
package h2conn

import (
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
)

const (
	// connWindow is how much all streams together may be sent before the server hears that more may come.
	connWindow = 4 << 20
	// streamWindow is the most that a stream holds at first, and maxStreamWindow once its reader has shown that it
	// takes what comes as fast as it comes.
	streamWindow    = 64 << 10
	maxStreamWindow = 1 << 20
	// assumedStreams are the streams at a time of a server that sets no bound.
	assumedStreams = 1000
	// maxSpare is how many streams, and how many heads, a connection keeps the memory of for those to come.
	maxSpare = 64
	// maxPending is the size of what is pending beyond which no body is added to it, and maxBehind the one beyond which
	// the server does not read what it asks for.
	maxPending = 64 << 10
	maxBehind  = 1 << 20
)

// Config bounds a connection.
type Config struct {
	// HeadBytes is the size of the largest head of an answer, as text of HTTP/1.1.
	HeadBytes int
	// Ping is after what time without a frame from the server it is asked for a sign of life, if something was sent to
	// it since the last one. The connection ends if none comes within PingTimeout.
	Ping, PingTimeout time.Duration
	// AsksSilent says that the server is asked after that time also if nothing was sent to it, while streams are open:
	// a watch on a connection that carries nothing any more would be silent for ever. Servers of gRPC take offence.
	AsksSilent bool
	// Write bounds the time that the server takes nothing of what is written.
	Write time.Duration
	// Memory is that of the streams.
	Memory *Memory
}

// period is how often the connection is looked at. A frame that came in a period shows that the server was there, if
// only at its begin. So two periods pass before a silent server is asked.
func (c *Config) period() time.Duration {
	if c.AsksSilent {
		return c.Ping / 2
	}
	return c.Ping
}

// Events are called by the goroutine that reads, without any lock.
type Events struct {
	// Streams: the server now allows so many streams at a time.
	Streams func(n int)
	// Last: no further stream can be opened. Those that are open may go on.
	Last func()
}

// Conn is a connection. It is safe for concurrent use.
type Conn struct {
	config  Config
	socket  net.Conn
	framer  *http2.Framer // reads; writes into out, under mu
	answers *h2.ResponseReader
	text    []byte // memory of answers
	block   block  // that is being read
	events  Events

	mu       sync.Mutex
	streams  streamTable
	heads    [][]byte // memory for heads of answers
	out      outbox
	window   h2.SendWindow
	arrived  h2.ReceiveWindow
	server   settings
	guard    h2.FloodGuard
	liveness liveness
	err      error  // why it has ended
	left     *Error // the server's word that it takes no further stream; nil if there is none
}

// settings are the server's.
type settings struct {
	window  int64 // of each new stream
	frame   int   // the largest payload
	streams int   // at a time
}

// block is the block of fields that is being read.
type block struct {
	stream    uint32
	isTrailer bool
	isEnd     bool // the stream ends with it
	size      int
}

// writeFields appends a block.
func (c *Conn) writeFields(id uint32, fields []byte, isEnd bool) {
	part := fields[:min(len(fields), c.server.frame)]
	fields = fields[len(part):]
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: part, EndStream: isEnd, EndHeaders: len(fields) == 0,
	})
	for len(fields) > 0 {
		part = fields[:min(len(fields), c.server.frame)]
		fields = fields[len(part):]
		_ = c.framer.WriteContinuation(id, len(fields) == 0, part)
	}
}

// end ends the connection and what is left of its streams.
func (c *Conn) end(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.liveness.stop()
	for _, s := range c.streams.open {
		kind := Broken
		if c.out.begun <= s.headAt {
			kind = NotSent
		}
		s.fail(kind, err)
	}
	_ = c.socket.Close() // nothing of it is used any more
}

// flush writes what is pending, unless another goroutine does. The lock is given back meanwhile.
func (c *Conn) flush() {
	if c.out.isWriting || len(c.out.pending) == 0 {
		return
	}
	c.out.isWriting = true
	for len(c.out.pending) > 0 && c.err == nil {
		p := c.out.take()
		c.mu.Unlock()
		err := c.write(p)
		c.mu.Lock()
		c.out.give(p)
		if err != nil {
			c.end(err)
		}
		c.wakeSenders()
	}
	c.out.isWriting = false
}

// write writes to the socket. The goroutine that writes has the deadline of writes, which is at most twice as late as
// it should be: to set one costs a good part of a system call.
func (c *Conn) write(p []byte) error {
	if least := time.Now().Add(c.config.Write); c.out.by.Before(least) {
		c.out.by = least.Add(c.config.Write)
		if err := c.socket.SetWriteDeadline(c.out.by); err != nil {
			return err
		}
	}
	_, err := c.socket.Write(p)
	return err
}

// flushApart has what is pending written by another goroutine: the one that reads never writes.
func (c *Conn) flushApart() {
	if c.out.isWriting || len(c.out.pending) == 0 {
		return
	}
	go func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flush()
	}()
}

// wakeSenders has all who wait for room look again.
func (c *Conn) wakeSenders() {
	for _, s := range c.streams.open {
		if s.local == underWay {
			s.sender.wake()
		}
	}
}

// leave says why the connection ends, in the time that a write takes at once.
func (c *Conn) leave(code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.out.isWriting {
		return
	}
	c.out.isWriting = true // for good
	_ = c.framer.WriteGoAway(0, code, nil)
	p := c.out.take()
	c.mu.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.socket.Write(p)
	c.mu.Lock()
}

// look asks a server that is silent for a sign of life, and ends the connection if it gave none when it was asked.
func (c *Conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	most := silentPeriods
	if c.config.AsksSilent && len(c.streams.open) > 0 {
		most = 1
	}
	switch isAsked, isDead := c.liveness.look(c.out.begun, most); {
	case isDead:
		c.end(errSilent)
	case isAsked:
		c.liveness.timer.Reset(c.config.PingTimeout)
		_ = c.framer.WritePing(false, [8]byte{})
		c.flush()
	default:
		c.liveness.timer.Reset(c.config.period())
	}
}

// streamTable is the streams that are open, and the memory of earlier ones.
type streamTable struct {
	open  []*Stream // in the order of their ids
	spare []*Stream
	last  uint32 // the highest id that was given; 0 if none was
}

// add opens a stream with the next id. Ids are odd, and a connection ends before they do.
func (t *streamTable) add(c *Conn) *Stream {
	if t.last == 0 {
		t.last = 1
	} else {
		t.last += 2
	}
	var s *Stream
	if n := len(t.spare); n > 0 {
		s, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		s = newStream(c)
	}
	s.begin(t.last, c.server.window)
	t.open = append(t.open, s)
	return s
}

// find returns an open stream, or nil.
func (t *streamTable) find(id uint32) *Stream {
	if i, ok := t.at(id); ok {
		return t.open[i]
	}
	return nil
}

func (t *streamTable) at(id uint32) (int, bool) {
	return slices.BinarySearchFunc(t.open, id, func(s *Stream, id uint32) int { return int(int64(s.id) - int64(id)) })
}

// remove takes a stream out.
func (t *streamTable) remove(s *Stream) {
	if i, ok := t.at(s.id); ok {
		t.open = slices.Delete(t.open, i, i+1)
		if len(t.spare) < maxSpare {
			t.spare = append(t.spare, s)
		}
	}
}

// isIdle reports whether a stream was never opened.
func (t *streamTable) isIdle(id uint32) bool { return id%2 == 0 || id > t.last }
