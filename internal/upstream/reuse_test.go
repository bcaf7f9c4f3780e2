package upstream

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// evil is an answer that nobody has asked for.
const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

// speaker is a backend that answers each request, and sends on a connection what it was not asked for when a test says
// so.
type speaker struct {
	mu    sync.Mutex
	conns []net.Conn
	asked int
}

// newSpeaker starts a speaker, and returns a client for it.
func newSpeaker(t *testing.T, isSecure bool) (*speaker, *Client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Endpoints: []string{"http://" + ln.Addr().String()}}
	if isSecure {
		authority := credentialstest.NewAuthority(t, "a")
		ln = tls.NewListener(ln, authority.Server(t, []string{"127.0.0.1"}).Config(t))
		config = Config{Endpoints: []string{"https://" + ln.Addr().String()},
			TLS: func() *tls.Config { return &tls.Config{RootCAs: authority.Pool()} }}
	}
	s := &speaker{}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, nc)
			s.mu.Unlock()
			go s.serve(nc)
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, nc := range s.conns {
			_ = nc.Close()
		}
	})
	return s, newClient(t, config)
}

func (s *speaker) serve(nc net.Conn) {
	for br := bufio.NewReader(nc); ; {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		s.mu.Lock()
		s.asked++
		s.mu.Unlock()
		if _, err := io.WriteString(nc, okReply); err != nil {
			return
		}
	}
}

// requests returns how many requests came.
func (s *speaker) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// speak sends what was not asked for on the connection that was made last, and waits until it has arrived at the other
// end.
func (s *speaker) speak(t *testing.T, text string, cn *conn) {
	t.Helper()
	s.mu.Lock()
	nc := s.conns[len(s.conns)-1]
	s.mu.Unlock()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "what was sent to arrive", func() bool {
		found := nothing
		if err := cn.socket.raw.Control(func(fd uintptr) { found = look(fd) }); err != nil {
			t.Fatal(err)
		}
		return found == surplus
	})
}

// idleConn returns the connection that is free.
func idleConn(t *testing.T, c *Client) *conn {
	t.Helper()
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, e := range c.pool.set.All() {
		if n := len(e.Conns.free); n > 0 {
			return e.Conns.free[n-1].link.(*conn)
		}
	}
	t.Fatal("no connection is free")
	return nil
}

// answerTo sends a request and returns the body of the answer, or why there is none.
func answerTo(c *Client, r *Request) string {
	var resp message.Response
	if err := c.Do(r, &resp); err != nil {
		return err.Error()
	}
	defer resp.Close()
	return string(resp.Body())
}

// writtenUpload is an upload of a text.
type writtenUpload struct{ *strings.Reader }

func (u writtenUpload) Length() int64 { return u.Size() }

func (writtenUpload) Trailers() []message.Header { return nil }

func (writtenUpload) Interrupt() {}

// asking are requests that are written in each of the ways that there are.
var asking = map[string]func() *Request{
	"GET":            func() *Request { return request("GET", "/", "") },
	"POST":           func() *Request { return request("POST", "/", "{}") },
	"POST of much":   func() *Request { return request("POST", "/", strings.Repeat("x", 3*smallRequest)) },
	"POST of plenty": func() *Request { return request("POST", "/", strings.Repeat("x", 1<<20)) },
	"upload": func() *Request {
		r := request("POST", "/", "{}")
		r.Body, r.Upload = nil, writtenUpload{strings.NewReader("{}")}
		return r
	},
}

// TestSurplusAtReuse: bytes that come behind an answer and before the next request is written close the connection and
// are counted, whenever they come. They reach no client, and no request is lost by them.
func TestSurplusAtReuse(t *testing.T) {
	for _, isSecure := range []bool{false, true} {
		for name, ask := range asking {
			for _, when := range []string{"before it is taken", "right when it is taken", "when it is closed",
				"never"} {
				title := name + " " + when
				if isSecure {
					title += " by TLS"
				}
				t.Run(title, func(t *testing.T) {
					s, client := newSpeaker(t, isSecure)
					if got := answerTo(client, request("GET", "/", "")); got != "ok" {
						t.Fatal(got)
					}
					wantConns, wantSurplus, wantAsked := 2, uint64(1), 2
					switch when {
					case "before it is taken":
						s.speak(t, evil, idleConn(t, client))
					case "right when it is taken":
						cn := idleConn(t, client)
						now := time.Now()
						held, err := client.acquire(ask(), &attempt{start: now, now: now})
						if err != nil || held.link.(*conn) != cn {
							t.Fatalf("another connection is taken: %v", err)
						}
						s.speak(t, evil, cn)
						var resp message.Response
						err = cn.roundTrip(slot{conn: held, now: now}, ask(), &resp)
						failure, is := errors.AsType[*Error](err)
						if !is || failure.Sent || failure.retry != notSent || !errors.Is(err, errSurplus) {
							t.Errorf("the request on it ends with %v", err)
						}
						if resp.IsStream() || len(resp.Body()) > 0 {
							t.Errorf("the answer is %q", resp.Body())
						}
					case "when it is closed":
						s.speak(t, evil, idleConn(t, client))
						client.Renew()
					case "never":
						wantConns, wantSurplus = 1, 0
					}
					if got := answerTo(client, ask()); got != "ok" {
						t.Errorf("the next answer is %q", got)
					}
					if n := client.Dialled(); n != uint64(wantConns) {
						t.Errorf("%d connections were made, not %d", n, wantConns)
					}
					if n := client.State().Surplus; n != wantSurplus {
						t.Errorf("%d connections had surplus, not %d", n, wantSurplus)
					}
					if n := s.requests(); n != wantAsked {
						t.Errorf("the backend got %d requests, not %d", n, wantAsked)
					}
				})
			}
		}
	}
}

