// Package h2test is a client of HTTP/2 that sends what it is told to, right or wrong.
package h2test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Patience is how long a test waits for a frame.
const Patience = 20 * time.Second

// A Client is one end of a connection of HTTP/2. One goroutine uses it.
type Client struct {
	*http2.Framer
	Conn    net.Conn
	encoder *hpack.Encoder
	block   bytes.Buffer
	decoder *hpack.Decoder
	fields  []string
	// Settings are those of the server.
	Settings map[http2.SettingID]uint32
	// Frames are those that came and nobody has asked for.
	waiting []Event
}

// An Event is a frame that came. Fields are those of HEADERS, "name: value"; Data is that of DATA and
// GOAWAY.
type Event struct {
	Kind   http2.FrameType
	Stream uint32
	Fields []string
	Data   string
	IsEnd  bool
	Code   http2.ErrCode
	// Number is the increment of WINDOW_UPDATE, or the last stream of GOAWAY.
	Number uint32
}

func (e Event) String() string {
	switch e.Kind {
	case http2.FrameHeaders:
		return fmt.Sprintf("%d HEADERS %s end=%v", e.Stream, strings.Join(e.Fields, "; "), e.IsEnd)
	case http2.FrameData:
		return fmt.Sprintf("%d DATA %q end=%v", e.Stream, e.Data, e.IsEnd)
	case http2.FrameRSTStream:
		return fmt.Sprintf("%d RST_STREAM %v", e.Stream, e.Code)
	case http2.FrameGoAway:
		return fmt.Sprintf("GOAWAY %d %v %s", e.Number, e.Code, e.Data)
	}
	return fmt.Sprintf("%d %v", e.Stream, e.Kind)
}

// Dial connects, begins HTTP/2 with the settings, and waits for the server's.
func Dial(t testing.TB, addr string, settings ...http2.Setting) *Client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return New(t, nc, settings...)
}

// New begins HTTP/2 on a connection, which is closed with the test.
func New(t testing.TB, nc net.Conn, settings ...http2.Setting) *Client {
	t.Helper()
	c := &Client{Conn: nc, Settings: map[http2.SettingID]uint32{}}
	t.Cleanup(func() { _ = nc.Close() })
	c.Framer = http2.NewFramer(nc, bufio.NewReader(nc))
	c.AllowIllegalWrites = true
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) { c.fields = append(c.fields, f.Name+": "+f.Value) })
	if _, err := io.WriteString(nc, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	Must(t, c.WriteSettings(settings...))
	f, err := c.read()
	if err != nil {
		t.Fatal(err)
	}
	s, ok := f.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("the server begins with %v", f)
	}
	_ = s.ForeachSetting(func(one http2.Setting) error { // returns what the function does
		c.Settings[one.ID] = one.Val
		return nil
	})
	Must(t, c.WriteSettingsAck())
	return c
}

// Must fails the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Block encodes fields, each "name: value".
func (c *Client) Block(fields ...string) []byte {
	c.block.Reset()
	for _, f := range fields {
		i := strings.Index(f[1:], ":") + 1
		// a buffer fails never
		_ = c.encoder.WriteField(hpack.HeaderField{Name: f[:i], Value: strings.TrimPrefix(f[i+1:], " ")})
	}
	return c.block.Bytes()
}

// Head sends the head of a request.
func (c *Client) Head(t testing.TB, id uint32, isEnd bool, fields ...string) {
	t.Helper()
	Must(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.Block(fields...), EndStream: isEnd,
		EndHeaders: true}))
}

// Get are the pseudo fields of a GET.
func Get(path string) []string {
	return []string{":method: GET", ":scheme: http", ":path: " + path, ":authority: gw"}
}

// Post are the pseudo fields of a POST.
func Post(path string) []string {
	return []string{":method: POST", ":scheme: http", ":path: " + path, ":authority: gw"}
}

func (c *Client) read() (http2.Frame, error) {
	_ = c.Conn.SetReadDeadline(time.Now().Add(Patience)) // an error comes again with the read
	return c.ReadFrame()
}

