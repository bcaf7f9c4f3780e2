package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// mishap is what goes wrong with a write that reaches the API of a resendStore.
type mishap string

const (
	droppedAfter  mishap = "dropped before the head"
	cutAfter      mishap = "cut in the body"
	failedAfter   mishap = "500 after it was stored"
	refusedAfter  mishap = "503 after it was stored"
	storedLate    mishap = "stored after the timeout"
	droppedBefore mishap = "dropped before it was stored"
	streamRefused mishap = "REFUSED_STREAM"
)

// resendStore is an API that compares the versions of its objects: an ordinary one by ETags, or one like an API server
// by resourceVersions, with dry runs and patches. Something goes wrong with its first write.
type resendStore struct {
	isServer bool // it is like an API server
	address  string
	release  chan struct{} // lets a late write be carried out
	// between, if set, is called after the first write was carried out, before anything else is answered.
	between func()

	mu      sync.Mutex
	mishap  mishap // of the next write; "" for none
	counter int
	objects map[string]storedText
	sent    []string // the writes that arrived, in order
	applied int      // how many of them were carried out
}

// storedText is an object as it is stored, and its version.
type storedText struct {
	version int
	text    string
}

func startResendStore(t *testing.T, isServer bool, m mishap) *resendStore {
	t.Helper()
	s := &resendStore{isServer: isServer, mishap: m, counter: 7, objects: map[string]storedText{},
		release: make(chan struct{})}
	if m == streamRefused {
		s.address = serveConns(t, s.serveFrames)
		return s
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.address = server.Listener.Addr().String()
	return s
}

// put stores an object as a client does that bypasses the gateway.
func (s *resendStore) put(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	s.objects[path] = storedText{s.counter, text}
}

func (s *resendStore) get(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path].text
}

// names returns the names that are stored below a path.
func (s *resendStore) names(path string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.objects {
		if name, found := strings.CutPrefix(at, path+"/"); found {
			names = append(names, name)
		}
	}
	return names
}

func (s *resendStore) counts() (sent []string, applied int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.sent...), s.applied
}

func (s *resendStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	isDry := r.URL.Query().Get("dryRun") != ""
	var m mishap
	if r.Method != http.MethodGet && !isDry {
		s.mu.Lock()
		m, s.mishap = s.mishap, ""
		s.sent = append(s.sent, strings.TrimSpace(r.Method+" "+r.Header.Get("If-Match")+r.Header.Get("If-None-Match")))
		s.mu.Unlock()
	}
	switch m {
	case droppedBefore:
		panic(http.ErrAbortHandler)
	case storedLate:
		<-s.release
	}
	code, path, answer := s.exchange(r, body, isDry)
	if m != "" && s.between != nil {
		s.between()
	}
	switch m {
	case droppedAfter:
		panic(http.ErrAbortHandler)
	case failedAfter, refusedAfter:
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(map[mishap]int{failedAfter: 500, refusedAfter: 503}[m])
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if s.mu.Lock(); !s.isServer && s.objects[path].version > 0 && code < 300 {
		w.Header().Set("ETag", strconv.Quote(strconv.Itoa(s.objects[path].version)))
	}
	s.mu.Unlock()
	if m == cutAfter {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)+10))
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, answer)
}

