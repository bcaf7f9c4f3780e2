package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// Operators see the servers of the backends on /upstreams and in the metrics.
func TestUpstreamsAreShown(t *testing.T) {
	_, backend := startBackend(t)
	p := startServe(t, backend)
	shown := func() (page admin.Upstreams) {
		if err := json.Unmarshal([]byte(p.get("/upstreams").body), &page); err != nil {
			t.Fatal(err)
		}
		return page
	}
	// The gateway has no question to the backend left, and the connection of the last one is free again.
	testutil.Becomes(t, 200, func() int { return p.get("/readyz").code })
	testutil.Eventually(t, "the connection is free", func() bool { return shown().Upstreams[0].IdleConnections == 1 })
	if r := fetch("http://" + p.listen + "/v2/things"); r.code != 200 {
		t.Fatalf("got %+v", r)
	}
	testutil.Eventually(t, "the connection is free again",
		func() bool { return shown().Upstreams[0].IdleConnections == 1 })
	page := shown()
	heard := &page.Upstreams[0].Endpoints[0].LastAnswerTime
	if *heard == nil || time.Since(**heard) < 0 {
		t.Errorf("it answered last at %v", *heard)
	}
	*heard = nil
	want := admin.Upstreams{Upstreams: []admin.Upstream{{
		Name: "default", Circuit: "Closed", Connections: 1, IdleConnections: 1,
		Endpoints: []admin.Endpoint{{Address: backend, Host: backend, Status: "Ready", Connections: 1}},
	}}}
	if !reflect.DeepEqual(page, want) {
		t.Errorf("/upstreams is\n%+v\nwant\n%+v", page, want)
	}
	metrics := p.get("/metrics").body
	for _, line := range []string{
		`gateway_upstream_endpoints{status="Ready",upstream="default"} 1`,
		`gateway_upstream_endpoints{status="Ejected",upstream="default"} 0`,
		`gateway_upstream_circuit{state="Closed",upstream="default"} 1`,
		`gateway_upstream_connections{state="Idle",upstream="default"} 1`,
		`gateway_upstream_retries_total{upstream="default"} 0`,
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("the metrics have no line\n%s\nbut\n%s", line, metrics)
		}
	}
}

// TestUnreachableIsNotReady: no page and no command says of a server that it is ready before it has answered, or while
// it cannot be reached; and what happens to requests is said of it.
func TestUnreachableIsNotReady(t *testing.T) {
	p := startServe(t, "127.0.0.1:1")
	state := func() string {
		var page admin.Upstreams
		if err := json.Unmarshal([]byte(p.get("/upstreams").body), &page); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"the page": p.get("/").body,
			"gateway status": run("status", "--admin", p.admin).stdout} {
			if _, upstreams, _ := strings.Cut(strings.ToUpper(text), "UPSTREAM"); strings.Contains(upstreams, "READY") {
				t.Errorf("%s says that an unreachable server is ready:\n%s", name, text)
			}
		}
		return page.Upstreams[0].Endpoints[0].State()
	}
	if got := state(); got != "Not tried yet" && got != "No answer yet" && !strings.HasPrefix(got, "Failing, ") {
		// the gateway asks for its version
		t.Error(got)
	}
	for range 2 {
		if r := fetch("http://" + p.listen + "/v2/things"); r.code != 503 {
			t.Fatalf("a request is answered %+v", r)
		}
	}
	if got := state(); !strings.HasPrefix(got, "Failing, its last ") || !strings.HasSuffix(got, " requests failed") {
		t.Error(got)
	}
}

// TestVaryingReadsAreShown: a resource whose reads differ, so that its objects get no ETags, is on the status page, in
// `gateway status` and in the metrics, once a write with If-Match has found that out.
func TestVaryingReadsAreShown(t *testing.T) {
	var reads atomic.Int64
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"n1","reads":%d}`, reads.Add(1))
	}))
	t.Cleanup(backend.Close)
	policies := write(t, "notes.yaml", `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes}
spec:
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}
  fields: {name: id}
  preconditions: Gateway