// Next returns the next frame that is about a stream, or ends the connection: the others are
// answered, or passed over.
func (c *Client) Next() (Event, error) {
	for {
		f, err := c.read()
		if err != nil {
			return Event{}, err
		}
		e := Event{Kind: f.Header().Type, Stream: f.Header().StreamID}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			c.fields = nil
			if _, err := c.decoder.Write(f.HeaderBlockFragment()); err != nil {
				return e, err
			}
			for isOver := f.HeadersEnded(); !isOver; {
				more, err := c.read()
				if err != nil {
					return e, err
				}
				next, ok := more.(*http2.ContinuationFrame)
				if !ok {
					return e, errors.New("no CONTINUATION follows")
				}
				if _, err := c.decoder.Write(next.HeaderBlockFragment()); err != nil {
					return e, err
				}
				isOver = next.HeadersEnded()
			}
			e.Fields, e.IsEnd = c.fields, f.StreamEnded()
			return e, c.decoder.Close()
		case *http2.DataFrame:
			e.Data, e.IsEnd = string(f.Data()), f.StreamEnded()
			return e, nil
		case *http2.RSTStreamFrame:
			e.Code = f.ErrCode
			return e, nil
		case *http2.GoAwayFrame:
			e.Code, e.Number, e.Data = f.ErrCode, f.LastStreamID, string(f.DebugData())
			return e, nil
		case *http2.PingFrame:
			if !f.IsAck() {
				if err := c.WritePing(true, f.Data); err != nil {
					return e, err
				}
			}
		case *http2.WindowUpdateFrame:
			e.Number = f.Increment
			c.waiting = append(c.waiting, e)
		}
	}
}

// Windows returns by how much the windows of a stream grew until now.
func (c *Client) Windows(id uint32) (sum uint32) {
	for _, e := range c.waiting {
		if e.Stream == id {
			sum += e.Number
		}
	}
	return sum
}

// A Response is all that came on a stream.
type Response struct {
	Fields   []string
	Body     string
	Trailers []string
	// Reset is the code by which the stream was reset, IsReset whether it was.
	Reset   http2.ErrCode
	IsReset bool
	IsEnd   bool
}

// Status returns the status of the answer.
func (a *Response) Status() string {
	for _, f := range a.Fields {
		if rest, ok := strings.CutPrefix(f, ":status: "); ok {
			return rest
		}
	}
	return ""
}

// Field returns the value of a field.
func (a *Response) Field(name string) string {
	for _, f := range a.Fields {
		if rest, ok := strings.CutPrefix(f, name+": "); ok {
			return rest
		}
	}
	return ""
}

// Read reads the answers to streams until each is over.
func (c *Client) Read(t testing.TB, ids ...uint32) map[uint32]*Response {
	t.Helper()
	answers := map[uint32]*Response{}
	for _, id := range ids {
		answers[id] = &Response{}
	}
	for left := len(ids); left > 0; {
		e, err := c.Next()
		if err != nil {
			t.Fatalf("%v, with %d of the streams %v still open", err, left, ids)
		}
		if e.Kind == http2.FrameGoAway && e.Code != http2.ErrCodeNo {
			t.Fatalf("%v", e)
		}
		a := answers[e.Stream]
		if a == nil || a.IsEnd || a.IsReset {
			continue
		}
		switch e.Kind {
		case http2.FrameHeaders:
			if a.Status() == "" || a.Status()[0] == '1' {
				a.Fields = e.Fields
			} else {
				a.Trailers = e.Fields
			}
		case http2.FrameData:
			a.Body += e.Data
			if n := uint32(len(e.Data)); n > 0 {
				Must(t, c.WriteWindowUpdate(0, n))
				if !e.IsEnd {
					Must(t, c.WriteWindowUpdate(e.Stream, n))
				}
			}
		case http2.FrameRSTStream:
			a.IsReset, a.Reset = true, e.Code
		}
		if a.IsEnd = e.IsEnd; a.IsEnd || a.IsReset {
			left--
		}
	}
	return answers
}

// Until reads until the connection ends, and returns the last GOAWAY before.
func (c *Client) Until(t testing.TB) (last Event) {
	t.Helper()
	for {
		e, err := c.Next()
		switch {
		case err == nil && e.Kind == http2.FrameGoAway:
			last = e
		case err == nil:
		default:
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatal("the connection does not end")
			}
			return last
		}
	}
}
