package gatekeeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/tools/gatekeeper/testutil"
)

var binary string // the gateway

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gateway-gatekeeper-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "gateway")
	if err := testutil.BuildProgram(binary, filepath.Join("..", ".."), "./cmd/gateway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// apiServer is as much of a Kubernetes API server as the gateway asks for. It stores what it is
// sent, and remembers the last object that was written.
type apiServer struct {
	mu      sync.Mutex
	stored  map[string][]byte // by path
	written []byte
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.Method {
	case http.MethodGet:
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		}
		if object, ok := s.stored[r.URL.Path]; ok {
			_, _ = w.Write(object)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	case http.MethodPost:
		w.WriteHeader(http.StatusCreated)
	}
	if r.URL.Query().Get("dryRun") == "" {
		s.written = body
	}
	_, _ = w.Write(body)
}

func (s *apiServer) store(path string, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[path] = encoded(object)
}

// replace stores an object until what was there is put back.
func (s *apiServer) replace(path string, object []byte) (putBack func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, isThere := s.stored[path]
	s.stored[path] = object
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stored[path] = before; !isThere {
			delete(s.stored, path)
		}
	}
}

func encoded(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// A gateway runs with policy files in front of an API server.
type gateway struct {
	url    string
	server *apiServer
}

// start runs the gateway with the files until the test ends.
func start(t *testing.T, files map[string]string) *gateway {
	t.Helper()
	dir, policies := t.TempDir(), t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(policies, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nidentity: {anonymous: Allow}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{server: &apiServer{stored: map[string][]byte{}}}
	backend := httptest.NewServer(g.server)
	t.Cleanup(backend.Close)
	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	log := &bytes.Buffer{}
	command := exec.Command(binary, "serve", "--config", config, "--listen", listen, "--admin", admin,
		"--upstream", backend.URL, "--dialect", "Kubernetes", "--policies", policies)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-exited
		if t.Failed() {
			t.Logf("the gateway's log:\n%.4000s", log)
		}
	})
	g.url = "http://" + listen
	for deadline := time.Now().Add(30 * time.Second); ; {
		if answer, err := http.Get("http://" + admin + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return g
			}
		}
		select {
		case <-exited:
			t.Fatalf("the gateway ended: %.4000s", log)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("the gateway is not ready")
		}
	}
}

// A request creates an object, or updates it if old is set.
type request struct {
	path        string // of the collection
	namespace   string
	object, old map[string]any
}

func (r *request) name() string {
	metadata, _ := r.object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// An answer has the message of a refusal, warnings, and the object that was written.
type answer struct {
	code     int
	message  string
	warnings []string
	written  []byte
}

// send sends a request through the gateway.
func (g *gateway) send(t *testing.T, r *request) answer {
	t.Helper()
	method, path := http.MethodPost, r.path
	if r.old != nil {
		method, path = http.MethodPut, r.path+"/"+r.name()
		// Later requests find what was there: the old object may be a Namespace, which the gateway remembers for a
		// while.
		defer g.server.replace(path, encoded(r.old))()
	}
	g.server.mu.Lock()
	g.server.written = nil
	g.server.mu.Unlock()
	q, err := http.NewRequest(method, g.url+path, bytes.NewReader(encoded(r.object)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{code: response.StatusCode}
	for _, w := range response.Header.Values("Warning") {
		a.warnings = append(a.warnings, strings.TrimSuffix(strings.TrimPrefix(w, `299 - "`), `"`))
	}
	var status struct{ Message string }
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	a.message = status.Message
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	a.written = g.server.written
	return a
}
