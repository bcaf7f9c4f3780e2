package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// filledGateway is a gateway with the definition of widgets in front of a backend that the test
// drives.
func filledGateway(t *testing.T) (g *Gateway, address string, conns chan net.Conn) {
	t.Helper()
	url, conns := driven(t)
	g = gatewayFor(t, t.TempDir(), strings.TrimPrefix(url, backendScheme(t)), []string{"policies=widgets"})
	return g, startGateway(t, g), conns
}

// ask sends a request and returns the answer's head, with the body unread, and the backend's end.
func ask(t *testing.T, address string, conns chan net.Conn, target, version, answer string) (*http.Response, net.Conn) {
	t.Helper()
	nc, br := dial(t, address)
	send(t, nc, "GET "+target+" HTTP/"+version+"\r\nHost: gw\r\nConnection: keep-alive\r\n\r\n")
	backend, _ := accept(t, conns)
	send(t, backend, answer)
	r, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, backend
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const (
	bareWidget   = `{"spec":{"size":1}}`
	filledWidget = `{"spec":{"size":1,"max":100,"mode":"Open"},"kind":"Widget","apiVersion":"example.com/v1"}`
	wholeWidget  = `{ "kind":"Widget", "apiVersion" :"example.com/v1","spec":{"size":1,"max":2,"mode":"Locked"}}`
)

// TestWatchFilled: an event is completed and leaves before the next one is sent, its head before all of them (DEF-3,
// RES-5). Bookmarks, errors and what is no event pass as they are.
func TestWatchFilled(t *testing.T) {
	for _, version := range []string{"1.1", "1.0"} {
		t.Run(version, func(t *testing.T) {
			_, address, conns := filledGateway(t)
			r, backend := ask(t, address, conns, widgetsPath+"?watch=true", version, chunkedHead)
			for _, c := range []struct{ sent, want string }{
				{`{"type":"ADDED","object":` + bareWidget + "}\n", `{"type":"ADDED","object":` + filledWidget + "}\n"},
				{`{"type":"MODIFIED","object":` + wholeWidget + "}\n", `{"type":"MODIFIED","object":` + wholeWidget +
					"}\n"},
				{`{"object": ` + bareWidget + ` , "type":"DELETED"}`, `{"object": ` + filledWidget +
					` , "type":"DELETED"}`},
				{"\n", "\n"},
				{`{"type":"BOOKMARK","object":{"spec":{}}}`, `{"type":"BOOKMARK","object":{"spec":{}}}`},
				{`{"type":"ERROR","object":{"kind":"Status"}}`, `{"type":"ERROR","object":{"kind":"Status"}}`},
				{`{"spec":{}}`, `{"spec":{}}`},
				{`{"type":"ADDED","object":1}[{"spec":{}}]`, `{"type":"ADDED","object":1}[{"spec":{}}]`},
				{strings.Repeat(`{"type":"ADDED","object":`+bareWidget+"}\n", 3000),
					strings.Repeat(`{"type":"ADDED","object":`+filledWidget+"}\n", 3000)},
			} {
				send(t, backend, chunk(c.sent))
				expect(t, r.Body, c.want)
			}
			event := `{"type":"ADDED","object":` + bareWidget + "}"
			for i := range len(event) {
				send(t, backend, chunk(event[i:i+1]))
			}
			expect(t, r.Body, `{"type":"ADDED","object":`+filledWidget+"}")
			send(t, backend, "0\r\n\r\n")
			if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil {
				t.Errorf("then came %q, %v", rest, err)
			}
		})
	}
}

// TestWatchBreaksOff: events before one that cannot be read reach the client, and then the stream breaks.
func TestWatchBreaksOff(t *testing.T) {
	_, address, conns := filledGateway(t)
	r, backend := ask(t, address, conns, widgetsPath+"?watch=true", "1.1", chunkedHead)
	good := `{"type":"ADDED","object":` + bareWidget + "}\n"
	send(t, backend, chunk(good+`{"type":"ADDED","object":{"spec":{},"spec":{}}}`))
	got, err := io.ReadAll(r.Body)
	if want := `{"type":"ADDED","object":` + filledWidget + "}\n"; string(got) != want || err != io.ErrUnexpectedEOF {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestWatchFilledEnds: a shutdown ends a watch between two events, so that the client knows that it has all of them.
func TestWatchFilledEnds(t *testing.T) {
	g, address, conns := filledGateway(t)
	r, backend := ask(t, address, conns, widgetsPath+"?watch=true", "1.1", chunkedHead)
	send(t, backend, chunk(`{"type":"ADDED","object":`+bareWidget+"}\n"))
	expect(t, r.Body, `{"type":"ADDED","object":`+filledWidget+"}\n")
	send(t, backend, chunk(`{"type":"ADDED","obj`))
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Patience)
	defer cancel()
	done := make(chan error)
	go func() { done <- g.Shutdown(ctx) }()
	if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestItemWatched: a backend that answers a watch of one object with events is understood, and one that answers with
// the object too.
func TestItemWatched(t *testing.T) {
	_, address, conns := filledGateway(t)
	r, backend := ask(t, address, conns, widgetsPath+"/w1?watch=true", "1.1", chunkedHead)
	send(t, backend, chunk(`{"type":"ADDED","object":`+bareWidget+"}\n"))
	expect(t, r.Body, `{"type":"ADDED","object":`+filledWidget+"}\n")
	r, _ = ask(t, address, conns, widgetsPath+"/w1?watch=true", "1.1", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n"+bareWidget)
	expect(t, r.Body, filledWidget)
}

// What stands around the items of a list whose ETag is "9".
const (
	widgetsHead = `{"kind":"WidgetList","apiVersion":"example.com/v1","items":[`
	widgetsFoot = `],"metadata":{"continue":"","resourceVersion":"1009"}}`
)

// TestListFilledAsItComes: the items of a list leave one by one, while the backend still makes the next (RES-5).
func TestListFilledAsItComes(t *testing.T) {
	for _, head := range []string{
		chunkedHead,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", // which ends the body
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 200021\r\n\r\n",
	} {
		chunked := head == chunkedHead
		head = strings.Replace(head, "\r\n", "\r\nETag: \"9\"\r\n", 1)
		_, address, conns := filledGateway(t)
		framed := func(s string) string { return s }
		if chunked {
			framed = chunk
		}
		r, backend := ask(t, address, conns, widgetsPath, "1.1", head+framed(`{"items":[`+bareWidget))
		expect(t, r.Body, widgetsHead+filledWidget)
		if r.ContentLength != -1 {
			t.Errorf("the length is %d", r.ContentLength)
		}
		sent := len(`{"items":[` + bareWidget)
		for range 10 {
			send(t, backend, framed(","+bareWidget))
			sent += 1 + len(bareWidget)
			expect(t, r.Body, ","+filledWidget)
		}
		send(t, backend, framed(strings.Repeat(" ", 200_021-2-sent)))
		send(t, backend, framed("]}"))
		if chunked {
			send(t, backend, "0\r\n\r\n")
		} else {
			_ = backend.Close()
		}
		expect(t, r.Body, widgetsFoot)
		if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil {
			t.Errorf("then came %q, %v", rest, err)
		}
	}
}

// TestHugeList: of a list of 100,000 items, 100 MB, the gateway never holds more than a part, and each comes completed.
func TestHugeList(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a hundred megabytes")
	}
	const items = 100_000
	g, address, conns := filledGateway(t)
	padding := strings.Repeat("x", 1000)
	item := func(i int, members string) string {
		return fmt.Sprintf(`{"metadata":{"name":"w%d"},"x":"%s","spec":{"size":1%s`, i, padding, members)
	}
	nc, br := dial(t, address)
	send(t, nc, "GET "+widgetsPath+" HTTP/1.1\r\nHost: gw\r\n\r\n")
	backend, _ := accept(t, conns)
	for _, c := range []net.Conn{nc, backend} { // 100 MB take long under the race detector
		if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		w := bufio.NewWriterSize(backend, 32<<10)
		_, _ = w.WriteString("HTTP/1.1 200 OK\r\nETag: \"9\"\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"items\":[")
		for i := range items {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			_, _ = w.WriteString(item(i, "}}"))
		}
		_, _ = w.WriteString("]}")
		_ = w.Flush()
		_ = backend.Close()
	}()
	r, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReaderSize(r.Body, 64<<10)
	expect(t, body, widgetsHead)
	recordAllocations(t)
	for i := range items {
		if i > 0 {
			expect(t, body, ",")
		}
		expect(t, body, item(i, `,"max":100,"mode":"Open"},"kind":"Widget","apiVersion":"example.com/v1"}`))
		if i%(items/4) == items/8 {
			// The stream soon stands still, for the test does not read it. Then only what it holds
			// is left: what it dropped meanwhile, above all from pools under the race detector, is
			// collected.
			testutil.Eventually(t, fmt.Sprintf("at most 1 MiB held after %d items", i),
				func() bool { return bytesBy(".(*Request).SendStream") <= 1<<20 })
		}
	}
	expect(t, body, widgetsFoot)
	if g.BodyBytesInFlight() != 0 {
		t.Errorf("%d bytes of the budget are taken", g.BodyBytesInFlight())
	}
}

// TestLargeObjectVersioned: the version of an object that streams is the one in the answer's head, wherever that stands
// among lines that do not go on to the client.
func TestLargeObjectVersioned(t *testing.T) {
	object := `{"x":"` + strings.Repeat("x", 70_000) + `","metadata":{},` + filledWidget[1:]
	_, address, conns := filledGateway(t)
	for i, lines := range []string{"ETag: \"9\"\r\nAccept-Ranges: bytes\r\n%s",
		"%sAccept-Ranges: bytes\r\nETag: \"9\"\r\n"} {
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"+lines+"\r\n",
			fmt.Sprintf("Content-Length: %d\r\n", len(object)))
		r, _ := ask(t, address, conns, widgetsPath+"/w1", "1.1", head+object)
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), `"metadata":{"resourceVersion":"1009"}`) {
			t.Errorf("%d: %v, the end is %q", i, err, body[max(0, len(body)-150):])
		}
		if unrevised.ReplaceAllString(r.Header.Get("ETag"), "${1}*") != `"9-gateway-*"` ||
			r.Header.Get("Accept-Ranges") != "" {
			t.Errorf("%d: the head is %v", i, r.Header)
		}
	}
}

