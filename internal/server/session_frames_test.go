package server

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestMalformedRequests: a request that HTTP/2 forbids is answered 400 and its stream ends with PROTOCOL_ERROR. The
// handler learns only that it is refused, and the connection goes on.
func TestMalformedRequests(t *testing.T) {
	var served atomic.Int32
	_, addr := startServer(t, Options{}, func(r *Request) {
		if r.Refusal == nil && !strings.HasPrefix(string(r.Head.Target), "/body") {
			served.Add(1)
		}
		echo(r)
	})
	c := h2test.Dial(t, addr)
	id := uint32(1)
	for name, test := range map[string]struct {
		fields []string
		code   string
		why    string
	}{
		"capital letter": {append(h2test.Get("/"), "X-A: b"), "400",
			"the request has a header name with a capital letter"},
		"connection": {append(h2test.Get("/"), "connection: close"), "400",
			"the request has the header 'connection', which HTTP/2 does not have"},
		"another host": {append(h2test.Get("/"), "host: b"), "400",
			"the request has a header 'host' that is not its ':authority'"},
		"two lines": {append(h2test.Get("/"), "x: a\r\nx-remote-user: b"), "400",
			"the request has a header value with a control character"},
		"no path": {h2test.Get("/")[:2], "400", "the request has no pseudo header field ':path'"},
		"large": {append(h2test.Get("/"), "x: "+strings.Repeat("a", 17<<10)), "431",
			"the head of the request is too large"},
		"many lines": {append(h2test.Get("/"), strings.Split(strings.Repeat("x: y|", 200)+"x: y", "|")...), "431",
			"the request has too many header lines"},
		"long path": {h2test.Get("/" + strings.Repeat("a", 9000)), "414", "the request target is too long"},
		"CONNECT":   {[]string{":method: CONNECT", ":authority: a:443"}, "405", "the method CONNECT is not supported"},
		"no Host":   {h2test.Get("/")[:3], "400", "the request must have the header 'Host'"},
		"protocol": {append([]string{":method: CONNECT", ":protocol: chat"}, h2test.Get("/")[1:]...), "501",
			"the only protocol that a request can ask for by ':protocol' is 'websocket'"},
	} {
		c.Head(t, id, true, test.fields...)
		a := c.Read(t, id)[id]
		if a.Status() != test.code || a.Body != test.why {
			t.Errorf("%s is answered %v %s", name, a.Fields, a.Body)
		}
		id += 2
	}
	// A body of another length than the head says.
	for _, test := range []struct {
		length string
		isEnd  bool
		data   []string
	}{
		{"5", true, nil}, {"5", false, []string{"abc"}}, {"5", false, []string{"abc", "def"}},
		{"0", false, []string{"a"}},
	} {
		c.Head(t, id, test.isEnd, append(h2test.Post("/body"), "content-length: "+test.length)...)
		for i, data := range test.data {
			h2test.Must(t, c.WriteData(id, i == len(test.data)-1, []byte(data)))
		}
		if a := c.Read(t, id)[id]; a.Status() != "400" || a.Body != errOtherLength.Error() {
			t.Errorf("%v: %v %q %v", test, a.Fields, a.Body, a.Reset)
		}
		id += 2
	}
	// Trailers that a request cannot have.
	for _, field := range []string{":path: /b", "X-A: b", "connection: close"} {
		c.Head(t, id, false, h2test.Post("/body")...)
		c.Head(t, id, true, field)
		if a := c.Read(t, id)[id]; a.Status() != "400" {
			t.Errorf("the trailer %q: %v %q %v", field, a.Fields, a.Body, a.Reset)
		}
		id += 2
	}
	if n := served.Load(); n != 0 {
		t.Errorf("%d requests were served", n)
	}
	c.Head(t, id, true, h2test.Get("/last")...)
	if a := c.Read(t, id)[id]; a.Body != "GET /last 0 " {
		t.Errorf("the connection does not go on: %v", a)
	}
}

