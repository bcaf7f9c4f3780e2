package upstream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/message"
)

// far is the backend's end of a connection of HTTP/2, frame by frame.
type far struct {
	*http2.Framer
	net.Conn
	block   bytes.Buffer
	encoder *hpack.Encoder
}

// acceptAll has serve take each connection, whose number begins with 0, and closes it then.
func acceptAll(ln net.Listener, serve func(nc net.Conn, number int)) {
	go func() {
		for number := 0; ; number++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = nc.Close() }()
				serve(nc, number)
			}()
		}
	}()
}

// newFar has serve take each connection, whose number begins with 0. The settings are sent first.
func newFar(t testing.TB, serve func(f *far, number int), settings ...http2.Setting) Config {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	acceptAll(ln, func(nc net.Conn, number int) {
		if f := meet(nc, settings...); f != nil {
			serve(f, number)
		}
	})
	return Config{Endpoints: []string{"http://" + ln.Addr().String()}, Protocol: HTTP2}
}

// meet begins a connection of HTTP/2; nil if its client does not.
func meet(nc net.Conn, settings ...http2.Setting) *far {
	f := &far{Framer: http2.NewFramer(nc, nc), Conn: nc}
	f.AllowIllegalWrites = true
	f.encoder = hpack.NewEncoder(&f.block)
	if _, err := io.ReadFull(nc, make([]byte, len(http2.ClientPreface))); err != nil {
		return nil
	}
	_ = f.WriteSettings(settings...)
	return f
}

// next returns the next frame of that kind; it is not ok at the end of the connection. Settings and pings are
// confirmed.
func next[F http2.Frame](f *far) (one F, ok bool) {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return one, false
		}
		if s, is := frame.(*http2.SettingsFrame); is && !s.IsAck() {
			_ = f.WriteSettingsAck()
		}
		if one, ok = frame.(F); ok {
			return one, true
		}
		if p, is := frame.(*http2.PingFrame); is && !p.IsAck() {
			_ = f.WritePing(true, p.Data)
		}
	}
}

// request returns the stream of the next request, 0 at the end.
func (f *far) request() uint32 {
	h, ok := next[*http2.HeadersFrame](f)
	if !ok {
		return 0
	}
	return h.StreamID
}

// head sends a block of names and values.
func (f *far) head(id uint32, isEnd bool, fields ...string) {
	f.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	b := f.block.Bytes()
	first := b[:min(len(b), 16<<10)]
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: isEnd,
		EndHeaders: len(first) == len(b)})
	if len(first) < len(b) {
		_ = f.WriteContinuation(id, true, b[len(first):])
	}
}

// ok answers a request.
func (f *far) ok(id uint32) {
	f.head(id, false, ":status", "200", "content-length", "2")
	_ = f.WriteData(id, true, []byte("ok"))
}

// serveOK answers all requests.
func (f *far) serveOK() {
	for id := f.request(); id != 0; id = f.request() {
		f.ok(id)
	}
}

// ask makes a request, and returns the kind of the failure or the body.
func ask(client *Client, method, target string) string {
	var resp message.Response
	if err := client.Do(request(method, target, ""), &resp); err != nil {
		return kindOf(err)
	}
	defer resp.Close()
	if resp.IsStream() {
		body, err := io.ReadAll(resp.Stream())
		return string(body) + " " + kindOf(err)
	}
	return string(resp.Body())
}

