package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// notesOf is the file of a plain API whose objects have a number that never falls.
const notesOf = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}
  %s
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: notes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [notes, notes/status]}]}
  validations: [{expression: "object.spec.n >= oldObject.spec.n", message: "may not fall"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: notes}
spec: {policyName: notes, validationActions: [Deny]}
`

const (
	bareNotes       = "fields: {name: id, status: status}\n  scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}\n  backend: {patch: %s}"
	kubernetesNotes = "envelope: Kubernetes\n  backend: {patch: %s}"
)

// probedStore is a plain API with one object that compares If-Match with the version of the
// object, by the letter.
type probedStore struct {
	tag func(version int) string // the ETag of a version
	// answer is the code of the answer to an ETag that is not the object's own, before anything is
	// stored; 0 for what If-Match asks for. After is the one of an answer to what was stored all
	// the same, because nothing is compared.
	answer, after func(match string) int
	// other is what another writer stores when the first write of the gateway's has come, and is
	// not looked at yet.
	other string

	mu      sync.Mutex
	version int
	object  string
	matches []string // the If-Match of the writes that came
	stored  []string // what the gateway's writes made of the object
}

func (s *probedStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code := http.StatusOK
	if r.Method != http.MethodGet {
		match := r.Header.Get("If-Match")
		if s.matches = append(s.matches, match); s.other != "" {
			s.version, s.object, s.other = s.versionFor(match), s.other, ""
		}
		if code = s.carryOut(r, match, body); code == 0 {
			panic(http.ErrAbortHandler) // the connection is lost
		}
	}
	if code == http.StatusOK {
		w.Header().Set("ETag", s.tag(s.version))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if code == http.StatusNoContent {
		return
	}
	_, _ = io.WriteString(w, s.object)
}

// versionFor returns the version that the other writer makes: the very one that a probe names if it
// is one that the API can give within a hundred writes, which in a real one may be some of many
// writers, else the next.
func (s *probedStore) versionFor(match string) int {
	for next := s.version + 1; next <= s.version+100; next++ {
		if s.tag(next) == match {
			return next
		}
	}
	return s.version + 1
}

func (s *probedStore) carryOut(r *http.Request, match string, body []byte) (code int) {
	own := match == "" || match == s.tag(s.version)
	if !own && s.answer != nil {
		if code := s.answer(match); code != http.StatusOK {
			return code
		}
	} else if !own {
		return http.StatusPreconditionFailed
	}
	switch {
	case r.Method == http.MethodPut:
		s.object = string(body)
	case r.Method == http.MethodDelete:
		s.object = ""
	case r.Header.Get("Content-Type") == "application/json-patch+json":
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return http.StatusBadRequest
		}
		changed, err := patch.Apply([]byte(s.object))
		if err != nil {
			return http.StatusBadRequest
		}
		s.object = string(changed)
	default:
		changed, err := jsonpatch.MergePatch([]byte(s.object), body)
		if err != nil {
			return http.StatusBadRequest
		}
		s.object = string(changed)
	}
	s.version++
	s.stored = append(s.stored, s.object)
	if !own && s.after != nil {
		return s.after(match)
	}
	return http.StatusOK
}

// probes returns how many probes came.
func (s *probedStore) probes() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, match := range s.matches {
		if isProbe.MatchString(match) {
			n++
		}
	}
	return n
}

// noteClient sends requests about the one note of a gateway.
func noteClient(t *testing.T, address string) func(method, path, contentType, match, body string) (int, string) {
	return func(method, path, contentType, match, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+address+"/v1/notes/n1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
}

// startProbing starts a gateway, as after a start of its process, before a store.
func startProbing(t *testing.T, s *probedStore, spec string) (*Gateway, string) {
	backend := httptest.NewServer(s)
	t.Cleanup(backend.Close)
	g := gatewayFor(t, policiestest.Write(t, fmt.Sprintf(notesOf, spec)), strings.TrimPrefix(backend.URL, "http://"),
		nil)
	g.routes.backends[0].comparisons.Asks = true
	return g, startGateway(t, g)
}

// TestProbeOverwritesNobody: the first write after a start is judged against version 7, and another
// writer makes another version before it reaches the backend, if possible the one that it names.
// The other writer's object is not replaced, and what is stored in the end was judged against it:
// whatever the ETags look like, and by which way the write came.
func TestProbeOverwritesNobody(t *testing.T) {
	const (
		merge, patch  = "application/merge-patch+json", "application/json-patch+json"
		bare          = `{"id":"n1","spec":{"n":6},"status":{"n":1}}`
		bareOther     = `{"id":"n1","spec":{"n":8,"other":true},"status":{"n":1}}`
		envelope      = `{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"n1","uid":"u","generation":1,"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"n":6}}`
		envelopeOther = `{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"n1","uid":"u","generation":2,"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"n":8,"other":true}}`
	)
	forms := map[string]func(version int) string{
		"integers":           func(v int) string { return fmt.Sprintf(`"%d"`, v) },
		"bare integers":      func(v int) string { return fmt.Sprint(v) },
		"hexadecimal digits": func(v int) string { return fmt.Sprintf(`"3fa%x"`, v) },
		"v7":                 func(v int) string { return fmt.Sprintf(`"v%d"`, v) },
		"rev-a":              func(v int) string { return fmt.Sprintf(`"rev-%c"`, 'a'+rune(v)) },
		"seconds":            func(v int) string { return fmt.Sprintf(`"%d"`, 1718000000+v) },
		"times":              func(v int) string { return time.Unix(1718000000+int64(v), 0).UTC().Format(`"20060102T150405"`) },
	}
	both := func(more string) string { return strings.Replace(bareOther, `"other":true`, `"other":true,`+more, 1) }
	for name, tt := range map[string]struct {
		spec                      string
		method, path, contentType string
		isNamed                   bool // the client names version 7
		body                      string
		code                      int
		want                      string // "" for the other writer's object
		object, other             string // bare and bareOther by default
	}{
		"PUT that names its version": {spec: bareNotes, method: "PUT", isNamed: true,
			body: `{"id":"n1","spec":{"n":7,"mine":1}}`, code: 412},
		"PUT": {spec: bareNotes, method: "PUT", body: `{"id":"n1","spec":{"n":7,"mine":1}}`, code: 422},
		"PUT that is valid still": {spec: bareNotes, method: "PUT", body: `{"id":"n1","spec":{"n":9}}`, code: 200,
			want: `{"id":"n1","spec":{"n":9},"status":{"n":1}}`},
		"merge patch": {spec: bareNotes, method: "PATCH", contentType: merge,
			body: `{"spec":{"n":7,"mine":1}}`, code: 422},
		"merge patch that is valid": {spec: bareNotes, method: "PATCH", contentType: merge,
			body: `{"spec":{"mine":1}}`, code: 200, want: both(`"mine":1`)},
		"merge patch, version named": {spec: bareNotes, method: "PATCH", contentType: merge, isNamed: true,
			body: `{"spec":{"mine":1}}`, code: 412},
		"JSON patch": {spec: bareNotes, method: "PATCH", contentType: patch,
			body: `[{"op":"add","path":"/spec/n","value":7}]`, code: 422},
		"JSON patch that is valid": {spec: bareNotes, method: "PATCH", contentType: patch,
			body: `[{"op":"add","path":"/spec/mine","value":1}]`, code: 200, want: both(`"mine":1`)},
		"status": {spec: bareNotes, method: "PUT", path: "/status",
			body: `{"id":"n1","status":{"n":2}}`, code: 200, want: strings.Replace(bareOther, `{"n":1}`, `{"n":2}`, 1)},
		"status that names its version": {spec: bareNotes, method: "PUT", path: "/status", isNamed: true,
			body: `{"id":"n1","status":{"n":2}}`, code: 412},
		"patch of the status": {spec: bareNotes, method: "PATCH", path: "/status", contentType: merge,
			body: `{"status":{"n":2}}`, code: 200, want: strings.Replace(bareOther, `{"n":1}`, `{"n":2}`, 1)},
		"patch of the scale": {spec: bareNotes, method: "PATCH", path: "/scale", contentType: merge,
			body: `{"spec":{"replicas":7}}`, code: 422},
		"object of Kubernetes' form": {spec: kubernetesNotes, method: "PUT",
			body: strings.Replace(envelope, `"n":6`, `"n":7,"mine":1`, 1), code: 422, object: envelope,
			other: envelopeOther},
		"Kubernetes, merge patch": {spec: kubernetesNotes, method: "PATCH", contentType: merge,
			body: `{"spec":{"n":7,"mine":1}}`, code: 422, object: envelope, other: envelopeOther},
	} {
		for _, patches := range []string{"Emulated", "Validated"} {
			if tt.spec == kubernetesNotes && patches == "Validated" {
				continue // no such API knows their patches
			}
			for form, tag := range forms {
				t.Run(name+", "+patches+", "+form, func(t *testing.T) {
					if tt.object == "" {
						tt.object, tt.other = bare, bareOther
					}
					if tt.want == "" {
						tt.want = tt.other
					}
					s := &probedStore{tag: tag, version: 7, object: tt.object, other: tt.other}
					_, address := startProbing(t, s, fmt.Sprintf(tt.spec, patches))
					match := ""
					if tt.isNamed {
						match = tag(7)
					}
					contentType := tt.contentType
					if contentType == "" {
						contentType = "application/json"
					}
					code, answer := noteClient(t, address)(tt.method, tt.path, contentType, match, tt.body)
					s.mu.Lock()
					defer s.mu.Unlock()
					if code != tt.code {
						t.Errorf("answered %d %s, want %d", code, answer, tt.code)
					}
					if !jsonpatch.Equal([]byte(s.object), []byte(tt.want)) {
						t.Errorf("%s is stored, want %s; the writes named %s", s.object, tt.want, s.matches)
					}
					for _, match := range s.matches {
						if match != tag(7) && match != tag(8) && !isProbe.MatchString(match) {
							t.Errorf("a write named %s, which the gateway was not told", match)
						}
					}
				})
			}
		}
	}
}