// TestEndsOfConnections: what breaks the rules of a connection ends it, with the code that RFC 9113 asks for, and what
// floods the gateway with ENHANCE_YOUR_CALM. No request is served of what came last.
func TestEndsOfConnections(t *testing.T) {
	var floods atomic.Int32
	_, addr := startServer(t, Options{HTTP2: HTTP2{MaxConcurrentStreams: 4, Flooded: func() { floods.Add(1) }}},
		func(r *Request) {
			if string(r.Head.Target) == "/wait" {
				for !r.Client.HasLeft() {
					time.Sleep(time.Millisecond)
				}
				return
			}
			echo(r)
		})
	type flood func(t *testing.T, c *h2test.Client) error
	repeat := func(n int, f func(i uint32) error) error {
		for i := range uint32(n) {
			if err := f(i); err != nil {
				return nil // the connection has ended already
			}
		}
		return nil
	}
	for name, test := range map[string]struct {
		code http2.ErrCode
		send flood
	}{
		"data on a new stream": {http2.ErrCodeProtocol,
			func(_ *testing.T, c *h2test.Client) error { return c.WriteData(1, true, nil) }},
		"an even stream": {http2.ErrCodeProtocol,
			func(t *testing.T, c *h2test.Client) error { c.Head(t, 2, true, h2test.Get("/")...); return nil }},
		"window of a new stream": {http2.ErrCodeProtocol,
			func(_ *testing.T, c *h2test.Client) error { return c.WriteWindowUpdate(1, 5) }},
		"reset of a new stream": {http2.ErrCodeProtocol,
			func(_ *testing.T, c *h2test.Client) error { return c.WriteRSTStream(1, 0) }},
		"window of 2^31": {http2.ErrCodeFlowControl,
			func(_ *testing.T, c *h2test.Client) error { return c.WriteWindowUpdate(0, 1<<31-1) }},
		"push": {http2.ErrCodeProtocol, func(_ *testing.T, c *h2test.Client) error {
			return c.WriteRawFrame(http2.FramePushPromise, 4, 1, make([]byte, 4))
		}},
		"frame too large": {http2.ErrCodeFrameSize, func(_ *testing.T, c *h2test.Client) error {
			return c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 16385))
		}},
		"bad block": {http2.ErrCodeCompression, func(_ *testing.T, c *h2test.Client) error {
			return c.WriteRawFrame(http2.FrameHeaders, 5, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		}},
		"a stream that was before": {http2.ErrCodeProtocol, func(t *testing.T, c *h2test.Client) error {
			c.Head(t, 5, true, h2test.Get("/")...)
			c.Head(t, 3, true, h2test.Get("/")...)
			return nil
		}},
		"other frame in a block": {http2.ErrCodeProtocol, func(_ *testing.T, c *h2test.Client) error {
			return errors.Join(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1,
				BlockFragment: c.Block(h2test.Get("/")...)}), c.WritePing(false, [8]byte{}))
		}},
		"pings": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			return repeat(40_000, func(uint32) error { return c.WritePing(true, [8]byte{}) })
		}},
		"settings": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			return repeat(40_000, func(uint32) error { return c.WriteSettingsAck() })
		}},
		"priorities": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			return repeat(40_000, func(uint32) error { return c.WritePriority(1, http2.PriorityParam{StreamDep: 3}) })
		}},
		"unknown frames": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			return repeat(40_000, func(uint32) error { return c.WriteRawFrame(0x77, 0, 0, nil) })
		}},
		"windows": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			return repeat(40_000, func(uint32) error { return c.WriteWindowUpdate(0, 1) })
		}},
		"empty data": {http2.ErrCodeEnhanceYourCalm, func(t *testing.T, c *h2test.Client) error {
			c.Head(t, 1, false, h2test.Post("/")...)
			return repeat(40_000, func(uint32) error { return c.WriteData(1, false, nil) })
		}},
		"continuations": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			h2test.Must(t,
				c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.Block(h2test.Get("/")...)}))
			return repeat(1000, func(uint32) error { return c.WriteContinuation(1, false, nil) })
		}},
		"bytes of a block": {http2.ErrCodeEnhanceYourCalm, func(_ *testing.T, c *h2test.Client) error {
			h2test.Must(t,
				c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.Block(h2test.Get("/")...)}))
			return repeat(50, func(i uint32) error {
				return c.WriteContinuation(1, false, c.Block(fmt.Sprintf("x: %d%s", i, strings.Repeat("!", 4000))))
			})
		}},
		"resets": {http2.ErrCodeEnhanceYourCalm, func(t *testing.T, c *h2test.Client) error {
			return repeat(2000, func(i uint32) error {
				return errors.Join(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1,
					BlockFragment: c.Block(h2test.Get("/wait")...), EndStream: true, EndHeaders: true}),
					c.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
			})
		}},
		"more streams than settings allow": {http2.ErrCodeEnhanceYourCalm, func(t *testing.T, c *h2test.Client) error {
			return repeat(2000, func(i uint32) error {
				return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1,
					BlockFragment: c.Block(h2test.Post("/")...), EndHeaders: true})
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := floods.Load()
			c := h2test.Dial(t, addr)
			h2test.Must(t, test.send(t, c))
			if last := c.Until(t); last.Code != test.code {
				t.Errorf("the connection ends with %v, want %v", last, test.code)
			}
			if isFlood := test.code == http2.ErrCodeEnhanceYourCalm; isFlood != (floods.Load() > before) {
				t.Errorf("%d floods are counted", floods.Load()-before)
			}
		})
	}
}

