package upstream

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// troubled is a server whose every exchange may go wrong in some way. It counts
// how often each request came, however little of it.
type troubled struct {
	net.Listener
	mu     sync.Mutex
	random *rand.Rand
	came   map[string]int // by target
}

// troubles are the things a server may do once it has read the head of a request.
var troubles = []struct {
	name string
	do   func(nc net.Conn, body io.Reader)
}{
	{"answer", func(nc net.Conn, body io.Reader) {
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(nc, okReply)
	}},
	{"answer", func(nc net.Conn, body io.Reader) {
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(nc, okReply)
	}},
	{"answer and close", func(nc net.Conn, body io.Reader) {
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(nc, okReply)
		_ = nc.Close()
	}},
	{"503", func(nc net.Conn, body io.Reader) {
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(nc, "HTTP/1.1 503 E\r\nContent-Length: 0\r\n\r\n")
	}},
	{"close", func(nc net.Conn, _ io.Reader) { _ = nc.Close() }},
	{"reset", reset},
	{"reset after all of it", func(nc net.Conn, body io.Reader) { _, _ = io.Copy(io.Discard, body); reset(nc, body) }},
	{"half-close", func(nc net.Conn, body io.Reader) {
		_, _ = io.Copy(io.Discard, body)
		_ = nc.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, nc)
	}},
	{"half an answer", func(nc net.Conn, body io.Reader) {
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(nc, okReply[:len(okReply)-1])
		_ = nc.Close()
	}},
	{"half a head", func(nc net.Conn, _ io.Reader) { _, _ = io.WriteString(nc, okReply[:12]); reset(nc, nil) }},
	{"garbage", func(nc net.Conn, _ io.Reader) { _, _ = io.WriteString(nc, "\x16\x03\x01"); _ = nc.Close() }},
	{"silence", func(nc net.Conn, _ io.Reader) { _, _ = io.Copy(io.Discard, nc) }},
}

func reset(nc net.Conn, _ io.Reader) {
	_ = nc.(*net.TCPConn).SetLinger(0)
	_ = nc.Close()
}

func newTroubled(t *testing.T, seed uint64) *troubled {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	s := &troubled{Listener: ln, random: rand.New(rand.NewPCG(seed, 4)), came: make(map[string]int)}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			if s.draw(20) == 0 {
				reset(nc, nil) // before anything was read
				continue
			}
			go s.serve(nc)
		}
	}()
	return s
}

func (s *troubled) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *troubled) serve(nc net.Conn) {
	defer func() { _ = nc.Close() }()
	br := bufio.NewReader(nc)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.came[r.Method+" "+r.RequestURI]++
		s.mu.Unlock()
		// Two of three exchanges go well.
		i := 0
		if s.draw(3) == 0 {
			i = s.draw(len(troubles))
		}
		troubles[i].do(nc, r.Body)
		if i > 1 && troubles[i].name != "503" {
			return
		}
	}
}

