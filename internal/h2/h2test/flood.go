package h2test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A Flood is a client that wants a server to hold much, or to do much in vain, for little of its own. Its connections
// come from one address of this machine.
type Flood struct {
	// Address is the server's, From the client's own; "" is any.
	Address, From string
	// Path is that of the requests.
	Path string
	// Streams is how many requests a connection has.
	Streams int
	// Pause is how long it waits between the requests and their resets.
	Pause time.Duration
}

// requests returns what a connection begins with, and the frames of its requests: of each its head, and its reset.
func (f *Flood) requests(settings ...http2.Setting) (begin []byte, heads, resets [][]byte) {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&b, nil)
	_ = framer.WriteSettings(settings...) // a buffer takes all, as below
	begin = bytes.Clone(b.Bytes())
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range f.Streams {
		block.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", f.Path},
			{":authority", "gw"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		id := uint32(2*i + 1)
		b.Reset()
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true,
			EndHeaders: true})
		heads = append(heads, bytes.Clone(b.Bytes()))
		b.Reset()
		_ = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		resets = append(resets, bytes.Clone(b.Bytes()))
	}
	return begin, heads, resets
}

// dial opens a connection.
func (f *Flood) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: Patience}
	if f.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(f.From)}
	}
	return d.DialContext(ctx, "tcp", f.Address)
}

// Reset opens so many connections at once. Each sends its requests and the reset of each right behind it, and closes.
func (f *Flood) Reset(ctx context.Context, connections int) {
	var all sync.WaitGroup
	for range connections {
		all.Go(func() { _ = f.resetOnce(ctx) })
	}
	all.Wait()
}

// Reconnect has so many workers do that one connection after the other, and returns how many connections there were.
func (f *Flood) Reconnect(ctx context.Context, workers int) (connections int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				if f.resetOnce(ctx) == nil {
					mu.Lock()
					connections++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return connections
}

// resetOnce sends what one connection sends.
func (f *Flood) resetOnce(ctx context.Context) error {
	nc, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(Patience)) // a write fails later if this does
	begin, heads, resets := f.requests()
	all := begin
	for i := range heads {
		all = append(all, heads[i]...)
		if f.Pause == 0 {
			all = append(all, resets[i]...)
		}
	}
	if _, err = nc.Write(all); err != nil || f.Pause == 0 {
		return err
	}
	time.Sleep(f.Pause)
	_, err = nc.Write(bytes.Join(resets, nil))
	return err
}

// Hold opens so many connections, each with all its requests, and reads no byte of the answers until ctx is over: the
// windows are as small as they may be. It returns once all are sent.
func (f *Flood) Hold(ctx context.Context, connections int) error {
	begin, heads, _ := f.requests(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	for range connections {
		nc, err := f.dial(ctx)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = nc.Close() })
		go func() { _, _ = io.Copy(io.Discard, nc) }()
		if _, err := nc.Write(append(bytes.Clone(begin), bytes.Join(heads, nil)...)); err != nil &&
			!errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}
