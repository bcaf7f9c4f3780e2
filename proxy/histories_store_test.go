package proxy

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// tagging is how a plain API gives the versions of its objects.
type tagging string

const (
	integerTags tagging = "integers"
	hashTags    tagging = "hashes"
	weakTags    tagging = "weak"
	fieldRevs   tagging = "field"
	wrappedTags tagging = "integers, in an envelope" // answers have the object in a member
)

// held is an object as an API holds it.
type held struct {
	version int    // counts its writes
	content string // in canonical JSON, without a version; "" for none
}

// tag returns the version of an object as the API gives it.
func (t tagging) tag(h held) string {
	switch t {
	case hashTags:
		return fastifyTag([]byte(h.content))
	case weakTags:
		return "W/" + strconv.Quote(strconv.Itoa(h.version))
	case fieldRevs:
		return strconv.Itoa(h.version)
	}
	return strconv.Quote(strconv.Itoa(h.version))
}

// historyStore is a plain API that compares the versions that it gives, as far as that is possible.
// Its process can be killed at any moment, and starts again with what it had stored.
type historyStore struct {
	tagging tagging
	server  *httptest.Server

	serving sync.WaitGroup // has the requests that are under way, those too whose client has left

	mu      sync.Mutex
	random  *rand.Rand
	process int // counts the starts
	objects map[string]held
	made    map[string][]carried // by the id of the write
}

// carried is how a write was carried out.
type carried struct {
	at     time.Time
	code   int
	object held
}

// writeID is the header by which a client says which of its writes a request is.
const writeID = "X-Request-Id"

func startHistoryStore(t *testing.T, tagging tagging, seed uint64) *historyStore {
	s := &historyStore{tagging: tagging, random: rand.New(rand.NewPCG(seed, 7)), objects: map[string]held{},
		made: map[string][]carried{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// kill ends the process, with its connections: what it has not stored by now it never stores, and
// no answer leaves it. Another one takes its place.
func (s *historyStore) kill() {
	s.mu.Lock()
	s.process++
	s.mu.Unlock()
	s.server.CloseClientConnections()
}

// pause lets others come between.
func (s *historyStore) pause() {
	s.mu.Lock()
	d := time.Duration(s.random.IntN(400)) * time.Microsecond
	s.mu.Unlock()
	time.Sleep(d)
}

// historyTimeout is how long a gateway waits for an answer of the backend, and historyLate how long a late write takes,
// which is more than that.
const (
	historyTimeout = 400 * time.Millisecond
	historyLate    = 600 * time.Millisecond
)

// setback is what happens to a request beside what it asks for.
type setback uint8

const (
	noSetback       setback = iota
	answerLost              // the connection ends once the request was carried out
	answerCut               // it ends within the answer
	answeredFailure         // the answer is 500 or 503, although the request was carried out
	carriedOutLate          // it is carried out when nobody waits for the answer any more
)

// setback returns what happens to a request.
func (s *historyStore) setback() setback {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.random.IntN(200); {
	case n < 2:
		return answerLost
	case n < 4:
		return answerCut
	case n < 6:
		return answeredFailure
	case n < 7:
		return carriedOutLate
	}
	return noSetback
}

func (s *historyStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Done()
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	setback := s.setback()
	if s.pause(); setback == carriedOutLate {
		time.Sleep(historyLate)
	}
	s.mu.Lock()
	if process != s.process {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	code, now := s.exchange(r, body)
	s.mu.Unlock()
	s.pause()
	switch {
	case setback == answerLost:
		panic(http.ErrAbortHandler)
	case setback == answeredFailure:
		w.WriteHeader([...]int{http.StatusInternalServerError, http.StatusServiceUnavailable}[now.version%2])
		return
	case code >= 300 || now.content == "":
		w.WriteHeader(code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text := s.shown(now)
	if isPart := r.URL.Query().Get("fields") == "n"; s.tagging != fieldRevs && !isPart {
		w.Header().Set("ETag", s.tagging.tag(now))
	} else if isPart {
		text = []byte(canonical(text, func(o map[string]any) { delete(o, "log"); delete(o, "c") }))
	}
	if s.tagging == wrappedTags {
		text = slices.Concat([]byte(`{"data":`), text, []byte("}"))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	if setback == answerCut {
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text)
}

// exchange carries a request out as RFC 9110 says. The lock is held.
func (s *historyStore) exchange(r *http.Request, body []byte) (code int, now held) {
	path := r.URL.Path
	now = s.objects[path]
	if r.Method == http.MethodGet || now.content == "" && r.Method != http.MethodPut {
		if now.content == "" {
			return http.StatusNotFound, now
		}
		return http.StatusOK, now
	}
	match := r.Header.Get("If-Match")
	if match != "" && s.tagging != fieldRevs &&
		(s.tagging == weakTags || now.content == "" || match != s.tagging.tag(now)) ||
		r.Header.Get("If-None-Match") == "*" && now.content != "" {
		return http.StatusPreconditionFailed, now
	}
	content := ""
	if r.Method != http.MethodDelete {
		changed, err := changedBy(r, s.shown(now), body)
		if err != nil {
			return http.StatusBadRequest, now
		}
		rev := decoded(changed)["rev"]
		if s.tagging == fieldRevs && (now.content != "" || rev != nil) &&
			(now.content == "" || rev != json.Number(strconv.Itoa(now.version))) {
			return http.StatusConflict, now
		}
		content = canonical(changed, func(o map[string]any) { delete(o, "rev") })
	}
	code = http.StatusOK
	switch {
	case content == "":
		code = http.StatusNoContent
	case now.content == "":
		code = http.StatusCreated
	}
	now = held{now.version + 1, content}
	s.objects[path] = now
	id := r.Header.Get(writeID)
	s.made[id] = append(s.made[id], carried{time.Now(), code, now})
	return code, now
}

// shown is an object as clients see it.
func (s *historyStore) shown(h held) []byte {
	if s.tagging == fieldRevs && h.content != "" {
		return []byte(canonical([]byte(h.content), func(o map[string]any) { o["rev"] = h.version }))
	}
	return []byte(h.content)
}

// changedBy returns what a PUT or a PATCH makes of an object.
func changedBy(r *http.Request, object, body []byte) ([]byte, error) {
	switch {
	case r.Method == http.MethodPut:
		return body, nil
	case r.Header.Get("Content-Type") == "application/json-patch+json":
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, err
		}
		return patch.Apply(object)
	}
	return jsonpatch.MergePatch(object, body)
}

// canonical returns the text of an object with changes: members in order, and numbers as they are.
func canonical(body []byte, change func(map[string]any)) string {
	o := decoded(body)
	if o == nil {
		return ""
	}
	change(o)
	text, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	return string(text)
}
