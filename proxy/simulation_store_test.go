package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// modelStore is a plain JSON API that remembers everything that was ever stored in it, and that fails now and then.
type modelStore struct {
	etags, field bool // how versions are given
	faults       bool

	mu      sync.Mutex
	random  *rand.Rand
	version int
	objects map[string]*moment
	history map[string][]*moment // by path
}

// moment is an object between two writes. Without a body there is no object.
type moment struct {
	version int
	body    []byte
	before  *moment
	method  string // of the write that made it; "" for another writer's, behind the gateways' back
}

func newModelStore(seed uint64, etags, field, faults bool) *modelStore {
	return &modelStore{
		etags: etags, field: field, faults: faults, random: rand.New(rand.NewPCG(seed, 3)),
		objects: map[string]*moment{}, history: map[string][]*moment{},
	}
}

// chance reports whether something happens that has the probability p.
func (m *modelStore) chance(p float64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.Float64() < p
}

func (m *modelStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if m.chance(0.3) {
		time.Sleep(time.Duration(50+len(body)%1000) * time.Microsecond)
	}
	switch {
	case m.faults && m.chance(0.01):
		panic(http.ErrAbortHandler) // before the request had any effect
	case m.faults && m.chance(0.01):
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	case m.faults && m.chance(0.01):
		m.apply(nowhere{}, r, body)
		panic(http.ErrAbortHandler) // after it had
	case m.faults && m.chance(0.01):
		m.apply(nowhere{}, r, body)
		http.Error(w, "out of order after all", http.StatusInternalServerError)
		return
	case m.faults && m.chance(0.01):
		m.apply(cutWriter{w}, r, body)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // within the answer
	case m.faults && m.chance(0.003):
		time.Sleep(historyLate) // and nobody waits any more
	}
	m.apply(w, r, body)
	if r.Method == http.MethodGet && m.chance(0.2) {
		m.interfere(r.URL.Path)
	}
}

// cutWriter writes the first half of an answer.
type cutWriter struct{ http.ResponseWriter }

func (c cutWriter) Write(p []byte) (int, error) {
	if _, err := c.ResponseWriter.Write(p[:len(p)/2]); err != nil {
		return 0, err
	}
	return len(p), nil
}

type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

func (m *modelStore) apply(w http.ResponseWriter, r *http.Request, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := r.URL.Path
	if r.Method == http.MethodPost {
		var o struct{ Metadata struct{ Name string } }
		if json.Unmarshal(body, &o) != nil || o.Metadata.Name == "" {
			http.Error(w, "no name", http.StatusBadRequest)
			return
		}
		path += "/" + o.Metadata.Name
	}
	now := m.objects[path]
	exists := now != nil && now.body != nil
	switch {
	case r.Method == http.MethodGet && !exists, r.Method == http.MethodDelete && !exists:
		http.NotFound(w, r)
		return
	case r.Method == http.MethodGet:
		m.answer(w, http.StatusOK, now)
		return
	case r.Method == http.MethodPost && exists:
		http.Error(w, "exists", http.StatusConflict)
		return
	}
	if match := r.Header.Get("If-Match"); match != "" &&
		(!exists || match != strconv.Quote(strconv.Itoa(now.version))) ||
		r.Header.Get("If-None-Match") == "*" && exists {
		http.Error(w, "not that version", http.StatusPreconditionFailed)
		return
	}
	if rev := decoded(body)["rev"]; m.field && r.Method == http.MethodPut && (exists || rev != nil) {
		if !exists || fmt.Sprint(rev) != strconv.Itoa(now.version) {
			http.Error(w, "not that version", http.StatusConflict)
			return
		}
	}
	if r.Method == http.MethodDelete {
		m.store(path, nil, r.Method)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	code := http.StatusOK
	if !exists {
		code = http.StatusCreated
	}
	m.answer(w, code, m.store(path, body, r.Method))
}

// store makes a new state; the lock is held.
func (m *modelStore) store(path string, body []byte, method string) *moment {
	m.version++
	if m.field && body != nil {
		o := decoded(body)
		o["rev"] = m.version
		body, _ = json.Marshal(o)
	}
	s := &moment{version: m.version, body: body, before: m.objects[path], method: method}
	m.objects[path] = s
	m.history[path] = append(m.history[path], s)
	return s
}

func (m *modelStore) answer(w http.ResponseWriter, code int, s *moment) {
	if m.etags {
		w.Header().Set("ETag", strconv.Quote(strconv.Itoa(s.version)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(s.body) // the client may be gone
}

// interfere is the write of another client, right behind the read of a gateway.
func (m *modelStore) interfere(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.objects[path]
	if now == nil || now.body == nil || !m.etags && !m.field {
		return
	}
	o := decoded(now.body)
	spec, _ := o["spec"].(map[string]any)
	entries, _ := spec["entries"].(map[string]any)
	if entries == nil {
		return
	}
	entries[fmt.Sprint("aside-", m.version)] = 1
	body, _ := json.Marshal(o)
	m.store(path, body, "")
}

// decoded reads an object with its numbers as they are written.
func decoded(body []byte) map[string]any {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&o) != nil {
		return nil
	}
	return o
}

// members are the keys of the object at a path.
func members(o map[string]any, path string) map[string]any {
	for key := range strings.SplitSeq(path, ".") {
		o, _ = o[key].(map[string]any)
	}
	return o
}
