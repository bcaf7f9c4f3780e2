package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// streamKinds are the kinds of streams that may be in progress when the gateway is asked to end: the rows of the table
// of docs/operations/running.md. What is waited for runs to its end, or is cut at shutdownDeadlineSeconds.
var streamKinds = []struct {
	name, method, target, media string
	isWaitedFor                 bool
	isLasting                   bool // breaks off after upgradeDrainSeconds
}{
	{"what an API of its own form calls a watch", "GET", "/v2/orders?watch=true", "application/json", true, false},
	{"watch of a described resource", "GET", "/apis/example.com/v1/namespaces/team-a/widgets?watch=true",
		"application/json", false, false},
	{"watch of an API server", "GET", "/api/v1/namespaces/team-a/pods?watch=true", "application/json", false, false},
	{"events for an EventSource", "GET", "/events", "text/event-stream; charset=utf-8", false, false},
	{"events for an EventSource of a described path", "GET", "/v2/orders/o1/events", "text/event-stream", false, false},
	{"log that is followed", "GET", "/api/v1/namespaces/team-a/pods/web/log?follow=true", "text/plain", false, true},
	{"events that answer a POST", "POST", "/v1/chat", "text/event-stream", true, false},
	{"events that answer a POST with ?watch=true", "POST", "/v1/chat?watch=true", "text/event-stream", true, false},
	{"events that answer a PUT of a described path", "PUT", "/v2/orders/o1/events", "text/event-stream", true, false},
	{"lines that answer a POST", "POST", "/v1/lines", "application/x-ndjson", true, false},
	{"JSON", "GET", "/v1/report", "application/json", true, false},
	{"bytes", "GET", "/v1/file", "application/octet-stream", true, false},
	{"lines of an undescribed watch", "GET", "/ndjson?watch=true", "application/x-ndjson", true, false},
	{"JSON of an undescribed watch", "GET", "/v3/things?watch=1", "application/json", true, false},
	{"gRPC", "POST", "/shop.Orders/Follow", "application/grpc", true, false},
}

// streamSource streams lines until it is released, and then the rest.
type streamSource struct {
	begun   atomic.Int32 // streams of which the client has the first line
	release chan struct{}
}

// ServeHTTP implements http.Handler.
func (s *streamSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	for _, k := range streamKinds {
		target, _, _ := strings.Cut(k.target, "?")
		if target != r.URL.Path || k.method != r.Method {
			continue
		}
		w.Header().Set("Content-Type", k.media)
		_, _ = io.WriteString(w, streamFirst)
		w.(http.Flusher).Flush()
		select {
		case <-s.release:
			_, _ = io.WriteString(w, streamRest)
		case <-r.Context().Done():
		}
		return
	}
	http.NotFound(w, r)
}

const (
	streamFirst = `{"type":"ADDED","object":{"id":"o1","metadata":{"name":"o1","resourceVersion":"1"},"kind":"Widget","apiVersion":"example.com/v1"}}` + "\n"
	streamRest  = `{"type":"ADDED","object":{"id":"o2","metadata":{"name":"o2","resourceVersion":"2"},"kind":"Widget","apiVersion":"example.com/v1"}}` + "\n"
)

const streamFiles = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  hosts: [shop.example.com]
  group: shop.example.com
  version: v2
  names: {kind: Order, plural: orders}
  paths: {collection: /v2/orders, item: "/v2/orders/{name}"}