// Whatever servers do: no write comes twice, no read more than twice, what is
// sent again is within the budget, every request has an end, and no connection
// is lost from the counts.
func TestNothingIsDeliveredTwice(t *testing.T) {
	for seed := range uint64(3) {
		servers := []*troubled{newTroubled(t, seed), newTroubled(t, seed+10), newTroubled(t, seed+20)}
		endpoints := []string{"http://" + testutil.FreeAddress(t)}
		for _, s := range servers {
			endpoints = append(endpoints, "http://"+s.Addr().String())
		}
		const percent, perSecond, clients, requests = 10, 5, 8, 150
		client, err := New(Config{
			Endpoints: endpoints, Timeouts: Timeouts{Answer: 150 * time.Millisecond, Body: 150 * time.Millisecond},
			Limits: Limits{Conns: 5, Wait: time.Minute},
			Ejection: balance.Ejection{Failures: 3, Base: 20 * time.Millisecond, Max: 100 * time.Millisecond,
				Percent: 50},
			Retries: &balance.RetryBudget{Percent: percent, PerSecond: perSecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		kinds := make(map[string]int)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for j := range requests {
					method, body := "GET", ""
					if j%2 == 0 {
						method, body = "PUT", strings.Repeat("x", 1+j*200)
					}
					var resp message.Response
					err := client.Do(request(method, fmt.Sprintf("/%d/%d", i, j), body), &resp)
					mu.Lock()
					if err != nil {
						kinds[kindOf(err)]++
					} else {
						kinds[strconv.Itoa(resp.Status())]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		took := time.Since(start)
		came, twice := make(map[string]int), 0
		for _, s := range servers {
			s.mu.Lock()
			for target, n := range s.came {
				came[target] += n
			}
			s.mu.Unlock()
		}
		for target, n := range came {
			if strings.HasPrefix(target, "PUT") && n > 1 || n > 2 {
				t.Errorf("seed %d: %s came %d times", seed, target, n)
			}
			if n > 1 {
				twice++
			}
		}
		if most := balance.MaxSaved + clients*requests*percent/100 + int(took.Seconds()+2)*perSecond; twice > most {
			t.Errorf("seed %d: %d requests came twice; %d may", seed, twice, most)
		}
		for _, kind := range []string{"Busy", "CircuitOpen", "TooLarge"} {
			if kinds[kind] > 0 {
				t.Errorf("seed %d: the outcomes were %v", seed, kinds)
			}
		}
		// A server that is not there is passed over, unless the time for an answer is over already.
		if kinds["Unreachable"] > clients*requests/20 || kinds["200"] < clients*requests/2 || kinds["503"] == 0 ||
			kinds["TooSlow"] == 0 || kinds["Broken"] == 0 || kinds["Malformed"] == 0 {
			t.Errorf("seed %d: the outcomes were %v", seed, kinds)
		}
		client.pool.check(t, nil)
		client.Close()
		if open, idle := client.Conns(); open != 0 || idle != 0 {
			t.Errorf("seed %d: %d connections are open, %d idle", seed, open, idle)
		}
	}
}

// pair is a client for two servers. The first one is asked first.
func pair(t *testing.T, first, second net.Listener, c Config) *Client {
	t.Helper()
	c.Endpoints = []string{"http://" + first.Addr().String(), "http://" + second.Addr().String()}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	// As if the other one were busier: two of two are always compared.
	client.pool.set.All()[1].Busy += 100
	return client
}

// Servers that end each connection get no more reads than the budget adds.
func TestOutageIsNotAmplified(t *testing.T) {
	one, two := newScripted(t), newScripted(t)
	client, err := New(Config{
		Endpoints: []string{"http://" + one.Addr().String(), "http://" + two.Addr().String()},
		Retries:   &balance.RetryBudget{Percent: 20}, Ejection: balance.Ejection{Failures: 5, Percent: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const requests = 500
	var resp message.Response
	for range requests {
		if err := client.Do(request("GET", "/", ""), &resp); kindOf(err) != "Broken" {
			t.Fatalf("got %v", err)
		}
	}
	first, _ := one.seen()
	second, _ := two.seen()
	if n := len(first) + len(second); n != requests*120/100 || client.State().Retried != requests*20/100 {
		t.Errorf("%d requests came %d times; %d retries are counted", requests, n, client.State().Retried)
	}
}

// Streams are requests in flight for as long as they last: they are spread evenly.
func TestStreamsAreSpread(t *testing.T) {
	serve := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		t.Cleanup(s.Close)
		return s
	}
	one, two := serve(), serve()
	client, err := New(Config{Endpoints: []string{one.URL, two.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var streams []*Body
	for range 20 {
		var resp message.Response
		if err := client.Do(request("GET", "/?watch=1", ""), &resp); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, resp.Stream().(*Body))
	}
	for _, e := range client.State().Endpoints {
		if e.InFlight != 10 {
			t.Errorf("%s has %d streams", e.Address, e.InFlight)
		}
	}
	for _, s := range streams {
		_ = s.Close()
	}
	client.pool.check(t, nil)
}

// Which requests are sent again, and to which endpoints.
func TestRetries(t *testing.T) {
	closed, err := net.Listen("tcp", testutil.FreeAddress(t)) // a port that nobody else takes
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	none := &balance.RetryBudget{}
	for _, c := range []struct {
		name   string
		method string
		first  string // what the first server answers; "refused" if it is not there
		config Config
		kind   string
		seen   [2]int // requests at each server
		again  uint64
	}{
		{"a read whose connection ends goes to the other", "GET", cut, Config{}, "", [2]int{1, 1}, 1},
		{"HEAD too", "HEAD", cut, Config{}, "", [2]int{1, 1}, 1},
		{"but not beyond the budget", "GET", cut, Config{Retries: none}, "Broken", [2]int{1, 0}, 0},
		{"a write does not", "PUT", cut, Config{}, "Broken", [2]int{1, 0}, 0},
		{"nor a read that saw a byte", "GET", "H" + cut, Config{}, "Broken", [2]int{1, 0}, 0},
		{"nor one that took all the time", "GET", "", Config{Timeouts: Timeouts{Answer: 20 * time.Millisecond}},
			"TooSlow", [2]int{1, 0}, 0},
		{"nor an answer that is wrong", "GET", "garbage\r\n\r\n", Config{}, "Malformed", [2]int{1, 0}, 0},
		{"nor one that is an error", "GET", "HTTP/1.1 503 E\r\nContent-Length: 0\r\n\r\n", Config{}, "", [2]int{1, 0},
			0},
		{"a read goes on where there is nobody", "GET", "refused", Config{}, "", [2]int{0, 1}, 1},
		{"a write too, and without a budget: nothing was sent", "PUT", "refused", Config{Retries: none}, "",
			[2]int{0, 1}, 1},
	} {
		first, second := newScripted(t, c.first), newScripted(t, "HTTP/1.1 204 No Content\r\n\r\n")
		var ln net.Listener = first
		if c.first == "refused" {
			ln = closed
		}
		client := pair(t, ln, second, c.config)
		body := ""
		if c.method == "PUT" {
			body = "{}"
		}
		var resp message.Response
		if err := client.Do(request(c.method, "/", body), &resp); kindOf(err) != c.kind {
			t.Errorf("%s: got %v", c.name, err)
		}
		one, _ := first.seen()
		two, _ := second.seen()
		if got := [2]int{len(one), len(two)}; got != c.seen {
			t.Errorf("%s: the servers saw %v", c.name, got)
		}
		if n := client.State().Retried; n != c.again {
			t.Errorf("%s: %d retries are counted", c.name, n)
		}
	}
}

// If no endpoint can be reached, a request is tried at a few of them, not at all.
func TestTriesAreBounded(t *testing.T) {
	var endpoints []string
	for range 10 {
		endpoints = append(endpoints, "http://"+testutil.FreeAddress(t))
	}
	client, err := New(Config{Endpoints: endpoints, Ejection: balance.Ejection{Failures: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var resp message.Response
	if err := client.Do(request("PUT", "/", "{}"), &resp); kindOf(err) != "Unreachable" {
		t.Errorf("got %v", err)
	}
	failures := 0
	for _, e := range client.State().Endpoints {
		if e.Failures > 1 {
			t.Errorf("%s was tried %d times", e.Address, e.Failures)
		}
		failures += e.Failures
	}
	if failures != balance.MaxTries {
		t.Errorf("%d endpoints were tried", failures)
	}
}

// A server that takes connections and does nothing with them is passed over after the time for connecting.
func TestHangingHandshakeGoesElsewhere(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	bodies := make(chan string, 2)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- string(b)
	}))
	defer server.Close()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client, err := New(Config{
		Endpoints: []string{"https://" + silent.Addr().String(), server.URL},
		Timeouts:  Timeouts{Connect: 500 * time.Millisecond},
		TLS:       func() *tls.Config { return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.pool.set.All()[1].Busy += 100
	var resp message.Response
	if err := client.Do(request("PUT", "/", "{}"), &resp); err != nil {
		t.Error(err)
	}
	if got := <-bodies; got != "{}" || len(bodies) > 0 {
		t.Errorf("the other server saw %q and %d more", got, len(bodies))
	}
}

// No retry begins after the request's deadline, or after the time for an answer.
func TestRetriesEndWithTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		config   Config
		deadline time.Duration
	}{
		"the client's": {Config{}, 30 * time.Millisecond},
		"ours":         {Config{Timeouts: Timeouts{Answer: 30 * time.Millisecond}}, 0},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ln.Close() }()
		second := newScripted(t, okReply)
		client := pair(t, ln, second, c.config)
		go func() {
			nc, err := ln.Accept()
			if err == nil {
				time.Sleep(300 * time.Millisecond)
				_ = nc.Close()
			}
		}()
		req := request("GET", "/", "")
		if c.deadline > 0 {
			req.Deadline = time.Now().Add(c.deadline)
		}
		var resp message.Response
		if err := client.Do(req, &resp); kindOf(err) != "TooSlow" {
			t.Errorf("%s: got %v", name, err)
		}
		if requests, _ := second.seen(); len(requests) != 0 {
			t.Errorf("%s: the other server saw %v", name, requests)
		}
	}
}

// An endpoint that answers 502, 503 or 504 several times in a row is passed
// over; its streams go on. What the backend says reaches the client as it is.
func TestFaultyAnswersEject(t *testing.T) {
	stream := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
	e := func(code int) string { return fmt.Sprintf("HTTP/1.1 %d E\r\nContent-Length: 2\r\n\r\nno", code) }
	first := newScripted(t, stream, e(500), e(503), e(502), okReply, e(504), e(503), e(502))
	second := newScripted(t, okReply, okReply, okReply)
	client := pair(t, first, second,
		Config{Ejection: balance.Ejection{Failures: 3, Answers: true, Base: time.Hour, Max: time.Hour, Percent: 50}})
	var watch message.Response
	if err := client.Do(request("GET", "/watch", ""), &watch); err != nil {
		t.Fatal(err)
	}
	var codes []int
	for range 10 {
		var resp message.Response
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Fatal(err)
		}
		codes = append(codes, resp.Status())
	}
	if got := fmt.Sprint(codes); got != "[500 503 502 200 504 503 502 200 200 200]" {
		t.Errorf("the answers were %s", got)
	}
	if s := client.State(); s.Ejections != 1 || s.Endpoints[0].Status != balance.EndpointEjected ||
		s.Endpoints[0].InFlight != 1 || s.Endpoints[1].Status != balance.EndpointReady {
		t.Errorf("the state is %+v", s)
	}
	first.mu.Lock()
	_, _ = io.WriteString(first.open[0], "1\r\nb\r\n0\r\n\r\n")
	first.mu.Unlock()
	if b, err := io.ReadAll(watch.Stream()); err != nil || string(b) != "ab" {
		t.Errorf("the stream of the ejected endpoint: %q, %v", b, err)
	}
}

// Answers eject no endpoint if they may have another cause than the server, or if the client set
// the time.
func TestAnswersThatDoNotEject(t *testing.T) {
	for _, c := range []struct {
		code     int
		answers  bool
		deadline time.Time
	}{{503, false, time.Time{}}, {504, true, time.Now().Add(time.Hour)}} {
		answer := fmt.Sprintf("HTTP/1.1 %d E\r\nContent-Length: 0\r\n\r\n", c.code)
		first, second := newScripted(t, answer, answer, answer), newScripted(t)
		client := pair(t, first, second, Config{Ejection: balance.Ejection{Failures: 1, Answers: c.answers}})
		for range 3 {
			req := request("GET", "/", "")
			req.Deadline = c.deadline
			var resp message.Response
			if err := client.Do(req, &resp); err != nil || resp.Status() != c.code {
				t.Errorf("got %d, %v", resp.Status(), err)
			}
		}
		if s := client.State(); s.Ejections != 0 || s.Endpoints[0].Failures != 0 {
			t.Errorf("%d: the state is %+v", c.code, s)
		}
	}
}

// Connections that a server closes while they are unused do not count against it.
func TestClosedIdleConnectionsAreNoFailures(t *testing.T) {
	s := newScripted(t, okReply, okReply)
	other := newScripted(t)
	client := pair(t, s, other,
		Config{Ejection: balance.Ejection{Failures: 1, Base: time.Hour, Max: time.Hour, Percent: 50}})
	var resp message.Response
	for range 2 {
		if err := client.Do(request("PUT", "/", "{}"), &resp); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		_ = s.open[len(s.open)-1].Close()
		s.mu.Unlock()
		waitStirred(t, client)
	}
	if s := client.State(); s.Ejections != 0 || s.Retried != 0 {
		t.Errorf("the state is %+v", s)
	}
}
