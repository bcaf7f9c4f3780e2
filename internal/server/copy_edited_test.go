package server

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/message"
)

// texts is a source that has its bytes, in parts of a few.
type texts struct{ left []byte }

func (s *texts) Length() int64              { return -1 }
func (s *texts) Ready() bool                { return true }
func (s *texts) Wait() error                { return nil }
func (s *texts) Interrupt()                 {}
func (s *texts) Trailers() []message.Header { return nil }
func (s *texts) Close() error               { return nil }

func (s *texts) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 5)], s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *texts) ReadReady([]byte) (int, error) { return 0, nil }

// upper is an editor that turns letters to upper case, until it reaches a '!'.
type upper struct{ hasEvents bool }

var errExclamation = errors.New("an exclamation")

func (u upper) HasEvents() bool                { return u.hasEvents }
func (upper) IsHolding() bool                  { return false }
func (upper) Rest()                            {}
func (upper) Failed(err error) error           { return err }
func (upper) Close(dst []byte) ([]byte, error) { return append(dst, '.'), nil }

func (upper) Append(dst, src []byte, _ int) ([]byte, int, error) {
	if i := bytes.IndexByte(src, '!'); i >= 0 {
		return append(dst, bytes.ToUpper(src[:i])...), i, errExclamation
	}
	return append(dst, bytes.ToUpper(src)...), len(src), nil
}

// TestEditedStream: a body is edited on its way, and a body that cannot be edited is an answer of its
// own as long as nothing was sent.
func TestEditedStream(t *testing.T) {
	for _, c := range []struct {
		name, method, body string
		hasEvents          bool
		code               int
		want               string
		breaks             bool
	}{
		{name: "edited", method: "GET", body: "some words", code: 200, want: "SOME WORDS."},
		{name: "nothing", method: "GET", code: 200, want: "."},
		{name: "without a body", method: "HEAD", body: "some words", code: 200},
		{name: "broken at once", method: "GET", body: "so!", code: 502},
		{name: "broken later", method: "GET", body: "some words!", code: 200, want: "SOME WORDS", breaks: true},
		{name: "events that break at once", method: "GET", body: "so!", hasEvents: true, code: 200, want: "SO",
			breaks: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, addr := startServer(t, Options{}, func(r *Request) {
				if string(r.Head.Target) == "/next" {
					reply(r, 200)
					return
				}
				var m message.Response
				m.Start(200)
				m.SetStream(&texts{[]byte(c.body)})
				_, err := r.SendStream(&m, Whole, upper{c.hasEvents}, nil)
				if wants := c.breaks || c.code != 200; (err != nil) != wants ||
					wants && !errors.Is(err, errExclamation) {
					t.Errorf("the stream ended with %v", err)
				}
				if !r.Answered() {
					reply(r, 502)
				}
			})
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, c.method+" / HTTP/1.1\r\nHost: gw\r\n\r\n")
			if c.breaks {
				all, err := io.ReadAll(br)
				if _, body, _ := bytes.Cut(all, []byte("\r\n\r\n")); err != nil ||
					bytes.HasSuffix(all, []byte("0\r\n\r\n")) || !bytes.Equal(dechunk(body), []byte(c.want)) {
					t.Errorf("got %q, %v", all, err)
				}
				return
			}
			if got, _ := h1test.ReadAnswer(t, br, c.method == "HEAD"); got.StatusCode != c.code ||
				string(got.Content) != c.want {
				t.Errorf("answered %d %q", got.StatusCode, got.Content)
			}
			h1test.Send(t, nc, "GET /next HTTP/1.1\r\nHost: gw\r\n\r\n")
			if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || len(got.Content) > 0 {
				t.Errorf("the next request is answered %d %q", got.StatusCode, got.Content)
			}
		})
	}
}

// dechunk returns the data of chunks. Each chunk has a line of its own.
func dechunk(framed []byte) (data []byte) {
	for i, line := range bytes.Split(framed, []byte("\r\n")) {
		if i%2 == 1 {
			data = append(data, line...)
		}
	}
	return data
}