`

// streamEnd is how a stream ended for its client.
type streamEnd struct {
	body       string
	isComplete bool
}

// readStream reads a stream, and counts it when the first line is there.
func readStream(body io.Reader, begun *atomic.Int32) streamEnd {
	reader := bufio.NewReader(body)
	first, err := reader.ReadString('\n')
	if err != nil {
		return streamEnd{first, false}
	}
	begun.Add(1)
	rest, err := io.ReadAll(reader)
	return streamEnd{first + string(rest), err == nil}
}

// hostOfStream is the host of the upstream that serves a target.
func hostOfStream(target string) string {
	if strings.HasPrefix(target, "/api/") {
		return "k8s.example.com"
	}
	return "shop.example.com"
}

// openStream begins a stream, and returns its end when it is there.
func openStream(t *testing.T, client *http.Client, address, method, target, media string,
	begun *atomic.Int32) <-chan streamEnd {
	t.Helper()
	var sent io.Reader
	if method != "GET" {
		sent = strings.NewReader(`{"id":"o1"}`)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+address+target, sent)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = hostOfStream(target)
	if sent != nil {
		r.Header.Set("Content-Type", "application/json")
		if media == "application/grpc" {
			r.Header.Set("Content-Type", media)
			r.Header.Set("TE", "trailers")
		}
	}
	ended := make(chan streamEnd, 1)
	go func() {
		answer, err := client.Do(r)
		if err != nil {
			ended <- streamEnd{err.Error(), false}
			return
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != 200 {
			ended <- streamEnd{answer.Status, false}
			return
		}
		ended <- readStream(answer.Body, begun)
	}()
	return ended
}

// TestStreamsWhileDraining: a stream whose client asks again for what follows ends as a complete answer when the
// gateway ends. Every other one runs to its end, or is cut at shutdownDeadlineSeconds so that no client takes a part
// for the whole.
func TestStreamsWhileDraining(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.0", "HTTP/1.1", "HTTP/2"} {
		for _, isCut := range []bool{false, true} {
			name, deadline := strings.ReplaceAll(protocol, "/", " ")+" to the end", 60
			if isCut {
				name, deadline = strings.ReplaceAll(protocol, "/", " ")+" to the deadline", 1
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				source := &streamSource{release: make(chan struct{})}
				server := httptest.NewUnstartedServer(source)
				server.Config.Protocols = new(http.Protocols)
				server.Config.Protocols.SetHTTP1(true)
				server.Config.Protocols.SetUnencryptedHTTP2(true)
				server.Start()
				defer server.CloseClientConnections()
				config := write(t, "gateway.yaml", fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams:
- {name: shop, dialect: Plain, endpoints: [%[1]s]}
- {name: calls, dialect: Plain, protocol: HTTP2, endpoints: [%[1]s]}
- {name: cluster, dialect: Kubernetes, endpoints: [%[1]s]}
routes:
- {upstream: shop, host: shop.example.com}
- {upstream: calls, host: shop.example.com, pathPrefix: /shop.Orders}
- {upstream: cluster, host: k8s.example.com}
drainSeconds: 0
shutdownDeadlineSeconds: %[2]d
`, server.URL, deadline))
				p := startServe(t, "", "--config", config, "--policies", write(t, "orders.yaml", streamFiles),
					"--policies", "../../proxy/testdata/policies/widgets.yaml")
				ends := make([]<-chan streamEnd, len(streamKinds))
				started := int32(0)
				for i, k := range streamKinds {
					if protocol != "HTTP/2" && k.media == "application/grpc" {
						continue // which is HTTP/2
					}
					if protocol == "HTTP/1.0" {
						ends[i] = openOldStream(t, p.listen, k.method, k.target, &source.begun)
					} else {
						transport := &http.Transport{Protocols: new(http.Protocols)}
						transport.Protocols.SetHTTP1(protocol == "HTTP/1.1")
						transport.Protocols.SetUnencryptedHTTP2(protocol == "HTTP/2")
						ends[i] = openStream(t, &http.Client{Transport: transport}, p.listen, k.method, k.target,
							k.media, &source.begun)
					}
					started++
				}
				testutil.Eventually(t, "all streams are in progress",
					func() bool { return source.begun.Load() == started })
				p.signal(t, syscall.SIGTERM)
				testutil.Eventually(t, "the time to drain is over",
					func() bool { return strings.Contains(p.log.String(), "msg=finishing") })
				if !isCut {
					// Those that are waited for go on, whichever others end meanwhile.
					for i, k := range streamKinds {
						if ends[i] == nil || k.isLasting {
							continue
						}
						select {
						case end := <-ends[i]:
							t.Errorf("%s ended with %+v while others go on", k.name, end)
							ends[i] = nil
						default:
						}
					}
					for i, k := range streamKinds {
						if k.isLasting && ends[i] != nil {
							if end := <-ends[i]; end.isComplete || end.body != streamFirst {
								t.Errorf("%s ended with %+v, want that it breaks off", k.name, end)
							}
							ends[i] = nil
						}
					}
					close(source.release)
				}
				for i, k := range streamKinds {
					if ends[i] == nil {
						continue
					}
					end := <-ends[i]
					want := streamEnd{streamFirst, !k.isWaitedFor && !k.isLasting}
					if !isCut && (k.isWaitedFor || end.body != streamFirst) {
						// the others may end before the rest is there
						want = streamEnd{streamFirst + streamRest, true}
					}
					if end != want {
						t.Errorf("%s ended with %+v, want %+v", k.name, end, want)
					}
				}
				err := p.Wait()
				if code := p.ProcessState.ExitCode(); isCut && code != 1 || !isCut && code != 0 {
					t.Errorf("the process ends with %v", err)
				}
			})
		}
	}
}

// openOldStream is openStream for a client of HTTP/1.0, for which the end of the connection ends the answer.
func openOldStream(t *testing.T, address, method, target string, begun *atomic.Int32) <-chan streamEnd {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	body := ""
	if method != "GET" {
		body = `{"id":"o1"}`
	}
	if _, err := fmt.Fprintf(nc, "%s %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, target, hostOfStream(target), len(body), body); err != nil {
		t.Fatal(err)
	}
	ended := make(chan streamEnd, 1)
	go func() {
		answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			ended <- streamEnd{err.Error(), false}
			return
		}
		ended <- readStream(answer.Body, begun)
	}()
	return ended
}