// TestSurplusBehindRequest: bytes that the backend has sent before any byte of the request reached it are no answer to
// it, even if they are read after the request was written.
func TestSurplusBehindRequest(t *testing.T) {
	for _, isSecure := range []bool{false, true} {
		name := "plain"
		if isSecure {
			name = "TLS"
		}
		t.Run(name, func(t *testing.T) {
			found := false
			for end := time.Now().Add(testutil.Patience); !found && time.Now().Before(end); {
				s, client := newSpeaker(t, isSecure)
				for range 10 { // both ends wait with acknowledgements for what they send themselves
					if got := answerTo(client, request("GET", "/", "")); got != "ok" {
						t.Fatal(got)
					}
				}
				now, r := time.Now(), request("GET", "/", "")
				held, err := client.acquire(r, &attempt{start: now, now: now})
				if err != nil {
					t.Fatal(err)
				}
				cn := held.link.(*conn)
				s.speak(t, evil, cn)
				// The look before the write comes too early.
				if _, err := cn.Conn.Write(r.Head); err != nil {
					t.Fatal(err)
				}
				cn.isUsed, cn.written = true, len(r.Head)
				cn.br = cn.transport.reader(cn)
				_, err = readHead(cn, cn.br)
				failure, is := errors.AsType[*Error](err)
				found = is && failure.Sent && failure.retry == noAnswer && errors.Is(err, errSurplus) &&
					client.State().Surplus == 1
				cn.end(false, 0, time.Now())
			}
			if !found {
				t.Error("an answer is believed that was sent before the request had come")
			}
		})
	}
}

// TestAnswersAreHeard: answers to requests are none of those that come too early, however fast they come and whatever
// came of the request, on connections that are used again and again.
func TestAnswersAreHeard(t *testing.T) {
	for _, isSecure := range []bool{false, true} {
		_, client := newSpeaker(t, isSecure)
		for name, ask := range asking {
			for range 200 {
				if got := answerTo(client, ask()); got != "ok" {
					t.Fatalf("%s: %s", name, got)
				}
			}
		}
		if s := client.State(); s.Surplus != 0 || client.Dialled() != 1 {
			t.Errorf("%d connections of %d had surplus", s.Surplus, client.Dialled())
		}
	}
}

// TestSurplusOfStreams: frames of HTTP/2 behind the end of their stream reach no other stream, whenever they come.
func TestSurplusOfStreams(t *testing.T) {
	for name, frames := range map[string]func(f *far, id uint32){
		"data": func(f *far, id uint32) { _ = f.WriteData(id, true, []byte("evil")) },
		"another answer": func(f *far, id uint32) {
			f.head(id, false, ":status", "200", "content-length", "2")
			_ = f.WriteData(id, true, []byte("evil"))
		},
		"a head":           func(f *far, id uint32) { f.head(id, true, ":status", "500") },
		"a reset":          func(f *far, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeCancel) },
		"a window's widen": func(f *far, id uint32) { _ = f.WriteWindowUpdate(id, 100) },
	} {
		for _, when := range []string{"behind the answer", "before the next answer", "within the next answer"} {
			t.Run(name+" "+when, func(t *testing.T) {
				client := newClient(t, newFar(t, func(f *far, _ int) {
					for before, id := uint32(0), f.request(); id != 0; before, id = id, f.request() {
						if before != 0 && when == "before the next answer" {
							frames(f, before)
						}
						if before != 0 && when == "within the next answer" {
							f.head(id, false, ":status", "200", "content-length", "2")
							frames(f, before)
							_ = f.WriteData(id, true, []byte("ok"))
							continue
						}
						f.ok(id)
						if when == "behind the answer" {
							frames(f, id)
						}
					}
				}))
				for range 5 {
					if got := ask(client, "GET", "/"); got != "ok" {
						t.Errorf("the answer is %q", got)
					}
				}
				if n := client.Dialled(); n != 1 {
					t.Errorf("%d connections were made", n)
				}
			})
		}
	}
}