// TestPlaceOfReset (CVE-2023-44487): a stream that the client has reset keeps its place until its handler returns, so
// that no more handlers run than the settings allow.
func TestPlaceOfReset(t *testing.T) {
	const most = 8
	var running, peak atomic.Int32
	release := make(chan struct{})
	_, addr := startServer(t, Options{HTTP2: HTTP2{MaxConcurrentStreams: most}}, func(r *Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		<-release
		echo(r)
	})
	c := h2test.Dial(t, addr)
	if got := c.Settings[http2.SettingMaxConcurrentStreams]; got != most {
		t.Errorf("the server offers %d streams", got)
	}
	for i := range uint32(most) {
		c.Head(t, 2*i+1, true, h2test.Get("/")...)
	}
	testutil.Eventually(t, "the handlers run", func() bool { return running.Load() == most })
	var refused []uint32
	for i := range uint32(100) {
		id := 2*i + 1
		if i >= most {
			c.Head(t, id, true, h2test.Get("/")...)
		}
		h2test.Must(t, c.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	c.Head(t, 201, true, h2test.Get("/")...)
	for len(refused) < 101-most {
		e, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == http2.FrameRSTStream && e.Code == http2.ErrCodeRefusedStream {
			refused = append(refused, e.Stream)
		}
	}
	close(release)
	if p := peak.Load(); p != most || !slices.Contains(refused, 201) {
		t.Errorf("%d handlers ran at a time, %d streams were refused", p, len(refused))
	}
	testutil.Eventually(t, "the places are free", func() bool { return running.Load() == 0 })
	c.Head(t, 203, true, h2test.Get("/again")...)
	if a := c.Read(t, 203)[203]; a.Body != "GET /again 0 " {
		t.Errorf("then: %+v", a)
	}
}

// TestResetBeforeStart: a stream that is reset before its handler is called is dropped. No handler is called for it,
// and it has no place any more.
func TestResetBeforeStart(t *testing.T) {
	var called atomic.Int32
	_, addr := startServer(t, Options{HTTP2: HTTP2{MaxConcurrentStreams: 4}}, func(r *Request) {
		if string(r.Head.Target) == "/reset" {
			called.Add(1)
		}
		echo(r)
	})
	c := h2test.Dial(t, addr)
	var frames bytes.Buffer
	framer := http2.NewFramer(&frames, nil)
	const resets = 150 // fewer than end the connection
	for i := range uint32(resets) {
		id := 2*i + 1
		h2test.Must(t,
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.Block(h2test.Get("/reset")...),
				EndStream: true, EndHeaders: true}))
		h2test.Must(t, framer.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	_, err := c.Conn.Write(frames.Bytes())
	h2test.Must(t, err)
	c.Head(t, 2*resets+1, true, h2test.Get("/")...)
	if a := c.Read(t, 2*resets+1)[2*resets+1]; a.Status() != "200" {
		t.Errorf("a request after them is answered %+v", a)
	}
	if n := called.Load(); n > 0 {
		t.Errorf("the handler was called for %d of %d streams", n, resets)
	}
}

// TestSlowStreams: a client that lets one stream wait gets the others. The stream that waits is cut in time, and the
// connection stays.
func TestSlowStreams(t *testing.T) {
	var slow atomic.Int32
	_, addr := startServer(t, Options{WriteTimeout: 500 * time.Millisecond, TooSlow: func() { slow.Add(1) }},
		func(r *Request) {
			var m message.Response
			m.StartBody(200, "text/plain", []byte(strings.Repeat("a", 200_000)))
			r.Send(&m)
		})
	c := h2test.Dial(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	h2test.Must(t, c.WriteWindowUpdate(0, 1<<24))
	c.Head(t, 1, true, h2test.Get("/slow")...)
	for id := uint32(3); id < 20; id += 2 {
		c.Head(t, id, true, h2test.Get("/")...)
		h2test.Must(t, c.WriteWindowUpdate(id, 1<<20))
		if a := c.Read(t, id)[id]; len(a.Body) != 200_000 {
			t.Fatalf("stream %d has %d bytes", id, len(a.Body))
		}
	}
	a := c.Read(t, 1)[1]
	if !a.IsReset || slow.Load() != 1 {
		t.Errorf("the slow stream: %d bytes, reset %v, %d were too slow", len(a.Body), a.IsReset, slow.Load())
	}
	c.Head(t, 31, true, h2test.Get("/")...)
	h2test.Must(t, c.WriteWindowUpdate(31, 1<<20))
	if a := c.Read(t, 31)[31]; len(a.Body) != 200_000 {
		t.Errorf("then: %d bytes", len(a.Body))
	}
}

// TestUploadWindows: a client may send no more of a body than its window, as long as the handler reads nothing, and the
// window grows with what is read.
func TestUploadWindows(t *testing.T) {
	read, first := make(chan int), make(chan int)
	_, addr := startServer(t, Options{}, func(r *Request) {
		if string(r.Head.Target) == "/other" {
			echo(r)
			return
		}
		if string(r.Head.Target) == "/unread" {
			for !r.Client.HasLeft() {
				time.Sleep(time.Millisecond)
			}
			return
		}
		u := r.Upload(false)
		total, p := 0, make([]byte, 10_000)
		for {
			most, isOpen := <-read
			if !isOpen {
				most = 1 << 30
			}
			for most > 0 {
				n, err := u.Read(p[:min(len(p), most)])
				total += n
				if most -= n; err == io.EOF {
					var m message.Response
					m.StartBody(200, "text/plain", fmt.Append(nil, total))
					r.Send(&m)
					return
				}
				if err != nil {
					if !r.Client.HasLeft() {
						t.Error(err)
					}
					return
				}
			}
			first <- total
		}
	})
	c := h2test.Dial(t, addr)
	c.Head(t, 1, false, h2test.Post("/")...)
	sent := 0
	for ; sent+8000 <= 65_535; sent += 8000 {
		h2test.Must(t, c.WriteData(1, false, make([]byte, 8000)))
	}
	read <- 1
	<-first
	other := func(id uint32) { // which does not wait for the first; what came before its answer is read
		c.Head(t, id, true, h2test.Get("/other")...)
		c.Read(t, id)
	}
	other(3)
	if got := c.Windows(1); got != 0 {
		t.Errorf("the window has grown by %d", got)
	}
	read <- 40_000
	<-first
	other(5)
	if got := c.Windows(1); got < 32_767 || got > 40_001 {
		t.Errorf("the window has grown by %d, for 40,001 bytes that were read", got)
	}
	h2test.Must(t, c.WriteData(1, true, make([]byte, 1000)))
	close(read)
	if a := c.Read(t, 1)[1]; a.Body != fmt.Sprint(sent+1000) {
		t.Errorf("%d bytes were sent, the handler read %s", sent+1000, a.Body)
	}
	// More than the window ends the stream.
	c.Head(t, 7, false, h2test.Post("/unread")...)
	for range 9 {
		h2test.Must(t, c.WriteData(7, false, make([]byte, 8000)))
	}
	if a := c.Read(t, 7)[7]; a.Reset != http2.ErrCodeFlowControl {
		t.Errorf("more than the window: %+v", a)
	}
}

// TestStreamBudget: what streams hold is of the budget for requests. A body that it does not allow for is refused, and
// the connection goes on.
func TestStreamBudget(t *testing.T) {
	const limit = 1 << 20 // of which the streams themselves take more than half
	budget := memory.NewBudget(limit, 1)
	full := status.ServiceUnavailable("the gateway holds as many bodies as it may", 1)
	hold, held := make(chan struct{}), make(chan struct{}, 100)
	_, addr := startServer(t, Options{Memory: NewMemory(budget, func() error { return full })}, func(r *Request) {
		if string(r.Head.Target) == "/hold" {
			held <- struct{}{}
			<-hold
		}
		echo(r)
	})
	c := h2test.Dial(t, addr)
	var ids []uint32
	for id := uint32(1); id < 31; id += 2 {
		c.Head(t, id, false, h2test.Post("/hold")...)
		ids = append(ids, id)
	}
	for _, id := range ids {
		h2test.Must(t, c.WriteData(id, true, make([]byte, 10_000)))
	}
	for range ids {
		<-held
	}
	testutil.Eventually(t, "the budget is used", func() bool { return budget.InUse() > limit/8 })
	if used := budget.InUse() + budget.InFlight(); used > limit {
		t.Errorf("%d bytes are in use", used)
	}
	close(hold)
	kept, refused := 0, 0
	for _, a := range c.Read(t, ids...) {
		switch {
		case a.Status() == "200":
			kept++
		case strings.Contains(a.Body, full.Error()):
			refused++
		}
	}
	if kept == 0 || refused == 0 || kept+refused != len(ids) {
		t.Errorf("%d bodies were read, %d were refused, of %d", kept, refused, len(ids))
	}
	h2test.Must(t, c.Conn.Close())
	testutil.Eventually(t, "all is given back", func() bool { return budget.InUse() == 0 && budget.InFlight() == 0 })
}

// TestLeaving: a shutdown says twice that the connection ends, serves what comes before the client knows, and what is
// in progress to its end.
func TestLeaving(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s, addr := startServer(t, Options{}, func(r *Request) {
		if string(r.Head.Target) == "/slow" {
			close(began)
			<-finish
		}
		echo(r)
	})
	c := h2test.Dial(t, addr)
	c.Head(t, 1, true, h2test.Get("/slow")...)
	<-began
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	e, err := c.Next()
	if err != nil || e.Kind != http2.FrameGoAway || e.Number != 1<<31-1 || e.Code != http2.ErrCodeNo {
		t.Fatalf("the first word is %v, %v", e, err)
	}
	c.Head(t, 3, true, h2test.Get("/late")...) // sent before the client knew
	answers := map[uint32]string{}
	for isTold := false; !isTold || len(answers) < 1; { // Next answers the ping
		if e, err = c.Next(); err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case http2.FrameData:
			answers[e.Stream] = e.Data
		case http2.FrameGoAway:
			if isTold = true; e.Number != 3 {
				t.Errorf("the second word is %v", e)
			}
		}
	}
	c.Head(t, 5, true, h2test.Get("/later")...)
	close(finish)
	for {
		e, err := c.Next()
		if err != nil {
			break
		}
		if e.Kind == http2.FrameData {
			answers[e.Stream] = e.Data
		}
	}
	if answers[1] != "GET /slow 0 " || answers[3] != "GET /late 0 " || len(answers) != 2 {
		t.Errorf("the answers are %v", answers)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDrainingSession: while the server drains, each answer says that the connection ends, and what the client sends
// until it knows is served.
func TestDrainingSession(t *testing.T) {
	s, addr := startServer(t, Options{}, echo)
	c := h2test.Dial(t, addr)
	s.BeginDrain()
	c.Head(t, 1, true, h2test.Get("/1")...)
	c.Head(t, 3, true, h2test.Get("/3")...)
	got := c.Read(t, 1, 3)
	if got[1].Body != "GET /1 0 " || got[3].Body != "GET /3 0 " {
		t.Errorf("%+v", got)
	}
	if last := c.Until(t); last.Code != http2.ErrCodeNo || last.Number > 3 && last.Number != 1<<31-1 {
		t.Errorf("the connection ends with %v", last)
	}
}

// TestEventsAtShutdown: a sequence of events ends as a complete answer; what would last is broken off.
func TestEventsAtShutdown(t *testing.T) {
	for flow, isWhole := range map[Flow]bool{Events: true, Lasting: false} {
		s, addr := startServer(t, Options{}, func(r *Request) {
			var m message.Response
			m.Receive(200, []byte("HTTP/1.1 200 OK\r\n\r\n"))
			m.SetStream(newEndless("event\n"))
			_, _ = r.SendStream(&m, flow, nil, nil) // it is interrupted
		})
		c := h2test.Dial(t, addr)
		c.Head(t, 1, true, h2test.Get("/")...)
		for {
			e, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == http2.FrameData {
				break
			}
		}
		go func() { _ = s.Shutdown(context.Background()) }()
		if a := c.Read(t, 1)[1]; a.IsEnd != isWhole || a.IsReset == isWhole {
			t.Errorf("flow %v: end %v, reset %v %v", flow, a.IsEnd, a.IsReset, a.Reset)
		}
	}
}

// endless is a body of one event, and then of none until it is interrupted.
type endless struct {
	text string
	over chan struct{}
	once sync.Once
	read bool
	// trailers come behind it, if it ends by itself.
	trailers []message.Header
	ends     bool
}

func newEndless(text string) *endless { return &endless{text: text, over: make(chan struct{})} }

func (b *endless) Length() int64 { return -1 }
func (b *endless) Ready() bool   { return !b.read }
func (b *endless) Wait() error {
	if !b.read || b.ends {
		return nil
	}
	<-b.over
	return message.ErrInterrupted
}

func (b *endless) Read(p []byte) (int, error) {
	if !b.read {
		b.read = true
		return copy(p, b.text), nil
	}
	if b.ends {
		return 0, io.EOF
	}
	return 0, b.Wait()
}
func (b *endless) ReadReady([]byte) (int, error) { return 0, nil }
func (b *endless) Interrupt()                    { b.once.Do(func() { close(b.over) }) }
func (b *endless) Trailers() []message.Header    { return b.trailers }
func (b *endless) Close() error                  { b.Interrupt(); return nil }

// TestTrailers: trailers of requests are there when the body is at its end, without fields that the gateway reads in
// heads. Those of an answer that passes as it comes follow its body.
func TestTrailers(t *testing.T) {
	_, addr := startServer(t, Options{}, func(r *Request) {
		u := r.Upload(false)
		body, err := io.ReadAll(u)
		if err != nil {
			t.Error(err)
		}
		names := string(body)
		for _, l := range u.Trailers() {
			names += " " + string(l.Name) + "=" + string(l.Value)
		}
		var m message.Response
		m.Receive(200, []byte("HTTP/1.1 200 OK\r\n\r\n"))
		b := newEndless(names)
		b.ends, b.trailers = true, []message.Header{{Name: []byte("Grpc-Status"), Value: []byte("0")}}
		m.SetStream(b)
		if _, err := r.SendStream(&m, Whole, nil, nil); err != nil {
			t.Error(err)
		}
	})
	c := h2test.Dial(t, addr)
	c.Head(t, 1, false, h2test.Post("/")...)
	h2test.Must(t, c.WriteData(1, false, []byte("body")))
	c.Head(t, 1, true, "grpc-timeout: 1", "x-remote-user: admin", "authorization: b", "content-length: 7", "host: c")
	a := c.Read(t, 1)[1]
	if a.Body != "body grpc-timeout=1" || len(a.Trailers) != 1 || a.Trailers[0] != "grpc-status: 0" {
		t.Errorf("%+v", a)
	}
}

// TestWebSocketStream (RFC 8441): an extended CONNECT is a handshake of WebSocket to the handler, and the bytes both
// ways are data of the stream.
func TestWebSocketStream(t *testing.T) {
	far := make(chan net.Conn, 1)
	accept, keys := make(chan string, 2), make(chan string, 2)
	_, addr := startServer(t, Options{}, func(r *Request) {
		if string(r.Head.Target) == "/none" {
			echo(r)
			return
		}
		if string(r.Head.Method) != "GET" || string(r.Head.Upgrade) != "websocket" || r.Head.HasBody() {
			t.Errorf("the handler gets %s, upgrade %q", r.Head.Method, r.Head.Upgrade)
		}
		near, other := net.Pipe()
		far <- other
		key, _ := r.Head.Lookup("Sec-WebSocket-Key")
		keys <- string(key)
		r.SendTunnel([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: chat\r\n"+
			"Sec-WebSocket-Accept: "+<-accept+"\r\n\r\n"), nil, near, func() { _ = near.Close() })
	})
	c := h2test.Dial(t, addr)
	if c.Settings[http2.SettingEnableConnectProtocol] != 1 {
		t.Error("the server does not offer extended CONNECT")
	}
	open := append([]string{":method: CONNECT", ":protocol: websocket"}, h2test.Get("/chat")[1:]...)
	// The answer to another handshake is no answer.
	accept <- "AAAAAAAAAAAAAAAAAAAAAAAAAAA="
	c.Head(t, 1, false, open...)
	if a := c.Read(t, 1)[1]; a.Status() != "502" {
		t.Errorf("another accept: %+v", a)
	}
	<-far
	<-keys
	// The right one.
	c.Head(t, 3, false, open...)
	backend := <-far
	accept <- acceptFor(<-keys)
	next := func() (e h2test.Event, err error) {
		for e.Stream != 3 && err == nil { // the reset of the first one may come late
			e, err = c.Next()
		}
		return e, err
	}
	e, err := next()
	if err != nil || !slices.Equal(e.Fields, []string{":status: 200", "sec-websocket-protocol: chat"}) || e.IsEnd {
		t.Fatalf("%v, %v", e, err)
	}
	h2test.Must(t, c.WriteData(3, false, []byte("to the backend")))
	p := make([]byte, 14)
	if _, err := io.ReadFull(backend, p); err != nil || string(p) != "to the backend" {
		t.Errorf("the backend gets %q, %v", p, err)
	}
	if _, err := backend.Write([]byte("to the client")); err != nil {
		t.Error(err)
	}
	if e, err = next(); err != nil || e.Data != "to the client" {
		t.Errorf("the client gets %v, %v", e, err)
	}
	_ = backend.Close()
	for e.Kind != http2.FrameRSTStream && !e.IsEnd {
		if e, err = next(); err != nil {
			t.Fatal(err)
		}
	}
	c.Head(t, 5, true, ":method: GET", ":scheme: http", ":path: /none", ":authority: gw")
	if a := c.Read(t, 5)[5]; a.Status() != "200" {
		t.Errorf("the connection does not go on: %+v", a)
	}
}

// webSocketServer serves WebSockets by extended CONNECT, each to an end that is sent to ends, with early as what the
// backend sent behind its head.
func webSocketServer(t *testing.T, early string) (addr string, ends <-chan net.Conn) {
	t.Helper()
	far := make(chan net.Conn, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // each way ends alone, as a backend's connection does
	h2test.Must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	_, addr = startServer(t, Options{}, func(r *Request) {
		near, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		other, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		far <- other
		key, _ := r.Head.Lookup("Sec-WebSocket-Key")
		r.SendTunnel([]byte("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: "+acceptFor(string(key))+
			"\r\n\r\n"), []byte(early),
			near, func() { _ = near.Close() })
	})
	return addr, far
}

// TestEarlyBytesOfWebSocket: what either end sent behind its head goes first, however much it is.
func TestEarlyBytesOfWebSocket(t *testing.T) {
	for _, size := range []int{1, 100, 3 * streamWindow} {
		early := strings.Repeat("e", size)
		addr, ends := webSocketServer(t, early)
		c := h2test.Dial(t, addr)
		c.Head(t, 1, false, append([]string{":method: CONNECT", ":protocol: websocket"}, h2test.Get("/")[1:]...)...)
		h2test.Must(t, c.WriteData(1, true, []byte("early from the client")))
		backend := <-ends
		go func() {
			if got, err := io.ReadAll(backend); string(got) != "early from the client" || err != nil {
				t.Errorf("the backend gets %q, %v", got, err)
			}
			_, _ = io.WriteString(backend, "; later")
			_ = backend.Close()
		}()
		if a := c.Read(t, 1)[1]; a.Status() != "200" || a.Body != early+"; later" {
			t.Errorf("the client gets %s and %d bytes, want %d", a.Status(), len(a.Body), size+len("; later"))
		}
	}
}

// TestWebSocketClientLeaves: a client that has finished its side and resets the stream then can be told nothing more. A
// backend that goes on sending learns of it: its connection ends.
func TestWebSocketClientLeaves(t *testing.T) {
	addr, ends := webSocketServer(t, "")
	c := h2test.Dial(t, addr)
	c.Head(t, 1, false, append([]string{":method: CONNECT", ":protocol: websocket"}, h2test.Get("/")[1:]...)...)
	h2test.Must(t, c.WriteData(1, true, nil))
	backend := <-ends
	_ = backend.SetDeadline(time.Now().Add(h2test.Patience))
	if _, err := backend.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	for e := (h2test.Event{}); e.Data != "a"; {
		var err error
		if e, err = c.Next(); err != nil {
			t.Fatal(err)
		}
	}
	h2test.Must(t, c.WriteRSTStream(1, http2.ErrCodeCancel))
	for {
		if _, err := backend.Write([]byte("a")); err != nil {
			if isTimeout(err) {
				t.Error("the backend goes on sending to a client that has gone")
			}
			return
		}
	}
}

// TestUnopenedWebSocket: no answer but an open tunnel is a 2xx to an extended CONNECT.
func TestUnopenedWebSocket(t *testing.T) {
	_, addr := startServer(t, Options{}, func(r *Request) {
		var m message.Response
		switch string(r.Head.Target) {
		case "/stream":
			m.Start(200)
			m.SetStream(&textStream{left: 2, length: 2})
			if _, err := r.SendStream(&m, Whole, nil, nil); err != nil {
				t.Error(err)
			}
			return
		case "/whole":
			m.StartBody(200, "text/plain", []byte("a"))
		case "/empty":
			m.Start(204)
		case "/refused":
			m.StartBody(403, "text/plain", []byte("no"))
		}
		r.Send(&m)
	})
	c := h2test.Dial(t, addr)
	for i, want := range []string{"/stream 502", "/whole 502", "/empty 502", "/refused 403"} {
		path, code, _ := strings.Cut(want, " ")
		id := uint32(2*i + 1)
		c.Head(t, id, false, ":method: CONNECT", ":protocol: websocket", ":scheme: http", ":path: "+path,
			":authority: gw")
		if a := c.Read(t, id)[id]; a.Status() != code || a.Body == "" {
			t.Errorf("%s: answered %s %q, want %s", path, a.Status(), a.Body, code)
		}
	}
}

// acceptFor answers to the nonce of a handshake (RFC 6455, 4.2.2).
func acceptFor(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestPanickingStream: a handler that panics, or sends no answer, ends its stream alone.
func TestPanickingStream(t *testing.T) {
	_, addr := startServer(t, Options{}, func(r *Request) {
		switch string(r.Head.Target) {
		case "/panic":
			panic("for the test")
		case "/none":
			return
		}
		echo(r)
	})
	c := h2test.Dial(t, addr)
	for i, path := range []string{"/panic", "/none", "/"} {
		c.Head(t, uint32(2*i+1), true, h2test.Get(path)...)
	}
	got := c.Read(t, 1, 3, 5)
	if got[1].Status() != "500" || got[3].Reset != http2.ErrCodeInternal || got[5].Status() != "200" {
		t.Errorf("%+v %+v %+v", got[1], got[3], got[5])
	}
}

// TestStreamClientLeaves: a handler learns that its client has reset the stream, or that the connection broke.
func TestStreamClientLeaves(t *testing.T) {
	began, left := make(chan struct{}, 2), make(chan struct{}, 2)
	_, addr := startServer(t, Options{}, func(r *Request) {
		wait := r.Client.Signal()
		defer wait.Done()
		began <- struct{}{}
		<-wait.Left()
		if !r.Client.HasLeft() {
			t.Error("the client is not gone")
		}
		left <- struct{}{}
	})
	c := h2test.Dial(t, addr)
	c.Head(t, 1, true, h2test.Get("/")...)
	c.Head(t, 3, true, h2test.Get("/")...)
	<-began
	<-began
	h2test.Must(t, c.WriteRSTStream(1, http2.ErrCodeCancel))
	<-left
	select {
	case <-left:
		t.Error("the other stream ended too")
	case <-time.After(20 * time.Millisecond):
	}
	h2test.Must(t, c.Conn.Close())
	<-left
}

// TestEmptyFrameEndsGET: a client that ends a GET by an empty frame has sent no body; one that sends data has.
func TestEmptyFrameEndsGET(t *testing.T) {
	_, addr := startServer(t, Options{}, func(r *Request) {
		var m message.Response
		m.StartBody(200, "text/plain", fmt.Append(nil, r.Head.HasBody(), r.Head.ContentLength))
		r.Send(&m)
	})
	c := h2test.Dial(t, addr)
	c.Head(t, 1, false, h2test.Get("/")...)
	h2test.Must(t, c.WriteData(1, true, nil))
	got := c.Read(t, 1)
	c.Head(t, 3, false, h2test.Get("/")...)
	h2test.Must(t, c.WriteData(3, false, []byte("a")))
	got[3] = c.Read(t, 3)[3]
	if got[1].Body != "false 0" || got[3].Body != "true -1" {
		t.Errorf("%q, %q", got[1].Body, got[3].Body)
	}
	if !got[3].IsEnd {
		t.Errorf("%+v", got[3])
	}
	// The gateway does not wait for the rest of the body that the handler did not read.
	e, err := c.Next()
	if err != nil || e.Kind != http2.FrameRSTStream || e.Stream != 3 || e.Code != http2.ErrCodeNo {
		t.Errorf("then %v, %v", e, err)
	}
}

// TestExpectByStream: a client that waits for 100 (Continue) gets it when the body is read, and not before.
func TestExpectByStream(t *testing.T) {
	_, addr := startServer(t, Options{}, echo)
	c := h2test.Dial(t, addr)
	c.Head(t, 1, false, append(h2test.Post("/"), "expect: 100-continue", "content-length: 3")...)
	e, err := c.Next()
	if err != nil || len(e.Fields) != 1 || e.Fields[0] != ":status: 100" || e.IsEnd {
		t.Fatalf("%v, %v", e, err)
	}
	h2test.Must(t, c.WriteData(1, true, []byte("abc")))
	if a := c.Read(t, 1)[1]; a.Body != "POST / 3 abc" {
		t.Errorf("%+v", a)
	}
}

// TestIdleSession: a connection without streams ends in time, one with a stream does not.
func TestIdleSession(t *testing.T) {
	release := make(chan struct{})
	_, addr := startServer(t, Options{IdleTimeout: 100 * time.Millisecond}, func(r *Request) {
		if string(r.Head.Target) == "/wait" {
			<-release
		}
		echo(r)
	})
	c := h2test.Dial(t, addr)
	c.Head(t, 1, true, h2test.Get("/wait")...)
	time.Sleep(500 * time.Millisecond)
	close(release)
	if a := c.Read(t, 1)[1]; a.Status() != "200" {
		t.Errorf("%+v", a)
	}
	if last := c.Until(t); last.Code != http2.ErrCodeNo || last.Data != "the connection was idle" {
		t.Errorf("the connection ends with %v", last)
	}
}

// TestSlowHeads: a head must be complete in time, whatever trickles in.
func TestSlowHeads(t *testing.T) {
	_, addr := startServer(t, Options{HeadTimeout: 200 * time.Millisecond}, echo)
	c := h2test.Dial(t, addr)
	h2test.Must(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.Block(h2test.Get("/")...)}))
	go func() {
		for c.WriteContinuation(1, false, c.Block("x: y")) == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	if last := c.Until(t); last.Code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("the connection ends with %v", last)
	}
}
