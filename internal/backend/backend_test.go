package backend_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/backend"
)

// start serves until the test ends and returns the server and its base URL.
func start(t testing.TB, o backend.Options) (*backend.Server, string) {
	t.Helper()
	s := backend.New(o)
	addr, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, "http://" + addr
}

// answer has the parts that matter of what a client sees.
type answer struct {
	Code                               int
	ContentType, ETag, Location, Allow string
	Body                               string
}

// do sends a request; headers are "Name: value".
func do(t testing.TB, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := try(method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func try(method, url, body string, headers ...string) (answer, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{
		Code: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), ETag: resp.Header.Get("ETag"),
		Location: resp.Header.Get("Location"), Allow: resp.Header.Get("Allow"), Body: string(b),
	}, err
}

const (
	jsonType = "application/json"
	textType = "text/plain; charset=utf-8"
)

// A session: each row acts on what the rows before it left behind.
func TestSession(t *testing.T) {
	_, url := start(t, backend.Options{MaxBody: 200})
	o1 := "{ \"id\":\"o1\",\n \"n\" : 1.0 }" // kept byte for byte
	for i, c := range []struct {
		method, path, body string
		headers            []string
		want               answer
	}{
		{"GET", "/v2/orders", "", nil, answer{200, jsonType, `"0"`, "", "", `{"items":[]}`}},
		{"GET", "/v2/orders/o1", "", nil, answer{404, textType, "", "", "", "/v2/orders/o1 does not exist\n"}},
		{"POST", "/v2/orders", o1, nil, answer{201, jsonType, `"1"`, "/v2/orders/o1", "", o1}},
		{"POST", "/v2/orders", o1, nil, answer{409, textType, "", "", "", "/v2/orders/o1 exists already\n"}},
		{"GET", "/v2/orders/o1", "", nil, answer{200, jsonType, `"1"`, "", "", o1}},
		{"HEAD", "/v2/orders/o1", "", nil, answer{200, jsonType, `"1"`, "", "", ""}},
		{"GET", "/v2/orders/o1?x=1", "", []string{`If-None-Match: "7", "1"`}, answer{304, "", `"1"`, "", "", ""}},
		{"PUT", "/v2/orders/o1", `{"id":"o1","n":2}`, []string{`If-Match: "1"`},
			answer{200, jsonType, `"2"`, "", "", `{"id":"o1","n":2}`}},
		{"PUT", "/v2/orders/o1", `{"id":"o1","n":3}`, []string{`If-Match: "1"`},
			answer{412, textType, "", "", "", "/v2/orders/o1: the precondition of the request does not hold\n"}},
		{"PUT", "/v2/orders/o1", `{"id":"o1","n":3}`, []string{`If-Match: W/"2"`},
			answer{412, textType, "", "", "", "/v2/orders/o1: the precondition of the request does not hold\n"}},
		{"PUT", "/v2/orders/o1", `{"id":"o1","n":3}`, []string{`If-Match: *`},
			answer{200, jsonType, `"3"`, "", "", `{"id":"o1","n":3}`}},
		{"PUT", "/v2/orders/o1", `{}`, []string{`If-None-Match: *`},
			answer{412, textType, "", "", "", "/v2/orders/o1: the precondition of the request does not hold\n"}},
		{"PUT", "/v2/orders/o0", `{}`, []string{`If-Match: *`},
			answer{412, textType, "", "", "", "/v2/orders/o0: the precondition of the request does not hold\n"}},
		{"PUT", "/v2/orders/o0", `{}`, []string{`If-None-Match: *`}, answer{201, jsonType, `"4"`, "", "", `{}`}},
		{"GET", "/v2/orders", "", nil, answer{200, jsonType, `"4"`, "", "", `{"items":[{},{"id":"o1","n":3}]}`}},
		{"DELETE", "/v2/orders/o1", "", []string{`If-Match: "1"`},
			answer{412, textType, "", "", "", "/v2/orders/o1: the precondition of the request does not hold\n"}},
		{"DELETE", "/v2/orders/o1", "", nil, answer{204, "", "", "", "", ""}},
		{"DELETE", "/v2/orders/o1", "", nil, answer{404, textType, "", "", "", "/v2/orders/o1 does not exist\n"}},
		{"DELETE", "/v2/orders/o1", "", []string{`If-Match: *`},
			answer{412, textType, "", "", "", "/v2/orders/o1: the precondition of the request does not hold\n"}},
		{"GET", "/v2/orders", "", nil, answer{200, jsonType, `"5"`, "", "", `{"items":[{}]}`}},
		{"DELETE", "/v2/orders", "", nil,
			answer{405, textType, "", "", "GET, HEAD, POST",
				"/v2/orders is a collection, which does not support DELETE\n"}},
		{"PATCH", "/v2/orders/o0", "{}", nil,
			answer{405, textType, "", "", "GET, HEAD, PUT, DELETE",
				"/v2/orders/o0 is an item, which does not support PATCH\n"}},
		{"GET", "/v2", "", nil, answer{404, textType, "", "", "", "/v2 is neither a collection nor an item\n"}},
		// three segments after v2: no cleaning, no redirect
		{"GET", "/v2/../v2/orders", "", nil, answer{200, jsonType, `"0"`, "", "", `{"items":[]}`}},
		{"POST", "/v2/orders", `{"n":1}`, nil,
			answer{400, textType, "", "", "",
				"the object has no name: one of metadata.name, name and id must be set\n"}},
		{"POST", "/v2/orders", `{"Name":"x"}`, nil,
			answer{400, textType, "", "", "",
				"the object has no name: one of metadata.name, name and id must be set\n"}},
		{"POST", "/v2/orders", `{"name":"a/b"}`, nil,
			answer{400, textType, "", "", "", "the name \"a/b\" must not need escaping in a path\n"}},
		{"POST", "/v2/orders", `{"name":".."}`, nil,
			answer{400, textType, "", "", "", "the name \"..\" must not need escaping in a path\n"}},
		{"POST", "/v2/orders", `["o2"]`, nil, answer{400, textType, "", "", "", "the body must be a JSON object\n"}},
		{"PUT", "/v2/orders/o2", ``, nil, answer{400, textType, "", "", "", "the body must be a JSON object\n"}},
		{"PUT", "/v2/orders/o2", `{}{}`, nil,
			answer{400, textType, "", "", "",
				"the body must be a JSON object: invalid character '{' after top-level value\n"}},
		{"POST", "/v2/orders", `{"id":17}`, nil, answer{201, jsonType, `"6"`, "/v2/orders/17", "", `{"id":17}`}},
		{"POST", "/v2/orders", `{"id":1,"name":"b","metadata":{"name":"a"}}`, nil,
			answer{201, jsonType, `"7"`, "/v2/orders/a", "", `{"id":1,"name":"b","metadata":{"name":"a"}}`}},
		{"PUT", "/v2/orders/o2", strings.Repeat(" ", 201), nil,
			answer{413, textType, "", "", "", "the body may not be larger than 200 bytes\n"}},
	} {
		if got := do(t, c.method, url+c.path, c.body, c.headers...); got != c.want {
			t.Errorf("row %d: %s %s %v answered\n%+v, want\n%+v", i, c.method, c.path, c.headers, got, c.want)
		}
	}
}

// Objects of a namespaced resource belong to the collection of their namespace and to the
// collection of all namespaces.
func TestNamespaces(t *testing.T) {
	s, url := start(t, backend.Options{})
	base := url + "/apis/example.com/v1"
	for _, ns := range []string{"team-b", "team-a"} {
		for _, name := range []string{"w2", "w1"} {
			body := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q}}`, name, ns)
			if got := do(t, "POST", base+"/namespaces/"+ns+"/widgets", body); got.Code != 201 {
				t.Fatalf("POST answered %+v", got)
			}
		}
	}
	one := `{"metadata":{"name":"w1","namespace":"team-b"}},{"metadata":{"name":"w2","namespace":"team-b"}}`
	all := `{"metadata":{"name":"w1","namespace":"team-a"}},{"metadata":{"name":"w2","namespace":"team-a"}},` + one
	for path, want := range map[string]string{
		"/namespaces/team-b/widgets": `{"items":[` + one + `]}`,
		"/namespaces/team-c/widgets": `{"items":[]}`,
		"/widgets":                   `{"items":[` + all + `]}`,
		"/gadgets":                   `{"items":[]}`,
	} {
		if got := do(t, "GET", base+path, ""); got.Body != want {
			t.Errorf("GET %s answered %s, want %s", path, got.Body, want)
		}
	}
	body, etag, ok := s.Object("/apis/example.com/v1/namespaces/team-a/widgets/w2")
	if want := `{"metadata":{"name":"w2","namespace":"team-a"}}`; string(body) != want || etag != `"3"` || !ok {
		t.Errorf("Object is %s, %s, %v; want %s, \"3\", true", body, etag, ok, want)
	}
}

// lines reads a watch line by line.
func watch(t *testing.T, url string) (next func() string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != jsonType {
		t.Fatalf("GET %s answered %d %s", url, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	lines := bufio.NewReader(resp.Body)
	return func() string {
			line, err := lines.ReadString('\n')
			if err != nil {
				return err.Error()
			}
			return line
		}, func() {
			cancel()
			_ = resp.Body.Close()
		}
}

func TestWatch(t *testing.T) {
	s, url := start(t, backend.Options{})
	base := url + "/apis/example.com/v1"
	put := func(path, body string) {
		t.Helper()
		if _, err := s.Put("/apis/example.com/v1"+path, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	put("/namespaces/team-a/widgets/w1", "{\n  \"n\": 1\r\n}")
	next, stop := watch(t, base+"/namespaces/team-a/widgets?watch=true")
	defer stop()
	nextAll, stopAll := watch(t, base+"/widgets?resourceVersion=0&watch=1")
	defer stopAll()

	// Each line is read before the next write: events arrive one by one.
	expect := func(next func() string, want string) {
		t.Helper()
		if got := next(); got != want {
			t.Fatalf("event is %q, want %q", got, want)
		}
	}
	for _, n := range []func() string{next, nextAll} {
		expect(n, `{"type":"ADDED","object":{   "n": 1  }}`+"\n")
	}
	put("/namespaces/team-a/widgets/w1", `{"n":2}`)
	for _, n := range []func() string{next, nextAll} {
		expect(n, `{"type":"MODIFIED","object":{"n":2}}`+"\n")
	}
	put("/namespaces/team-b/widgets/w1", `{"n":3}`)
	expect(nextAll, `{"type":"ADDED","object":{"n":3}}`+"\n")
	if got := do(t, "DELETE", base+"/namespaces/team-a/widgets/w1", ""); got.Code != 204 {
		t.Fatalf("DELETE answered %+v", got)
	}
	for _, n := range []func() string{next, nextAll} {
		expect(n, `{"type":"DELETED","object":{"n":2}}`+"\n")
	}
	// A shutdown ends streams in order, so that it need not wait for them.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	expect(next, "EOF")
}

// A reader that falls behind is cut off with an error, never left with a gap.
func TestWatchOfSlowReader(t *testing.T) {
	s, url := start(t, backend.Options{})
	next, stop := watch(t, url+"/v2/orders?watch=true")
	defer stop()
	body := `{"pad":"` + strings.Repeat("x", 16<<10) + `"}`
	const writes = 3000 // 47 MiB: more than the buffers of watcher and sockets hold
	for i := range writes {
		if _, err := s.Put(fmt.Sprintf("/v2/orders/o%d", i%10), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for range writes {
		if line := next(); line == "unexpected EOF" {
			return
		}
	}
	t.Error("the stream had a gap or held every event; want it cut")
}

func TestStoreIsBounded(t *testing.T) {
	t.Run("objects", func(t *testing.T) {
		_, url := start(t, backend.Options{MaxObjects: 2})
		for i, want := range []int{201, 201, 507} {
			if got := do(t, "PUT", fmt.Sprintf("%s/a/%d", url, i), "{}"); got.Code != want {
				t.Errorf("PUT %d answered %+v, want %d", i, got, want)
			}
		}
		if got := do(t, "PUT", url+"/a/1", `{"n":1}`); got.Code != 200 {
			t.Errorf("replacing answered %+v, want 200", got)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		_, url := start(t, backend.Options{MaxBytes: 10})
		for i, c := range []struct {
			path, body string
			want       int
		}{{"/a/1", `{"a":1}`, 201}, {"/a/2", `{"a":1}`, 507}, {"/a/1", `{"a":10000}`, 507}, {"/a/1", `{}`, 200},
			{"/a/2", `{"a":1}`, 201}} {
			if got := do(t, "PUT", url+c.path, c.body); got.Code != c.want {
				t.Errorf("row %d answered %+v, want %d", i, got, c.want)
			}
		}
	})
	t.Run("evict", func(t *testing.T) {
		s, url := start(t, backend.Options{MaxObjects: 2, EvictOldest: true})
		for i := range 5 {
			if got := do(t, "POST", url+"/a", fmt.Sprintf(`{"id":%d}`, i)); got.Code != 201 {
				t.Errorf("POST answered %+v", got)
			}
		}
		if got := do(t, "GET", url+"/a", ""); got.Body != `{"items":[{"id":3},{"id":4}]}` || s.Len() != 2 {
			t.Errorf("list is %s of %d, want the last two", got.Body, s.Len())
		}
	})
}

func TestRecorder(t *testing.T) {
	var rec backend.Recorder
	_, url := start(t, backend.Options{Recorder: &rec})
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	sent := "POST /v2//%6frders?a=b;c HTTP/1.1\r\nhost: h\r\nx-a: 1\r\nX-A: 2\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	want := []backend.Request{{
		Method: "POST", Target: "/v2//%6frders?a=b;c", Proto: "HTTP/1.1", Host: "h", Body: []byte("{}"),
		Header: http.Header{"X-A": {"1", "2"}, "Content-Length": {"2"}, "Connection": {"close"}},
	}}
	if got := rec.Requests(); !reflect.DeepEqual(got, want) {
		t.Errorf("requests are\n%+v, want\n%+v", got, want)
	}
	if got := rec.Bytes(); len(got) != 1 || string(got[0]) != sent {
		t.Errorf("bytes are %q, want %q", got, sent)
	}
	rec.Reset()
	if got := rec.Requests(); len(got) != 0 {
		t.Errorf("after Reset there are %+v", got)
	}
}

func TestFaults(t *testing.T) {
	var rec backend.Recorder
	s, url := start(t, backend.Options{Recorder: &rec})
	fault := func(f backend.Fault) { s.SetFault(func(*backend.Request) backend.Fault { return f }) }

	fault(backend.Fault{DropBefore: true})
	if a, err := try("POST", url+"/a", `{"id":"before"}`); err == nil {
		t.Errorf("DropBefore answered %+v", a)
	}
	fault(backend.Fault{DropAfter: true})
	if a, err := try("POST", url+"/a", `{"id":"after"}`); err == nil {
		t.Errorf("DropAfter answered %+v", a)
	}
	if n := len(rec.Requests()); n != 2 {
		t.Errorf("%d requests arrived, want 2", n)
	}
	fault(backend.Fault{Answer: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) })})
	if got := do(t, "GET", url+"/a", ""); got != (answer{Code: 502}) {
		t.Errorf("Answer answered %+v", got)
	}
	fault(backend.Fault{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")})
	if a, err := try("GET", url+"/a", ""); err == nil || a.Body != "abc" {
		t.Errorf("Raw answered %+v, %v; want abc and a missing rest", a, err)
	}
	fault(backend.Fault{Delay: 20 * time.Millisecond})
	before := time.Now()
	if got := do(t, "GET", url+"/a", ""); got.Body != `{"items":[{"id":"after"}]}` ||
		time.Since(before) < 20*time.Millisecond {
		t.Errorf("the delayed list is %+v after %v", got, time.Since(before))
	}
	s.SetFault(nil)
	if got := do(t, "GET", url+"/a/before", ""); got.Code != 404 {
		t.Errorf("GET answered %+v, want 404", got)
	}
}

// Many clients, one counter: with If-Match no increment is lost.
func TestConcurrentWrites(t *testing.T) {
	s, url := start(t, backend.Options{})
	if _, err := s.Put("/a/counter", []byte(`{"n":0}`)); err != nil {
		t.Fatal(err)
	}
	const clients, each = 4, 25
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				for {
					now, err := try("GET", url+"/a/counter", "")
					if err != nil {
						t.Error(err)
						return
					}
					var n int
					if _, err := fmt.Sscanf(now.Body, `{"n":%d}`, &n); err != nil {
						t.Error(err)
						return
					}
					a, err := try("PUT", url+"/a/counter", fmt.Sprintf(`{"n":%d}`, n+1), "If-Match: "+now.ETag)
					if err != nil {
						t.Error(err)
						return
					}
					if a.Code == 200 {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if body, _, _ := s.Object("/a/counter"); string(body) != `{"n":100}` {
		t.Errorf("the counter is %s, want 100", body)
	}
}

func BenchmarkServeHTTP(b *testing.B) {
	s := backend.New(backend.Options{})
	object := []byte(`{"metadata":{"name":"o1"},"pad":"` + strings.Repeat("x", 1300) + `"}`)
	if _, err := s.Put("/v2/orders/o1", object); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ method, target string }{{"GET", "/v2/orders/o1"}, {"PUT", "/v2/orders/o1"}} {
		b.Run(c.method, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequest(c.method, c.target, bytes.NewReader(object))
				if err != nil {
					b.Fatal(err)
				}
				r.RequestURI = c.target
				s.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