// exchange carries a request out, and returns the path of the object.
func (s *resendStore) exchange(r *http.Request, body []byte, isDry bool) (code int, path, answer string) {
	path = r.URL.Path
	if path == "/version" {
		return http.StatusOK, path, `{"major":"1","minor":"37","gitVersion":"v1.37.0"}`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	named := nameIn(body)
	if named == "" {
		named = fmt.Sprint("made-", s.counter)
	}
	if r.Method == http.MethodPost {
		path += "/" + named
	}
	now := s.objects[path]
	switch {
	case r.Method == http.MethodGet && now.version == 0, now.version == 0 && r.Method != http.MethodPut &&
		r.Method != http.MethodPost:
		return http.StatusNotFound, path, s.failure(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet:
		return http.StatusOK, path, s.shown(now)
	case r.Method == http.MethodPost && now.version > 0:
		return http.StatusConflict, path, s.failure(http.StatusConflict, "AlreadyExists")
	}
	match := r.Header.Get("If-Match")
	if match != "" && match != strconv.Quote(strconv.Itoa(now.version)) || r.Header.Get("If-None-Match") == "*" &&
		now.version > 0 {
		return http.StatusPreconditionFailed, path, "another version"
	}
	text := ""
	if r.Method != http.MethodDelete {
		changed, err := body, error(nil)
		if r.Method == http.MethodPatch {
			changed, err = changedBy(r, []byte(s.shown(now)), body)
		}
		if err != nil {
			return http.StatusUnprocessableEntity, path, s.failure(http.StatusUnprocessableEntity, "Invalid")
		}
		version := ""
		text = canonical(changed, func(o map[string]any) {
			if metadata, _ := o["metadata"].(map[string]any); s.isServer && metadata != nil {
				metadata["name"] = path[strings.LastIndexByte(path, '/')+1:]
				version, _ = metadata["resourceVersion"].(string)
				delete(metadata, "resourceVersion")
				if metadata["uid"] == nil {
					metadata["uid"] = fmt.Sprint("uid-", s.counter+1)
				}
			}
		})
		if s.isServer && version != "" && r.Method != http.MethodPost && version != strconv.Itoa(now.version) {
			return http.StatusConflict, path, s.failure(http.StatusConflict, "Conflict")
		}
	}
	if code = http.StatusOK; r.Method == http.MethodPost || now.version == 0 {
		code = http.StatusCreated
	}
	next := storedText{s.counter + 1, text}
	if isDry {
		return code, path, s.shown(storedText{now.version, text})
	}
	s.counter++
	s.applied++
	if r.Method == http.MethodDelete {
		delete(s.objects, path)
		if !s.isServer {
			return http.StatusNoContent, path, ""
		}
		return http.StatusOK, path, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`
	}
	s.objects[path] = next
	return code, path, s.shown(next)
}

// nameIn returns the name of a new object.
func nameIn(body []byte) string {
	var o struct {
		ID       string                `json:"id"`
		Metadata struct{ Name string } `json:"metadata"`
	}
	_ = json.Unmarshal(body, &o) // a patch that is a list has none
	return o.ID + o.Metadata.Name
}

func (s *resendStore) shown(o storedText) string {
	if !s.isServer {
		return o.text
	}
	return canonical([]byte(o.text), func(m map[string]any) {
		if metadata, _ := m["metadata"].(map[string]any); metadata != nil {
			metadata["resourceVersion"] = strconv.Itoa(o.version)
		}
	})
}

func (s *resendStore) failure(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":%q,"code":%d}`, reason, code)
}

// serveFrames serves a connection of HTTP/2, and refuses the first stream of a write.
func (s *resendStore) serveFrames(c net.Conn) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if f.WriteSettings() != nil {
		return
	}
	var encoded bytes.Buffer
	encoder := hpack.NewEncoder(&encoded)
	open := map[uint32]*http.Request{}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		isOver := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
			continue
		case *http2.MetaHeadersFrame:
			r := httptest.NewRequest(frame.PseudoValue("method"), frame.PseudoValue("path"), new(bytes.Buffer))
			for _, field := range frame.RegularFields() {
				r.Header.Add(field.Name, field.Value)
			}
			open[frame.StreamID], isOver = r, frame.StreamEnded()
		case *http2.DataFrame:
			r := open[frame.StreamID]
			if r == nil {
				continue // it was refused
			}
			var before bytes.Buffer
			_, _ = before.ReadFrom(r.Body)
			before.Write(frame.Data())
			r.Body, isOver = io.NopCloser(&before), frame.StreamEnded()
		default:
			continue
		}
		id := frame.Header().StreamID
		if !isOver {
			continue
		}
		r := open[id]
		delete(open, id)
		s.mu.Lock()
		isRefused := r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && s.mishap == streamRefused
		if isRefused {
			s.mishap = ""
			s.sent = append(s.sent, strings.TrimSpace(r.Method+" "+r.Header.Get("If-Match")+
				r.Header.Get("If-None-Match")))
		}
		s.mu.Unlock()
		if isRefused {
			_ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			continue
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		encoded.Reset()
		_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(w.Code)})
		for name := range w.Header() {
			_ = encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: w.Header().Get(name)})
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: encoded.Bytes(), EndHeaders: true})
		_ = f.WriteData(id, true, w.Body.Bytes())
	}
}