// TestLargeObjectsFilled: one object is held as a whole, within its bound and the budget of all bodies in flight.
func TestLargeObjectsFilled(t *testing.T) {
	padded := func(n int) string { return `{"x":"` + strings.Repeat("x", n) + `","spec":{"size":1}}` }
	want := func(n int) string {
		return `{"x":"` + strings.Repeat("x", n) + `","spec":{"size":1,"max":100,"mode":"Open"},"kind":"Widget","apiVersion":"example.com/v1"}`
	}
	g, address, conns := filledGateway(t)
	for _, n := range []int{60_000, 70_000, 1 << 20, 3<<20 - 30} {
		object := padded(n)
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(object), object),
			"Transfer-Encoding: chunked\r\n\r\n" + chunks(object, 10_000)} {
			// The test's ends are read and written one after the other, so the backend's must not wait for the
			// client's.
			go func() {
				c := <-conns
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"+
					framing)
				_ = c.Close()
			}()
			nc, br := dial(t, address)
			send(t, nc, "GET "+widgetsPath+"/w1 HTTP/1.1\r\nHost: gw\r\n\r\n")
			got, _ := readAnswer(t, br, false)
			if got.StatusCode != 200 || string(got.Content) != want(n) {
				t.Errorf("%d bytes: %d, %d bytes, %.200s", n, got.StatusCode, len(got.Content), got.Content)
			}
		}
	}
	for _, c := range []struct {
		name, target, body string
		taken              int // of the budget, by others
		code               int // 0 0 if the answer breaks off
		message            string
	}{
		{"an object over the bound", "/w1", padded(3 << 20), 0, 502,
			"an object in the backend's answer is too large to be completed: document must be less than or equal to 3145728 bytes long at offset 3145728"},
		{"an object over the bound in a list", "", `{"items":[` + padded(70_000) + `,` + padded(3<<20) + `]}`, 0, 0,
			""},
		{"no memory", "/w1", padded(2 << 20), 223 << 20, 503,
			"the gateway holds as much of requests in memory as it may"},
		{"no memory for an item of a list", "", `{"items":[` + padded(10_000) + `,` + padded(1<<20) + `]}`, 223 << 20,
			0, ""},
		{"an object of nearly as many values as there may be", "/w1", `{"spec":{"size":1},"y":[` +
			strings.Repeat("{},", 999_990) + `{}]}`, 0, 200, ""},
		{"a list that breaks late", "", `{"items":[` + padded(70_000) + `,` + padded(70_000) + `,]}`, 0, 0, ""},
		{"a list that ends too early", "", `{"items":[` + padded(70_000) + `,` + padded(70_000), 0, 0, ""},
	} {
		for _, version := range []string{"1.1", "1.0"} {
			testutil.Eventually(t, "the memory of the request before is given back",
				func() bool { return g.BodyBytesInFlight() == 0 })
			var others memory.Reservation
			others.Open(g.memory.Budget, nil)
			if !others.Grow(c.taken) {
				t.Fatal("the memory is taken already")
			}
			go func() {
				conn := <-conns
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(conn, strings.Replace(chunkedHead, "\r\n", "\r\nConnection: close\r\n", 1)+
					chunks(c.body, 50_000))
				_, _ = io.Copy(io.Discard, conn)
			}()
			nc, br := dial(t, address)
			send(t, nc, "GET "+widgetsPath+c.target+" HTTP/"+version+"\r\nHost: gw\r\n\r\n")
			r, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			body, err := io.ReadAll(r.Body)
			switch {
			case c.code == 0 && (err == nil || r.StatusCode != 200):
				t.Errorf("%s, HTTP/%s: the client takes %d bytes for a whole answer with code %d", c.name, version,
					len(body), r.StatusCode)
			case c.code != 0 && (err != nil || r.StatusCode != c.code || !strings.Contains(string(body), c.message)):
				t.Errorf("%s, HTTP/%s: %d, %v, %.300s", c.name, version, r.StatusCode, err, body)
			}
			others.Close()
		}
	}
	testutil.Eventually(t, "the budget is given back", func() bool { return g.BodyBytesInFlight() == 0 })
}
