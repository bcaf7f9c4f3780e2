package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

const (
	// maxAmplification is how many bytes the gateway may take for each byte of a request.
	maxAmplification = 100
	// perRequest bounds any request, however small it is.
	perRequest = 512 << 10
	// perPolicy is how much expressions may build before their budget is used up, however small the request is, garbage
	// included. Only policies that make lists of lists come near it.
	perPolicy = 16 << 20
)

// TestMemoryAmplification shows that nothing a client sends takes more than 100 times its own size in memory. All that
// is allocated from the first byte of a request to the last of its answer is counted, garbage included, so
// that neither the moment of a collection nor the moment of a measurement decides anything. The pools
// are emptied before each request. Client and
// backend are in the same process, and count against the gateway. What a policy's own defaults add to an object counts
// as sent, for it is the policy that says how much that is; the object is bounded with them.
func TestMemoryAmplification(t *testing.T) {
	if testing.Short() {
		t.Skip("sends a megabyte a hundred times, one after the other")
	}
	const size = 1 << 20
	fill := func(item string) string { return strings.Repeat(item, size/len(item)) }
	list := func(item string) string { return strings.TrimSuffix(fill(item+","), ",") }
	keys := func(value string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `"%s":%s,`, strconv.FormatInt(int64(i), 36), value)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	set := func(spec string) string { return `{"metadata":{"name":"s1"},"spec":{` + spec + `}}` }
	deep := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	operations := func(n int, op string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + "]"
	}
	doubling := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"op":"copy","from":"/spec","path":"/spec/%d"},`, i)
		}
		return "[" + strings.TrimSuffix(b.String(), ",") + "]"
	}
	stored := `{"metadata":{"name":"s1"},"spec":{"free":{"a":"` + strings.Repeat("x", 1000) + `"}}}`
	for _, c := range []struct {
		name, body string
		patch      bool
		codes      string // that may be answered
	}{
		{"a list of numbers", set(`"free":{"x":[` + list("0") + `]}`), false, "201"},
		{"many lists", set(`"free":{"x":[` + list("[]") + `]}`), false, "201"},
		{"many objects", set(`"free":{"x":[` + list("{}") + `]}`), false, "201"},
		{"deep lists", set(`"free":{"x":[` + list(deep) + `]}`), false, "201"},
		{"too deep", strings.Repeat("[", size), false, "400"},
		{"too deep objects", fill(`{"a":`), false, "400"},
		{"many members", set(`"free":{` + keys("0") + `}`), false, "201"},
		{"many unknown members", set(keys("0")), false, "201"},
		{"many unknown members of the root", `{"metadata":{"name":"s1"},"spec":{},` + keys("0") + "}", false, "201"},
		{"many equal members", "{" + list(`"a":0`) + "}", false, "400"},
		{"a million numbers", set(`"free":{"x":[` + list("1e99") + `]}`), false, "201"},
		{"one long number", set(`"free":` + fill("9")), false, "400"},
		{"a long number for an integer", set(`"numbers":[1.` + fill("9") + `]`), false, "201 422"},
		{"escapes", set(`"free":"` + fill(`\u00e9`) + `"`), false, "201"},
		{"escapes that are echoed", set(`"text":"` + fill(`\u0001`) + `"`), false, "422"},
		{"escapes in a key", set(`"` + fill(`\u00e9`) + `":1`), false, "201"},
		{"a long key", set(`"` + fill("k") + `":1`), false, "201"},
		{"long unknown keys", set(`"` + strings.Repeat("k", size/2) + `":1,"` + strings.Repeat("l", size/2) + `":1`),
			false, "201"},
		{"text of the wrong form", set(`"text":"` + fill("A") + `"`), false, "422"},
		{"text of control characters", set(`"text":"` + fill("\u007f") + `"`), false, "422"},
		{"text that expressions lengthen", set(`"text":"` + fill("a") + `"`), false, "422"},
		{"numbers that are all too small", set(`"numbers":[` + list("0") + `]`), false, "422"},
		{"words that are all unknown", set(`"words":[` + list(`"x"`) + `]`), false, "422"},
		{"long words that are unknown", set(`"words":[` + list(`"`+strings.Repeat("x", 10_000)+`"`) + `]`), false,
			"422"},
		{"members that are all too long", set(`"names":{` + keys(`"xx"`) + `}`), false, "422"},
		{"lists of the wrong type", set(`"numbers":[` + list("[]") + `]`), false, "422"},
		{"an object of the wrong type", set(`"text":{` + keys("0") + `}`), false, "422"},
		{"too many defaults", set(`"defaulted":[` + list("{}") + `]`), false, "413"},
		{"defaults", set(`"defaulted":[` + list("{}")[:100_001] + `]`), false, "201"},
		{"loops over a list", set(`"free":[` + list("1") + `]`), false, "422"},
		{"loops that build lists", set(`"words":[` + list(`"one"`) + `]`), false, "422"},
		{"loops that build lists of a short one", set(`"words":[` + strings.Repeat(`"one",`, 2999) + `"one"]`), false,
			"422"},
		{"a name that is long", `{"metadata":{"name":"` + fill("n") + `"}}`, false, "400 422"},
		{"a kind that is long", `{"kind":"` + fill("n") + `"}`, false, "400"},
		{"a version of control characters", `{"apiVersion":"` + fill(`\u0001`) + `"}`, false, "400"},
		{"trailing data", "{}" + fill(" ") + "x", false, "400"},
		{"spaces", set(fill(" ")), false, "201"},
		{"patch of 10,000 operations", operations(10_000, `{"op":"add","path":"/spec/a","value":1}`), true, "200 201"},
		{"patch of more operations", operations(10_001, `{"op":"add","path":"/spec/a","value":1}`), true, "413"},
		{"patch that appends", `[{"op":"add","path":"/spec/free/x","value":[]},` +
			operations(9_999, `{"op":"add","path":"/spec/free/x/-","value":{}}`)[1:], true, "200 201"},
		{"patch that prepends", `[{"op":"add","path":"/spec/free/x","value":[{}]},` +
			operations(9_999, `{"op":"add","path":"/spec/free/x/0","value":{}}`)[1:], true, "200 201"},
		{"patch that sets one value again and again",
			operations(100, `{"op":"add","path":"/spec/free","value":"`+strings.Repeat("x", 10_000)+`"}`), true,
			"200 201"},
		{"patch that copies again and again", operations(10_000, `{"op":"copy","from":"/spec","path":"/spec/a"}`), true,
			"413 422"},
		{"patch that doubles", doubling(20), true, "413 422"},
		{"patch that doubles to the end", doubling(11), true, "200 201 413 422"},
		{"patch with a long path", operations(1, `{"op":"remove","path":"`+fill("/a")+`"}`), true, "422"},
		{"patch that tests long texts", operations(1, `{"op":"test","path":"/spec","value":"`+fill("a")+`"}`), true,
			"422"},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := newSink(t, stored)
			g := gatewayFor(t, t.TempDir(), backend.address, []string{"policies=costly"})
			address := startGateway(t, g)
			request := "POST /apis/example.com/v1/namespaces/team-a/sets HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n"
			if c.patch {
				request = "PATCH /apis/example.com/v1/namespaces/team-a/sets/s1 HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json-patch+json\r\n"
			}
			request += "Content-Length: " + strconv.Itoa(len(c.body)) + "\r\n\r\n" + c.body
			input := len(request)
			if c.patch {
				input += len(stored)
			}
			m := least(t, address, request)
			input = max(input, int(backend.received.Load()))
			most := int64(maxAmplification*input + perRequest)
			if c.name == "loops that build lists" || c.name == "loops that build lists of a short one" {
				most = max(most, perPolicy)
			}
			if !strings.Contains(c.codes, strconv.Itoa(m.code)) {
				t.Errorf("answered %d, want %s: %.300s", m.code, c.codes, m.start)
			}
			if m.allocated > most {
				t.Errorf("%d bytes made the gateway allocate %d, which is more than %d", input, m.allocated, most)
			}
			if m.answer > 3*max(len(request), input)+64<<10 {
				t.Errorf("%d bytes are answered with %d", len(request), m.answer)
			}
			testutil.Eventually(t, "all of the budget is given back", func() bool { return g.BodyBytesInFlight() == 0 })
		})
	}
}

// cost says how much a request and its answer took.
type cost struct {
	allocated int64
	code      int
	answer    int    // bytes
	start     string // of the answer's body
}

// least measures a request three times: what other tests leave running allocates too, and only the least is the
// request's.
func least(t *testing.T, address, request string) cost {
	t.Helper()
	m := measured(t, address, request)
	for range 2 {
		if again := measured(t, address, request); again.allocated < m.allocated {
			m = again
		}
	}
	return m
}

// measured sends one request on a connection of its own and measures what all of it allocates.
func measured(t *testing.T, address, request string) cost {
	t.Helper()
	nc, br := dial(t, address)
	// Collected twice, pools are empty.
	runtime.GC()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() { _, _ = io.Copy(nc, strings.NewReader(request)) }() // an early answer ends it
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := make([]byte, 1000)
	n, _ := io.ReadFull(resp.Body, start)
	rest, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return cost{int64(after.TotalAlloc - before.TotalAlloc), resp.StatusCode, n + int(rest), string(start[:n])}
}

// sink is a backend that takes any request without keeping it, and answers GET with the stored object.
type sink struct {
	address  string
	received atomic.Int64 // bytes of bodies
}

func newSink(t *testing.T, stored string) *sink {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	s := &sink{address: ln.Addr().String()}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = nc.Close() }()
				br := bufio.NewReader(nc)
				for {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					n, err := io.Copy(io.Discard, r.Body)
					if err != nil {
						return
					}
					s.received.Add(n)
					body := "{}"
					if r.Method == "GET" {
						body = stored
					}
					_, err = fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return s
}

// TestBodiesInFlight holds many connections that announce the largest body. One that sends next to nothing costs
// a constant. The others take of the budget what they sent. What does not fit is refused, and everything comes
// back.
func TestBodiesInFlight(t *testing.T) {
	const conns, perConn, part = 300, 96 << 10, 100_000
	backend := newSink(t, "{}")
	c, err := config.Load("", config.Flags{Upstream: "http://" + backend.address, Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	// Each connection with its request takes 44 KiB, and memory that grows is taken before what it replaces is given
	// back. An address may hold fifteen times what is free, so that a ninth body finds no room.
	const held = (conns+8)*44<<10 + 8<<17
	c.Limits.BodiesInFlightBytes = held + held/15 + 96<<10
	set := noPolicies()
	g := newTestGateway(t, c, func() *policies.Set { return set })
	address := startGateway(t, g)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	silent := make([]net.Conn, conns)
	for i := range silent {
		framing := "Content-Length: 3145728\r\n\r\n{"
		if i%2 == 1 {
			framing = "Transfer-Encoding: chunked\r\n\r\n300000\r\n{"
		}
		silent[i], _ = dial(t, address)
		send(t, silent[i], postHead+framing)
	}
	testutil.Eventually(t, "all connections wait for bodies", func() bool { return working(g) == conns })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+
		before.StackInuse); grown > conns*perConn {
		t.Errorf("each connection that sends nothing of its body takes %d bytes", grown/conns)
	}
	if n := g.BodyBytesInFlight(); n != 0 {
		t.Errorf("%d bytes of the budget are taken by bodies that were not sent", n)
	}

	// Each takes 128 KiB of the budget: eight of them are all of it.
	var holders []net.Conn
	var readers []*bufio.Reader
	for len(holders) < 8 {
		nc, br := dial(t, address)
		send(t, nc, postHead+"Content-Length: 120000\r\n\r\n"+strings.Repeat(" ", part))
		holders, readers = append(holders, nc), append(readers, br)
		testutil.Eventually(t, "the body is read",
			func() bool { return g.BodyBytesInFlight() == int64(len(holders))<<17 })
	}
	for _, framing := range []string{"Content-Length: 120000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1d4c0\r\n"} {
		nc, br := dial(t, address)
		send(t, nc, postHead+framing+strings.Repeat(" ", part))
		if got, closes := readAnswer(t, br, false); got.StatusCode != 503 || !closes ||
			got.Header.Get("Retry-After") != "1" {
			t.Errorf("beyond the budget: answered %d, close %v: %s", got.StatusCode, closes, got.Content)
		}
	}
	_ = holders[0].Close() // gone in the middle of its body
	for i, nc := range holders[1:] {
		send(t, nc, strings.Repeat(" ", 120_000-part-2)+"{}")
		if got, _ := readAnswer(t, readers[i+1], false); got.StatusCode != 200 {
			t.Errorf("a body within the budget: answered %d %s", got.StatusCode, got.Content)
		}
	}
	for _, nc := range silent {
		_ = nc.Close()
	}
	testutil.Eventually(t, "all is given back", func() bool { return working(g) == 0 && g.BodyBytesInFlight() == 0 })
}

// working is how many connections have a request on its way.
func working(g *Gateway) int { return g.server.Active() }

// TestTinyChunks sends a body in chunks of one byte: six bytes for each byte of body.
func TestTinyChunks(t *testing.T) {
	backend := newSink(t, "{}")
	g := gatewayFor(t, t.TempDir(), backend.address, []string{"kubernetes"})
	address := startGateway(t, g)
	body := "[" + strings.Repeat(" ", 300_000) + "]"
	request := postHead + "Transfer-Encoding: chunked\r\n\r\n" + chunks(body, 1)
	m := measured(t, address, request)
	if m.code != 200 || backend.received.Load() != int64(len(body)) {
		t.Errorf("answered %d %s; the backend got %d bytes, want %d", m.code, m.start, backend.received.Load(),
			len(body))
	}
	if most := int64(8*len(request) + perRequest); m.allocated > most {
		t.Errorf("%d bytes made the gateway allocate %d, which is more than %d", len(request), m.allocated, most)
	}
}