// isProbe matches the ETag of a probe.
var isProbe = regexp.MustCompile(`^"admission-gateway-probe-[A-Z2-7]{26}"$`)

// TestProbeAnswers: what each answer of a backend to a probe means to the write and to operators.
// Nothing is stored twice that would make a difference, the client's answer is never the probe's
// refusal, and no probe is repeated without end.
func TestProbeAnswers(t *testing.T) {
	const (
		put   = "PUT"
		merge = "application/merge-patch+json"
		patch = "application/json-patch+json"
	)
	always := func(code int) func(string) int { return func(string) int { return code } }
	ifProbe := func(code int) func(string) int {
		return func(match string) int {
			if isProbe.MatchString(match) {
				return code
			}
			return http.StatusOK
		}
	}
	for name, tt := range map[string]struct {
		answer, after func(match string) int
		code          int
		sent, stored  int // how many writes came for one of the client's, and how often something was stored
		finding       string
		log           string
		patch         [3]int // code, sent and stored of a JSON patch that the backend applies itself
	}{
		"412 to another version": {answer: ifProbe(412), code: 200, sent: 2, stored: 1, finding: "Compared",
			log: "the backend compares If-Match"},
		"409": {answer: ifProbe(409), code: 200, sent: 2, stored: 1, finding: "Compared",
			log: "the backend compares If-Match"},
		"400: no number": {answer: ifProbe(400), code: 200, sent: 2, stored: 1, finding: "Unclear",
			log: "does not show whether it compares"},
		"422": {answer: ifProbe(422), code: 200, sent: 2, stored: 1, finding: "Unclear",
			log: "does not show whether it compares"},
		"428": {answer: ifProbe(428), code: 200, sent: 2, stored: 1, finding: "Unclear",
			log: "does not show whether it compares"},
		"404: no such version": {answer: ifProbe(404), code: 200, sent: 2, stored: 1, finding: "Unclear",
			log: "does not show whether it compares"},
		"403: of a firewall": {answer: ifProbe(403), code: 200, sent: 2, stored: 1, finding: "Unclear",
			log: "does not show whether it compares"},
		"500: no number either": {answer: ifProbe(500), code: 200, sent: 2, stored: 1, finding: "Unclear",
			log: "does not show whether it compares"},
		"200: not compared": {answer: always(200), code: 200, sent: 1, stored: 1, finding: "NotCompared",
			log: "does not compare If-Match"},
		"204: not compared": {answer: always(200), after: always(204), code: 204, sent: 1, stored: 1,
			finding: "NotCompared", log: "does not compare If-Match"},
		"401: who are you": {answer: ifProbe(401), code: 401, sent: 1},
		"429: too many":    {answer: ifProbe(429), code: 429, sent: 1},
		"503: not now":     {answer: ifProbe(503), code: 503, sent: 1},
		"504: of a proxy":  {answer: ifProbe(504), code: 504, sent: 1},
		"connection lost":  {answer: ifProbe(0), code: 504, sent: 1},
		"500, and stored": {answer: always(200), after: ifProbe(500), code: 200, sent: 1, stored: 1,
			finding: "NotCompared", log: "does not compare If-Match"},
	} {
		for _, way := range []string{put, merge, patch} {
			t.Run(name+", "+way, func(t *testing.T) {
				s := &probedStore{tag: func(v int) string { return fmt.Sprintf(`"%d"`, v) }, version: 7,
					object: `{"id":"n1","spec":{"n":7,"list":[]}}`, answer: tt.answer, after: tt.after}
				g, address := startProbing(t, s, fmt.Sprintf(bareNotes, "Validated"))
				var log syncBuffer
				g.log = slog.New(slog.NewTextHandler(&log, nil))
				send := noteClient(t, address)
				var code int
				var answer string
				switch way {
				case put:
					code, answer = send("PUT", "", "application/json", "", `{"id":"n1","spec":{"n":8}}`)
				case merge:
					code, answer = send("PATCH", "", merge, "", `{"spec":{"n":8}}`)
				case patch:
					// Twice is not once: it is no probe, and is sent once.
					code, answer = send("PATCH", "", patch, "", `[{"op":"add","path":"/spec/list/-","value":1}]`)
					tt.code, tt.sent, tt.stored, tt.finding, tt.log = 200, 1, 1, "", ""
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if code != tt.code || len(s.matches) != tt.sent || len(s.stored) != tt.stored {
					t.Errorf("answered %d %s after writes with %s, of which %d were stored; want %d after %d, of which %d", code, answer, s.matches, len(s.stored), tt.code, tt.sent, tt.stored)
				}
				if stored := s.stored; len(stored) > 1 && stored[0] != stored[1] {
					t.Errorf("stored twice, and not the same: %s", stored)
				}
				var found []plain.Known
				if tt.finding != "" {
					found = []plain.Known{{Resource: "notes.example.com", ETags: tt.finding}}
				}
				got := g.Upstreams()[0].Versions
				if len(got) == 1 && len(found) == 1 && !got[0].Since.IsZero() {
					found[0].Since = got[0].Since
				}
				if !slices.Equal(got, found) {
					t.Errorf("/upstreams says %v, want %v", got, found)
				}
				if got := log.String(); tt.log != "" &&
					(strings.Count(got, tt.log) != 1 ||
						!strings.Contains(got, "resource=notes.example.com method="+
							map[string]string{put: "PUT", merge: "PATCH"}[way])) {
					t.Errorf("the log says %s", got)
				}
			})
		}
	}
}

// TestProbesEnd: a backend that answers nothing of use to any probe gets a few of them, and then
// none.
func TestProbesEnd(t *testing.T) {
	for name, answer := range map[string]int{"412 to everything": 412, "503 to probes": 503} {
		t.Run(name, func(t *testing.T) {
			s := &probedStore{tag: func(v int) string { return fmt.Sprintf(`"%d"`, v) }, version: 7,
				object: `{"id":"n1","spec":{"n":7}}`}
			s.answer = func(string) int { return answer }
			if answer == 412 {
				// never the one that was read
				s.tag = func(v int) string { return fmt.Sprintf(`"%d-%d"`, v, len(s.matches)) }
			}
			g, address := startProbing(t, s, fmt.Sprintf(bareNotes, "Validated"))
			send := noteClient(t, address)
			for range 20 {
				if code, answer := send("PUT", "", "application/json", "", `{"id":"n1","spec":{"n":8}}`); code != 200 &&
					code != 409 && code != 503 {
					t.Errorf("answered %d %s", code, answer)
				}
			}
			if probes := s.probes(); probes != 8 {
				t.Errorf("%d probes came", probes)
			}
			if got := g.Upstreams()[0].Versions; len(got) != 1 || got[0].ETags != "Unclear" {
				t.Errorf("/upstreams says %v", got)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if answer == 412 && len(s.stored) > 0 {
				t.Errorf("%s was stored", s.stored)
			}
		})
	}
}

// TestFindingsAreForgotten: what was found out about one method says nothing of another, and
// nothing of the servers that come in place of the ones that were asked.
func TestFindingsAreForgotten(t *testing.T) {
	s := &probedStore{tag: func(v int) string { return fmt.Sprintf(`"%d"`, v) }, version: 7,
		object: `{"id":"n1","spec":{"n":7}}`}
	g, address := startProbing(t, s, fmt.Sprintf(bareNotes, "Validated"))
	var log syncBuffer
	g.log = slog.New(slog.NewTextHandler(&log, nil))
	send := noteClient(t, address)
	put := func(n int) { send("PUT", "", "application/json", "", fmt.Sprintf(`{"id":"n1","spec":{"n":%d}}`, n)) }
	put(8)
	send("PATCH", "", "application/merge-patch+json", "", `{"spec":{"n":9}}`)
	put(10)
	if got := s.probes(); got != 2 {
		t.Errorf("%d probes came, want one for each method", got)
	}
	if got := strings.Count(log.String(), "the backend compares"); got != 2 {
		t.Errorf("told %d times, want once for each method: %s", got, log.String())
	}
	s.mu.Lock()
	s.answer = func(string) int { return http.StatusOK }
	s.mu.Unlock()
	for i, event := range []balance.Event{balance.AddressesChanged, balance.Readmitted, balance.Healthy,
		balance.CircuitClosed} {
		if !mayBeAnother(event) {
			t.Errorf("after %v the servers are the same", event)
		}
		g.routes.backends[0].comparisons.Forget()
		if got := g.Upstreams()[0].Versions; got != nil {
			t.Errorf("/upstreams says %v", got)
		}
		put(11 + i)
		if got := s.probes(); got != 3+i {
			t.Errorf("%d probes came", got)
		}
	}
	if got := g.Upstreams()[0].Versions; len(got) != 1 || got[0].ETags != "NotCompared" {
		t.Errorf("/upstreams says %v", got)
	}
	if got := strings.Count(log.String(), "does not compare"); got != 1 {
		t.Errorf("told %d times: %s", got, log.String())
	}
}