// What the backend says it has not processed is sent again, and what it may have processed is not, unless it is a read.
func TestHTTP2SentAgain(t *testing.T) {
	fault := map[string]func(f *far, id uint32){
		"goes without it": func(f *far, _ uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"refuses it":      func(f *far, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream) },
		"goes after it":   func(f *far, id uint32) { _ = f.WriteGoAway(id, http2.ErrCodeNo, nil); f.ok(id) },
		"goes twice": func(f *far, id uint32) {
			_ = f.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			_ = f.WriteGoAway(id, http2.ErrCodeNo, nil)
			f.ok(id)
		},
		"goes after it and ends": func(f *far,
			id uint32) {
			_ = f.WriteGoAway(id, http2.ErrCodeNo, nil)
			_ = f.Close()
		},
		"resets it": func(f *far, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeInternal) },
		"ends":      func(f *far, _ uint32) { _ = f.Close() },
		"ends it with a head": func(f *far, id uint32) {
			f.head(id, false, ":status", "200")
			_ = f.WriteRSTStream(id, http2.ErrCodeInternal)
		},
		"refuses it with a head": func(f *far, id uint32) {
			f.head(id, false, ":status", "200")
			_ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		},
	}
	for _, c := range []struct {
		fault     string
		get, post string // what comes of them
		tries     int    // of the POST
	}{
		{"goes without it", "ok", "ok", 2},
		{"refuses it", "ok", "ok", 2},
		{"goes after it", "ok", "ok", 1},
		{"goes twice", "ok", "ok", 1},
		{"goes after it and ends", "ok", "Broken", 1},
		{"resets it", "ok", "Broken", 1},
		{"ends", "ok", "Broken", 1},
		{"ends it with a head", " Broken", " Broken", 1},
		{"refuses it with a head", " Broken", " Broken", 1},
	} {
		t.Run(c.fault, func(t *testing.T) {
			var tries atomic.Int32
			var faulty atomic.Bool
			client := newClient(t, newFar(t, func(f *far, _ int) {
				for id := f.request(); id != 0; id = f.request() {
					if tries.Add(1); faulty.CompareAndSwap(true, false) {
						fault[c.fault](f, id)
					} else {
						f.ok(id)
					}
				}
			}))
			for _, one := range []struct{ method, want string }{{"GET", c.get}, {"POST", c.post}} {
				if got := ask(client, "GET", "/warm"); got != "ok" { // so that the connection is not a fresh one
					t.Fatalf("the first request: %s", got)
				}
				tries.Store(0)
				faulty.Store(true)
				if got := ask(client, one.method, "/a"); got != one.want {
					t.Errorf("%s: %s, want %s", one.method, got, one.want)
				}
				if got := int(tries.Load()); one.method == "POST" && got != c.tries {
					t.Errorf("the POST was sent %d times, want %d", got, c.tries)
				}
			}
		})
	}
}

// A backend that leaves a connection as soon as it was made is asked on another one.
func TestHTTP2LeavesAtOnce(t *testing.T) {
	for _, ends := range []bool{false, true} {
		client := newClient(t, newFar(t, func(f *far, number int) {
			if number%2 == 0 {
				_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
				if ends {
					_ = f.Conn.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, f.Conn) // without a reset, which could be faster than the frame
					return
				}
			}
			f.serveOK()
		}))
		for range 20 {
			if got := ask(client, "POST", "/a"); got != "ok" {
				t.Errorf("got %s", got)
			}
		}
	}
}

// A backend that refuses a request each time is not asked for ever.
func TestHTTP2RefusalsAreBounded(t *testing.T) {
	var tries atomic.Int32
	client := newClient(t, newFar(t, func(f *far, _ int) {
		for id := f.request(); id != 0; id = f.request() {
			tries.Add(1)
			_ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		}
	}))
	if got := ask(client, "GET", "/a"); got != "Broken" || tries.Load() > maxRefused+1 || tries.Load() < 2 {
		t.Errorf("%s after %d tries", got, tries.Load())
	}
}

