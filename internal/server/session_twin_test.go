package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// FuzzTwin sends a request by HTTP/1.1 and by HTTP/2: both are served, as the same request, or both are refused. What a
// head of HTTP/1.1 cannot have in a line, HTTP/2 refuses too.
func FuzzTwin(f *testing.F) {
	for _, seed := range []struct{ method, target, name, value, body string }{
		{"GET", "/a?b=c", "accept", "*/*", ""},
		{"POST", "/a", "cookie", "a=b; c=d", "body"},
		{"POST", "/a%2Fb", "x-http-method-override", "PUT", "body"},
		{"PUT", "/a b", "x", "y", ""},
		{"GET", "/a", "x-forwarded-for", "1.2.3.4", ""},
		{"GET", "/a", "x", "a\r\nX-Remote-User: admin", ""},
		{"GET", "/a", "x\r\ny", "z", ""},
		{"GET", "/ HTTP/1.1\r\nx: y", "a", "b", ""},
		{"get", "/a", "x", "y", ""},
		{"GET", "/a", "transfer-encoding", "chunked", ""},
		{"GET", "/a", "content-length", "3", "abc"},
		{"GET", "/a", "expect", "200-ok", ""},
		{"GET", "/a", "impersonate-user", "admin", ""},
		{"GET", "/%", "", "", ""},
		{"GET", "/a", "x_y", "z", ""},
	} {
		f.Add(seed.method, seed.target, seed.name, seed.value, seed.body)
	}
	_, addr := startServer(f, Options{}, func(r *Request) {
		if r.Refusal == nil {
			if err := r.Head.CheckNames(nil); err != nil {
				r.Refusal = refusalOf(err)
			}
		}
		echo(r)
	})
	f.Fuzz(func(t *testing.T, method, target, name, value, body string) {
		lower := strings.ToLower(name)
		switch lower {
		case "host", "content-length", "te": // both protocols have rules of their own for these
			return
		}
		if !strings.HasPrefix(target, "/") || len(method)+len(target)+len(name)+len(value) > 4000 ||
			strings.ContainsAny(method, "\r\n \x00") || method == "" {
			return
		}
		fields := []string{":method: " + method, ":scheme: http", ":path: " + target, ":authority: gw"}
		if name != "" {
			fields = append(fields, lower+": "+value)
		}
		if body != "" {
			fields = append(fields, fmt.Sprint("content-length: ", len(body)))
		}
		c := h2test.Dial(t, addr)
		if strings.HasPrefix(name, ":") || strings.Contains(name, ":") {
			return // which the helper takes for another name
		}
		h2test.Must(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.Block(fields...),
			EndStream: body == "", EndHeaders: true}))
		if body != "" {
			h2test.Must(t, c.WriteData(1, true, []byte(body)))
		}
		second := c.Read(t, 1)[1]
		_ = c.Conn.Close()
		if strings.ContainsAny(target+name+value, "\r\n") {
			if second.Status() == "200" {
				t.Fatalf("%q %q is served: %q", target, fields, second.Body)
			}
			return
		}
		if isConnectionField(lower) || strings.Trim(value, " \t") != value {
			if name != "" && second.Status() == "200" {
				t.Fatalf("%q is served", fields)
			}
			return
		}
		text := method + " " + target + " HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n"
		if name != "" {
			text += name + ": " + value + "\r\n"
		}
		if body != "" {
			text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
		}
		nc, _ := h1test.Dial(t, addr)
		h1test.Send(t, nc, text+"\r\n"+body)
		first, err := http.ReadResponse(bufio.NewReader(nc), &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		answer, err := io.ReadAll(first.Body)
		_ = nc.Close()
		if err != nil {
			t.Fatal(err)
		}
		isServed := first.StatusCode == 200
		if isServed != (second.Status() == "200") || isServed && string(answer) != second.Body {
			t.Errorf("%q\nby HTTP/1.1: %d %q\nby HTTP/2:   %s %q", text, first.StatusCode, answer, second.Status(),
				second.Body)
		}
	})
}

// isConnectionField reports whether a field is about a connection of HTTP/1.1.
func isConnectionField(name string) bool {
	switch name {
	case "connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection", "http2-settings":
		return true
	}
	return false
}

// FuzzFrames sends any bytes behind the preface: nothing panics, and all that the connection held is given back when it
// ends.
func FuzzFrames(f *testing.F) {
	seed := func(send func(w *http2.Framer, block func(fields ...string) []byte)) {
		var b, fields bytes.Buffer
		e := hpack.NewEncoder(&fields)
		send(http2.NewFramer(&b, nil), func(list ...string) []byte {
			fields.Reset()
			for _, one := range list {
				i := strings.Index(one[1:], ": ") + 1
				_ = e.WriteField(hpack.HeaderField{Name: one[:i], Value: one[i+2:]}) // a buffer fails never
			}
			return fields.Bytes()
		})
		f.Add(b.Bytes())
	}
	seed(func(w *http2.Framer, block func(...string) []byte) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(h2test.Post("/")...),
			EndHeaders: true})
		_ = w.WriteData(1, false, []byte("abc"))
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block("x: y"), EndHeaders: true,
			EndStream: true})
		_ = w.WriteWindowUpdate(1, 100)
		_ = w.WritePing(false, [8]byte{1})
		_ = w.WriteRSTStream(1, 8)
	})
	seed(func(w *http2.Framer, block func(...string) []byte) {
		_ = w.WriteSettings()
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(h2test.Get("/")[:2]...)})
		_ = w.WriteContinuation(1, true, block(":path: /", ":authority: a"))
		_ = w.WriteGoAway(0, 0, nil)
		_ = w.WritePriority(3, http2.PriorityParam{StreamDep: 1})
	})
	budget := memory.NewBudget(1<<20, 1)
	log := new(strings.Builder)
	s, addr := startServer(f, Options{
		Memory: NewMemory(budget, func() error { return errOtherLength }), HeadTimeout: 50 * time.Millisecond,
		BodyTimeout: 50 * time.Millisecond,
		Log:         slog.New(slog.NewTextHandler(log, nil)),
	}, echo)
	f.Fuzz(func(t *testing.T, frames []byte) {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(nc, http2.ClientPreface) // the other end may have enough before the end
			_, _ = nc.Write(frames)
			_ = nc.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(io.Discard, nc)
		_ = nc.Close()
		testutil.Eventually(t, "all is given back", func() bool {
			return s.Open() == 0 && s.streams.Load() == 0 && budget.InUse() == 0
		})
		if strings.Contains(log.String(), "panic") {
			t.Fatal(log.String())
		}
	})
}
