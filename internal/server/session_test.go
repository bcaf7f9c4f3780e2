package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/message"
)

// h2c returns a client that speaks HTTP/2 without TLS.
func h2c(t *testing.T) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// echo answers with the request line and the body.
func echo(r *Request) {
	if r.Refusal != nil {
		var m message.Response
		m.StartBody(int(r.Refusal.ErrStatus.Code), "text/plain", []byte(r.Refusal.Error()))
		r.Send(&m)
		return
	}
	body, err := r.ReadBody(8 << 20)
	var m message.Response
	if err != nil {
		m.StartBody(400, "text/plain", []byte(err.Error()))
	} else {
		m.StartBody(200, "text/plain", fmt.Appendf(nil, "%s %s %d %s", r.Head.Method, r.Head.Target, len(body), body))
	}
	r.Send(&m)
}

func TestSession(t *testing.T) {
	_, addr := startServer(t, Options{}, echo)
	client := h2c(t)
	for _, size := range []int{0, 5, 20_000, 65_535, 65_536, 200_000, 3 << 20} {
		for _, isKnown := range []bool{true, false} {
			body := strings.Repeat("a", size)
			var r io.Reader = strings.NewReader(body)
			if !isKnown {
				r = io.MultiReader(r)
			}
			resp, err := client.Post("http://"+addr+"/a?b=c", "text/plain", r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if want := fmt.Sprintf("POST /a?b=c %d %s", size, body); err != nil || resp.ProtoMajor != 2 ||
				!bytes.Equal(got, []byte(want)) {
				t.Errorf("%d bytes, known %v: %v %s %v", size, isKnown, err, resp.Proto, len(got))
			}
		}
	}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			resp, err := client.Get(fmt.Sprintf("http://%s/%d", addr, i))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = resp.Body.Close() }()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != fmt.Sprintf("GET /%d 0 ", i) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
}

// TestLastWord: a client is told why its connection ends, whatever else is being written to it at the moment.
func TestLastWord(t *testing.T) {
	_, addr := startServer(t, Options{}, echo)
	for range 200 {
		c := h2test.Dial(t, addr)
		// which is answered by another goroutine than the one that ends the connection
		h2test.Must(t, c.WriteSettings())
		h2test.Must(t, c.WritePing(false, [8]byte{}))
		h2test.Must(t, c.WriteData(1, true, nil))
		if last := c.Until(t); last.Code != http2.ErrCodeProtocol {
			t.Fatalf("the last word is %v", last)
		}
	}
}

// TestSessionNeedsStrongCiphers: HTTP/2 goes by no cipher suite of TLS 1.2 that it forbids (RFC 9113, 9.2.2), and
// HTTP/1.1 still does.
func TestSessionNeedsStrongCiphers(t *testing.T) {
	s := h1test.NewTLS(t, credentials.ServerFiles{HasHTTP2: true})
	addr, _ := startTLS(t, s, Options{})
	dial := func(version, suite uint16, protocol string) *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", addr, &tls.Config{
			RootCAs: s.Authority.Pool(), MinVersion: tls.VersionTLS12, MaxVersion: version,
			CipherSuites: []uint16{suite}, NextProtos: []string{protocol},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != protocol {
			t.Fatalf("%q is agreed on, want %q", got, protocol)
		}
		return c
	}
	const weak, strong = tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	for _, c := range []struct {
		version, suite uint16
		want           string
	}{
		{tls.VersionTLS12, weak, "GOAWAY 0 INADEQUATE_SECURITY"},
		{tls.VersionTLS12, strong, "1 HEADERS :status: 200"},
		{tls.VersionTLS13, 0, "1 HEADERS :status: 200"},
	} {
		client := h2test.New(t, dial(c.version, c.suite, "h2"))
		// The client that is refused may find the connection closed.
		_ = client.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, EndStream: true, EndHeaders: true,
			BlockFragment: client.Block(":method: GET", ":scheme: https", ":path: /", ":authority: a"),
		})
		event, err := client.Next()
		for err == nil && event.Kind != http2.FrameHeaders && event.Kind != http2.FrameGoAway {
			event, err = client.Next()
		}
		if err != nil || !strings.HasPrefix(event.String(), c.want) {
			t.Errorf("%s: %v, %v, want %s", tls.CipherSuiteName(c.suite), event, err, c.want)
		}
	}
	old := dial(tls.VersionTLS12, weak, "http/1.1")
	defer func() { _ = old.Close() }()
	h1test.Send(t, old, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, bufio.NewReader(old), false)
}

// TestSessionGoesOn: what a handler leaves for later is done when it has returned, and a panic ends its stream alone.
func TestSessionGoesOn(t *testing.T) {
	returned := make(chan struct{}, 1)
	_, addr := startServer(t, Options{}, func(r *Request) {
		target := string(r.Head.Target)
		r.GoOn(func() {
			<-returned
			if target == "/panics" {
				panic("later")
			}
			var m message.Response
			m.StartBody(200, "text/plain", []byte(target))
			r.Send(&m)
		})
		returned <- struct{}{}
	})
	client := h2c(t)
	for _, path := range []string{"/a", "/panics", "/b"} {
		resp, err := client.Get("http://" + addr + path)
		if path == "/panics" {
			if err == nil {
				_ = resp.Body.Close()
			}
			if err == nil && resp.StatusCode != http.StatusInternalServerError {
				t.Errorf("a panic is answered %d", resp.StatusCode)
			}
			continue
		}
		if err != nil {
			t.Fatal(path, err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(got) != path {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
