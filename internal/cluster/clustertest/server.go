// Package clustertest has an API server in memory, for tests of what routes by the objects of a cluster.
package clustertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// A Server is what of an API server a Watcher needs: collections that are listed and watched, merge patches of
// statuses, and Leases, all with resourceVersions that are kept.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by path
	events  []event
	grown   chan struct{} // closed and replaced with each event
	absent  []string      // collections, by the end of their paths, that there are not
	down    bool
	writes  []string // method and path
}

type event struct {
	version    int
	collection string
	kind       string
	object     json.RawMessage
}

// New starts a server, which ends with the test.
func New(t *testing.T) *Server {
	s := &Server{objects: map[string]map[string]any{}, grown: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Put creates or replaces an object, which is JSON.
func (s *Server) Put(path, text string) {
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(path, object)
}

// store is Put with the lock held.
func (s *Server) store(path string, object map[string]any) {
	s.version++
	metadata, _ := object["metadata"].(map[string]any)
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	kind := "MODIFIED"
	if s.objects[path] == nil {
		kind = "ADDED"
	}
	s.objects[path] = object
	s.note(path, kind, object)
}

// Remove deletes an object.
func (s *Server) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	object := s.objects[path]
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	delete(s.objects, path)
	s.note(path, "DELETED", object)
}

func (s *Server) note(path, kind string, object map[string]any) {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	s.events = append(s.events, event{s.version, collectionOf(path), kind, text})
	close(s.grown)
	s.grown = make(chan struct{})
}

// collectionOf is the collection in all namespaces of an object at a path.
func collectionOf(path string) string {
	parts := strings.Split(path, "/")
	parts = parts[:len(parts)-1]
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		parts = slices.Delete(parts, i, i+2)
	}
	return strings.Join(parts, "/")
}

// Get returns an object; nil if there is none.
func (s *Server) Get(path string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path]
}

// Written counts the writes whose method and path have a part.
func (s *Server) Written(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writes {
		if strings.Contains(w, part) {
			n++
		}
	}
	return n
}

// Fail takes the server down, or lets it answer again, and says which collections, by the end of their paths, there are
// not.
func (s *Server) Fail(isDown bool, absent ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.absent = isDown, absent
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	isAway := s.down || slices.ContainsFunc(s.absent,
		func(end string) bool { return strings.HasSuffix(r.URL.Path, end) })
	isDown := s.down
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	switch {
	case isDown:
		http.Error(w, "down", http.StatusInternalServerError)
	case isAway:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r)
	case r.Method == http.MethodGet:
		s.read(w, r)
	default:
		s.write(w, r)
	}
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(r.URL.Path, "/leases/") {
		if o := s.objects[r.URL.Path]; o != nil {
			_ = json.NewEncoder(w).Encode(o)
			return
		}
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	items := []any{}
	for path, o := range s.objects {
		if collectionOf(path) == r.URL.Path {
			items = append(items, o)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)},
		"items": items})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	over := time.After(time.Duration(seconds) * time.Second)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		s.mu.Lock()
		var due []event
		for _, e := range s.events {
			if e.version > from && e.collection == r.URL.Path {
				due = append(due, e)
			}
		}
		from = s.version
		grown, isDown := s.grown, s.down
		s.mu.Unlock()
		if isDown {
			return
		}
		for _, e := range due {
			_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", e.kind, e.object)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-grown:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/status")
	sent := map[string]any{}
	if err := json.Unmarshal(body, &sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	metadata, _ := sent["metadata"].(map[string]any)
	if r.Method == http.MethodPost {
		path += "/" + metadata["name"].(string)
		if s.objects[path] != nil {
			http.Error(w, "there already", http.StatusConflict)
			return
		}
		s.store(path, sent)
		_ = json.NewEncoder(w).Encode(sent)
		return
	}
	has := s.objects[path]
	switch {
	case has == nil:
		http.Error(w, "not found", http.StatusNotFound)
		return
	case metadata["resourceVersion"] != has["metadata"].(map[string]any)["resourceVersion"]:
		http.Error(w, "another version", http.StatusConflict)
		return
	case r.Method == http.MethodPut:
		s.store(path, sent)
		_ = json.NewEncoder(w).Encode(sent)
		return
	}
	before, _ := json.Marshal(has)
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	next := map[string]any{}
	_ = json.Unmarshal(after, &next)
	s.store(path, next)
	_, _ = w.Write(after)
}