// Streams that are open go on when the backend leaves, and their connection ends with them.
func TestHTTP2LeavingBackendFinishes(t *testing.T) {
	ended := make(chan struct{})
	client := newClient(t, newFar(t, func(f *far, number int) {
		id := f.request()
		if number > 0 {
			f.ok(id)
			f.serveOK()
			return
		}
		f.head(id, false, ":status", "200")
		_ = f.WriteGoAway(id, http2.ErrCodeNo, nil)
		_ = f.WriteData(id, false, []byte("one"))
		<-ended
		_ = f.WriteData(id, true, []byte("two"))
		if _, ok := next[*http2.HeadersFrame](f); ok {
			t.Error("the backend that leaves gets another request")
		}
		ended <- struct{}{} // the gateway has closed the connection
	}))
	var resp message.Response
	if err := client.Do(request("GET", "/watch", ""), &resp); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 3)
	if _, err := io.ReadFull(resp.Stream(), first); string(first) != "one" || err != nil {
		t.Fatalf("%q, %v", first, err)
	}
	if got := ask(client, "GET", "/other"); got != "ok" {
		t.Errorf("the other request: %s", got)
	}
	ended <- struct{}{}
	if body := bodyOf(t, &resp); body != "two" {
		t.Errorf("the body ends with %q", body)
	}
	<-ended
	if open, idle := client.Conns(); open != 1 || idle != 1 {
		t.Errorf("%d connections are open, %d idle", open, idle)
	}
}

// The number of streams follows what the backend allows, also when that changes.
func TestHTTP2StreamsFollowSettings(t *testing.T) {
	release := make(chan struct{})
	var open, most atomic.Int32
	config := newFar(t, func(f *far, number int) {
		var writing sync.Mutex
		for id := f.request(); id != 0; id = f.request() {
			if number == 0 && id == 1 {
				_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
				if s, ok := next[*http2.SettingsFrame](f); !ok || !s.IsAck() {
					t.Error("the settings are not confirmed")
				}
				f.ok(id)
				continue
			}
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			go func() {
				<-release
				open.Add(-1)
				writing.Lock()
				defer writing.Unlock()
				f.ok(id)
			}()
		}
	}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
	config.Limits.Conns = 1
	config.Limits.Wait = time.Minute
	client := newClient(t, config)
	if got := ask(client, "GET", "/first"); got != "ok" {
		t.Fatal(got)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := ask(client, "GET", "/a"); got != "ok" {
				t.Error(got)
			}
		})
	}
	for range 20 {
		release <- struct{}{}
	}
	all.Wait()
	if most.Load() > 2 {
		t.Errorf("%d streams were open at a time", most.Load())
	}
}

