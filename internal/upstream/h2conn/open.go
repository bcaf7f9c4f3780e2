package h2conn

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
)

// Frames that carry nothing: so many at once, and so many in each second.
const emptyCredit, emptyPerSecond = 2000, 500

// New makes a connection of HTTP/2 on a socket: both ends have said by then what they allow.
func New(socket net.Conn, config Config, by time.Time) (*Conn, error) {
	now := time.Now()
	c := &Conn{
		config: config, socket: socket, answers: h2.NewResponseReader(config.HeadBytes),
		window: h2.NewSendWindow(h2.InitialWindow), arrived: h2.NewReceiveWindow(connWindow),
		server: settings{window: h2.InitialWindow, frame: 16 << 10, streams: assumedStreams},
		guard:  h2.NewFloodGuard(emptyCredit, emptyPerSecond, now),
	}
	c.framer = http2.NewFramer(&c.out, bufio.NewReader(socket))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(16 << 10)
	if err := c.greet(by); err != nil {
		return nil, err
	}
	return c, nil
}

// greet sends the preface, and reads the server's.
func (c *Conn) greet(by time.Time) error {
	if err := c.socket.SetDeadline(by); err != nil {
		return err
	}
	c.out.pending = append(c.out.pending, http2.ClientPreface...)
	_ = c.framer.WriteSettings( // which writes to memory
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(min(c.config.HeadBytes, math.MaxInt32))},
	)
	_ = c.framer.WriteWindowUpdate(0, connWindow-h2.InitialWindow)
	if _, err := c.socket.Write(c.out.take()); err != nil {
		return err
	}
	frame, err := c.framer.ReadFrame()
	if err != nil {
		return fmt.Errorf("the server does not begin as one of HTTP/2: %w", err)
	}
	first, ok := frame.(*http2.SettingsFrame)
	if !ok || first.IsAck() {
		return fmt.Errorf("the server does not begin as one of HTTP/2: its first frame is %s", frame.Header().Type)
	}
	if err := c.set(first); err != nil {
		return err
	}
	if c.server.streams == 0 {
		return fmt.Errorf("the server allows no stream")
	}
	return c.socket.SetDeadline(time.Time{})
}

// Streams returns how many streams the server allows at a time, at least one.
func (c *Conn) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.server.streams, 1)
}

// Open opens a stream by sending the block of a head. The stream is closed by its user. If isWhole is set, there is no
// body. Otherwise the head may wait for the first part of the body.
func (c *Conn) Open(fields []byte, isWhole bool) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.spent(); err != nil {
		return nil, err
	}
	s := c.streams.add(c)
	s.headAt = c.out.appended
	c.writeFields(s.id, fields, isWhole)
	if isWhole {
		s.local = over
		c.flush()
	}
	return s, nil
}

// spent returns why no further stream can be opened; nil if one can. A server that leaves says so of all streams
// behind.
func (c *Conn) spent() error {
	switch {
	case c.left != nil:
		return c.left
	case c.err != nil:
		return &Error{Kind: NotSent, Cause: c.err}
	case c.streams.last >= math.MaxInt32-2:
		return &Error{Kind: NotSent, Cause: errSpent}
	}
	return nil
}

// IsLast reports whether no further stream can be opened.
func (c *Conn) IsLast() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent() != nil
}

// Close ends the connection and its streams at once. The server hears that by a GOAWAY, so that it can tell an end that
// was meant from one that was not.
func (c *Conn) Close() error {
	c.leave(http2.ErrCodeNo)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(errClosed)
	return nil
}
