package policytest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
)

// server is a backend of tests: a store of objects. In the dialect Kubernetes it answers as an
// API server does that accepts every object unchanged, and allows every user everything.
type server struct {
	name       string // of the upstream
	kubernetes bool
	patcher    patcher
	// lists are the collections that policies read, by their paths.
	lists map[string][]json.RawMessage
	// resolvers say what files describe; nil before the gateway is made.
	resolvers atomic.Pointer[[]resource.Resolver]
	http      *http.Server

	mu       sync.RWMutex
	existing map[string]json.RawMessage
	plain    *backend.Server
}

func newServer(of *config.UpstreamSpec, set *policies.Set) *server {
	s := &server{name: of.Name, kubernetes: of.Dialect == config.Kubernetes, patcher: patcher{set},
		lists: map[string][]json.RawMessage{}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.reset()
	return s
}

// start serves on loopback until close, and returns the address.
func (s *server) start() (string, error) {
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = s.http.Serve(behind) }() // ends with close
	return behind.Addr().String(), nil
}

func (s *server) close() { _ = s.http.Close() }

// reset forgets everything that a case has stored.
func (s *server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.existing, s.plain = map[string]json.RawMessage{},
		backend.New(backend.Options{Described: s.described, Successes: s.patcher.set.Successes, TakesAll: true})
}

// described returns how the files read requests.
func (s *server) described() []resource.Resolver {
	if r := s.resolvers.Load(); r != nil {
		return *r
	}
	return nil
}

// put stores an object before a request.
func (s *server) put(path string, object json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kubernetes {
		s.existing[path] = versioned(object)
		return nil
	}
	_, err := s.plain.Put(path, object)
	return err
}

// versioned returns the object with the metadata that every stored object has.
func versioned(object json.RawMessage) json.RawMessage {
	var fields map[string]any
	if json.Unmarshal(object, &fields) != nil {
		return object
	}
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	for key, value := range map[string]string{"resourceVersion": "1", "uid": "00000000-0000-0000-0000-000000000001"} {
		if metadata[key] == nil {
			metadata[key] = value
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return object
	}
	return out
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	existing, found := s.existing[r.URL.Path]
	plain := s.plain
	s.mu.RUnlock()
	switch list, isList := s.lists[r.URL.Path]; {
	case isList && r.Method == http.MethodGet:
		s.list(w, r, list)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/") && r.Method == http.MethodGet && !found &&
		strings.Count(r.URL.Path, "/") == 4:
		name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		answer(w, http.StatusOK, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+
			`","labels":{"kubernetes.io/metadata.name":"`+name+`"}}}`)
	case !s.kubernetes:
		plain.ServeHTTP(w, r)
	case r.Method == http.MethodGet && isCollection(r.URL.Path):
		s.list(w, r, s.stored(r.URL.Path))
	case r.Method == http.MethodGet:
		s.get(w, r, existing, found)
	case strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/"),
		strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/"):
		allow(w, r)
	case r.Method == http.MethodDelete:
		answer(w, http.StatusOK, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway sees the connection end
		}
		if r.Method == http.MethodPatch {
			s.patch(w, r.Header.Get("Content-Type"), existing, body)
			return
		}
		code := http.StatusOK
		if r.Method == http.MethodPost {
			code = http.StatusCreated
		}
		answer(w, code, string(body))
	}
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body) // the gateway may be gone
}

func (s *server) get(w http.ResponseWriter, r *http.Request, existing json.RawMessage, found bool) {
	switch {
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case found:
		answer(w, http.StatusOK, string(existing))
	default:
		answer(w, http.StatusNotFound, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","message":"there is no such object","code":404}`)
	}
}

// isCollection reports whether a path of the Kubernetes API is a collection's.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}

// stored returns the object of the case if it is in the collection.
func (s *server) stored(collection string) (objects []json.RawMessage) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for path, object := range s.existing {
		if name, isIn := strings.CutPrefix(path, collection+"/"); isIn && !strings.Contains(name, "/") {
			objects = append(objects, object)
		}
	}
	return objects
}

// list answers with a collection. A watch of it lasts as long as its client.
func (s *server) list(w http.ResponseWriter, r *http.Request, objects []json.RawMessage) {
	if r.URL.Query().Get("watch") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		<-r.Context().Done()
		return
	}
	items, _ := json.Marshal(objects) // raw JSON that was read once can be written
	if objects == nil {
		items = []byte("[]")
	}
	answer(w, http.StatusOK, `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":`+
		string(items)+`}`)
}

// allow answers reviews of access: every user may do everything.
func allow(w http.ResponseWriter, r *http.Request) {
	var review struct{ Kind, APIVersion string }
	if json.NewDecoder(r.Body).Decode(&review) != nil {
		answer(w, http.StatusBadRequest, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":400}`)
		return
	}
	body, _ := json.Marshal(map[string]any{ // strings and a boolean
		"kind": review.Kind, "apiVersion": review.APIVersion,
		"status": map[string]any{"allowed": true, "userInfo": map[string]any{"username": "test-user"}},
	})
	answer(w, http.StatusCreated, string(body))
}