// What breaks the rules of HTTP/2 ends the stream alone, or the connection if nothing on it can be trusted.
func TestHTTP2Malformed(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	for _, c := range []struct {
		name  string
		serve func(f *far, id uint32)
		want  string // a part of the message
		kept  bool   // the connection goes on
	}{
		{"no status", func(f *far, id uint32) { f.head(id, true, "a", "b") }, "':status' before its headers", true},
		{"no field", func(f *far, id uint32) { f.head(id, true) }, "no pseudo header field ':status'", true},
		{"status twice", func(f *far, id uint32) { f.head(id, true, ":status", "200", ":status", "200") },
			"more than once", true},
		{"late status", func(f *far, id uint32) { f.head(id, true, ":status", "200", "a", "b", ":status", "200") },
			"more than once", true},
		{"a pseudo field of requests", func(f *far, id uint32) { f.head(id, true, ":status", "200", ":path", "/") },
			"answers do not have", true},
		{"a status of four digits", func(f *far, id uint32) { f.head(id, true, ":status", "2000") }, "not three digits",
			true},
		{"a status out of range", func(f *far, id uint32) { f.head(id, true, ":status", "600") }, "outside 100 to 599",
			true},
		{"a capital letter", func(f *far, id uint32) { f.head(id, true, ":status", "200", "Location", "a") },
			"capital letter", true},
		{"a line end in a value", func(f *far, id uint32) { f.head(id, true, ":status", "200", "a", "b\r\nc: d") },
			"control character", true},
		{"a colon in a name", func(f *far, id uint32) { f.head(id, true, ":status", "200", "a:b", "c") },
			"may not be in one", true},
		{"a space around a value", func(f *far, id uint32) { f.head(id, true, ":status", "200", "a", " b") },
			"space at its start or end", true},
		{"connection", func(f *far, id uint32) { f.head(id, true, ":status", "200", "connection", "close") },
			"'connection'", true},
		{"transfer-encoding", func(f *far, id uint32) {
			f.head(id, true, ":status", "200", "transfer-encoding",
				"chunked")
		}, "'transfer-encoding'", true},
		{"two lengths", func(f *far, id uint32) {
			f.head(id, true, ":status", "200", "content-length", "0", "content-length", "0")
		}, "more than once", true},
		{"a length that is none",
			func(f *far, id uint32) { f.head(id, true, ":status", "200", "content-length", "+1") }, "'Content-Length'",
			true},
		{"too few bytes", func(f *far, id uint32) {
			f.head(id, false, ":status", "200", "content-length", "3")
			_ = f.WriteData(id, true, []byte("ok"))
		}, "fewer bytes", true},
		{"no bytes", func(f *far, id uint32) { f.head(id, true, ":status", "200", "content-length", "3") },
			"fewer bytes", true},
		{"too many bytes", func(f *far, id uint32) {
			f.head(id, false, ":status", "200", "content-length", "1")
			_ = f.WriteData(id, true, []byte("ok"))
		}, "more bytes", true},
		{"bytes behind no content", func(f *far, id uint32) {
			f.head(id, false, ":status", "204")
			_ = f.WriteData(id, true, []byte("ok"))
		}, "more bytes", true},
		{"switching", func(f *far, id uint32) { f.head(id, false, ":status", "101") }, "another protocol", true},
		{"an end with hints", func(f *far, id uint32) { f.head(id, true, ":status", "103") }, "informational", true},
		{"hints without end", func(f *far, id uint32) {
			for range 20 {
				f.head(id, false, ":status", "103")
			}
		}, "too many informational", true},
		{"a body before the head", func(f *far, id uint32) { _ = f.WriteData(id, true, []byte("ok")) },
			"before its head", true},
		{"a second head", func(f *far, id uint32) {
			f.head(id, false, ":status", "200", "content-length", "2")
			f.head(id, false, ":status", "200")
		}, "pseudo header field among its trailers", true},
		{"trailers that do not end it", func(f *far, id uint32) {
			f.head(id, false, ":status", "200", "content-length", "2")
			f.head(id, false, "a", "b")
		}, "behind its trailers", true},
		{"a large head", func(f *far, id uint32) { f.head(id, true, ":status", "200", "a", long) }, "too large", true},
		{"a block that is none", func(f *far, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
				BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		}, "closed the connection", false},
		{"a stream that was not opened", func(f *far, _ uint32) { f.head(99, true, ":status", "200") },
			"closed the connection", false},
		{"a pushed stream", func(f *far, id uint32) {
			_ = f.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true})
		}, "closed the connection", false},
		{"another frame amid a block", func(f *far, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}})
			_ = f.WriteData(id, true, nil)
		}, "closed the connection", false},
		{"a frame that is too large",
			func(f *far, id uint32) { _ = f.WriteRawFrame(http2.FrameData, 0, id, make([]byte, 17<<10)) },
			"closed the connection", false},
		{"a window without end", func(f *far, _ uint32) {
			_ = f.WriteWindowUpdate(0, 1<<31-1)
		}, "closed the connection", false},
		{"a window of nothing",
			func(f *far, id uint32) { _ = f.WriteRawFrame(http2.FrameWindowUpdate, 0, id, make([]byte, 4)) },
			"rules of HTTP/2", true},
		{"settings that are none", func(f *far, _ uint32) {
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})
		}, "closed the connection", false},
		{"a flood of settings", func(f *far, _ uint32) {
			for f.WriteSettings() == nil {
			}
		}, "closed the connection", false},
		{"a flood of pings", func(f *far, _ uint32) {
			for f.WritePing(false, [8]byte{}) == nil {
			}
		}, "closed the connection", false},
		{"a flood of resets", func(f *far, id uint32) {
			_ = f.WriteRSTStream(id, http2.ErrCodeCancel)
			for f.WriteRSTStream(id, http2.ErrCodeCancel) == nil {
			}
		}, "ended the request by CANCEL", false},
		{"a flood of empty data", func(f *far, id uint32) {
			f.head(id, false, ":status", "200", "content-length", "2")
			for f.WriteData(id, false, nil) == nil {
			}
		}, "closed the connection", false},
		{"a flood of unknown frames", func(f *far, _ uint32) {
			for f.WriteRawFrame(99, 0, 0, nil) == nil {
			}
		}, "closed the connection", false},
		{"a block without end", func(f *far, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}})
			for f.WriteContinuation(id, false, nil) == nil {
			}
		}, "closed the connection", false},
		{"a large block without end", func(f *far, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}})
			for f.WriteContinuation(id, false, bytes.Repeat([]byte{0x88}, 1000)) == nil {
			}
		}, "closed the connection", false},
		{"more than the window", func(f *far, id uint32) {
			f.head(id, false, ":status", "200")
			for range 5 {
				_ = f.WriteData(id, false, make([]byte, 16<<10))
			}
		}, "allowed to send", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			served := make(chan struct{}, 10)
			client := newClient(t, newFar(t, func(f *far, _ int) {
				defer func() { served <- struct{}{} }()
				first := true
				for id := f.request(); id != 0; id = f.request() {
					if first {
						first = false
						f.ok(id)
						continue
					}
					if c.serve(f, id); !c.kept {
						_, _ = io.Copy(io.Discard, f)
						return
					}
					f.serveOK()
				}
			}))
			if got := ask(client, "GET", "/warm"); got != "ok" {
				t.Fatal(got)
			}
			var resp message.Response
			err := client.Do(request("POST", "/a", ""), &resp)
			if err == nil && resp.IsStream() {
				time.Sleep(10 * time.Millisecond) // what is beyond the window arrives
				_, err = io.ReadAll(resp.Stream())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, because of %v; want %q", err, errors.Unwrap(err), c.want)
			}
			resp.Close()
			if c.kept {
				if got := ask(client, "GET", "/b"); got != "ok" || client.Dialled() != 1 {
					t.Errorf("then %s, after %d connections", got, client.Dialled())
				}
			} else {
				<-served
			}
		})
	}
}

