package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// versionedNote is a plain API with one object, which compares the number that its ETag is.
type versionedNote struct {
	// counts says that the API adds 1 to the member writes of what it stores, which the answer to a
	// PUT shows if it is the object and not the request's own body.
	counts, echoes bool
	// others is after how many PUTs another client writes the object.
	others int

	mu         sync.Mutex
	object     map[string]any
	version    int
	gets, puts int
}

func (s *versionedNote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method == http.MethodPut {
		time.Sleep(time.Millisecond) // so that others wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch match := r.Header.Get("If-Match"); {
	case r.Method == http.MethodGet:
		s.gets++
	case match != "" && match != s.tag():
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	default:
		s.puts++
		s.object = decoded(body)
		s.version++
		if n, ok := s.object["writes"].(json.Number); ok && s.counts {
			before, _ := n.Int64()
			s.object["writes"] = json.Number(strconv.FormatInt(before+1, 10))
		}
		if s.others > 0 && s.puts%s.others == 0 {
			defer func() {
				s.version++
				s.object[fmt.Sprint("other", s.puts)] = true
			}()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", s.tag())
	if r.Method != http.MethodPut || !s.echoes {
		body, _ = json.Marshal(s.object)
	}
	_, _ = w.Write(body)
}

func (s *versionedNote) tag() string { return strconv.Quote(strconv.Itoa(s.version)) }

// TestWaitingWrites lets clients patch fields of one object at the same time. Patches that wait go
// on from what the one before has stored, if the backend's answers are known to show that, and if
// the same client would have read it. Whatever the backend does, no field is lost, neither of a
// client nor of the backend.
func TestWaitingWrites(t *testing.T) {
	const clients, rounds = 20, 5
	for name, tt := range map[string]struct {
		store  *versionedNote
		user   func(client int) string
		shares bool // most writes need no read
	}{
		"the answer is what is stored": {store: &versionedNote{}, shares: true},
		"the answer is the request's body, and it is stored as it is": {store: &versionedNote{echoes: true},
			shares: true},
		"the backend shows what it changes": {store: &versionedNote{counts: true}},
		"the backend hides what it changes": {store: &versionedNote{counts: true, echoes: true}},
		"another client writes": {
			store: &versionedNote{others: 3}, shares: true,
		},
		"each client is another user": {store: &versionedNote{},
			user: func(client int) string { return fmt.Sprint("user-", client) }},
	} {
		t.Run(name, func(t *testing.T) {
			store := tt.store
			store.object = map[string]any{"id": "n1", "writes": json.Number("0")}
			backend := httptest.NewServer(store)
			defer backend.Close()
			file := "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: notes.example.com}\nspec:\n  group: example.com\n  version: v1\n" +
				"  names: {plural: notes, kind: Note}\n  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}\n  fields: {name: id}\n  backend: {patch: Emulated}\n"
			g := gatewayFor(t, policiestest.Write(t, file), strings.TrimPrefix(backend.URL, "http://"), nil)
			g.routes.backends[0].comparisons.Asks = true
			address := startGateway(t, g)
			patch := func(client, round int) {
				field := fmt.Sprintf("f%d-%d", client, round)
				r, err := http.NewRequest(http.MethodPatch, "http://"+address+"/v1/notes/n1",
					strings.NewReader(`{"`+field+`":1}`))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/merge-patch+json")
				r.Header.Set("X-Request-Id", field)
				if tt.user != nil {
					r.Header.Set("Authorization", "Bearer "+tt.user(client))
				}
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = answer.Body.Close() }()
				body, _ := io.ReadAll(answer.Body)
				if answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(field)) {
					t.Errorf("the patch of %s is answered %d %s", field, answer.StatusCode, body)
				}
			}
			patch(clients, 0) // it finds out that the backend compares
			var all sync.WaitGroup
			for client := range clients {
				all.Go(func() {
					for round := range rounds {
						patch(client, round)
					}
				})
			}
			all.Wait()
			for client := range clients {
				for round := range rounds {
					if field := fmt.Sprintf("f%d-%d", client, round); store.object[field] == nil {
						t.Errorf("%s is lost", field)
					}
				}
			}
			want := json.Number("0")
			if store.counts {
				want = json.Number(strconv.Itoa(store.puts))
			}
			if got := store.object["writes"]; got != want {
				t.Errorf("the backend counted %s writes, want %s", got, want)
			}
			for n := store.others; store.others > 0 && n <= store.puts; n += store.others {
				if store.object[fmt.Sprint("other", n)] == nil {
					t.Errorf("the write of another client behind PUT %d is lost", n)
				}
			}
			switch {
			case tt.shares && store.gets >= store.puts:
				t.Errorf("%d PUTs took %d reads", store.puts, store.gets)
			case !tt.shares && store.gets < store.puts:
				t.Errorf("%d PUTs went on from %d reads", store.puts, store.gets)
			}
			t.Logf("%d PUTs, %d reads", store.puts, store.gets)
		})
	}
}