`)
	p := startServe(t, strings.TrimPrefix(backend.URL, "http://"), "--policies", policies)
	const (
		series  = `gateway_upstream_varying_reads{resource="notes",upstream="default"} 1`
		heading = "<h2>Resources without ETags</h2>"
		row     = "notes          default   " + admin.Varying
	)
	shown := func() [3]bool {
		return [3]bool{
			strings.Contains(p.get("/metrics").body, "\n"+series+"\n"), strings.Contains(p.get("/").body, heading),
			strings.Contains(run("status", "--admin", p.admin).stdout, "\n"+row+"\n"),
		}
	}
	if got := shown(); got != [3]bool{} {
		t.Errorf("before a write they are shown by metrics, page and command: %v", got)
	}
	if code := putAsRead(t, p.listen); code != http.StatusPreconditionFailed {
		t.Fatalf("a write is answered %d", code)
	}
	if got := shown(); got != [3]bool{true, true, true} {
		t.Errorf("they are shown by metrics, page and command: %v\n%s", got, run("status", "--admin", p.admin).stdout)
	}
}

// putAsRead replaces a note in the version that a GET shows, and returns the status code.
func putAsRead(t *testing.T, address string) int {
	t.Helper()
	read, err := http.Get("http://" + address + "/v1/notes/n1")
	if err != nil || read.Body.Close() != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPut, "http://"+address+"/v1/notes/n1", strings.NewReader(`{"id":"n1"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "If-Match": {read.Header.Get("ETag")}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.Body.Close() != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// TestProofIsShown: whether a backend is proved to compare preconditions is shown of each write, in `gateway status
// --request` and on the status page, and is forgotten with the resource.
func TestProofIsShown(t *testing.T) {
	var stored atomic.Int64
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := fmt.Sprintf(`"v%d"`, stored.Load())
		if match := r.Header.Get("If-Match"); match != "" && match != tag {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		if r.Method == http.MethodPut {
			tag = fmt.Sprintf(`"v%d"`, stored.Add(1))
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", tag)
		_, _ = io.WriteString(w, `{"id":"n1"}`)
	}))
	t.Cleanup(backend.Close)
	const notes = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes}
spec:
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}
  fields: {name: id}
`
	policies := write(t, "notes.yaml", notes)
	p := startServe(t, strings.TrimPrefix(backend.URL, "http://"), "--policies", policies)
	forecast := func() string {
		out := run("status", "--admin", p.admin, "--request", "PUT /v1/notes/n1").stdout
		_, rest, _ := strings.Cut(out, "\n  preconditions: ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	if got, want := forecast(), "the gateway compares them, because no PUT has shown yet whether the backend does"; got != want {
		t.Errorf("before a write: got %q, want %q", got, want)
	}
	const unproved = "now, at default, the gateway compares, because no PUT has shown yet whether the backend does"
	if page := p.get("/").body; !strings.Contains(page, unproved) || strings.Contains(page, "no GET has shown") {
		t.Errorf("before a write the page is\n%s", page)
	}
	if code := putAsRead(t, p.listen); code != http.StatusOK {
		t.Fatalf("a write is answered %d", code)
	}
	const proved = "the backend compares them, because it refused a PUT that named another version (since 20"
	if got := forecast(); !strings.HasPrefix(got, proved) {
		t.Errorf("after a write: got %q, want %q", got, proved)
	}
	if page := p.get("/").body; !strings.Contains(page, "now, at default, the backend compares, because it refused a PUT that named another version (since 20") {
		t.Errorf("after a write the page is\n%s", page)
	}
	testutil.WriteFile(t, policies, strings.ReplaceAll(strings.ReplaceAll(notes, "plural: notes", "plural: memos"),
		"name: notes", "name: memos"))
	p.signal(t, syscall.SIGHUP)
	testutil.Eventually(t, "forgotten",
		func() bool { return strings.HasPrefix(forecast(), "the gateway compares them, because no PUT") })
	if page := p.get("/upstreams").body; strings.Contains(page, "Compared") {
		t.Errorf("after the resource is gone /upstreams has\n%s", page)
	}
}