// An end of the stream amid the body is no end of the body.
func TestHTTP2BrokenBodies(t *testing.T) {
	for _, fault := range []func(f *far, id uint32){
		func(f *far, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeNo) },
		func(f *far, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeCancel) },
		func(f *far, _ uint32) { _ = f.Close() },
	} {
		client := newClient(t, newFar(t, func(f *far, _ int) {
			id := f.request()
			f.head(id, false, ":status", "200")
			_ = f.WriteData(id, false, []byte("part"))
			fault(f, id)
			_, _ = io.Copy(io.Discard, f)
		}))
		if got := ask(client, "GET", "/a"); got != "part Broken" && got != "Broken" {
			t.Errorf("got %q", got)
		}
	}
}

// A backend that does not take a body to its end may answer nevertheless.
func TestHTTP2EarlyAnswer(t *testing.T) {
	client := newClient(t, newFar(t, func(f *far, _ int) {
		for id := f.request(); id != 0; id = f.request() {
			f.head(id, true, ":status", "413", "content-length", "0")
			_ = f.WriteRSTStream(id, http2.ErrCodeNo)
		}
	}))
	for range 10 {
		var resp message.Response
		if err := client.Do(request("POST", "/a", strings.Repeat("x", 1<<20)), &resp); err != nil ||
			resp.Status() != 413 {
			t.Errorf("%d, %v: %v", resp.Status(), err, errors.Unwrap(err))
		}
	}
	if client.Dialled() != 1 {
		t.Errorf("%d connections were made", client.Dialled())
	}
}

