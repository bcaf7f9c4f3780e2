package server

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/message"
)

// TestHTTP2Preface: a client of HTTP/2 learns, in frames that it can read, that it has to use HTTP/1.1. Nothing that it
// sent is served, and the handler knows the version.
func TestHTTP2Preface(t *testing.T) {
	const why = "HTTP/2 is not served: the HTTP version must be 'HTTP/1.1' or 'HTTP/1.0'"
	const settings, goAway = "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"\x00\x00\x4f\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0d"
	refused := make(chan string, 10)
	_, addr := startServer(t, Options{HTTP2: HTTP2{IsOff: true}}, func(r *Request) {
		if r.Refusal == nil {
			t.Error("a request was served")
			return
		}
		refused <- string(r.Head.Unserved)
		var m message.Response
		m.StartBody(505, "text/plain", []byte(r.Refusal.Error()))
		r.Send(&m)
	})
	for sent, want := range map[string]string{
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings:                settings + goAway + why,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h1test.GetHead + "\r\n": "HTTP/1.1 505 HTTP Version Not Supported\r\n",
		"GET / HTTP/2.0\r\nHost: gw\r\n\r\n":                         "HTTP/1.1 505 HTTP Version Not Supported\r\n",
		"GET / HTTP/1.2\r\nHost: gw\r\n\r\n":                         "HTTP/1.1 505 HTTP Version Not Supported\r\n",
	} {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, sent)
		got, err := io.ReadAll(br)
		if err != nil || !bytes.HasPrefix(got, []byte(want)) || want[0] == 0 && len(got) != len(want) {
			t.Errorf("%q is answered %q, %v", sent, got, err)
		}
		if version := <-refused; !strings.Contains(sent, "HTTP/"+version) {
			t.Errorf("%q: the handler learns of version %q", sent, version)
		}
	}
	// The frames mean to the library of Go what they shall mean.
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings)
	framer := http2.NewFramer(nil, br)
	first, err := framer.ReadFrame()
	if of, ok := first.(*http2.SettingsFrame); !ok || of.NumSettings() != 0 {
		t.Errorf("the first frame is %v, %v", first, err)
	}
	second, err := framer.ReadFrame()
	if of, ok := second.(*http2.GoAwayFrame); !ok || of.ErrCode != http2.ErrCodeHTTP11Required ||
		of.LastStreamID != 0 || string(of.DebugData()) != why {
		t.Errorf("the second frame is %v, %v", second, err)
	}
}
