package scenario

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Play sends the requests of the scenario, and returns the answers as they came.
func (s *Scenario) Play(t testing.TB, dial func(testing.TB) net.Conn) []byte {
	t.Helper()
	var answers []byte
	for _, request := range s.Sections("request.") {
		answers = append(answers, Exchange(t, dial(t), Wire(request))...)
	}
	return answers
}

// Exchange is [Ask] for a test. There is a line end behind the answer.
func Exchange(t testing.TB, c net.Conn, request []byte) []byte {
	t.Helper()
	answer, _, err := Ask(c, request)
	if err != nil {
		t.Fatalf("no answer to %q: %v", request, err)
	}
	return endLine(answer)
}

// Ask sends one request on a connection, which it closes. It returns the answer as it was received,
// and its body, which may have come in chunks.
func Ask(c net.Conn, request []byte) (answer, body []byte, err error) {
	defer func() { _ = c.Close() }()
	go func() { _, _ = c.Write(request) }() // the other end may answer and close before it has read all of it
	var raw bytes.Buffer
	method, _, _ := bytes.Cut(request, []byte(" "))
	r, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, &raw)), &http.Request{Method: string(method)})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = r.Body.Close() }()
	body, err = io.ReadAll(r.Body)
	return raw.Bytes(), body, err
}

// endLine ends a message with a line end.
func endLine(message []byte) []byte {
	if !bytes.HasSuffix(message, []byte("\n")) {
		message = append(message, '\n')
	}
	return message
}

// A Backend answers requests in turn with the messages of a scenario, and keeps what it received.
type Backend struct {
	Address string
	// Version answers GET /version, which is no part of the scenario then. Empty leaves it to the scenario.
	Version string
	// Discovery answers GET /apis, the discovery document of all groups but the core one, which is
	// no part of the scenario either. Without one the backend has no discovery.
	Discovery []byte

	mu     sync.Mutex
	script [][]byte
	got    []byte
}

// KubernetesVersion is how a Kubernetes API server answers GET /version.
const KubernetesVersion = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 49\r\n\r\n" +
	`{"major":"1","minor":"37","gitVersion":"v1.37.2"}`

// NewBackend starts a backend that serves the connections of a listener until the test ends. It is a
// Kubernetes API server by its version.
func NewBackend(t testing.TB, l net.Listener, script [][]byte) *Backend {
	b := &Backend{Address: l.Addr().String(), Version: KubernetesVersion, script: script}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.serve(c)
		}
	}()
	return b
}

func (b *Backend) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	var raw bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		answer := b.take(raw.Bytes())
		raw.Reset()
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// endOfScript answers the requests that the scenario does not expect.
const endOfScript = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 17\r\n\r\nend of the script"

// take notes a request and returns the answer to it.
func (b *Backend) take(request []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Version != "" && bytes.HasPrefix(request, []byte("GET /version ")) {
		return []byte(b.Version)
	}
	switch {
	case bytes.HasPrefix(request, []byte("GET /apis HTTP/")) && len(b.Discovery) > 0:
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b.Discovery), b.Discovery)
	case bytes.HasPrefix(request, []byte("GET /api HTTP/")), bytes.HasPrefix(request, []byte("GET /apis HTTP/")):
		return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	}
	b.got = endLine(append(b.got, request...))
	if len(b.script) == 0 {
		return []byte(endOfScript)
	}
	answer := Wire(b.script[0])
	b.script = b.script[1:]
	return answer
}

// Received returns the requests that came, each with a line end behind it.
func (b *Backend) Received() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.got)
}