// A request is sent within the windows that the backend gives, also if they become smaller.
func TestHTTP2SendsWithinWindows(t *testing.T) {
	const size = 300_000
	client := newClient(t, newFar(t, func(f *far, _ int) {
		id := f.request()
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		window, all, acks := 65535, 65535, 0
		for got := 0; got < size; {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Errorf("the connection ended after %d bytes: %v", got, err)
				return
			}
			switch one := frame.(type) {
			case *http2.SettingsFrame:
				if !one.IsAck() {
					break
				}
				if acks++; acks == 2 { // from here on, what had been allowed before is less
					window -= 65535 - 10
					_ = f.WriteWindowUpdate(id, 70_000)
					window += 70_000
				}
			case *http2.DataFrame:
				n := len(one.Data())
				got += n
				if window, all = window-n, all-n; window < 0 || all < 0 {
					t.Errorf("%d bytes came beyond a window", -min(window, all))
				}
				_ = f.WriteWindowUpdate(id, uint32(n))
				_ = f.WriteWindowUpdate(0, uint32(n))
				window, all = window+n, all+n
			}
		}
		f.ok(id)
		f.serveOK()
	}))
	var resp message.Response
	if err := client.Do(request("POST", "/a", strings.Repeat("x", size)), &resp); err != nil {
		t.Errorf("%v: %v", err, errors.Unwrap(err))
	}
}

// Trailers that the gateway, or a client, could take for a part of the head are left out.
func TestHTTP2Trailers(t *testing.T) {
	client := newClient(t, newFar(t, func(f *far, _ int) {
		id := f.request()
		f.head(id, false, ":status", "200", "content-length", "2")
		_ = f.WriteData(id, false, []byte("ok"))
		f.head(id, true, "grpc-status", "0", "content-length", "7", "authorization", "x", "host", "y", "x_y", "z",
			"grpc-message", "")
		f.serveOK()
	}))
	var resp message.Response
	if err := client.Do(request("GET", "/a", ""), &resp); err != nil || !resp.IsStream() {
		t.Fatalf("%v, %q", err, resp.Body())
	}
	stream := resp.Stream()
	if body := bodyOf(t, &resp); body != "ok" || stream.Length() != 2 {
		t.Errorf("the body is %q", body)
	}
	var got []string
	for _, l := range stream.Trailers() {
		got = append(got, string(l.Name)+"="+string(l.Value))
	}
	if strings.Join(got, " ") != "grpc-status=0 grpc-message=" {
		t.Errorf("the trailers are %q", got)
	}
}

// A backend that vanished without a word is found by a PING, and a request that may be repeated goes elsewhere.
func TestHTTP2SilentBackend(t *testing.T) {
	pinged := make(chan struct{}, 10)
	config := newFar(t, func(f *far, number int) {
		if number > 0 {
			f.serveOK()
			return
		}
		f.ok(f.request())
		f.request()
		if _, ok := next[*http2.PingFrame](f); ok {
			pinged <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, f)
	})
	config.Timeouts = Timeouts{Ping: 20 * time.Millisecond, PingAnswer: 20 * time.Millisecond}
	client := newClient(t, config)
	for _, want := range []string{"ok", "ok"} {
		if got := ask(client, "GET", "/a"); got != want {
			t.Errorf("got %s", got)
		}
	}
	<-pinged
	if client.Dialled() != 2 {
		t.Errorf("%d connections were made", client.Dialled())
	}
}

// A backend that is silent because there is nothing to say is asked rarely, and answers.
func TestHTTP2QuietBackend(t *testing.T) {
	pings := make(chan struct{}, 100)
	end := make(chan struct{})
	config := newFar(t, func(f *far, _ int) {
		id := f.request()
		f.head(id, false, ":status", "200")
		go func() {
			<-end
			_ = f.WriteData(id, true, []byte("event"))
		}()
		for {
			p, ok := next[*http2.PingFrame](f)
			if !ok {
				return
			}
			_ = f.WritePing(true, p.Data)
			pings <- struct{}{}
		}
	})
	config.Timeouts = Timeouts{Ping: 5 * time.Millisecond, PingAnswer: 10 * time.Second}
	client := newClient(t, config)
	var resp message.Response
	if err := client.Do(request("GET", "/watch", ""), &resp); err != nil {
		t.Fatal(err)
	}
	<-pings
	close(end)
	if body := bodyOf(t, &resp); body != "event" {
		t.Errorf("the body is %q", body)
	}
}
