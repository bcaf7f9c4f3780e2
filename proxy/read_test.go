package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// filledGateway is a gateway with the definition of widgets before a backend that the test drives.
func filledGateway(t *testing.T) (g *Gateway, address string, conns chan net.Conn) {
	t.Helper()
	url, conns := driven(t)
	g = gatewayFor(t, t.TempDir(), strings.TrimPrefix(url, "http://"), []string{"policies=widgets"})
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

// TestWatchFilled: an event is completed and leaves before the next one is sent, its head before all of them (DEF-3, RES-5).
// Bookmarks, errors and what is no event pass as they are.
func TestWatchFilled(t *testing.T) {
	for _, version := range []string{"1.1", "1.0"} {
		t.Run(version, func(t *testing.T) {
			_, address, conns := filledGateway(t)
			r, backend := ask(t, address, conns, widgetsPath+"?watch=true", version, chunkedHead)
			for _, c := range []struct{ sent, want string }{
				{`{"type":"ADDED","object":` + bareWidget + "}\n", `{"type":"ADDED","object":` + filledWidget + "}\n"},
				{`{"type":"MODIFIED","object":` + wholeWidget + "}\n", `{"type":"MODIFIED","object":` + wholeWidget + "}\n"},
				{`{"object": ` + bareWidget + ` , "type":"DELETED"}`, `{"object": ` + filledWidget + ` , "type":"DELETED"}`},
				{"\n", "\n"},
				{`{"type":"BOOKMARK","object":{"spec":{}}}`, `{"type":"BOOKMARK","object":{"spec":{}}}`},
				{`{"type":"ERROR","object":{"kind":"Status"}}`, `{"type":"ERROR","object":{"kind":"Status"}}`},
				{`{"spec":{}}`, `{"spec":{}}`},
				{`{"type":"ADDED","object":1}[{"spec":{}}]`, `{"type":"ADDED","object":1}[{"spec":{}}]`},
				{strings.Repeat(`{"type":"ADDED","object":`+bareWidget+"}\n", 3000), strings.Repeat(`{"type":"ADDED","object":`+filledWidget+"}\n", 3000)},
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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

// TestItemWatched: a backend that answers a watch of one object with events is understood, and one that answers with the
// object too.
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
	const items = 100_000
	g, address, conns := filledGateway(t)
	padding := strings.Repeat("x", 1000)
	item := func(i int, members string) string {
		return fmt.Sprintf(`{"metadata":{"name":"w%d"},"x":"%s","spec":{"size":1%s`, i, padding, members)
	}
	nc, br := dial(t, address)
	send(t, nc, "GET "+widgetsPath+" HTTP/1.1\r\nHost: gw\r\n\r\n")
	backend, _ := accept(t, conns)
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
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range items {
		if i > 0 {
			expect(t, body, ",")
		}
		expect(t, body, item(i, `,"max":100,"mode":"Open"},"kind":"Widget","apiVersion":"example.com/v1"}`))
		if i%(items/4) == items/8 {
			runtime.GC()
			if runtime.ReadMemStats(&now); now.HeapAlloc > before.HeapAlloc+(8<<20) {
				t.Errorf("after %d items %d more bytes are held", i, now.HeapAlloc-before.HeapAlloc)
			}
		}
	}
	expect(t, body, widgetsFoot)
	if g.BodyBytesInFlight() != 0 {
		t.Errorf("%d bytes of the budget are taken", g.BodyBytesInFlight())
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
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(object), object), "Transfer-Encoding: chunked\r\n\r\n" + chunks(object, 10_000)} {
			// The test's ends are read and written one after the other, so the backend's must not wait for the client's.
			go func() {
				c := <-conns
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"+framing)
				_ = c.Close()
			}()
			nc, br := dial(t, address)
			send(t, nc, "GET "+widgetsPath+"/w1 HTTP/1.1\r\nHost: gw\r\n\r\n")
			got, _ := readAnswer(t, br, false)
			if got.StatusCode != 200 || string(got.body) != want(n) {
				t.Errorf("%d bytes: %d, %d bytes, %.200s", n, got.StatusCode, len(got.body), got.body)
			}
		}
	}
	for _, c := range []struct {
		name, target, body string
		taken              int64 // of the budget, by others
		code               int   // 0 where the answer breaks off
		message            string
	}{
		{"an object over the bound", "/w1", padded(3 << 20), 0, 502,
			"an object in the backend's answer is too large to be completed: document must be less than or equal to 3145728 bytes long at offset 3145728"},
		{"an object over the bound in a list", "", `{"items":[` + padded(70_000) + `,` + padded(3<<20) + `]}`, 0, 0, ""},
		{"no memory", "/w1", padded(1 << 20), 255 << 20, 503, "the gateway holds as many bodies as it may"},
		{"no memory for an item of a list", "", `{"items":[` + padded(10_000) + `,` + padded(1<<20) + `]}`, 255 << 20, 0, ""},
		{"an object of nearly as many values as there may be", "/w1", `{"spec":{"size":1},"y":[` + strings.Repeat("{},", 999_990) + `{}]}`, 0, 200, ""},
		{"a list that breaks late", "", `{"items":[` + padded(70_000) + `,` + padded(70_000) + `,]}`, 0, 0, ""},
		{"a list that ends too early", "", `{"items":[` + padded(70_000) + `,` + padded(70_000), 0, 0, ""},
	} {
		for _, version := range []string{"1.1", "1.0"} {
			g.budget.used.Add(c.taken)
			go func() {
				conn := <-conns
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(conn, strings.Replace(chunkedHead, "\r\n", "\r\nConnection: close\r\n", 1)+chunks(c.body, 50_000))
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
				t.Errorf("%s, HTTP/%s: the client takes %d bytes for a whole answer with code %d", c.name, version, len(body), r.StatusCode)
			case c.code != 0 && (err != nil || r.StatusCode != c.code || !strings.Contains(string(body), c.message)):
				t.Errorf("%s, HTTP/%s: %d, %v, %.300s", c.name, version, r.StatusCode, err, body)
			}
			g.budget.used.Add(-c.taken)
		}
	}
	until(t, "the budget is given back", func() bool { return g.BodyBytesInFlight() == 0 })
}

// TestDefaultsBounded: defaults do not make an object many times as large as it is.
func TestDefaultsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "orders.yaml"), []byte(`
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  version: v2
  names: {plural: orders, kind: Order}
  paths: {collection: /v2/orders, item: "/v2/orders/{name}"}
  schema:
    openAPIV3Schema:
      type: object
      properties:
        lines: {type: array, items: {type: object, properties: {unit: {type: string, default: piece}}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/v2/orders/o1", "/v2/orders"} {
		x := &exchange{}
		x.set = loadPolicies(t, dir)
		x.gateway = &Gateway{bodyLimit: 3 << 20, budget: newBodyBudget(1 << 30)}
		var err error
		if x.info, x.res, err = x.set.Registry().Resolve("GET", []byte(target)); err != nil {
			t.Fatal(err)
		}
		body := `{"lines":[` + strings.Repeat("{},", 800_000) + `{}]}`
		if target == "/v2/orders" {
			body = "[" + body + "]"
		}
		_, err = x.fillWhole([]byte(body))
		want := "the stored object with the defaults of what it leaves unset must be at most 6291456 bytes"
		if got := status.From(err); got == nil || got.ErrStatus.Code != 502 || got.ErrStatus.Message != want {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// filledReference is what a list should become: each item read as a document of its own, and completed.
func filledReference(t *testing.T, x *exchange, text []byte) ([]byte, bool) {
	d, err := document.Parse(text, document.Limits{Depth: 66})
	if err != nil || d.Root().Kind() != document.Object {
		return nil, false
	}
	defer d.Release()
	root := d.Root()
	list, _ := root.Get("items")
	if list.Kind() == document.Array {
		for n := list.First(); n.Valid(); n = n.Next() {
			if n.Kind() != document.Object {
				continue
			}
			item, err := document.Parse(bytes.Clone(n.Raw()), document.Limits{})
			if err != nil {
				return nil, false
			}
			for _, m := range [][2]string{{"kind", "Widget"}, {"apiVersion", "example.com/v1"}} {
				if at, found := item.Root().Get(m[0]); !found || at.Kind() == document.Null || at.Is("") {
					item.SetString(item.Root(), m[0], m[1])
				}
			}
			defaults.Apply(item, x.set.Schema(x.res))
			if item.Edited() {
				d.Replace(n, item.AppendTo(nil))
			}
			item.Release()
		}
	}
	out := d.AppendTo(nil)
	end := bytes.LastIndexByte(out, '}')
	rest := string(out[end:])
	out = out[:end]
	for _, m := range [][2]string{{"kind", `"WidgetList"`}, {"apiVersion", `"example.com/v1"`}} {
		if _, found := root.Get(m[0]); found {
			continue
		}
		if b := bytes.TrimRight(out, " \t\r\n"); b[len(b)-1] != '{' {
			out = append(out, ',')
		}
		out = append(out, `"`+m[0]+`":`+m[1]...)
	}
	return append(out, rest...), true
}

// FuzzFilling holds the list that comes in pieces against its items, each completed as a document of its own.
func FuzzFilling(f *testing.F) {
	for _, text := range []string{
		`{"items":[` + bareWidget + "," + wholeWidget + `]}`, `{ "kind":"WidgetList", "items" : [ {"spec":{"mode":null}} , 1, {"kind":"","spec":1}, {} ] }`,
		`{"items":[{"spec":{"size":"\ud83d\ude00","max":1e2}}],"metadata":{"items":[{}]}}`, `{}`, `{"items":{"spec":{}}}`, `{"items":[{"kind":null}]}`,
	} {
		f.Add([]byte(text), uint64(len(text)))
	}
	x := &exchange{}
	x.set = loadPolicies(f, "testdata/policies/widgets.yaml")
	x.gateway = &Gateway{bodyLimit: 3 << 20, budget: newBodyBudget(1 << 30)}
	var err error
	if x.info, x.res, err = x.set.Registry().Resolve("GET", []byte(widgetsPath)); err != nil || x.info.Verb != resource.VerbList {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		want, ok := filledReference(t, x, text)
		if !ok {
			return
		}
		r := rand.New(rand.NewPCG(seed, 2))
		e := newFilling(x)
		defer e.release()
		var got []byte
		for rest := text; len(rest) > 0; {
			piece := bytes.Clone(rest[:min(len(rest), 1+r.IntN(30))])
			var used int
			if got, used, err = e.stream.Append(got, piece, len(got)+1+r.IntN(50)); err != nil {
				break
			}
			rest = rest[used:]
		}
		if err == nil {
			got, err = e.stream.Close(got)
		}
		if bad, is := err.(*document.Error); is && bad.Code == document.TooDeep {
			return
		}
		if err != nil || string(got) != string(want) {
			t.Fatalf("%q: %v\n got %q\nwant %q", text, err, got, want)
		}
	})
}

// BenchmarkFilling is what completing costs: an object that is complete, one that is not, and a list of a hundred.
func BenchmarkFilling(b *testing.B) {
	x := &exchange{}
	x.set = loadPolicies(b, "testdata/policies/widgets.yaml")
	x.gateway = &Gateway{bodyLimit: 3 << 20, budget: newBodyBudget(1 << 30)}
	padding := strings.Repeat(`{"name":"x","value":"0123456789"},`, 30) + "{}"
	complete := `{"kind":"Widget","apiVersion":"example.com/v1","env":[` + padding + `],"spec":{"size":1,"max":2,"mode":"Locked"}}`
	lacking := `{"env":[` + padding + `],"spec":{"size":1}}`
	for _, c := range []struct{ name, target, body string }{
		{"complete", widgetsPath + "/w", complete},
		{"lacking", widgetsPath + "/w", lacking},
		{"list", widgetsPath, `{"items":[` + strings.Repeat(lacking+",", 99) + lacking + `]}`},
	} {
		var err error
		if x.info, x.res, err = x.set.Registry().Resolve("GET", []byte(c.target)); err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.fillWhole([]byte(c.body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
