package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// historyFile is a plain API whose objects have a number that never falls.
const historyFile = `apiVersion: admission-gateway.io/v1alpha1
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
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [notes]}]}
  validations: [{expression: "object.n >= oldObject.n", message: "may not fall"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: notes}
spec: {policyName: notes, validationActions: [Deny]}
`

const (
	historyWriters = 32
	historyObjects = 4
	// historyFaults is after how many requests of all writers a gateway or the backend stops.
	historyFaults = 96
)

// historyRounds returns how many requests each writer sends.
func historyRounds() int { return testutil.Amount(24, 12) }

// TestHistories lets 32 writers read, replace, patch and delete four objects, with versions that
// they name and without, through gateways that stop and start, in front of a backend that is killed
// that loses and cuts answers, that answers an error to what it has carried out, and that carries some
// requests out when their time has passed. Some writers leave without their answer, and some read a part
// of an object. The route asks for retries of whatever fails. Each gateway begins with a probe. The answers
// to the writers are
// linearizable: there is an order of all requests, each between its start and its end, in which
// every one was judged against and carried out on what the ones before had made. So no update is
// lost, made twice or made on an object that it was not judged against (RW-1, RW-3).
//
// Writers who go past the gateways, and gateways that share no locks, stand only in front of backends
// that compare. Gateways before a backend whose ETags are weak compare ETags of their own, share
// locks, and have served their last request before the next one starts: what is lost otherwise is
// in docs/backends.md.
func TestHistories(t *testing.T) {
	for _, tagging := range []tagging{integerTags, hashTags, weakTags, fieldRevs, wrappedTags} {
		for _, patches := range []string{"Emulated", "Validated"} {
			for _, gateways := range []int{1, 2} {
				switch {
				case testing.Short() && (gateways == 1) != (tagging == weakTags):
					continue
				}
				t.Run(fmt.Sprint(tagging, ", ", patches, ", ", gateways, " gateways"), func(t *testing.T) {
					t.Parallel()
					seed := *simulationSeed
					if seed == 0 {
						seed = uint64(time.Now().UnixNano())
					}
					t.Logf("-simulation-seed %d", seed)
					h := startHistory(t, tagging, patches, gateways, seed)
					h.run(seed)
					h.check()
				})
			}
		}
	}
}

// history is the requests of clients of gateways, and the answers.
type history struct {
	t        *testing.T
	tagging  tagging
	store    *historyStore
	set      *policies.Set
	gateways []*replaceable
	redis    *redistest.Server // has the locks that gateways share; nil if they share none
	client   *http.Client
	began    time.Time

	mu   sync.Mutex
	done []porcupine.Operation
}

// replaceable is a gateway that stops and starts at another address, as in a rollout.
type replaceable struct {
	address atomic.Pointer[string]
	stop    func(ctx context.Context)
}

func startHistory(t *testing.T, tagging tagging, patches string, gateways int, seed uint64) *history {
	h := &history{t: t, tagging: tagging, store: startHistoryStore(t, tagging, seed), began: time.Now()}
	more := "fields: {name: id}\n  backend: {patch: " + patches + "}"
	if tagging == fieldRevs {
		more = "fields: {name: id, version: rev}\n  backend: {patch: " + patches + ", versions: Field}"
	}
	if tagging == wrappedTags {
		more = "fields: {name: id, answer: data}\n  backend: {patch: " + patches + "}"
	}
	if tagging == weakTags && gateways > 1 {
		h.redis = redistest.Start(t)
	}
	h.set = policiestest.Load(t, fmt.Sprintf(historyFile, more))
	for range gateways {
		g := &replaceable{}
		h.start(g)
		h.gateways = append(h.gateways, g)
	}
	t.Cleanup(func() {
		for _, g := range h.gateways {
			g.stop(context.Background())
		}
	})
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: historyWriters}
	h.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return h
}

// start starts a gateway as a new process would: it knows nothing of the backend.
func (h *history) start(as *replaceable) {
	h.t.Helper()
	g := retrying(h.t, h.store.server.Listener.Addr().String(), false, false, h.set, historyTimeout)
	g.routes.backends[0].comparisons.Asks = true
	if h.redis != nil {
		g.locks.Share(newRedisLocks(h.t, h.redis.Address))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Attach(net.JoinHostPort("", strconv.Itoa(int(g.routes.listeners[0].Port))), listener)()
	}()
	as.stop = func(ctx context.Context) {
		_ = g.Shutdown(ctx) // with an error if requests are cut
		<-ended
	}
	address := listener.Addr().String()
	as.address.Store(&address)
}

// run lets the writers work, and everything fail in between.
func (h *history) run(seed uint64) {
	var sent atomic.Int64
	faults := make(chan struct{}, historyWriters*historyRounds()/historyFaults)
	var writers sync.WaitGroup
	for n := range historyWriters {
		writers.Go(func() {
			w := newHistoryWriter(h, n, seed)
			for range historyRounds() {
				for !w.act() {
					time.Sleep(time.Millisecond) // until the gateway is there again
				}
				if sent.Add(1)%historyFaults == 0 {
					faults <- struct{}{}
				}
			}
		})
	}
	go func() {
		writers.Wait()
		close(faults)
	}()
	random := rand.New(rand.NewPCG(seed, 8))
	for range faults {
		h.fail(random)
	}
}

// fail lets a gateway or the backend stop and start.
func (h *history) fail(random *rand.Rand) {
	if random.IntN(4) == 0 {
		h.store.kill()
		return
	}
	g := h.gateways[random.IntN(len(h.gateways))]
	old := g.stop
	if h.tagging == weakTags {
		old(context.Background())
		h.store.serving.Wait() // a late write of the old one
		h.start(g)
		return
	}
	h.start(g) // while the old one still serves
	at, cut := context.WithCancel(context.Background())
	if random.IntN(2) == 0 {
		cut() // the requests that it serves
	}
	old(at)
	cut()
}

// check compares the answers with the model. A write whose outcome its client does not know was
// made or not, which the store knows; no write was made twice.
func (h *history) check() {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	for id, times := range h.store.made {
		if len(times) != 1 {
			h.t.Errorf("write %s was made %d times", id, len(times))
		}
	}
	var done []porcupine.Operation
	known, outcomes := 0, map[string]int{}
	for _, o := range h.done {
		in, out := o.Input.(wanted), o.Output.(told)
		outcomes[fmt.Sprint(in.method, " ", out.code)]++
		made := h.store.made[in.id]
		if out.code != 0 {
			known++
		} else if len(made) > 0 {
			out = h.sightOf(made[0].code, h.tagging.tag(made[0].object), h.store.shown(made[0].object)).told
			o.Return = int64(made[0].at.Sub(h.began))
		} else {
			continue
		}
		if len(made) > 0 {
			out.written = made[0].object.version
		}
		out.isGone = in.method == http.MethodDelete && out.code == http.StatusNoContent && len(made) == 0
		o.Output = out
		done = append(done, o)
	}
	if asked := historyWriters * historyRounds(); known < asked/2 {
		h.t.Errorf("only %d of %d requests were answered: %v", known, asked, outcomes)
	}
	h.t.Log(outcomes)
	model := h.tagging.linear()
	result, info := porcupine.CheckOperationsVerbose(model, done, 0)
	if result == porcupine.Ok {
		return
	}
	path := filepath.Join(h.t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		h.t.Error(err)
	}
	h.t.Errorf("%d requests are not linearizable; with -artifacts %s shows them", len(done), path)
}

// historyWriter is one client, and what it has last seen of each object.
type historyWriter struct {
	*history
	n, count int
	random   *rand.Rand
	seen     map[string]sight
}

// sight is an answer that showed an object, or that there is none, and the version in it.
type sight struct {
	told
	tag string
}

func newHistoryWriter(h *history, n int, seed uint64) *historyWriter {
	return &historyWriter{history: h, n: n, random: rand.New(rand.NewPCG(seed, uint64(n)+100)),
		seen: map[string]sight{}}
}

// act is one request. It returns false for one that did not arrive.
func (w *historyWriter) act() bool {
	w.count++
	in := wanted{
		id: fmt.Sprintf("w%d-%d", w.n, w.count), object: fmt.Sprint("o", w.random.IntN(historyObjects)),
		method: http.MethodPatch,
		member: fmt.Sprint("w", w.n), value: strconv.Itoa(w.count), isUnjudged: w.tagging != weakTags && w.n%8 == 7,
	}
	seen, has := w.seen[in.object]
	in.note = seen.note
	in.note.log += in.id + ","
	switch kind := w.random.IntN(20); {
	case !has || kind < 4:
		in.method, in.isPart = http.MethodGet, kind == 3
	case kind < 5:
		if in.method = http.MethodDelete; w.tagging != fieldRevs && w.random.IntN(2) == 0 {
			in.named = seen.version
		}
	case kind < 8 || seen.note == memo{}:
		in.method = http.MethodPut
		in.note.n += w.random.Int64N(2)
	case kind < 12:
		in.method, in.named = http.MethodPut, seen.version
		in.note.n++
	case kind < 14:
	case kind < 16:
		in.setsNumber, in.n = true, seen.note.n
	case kind < 17 && w.tagging != fieldRevs:
		in.setsNumber, in.n, in.named = true, seen.note.n+1, seen.version
	default:
		in.appends, in.member = in.id+",", ""
	}
	if w.tagging == weakTags && !strings.HasPrefix(seen.tag, `"gw-`) {
		in.named = version{} // only what the gateway made of a read can be named
	}
	return w.ask(in, seen.tag)
}

// ask sends a request and remembers it with its answer. The tag stands for the version in it. It
// returns false if the request did not arrive.
func (w *historyWriter) ask(in wanted, tag string) bool {
	address := "http://" + *w.gateways[w.n%len(w.gateways)].address.Load()
	if in.isUnjudged {
		address = w.store.server.URL
	}
	isNamed := in.named != version{}
	rev := ""
	if isNamed && w.tagging == fieldRevs {
		rev = tag
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	path := "/v1/notes/" + in.object
	if in.isPart {
		path += "?fields=n"
	}
	r, err := http.NewRequestWithContext(ctx, in.method, address+path, strings.NewReader(in.body(rev)))
	if err != nil {
		w.t.Error(err)
		return true
	}
	if w.random.IntN(40) == 0 { // the client leaves, most likely before it has its answer
		leaves := time.AfterFunc(time.Duration(w.random.IntN(3000))*time.Microsecond, cancel)
		defer leaves.Stop()
	}
	r.Header.Set(writeID, in.id)
	if r.Header.Set("Content-Type", "application/json"); in.appends != "" {
		r.Header.Set("Content-Type", "application/json-patch+json")
	}
	if isNamed && w.tagging != fieldRevs {
		r.Header.Set("If-Match", tag)
	}
	call := time.Since(w.began)
	out, isSent := w.send(r)
	end := time.Since(w.began)
	switch {
	case !isSent:
		return false
	case out.code == 0 && in.method == http.MethodGet:
		return true // it changed nothing, and no client learned anything
	case in.isPart && out.code == http.StatusOK:
	case out.note != memo{} || out.code == http.StatusNotFound:
		w.seen[in.object] = out
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, porcupine.Operation{ClientId: w.n, Input: in, Call: int64(call), Output: out.told,
		Return: int64(end)})
	return true
}

// body returns what the request sends. A PUT may have a version in it.
func (in *wanted) body(rev string) string {
	switch {
	case in.method == http.MethodPut:
		return in.note.json(in.object, rev)
	case in.method != http.MethodPatch:
		return ""
	case in.appends != "":
		return fmt.Sprintf(`[{"op":"add","path":"/log/-","value":%q}]`, in.id)
	case in.setsNumber:
		return fmt.Sprintf(`{"c":{%q:%s},"n":%d}`, in.member, in.value, in.n)
	}
	return fmt.Sprintf(`{"c":{%q:%s}}`, in.member, in.value)
}

// send sends a request. It returns false for one that did not arrive.
func (w *historyWriter) send(r *http.Request) (out sight, isSent bool) {
	answer, err := w.client.Do(r)
	var failed *net.OpError
	if err != nil {
		return out, !(errors.As(err, &failed) && failed.Op == "dial")
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return out, true
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return w.sightOf(answer.StatusCode, answer.Header.Get("ETag"), text), true
	case http.StatusNoContent, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed,
		http.StatusUnprocessableEntity:
		out.code = answer.StatusCode
		return out, true
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return out, true
	}
	w.t.Errorf("%s %s is answered %d %s", r.Method, r.URL, answer.StatusCode, text)
	return out, true
}

// sightOf reads an object with its version, as it was answered.
func (h *history) sightOf(code int, tag string, text []byte) (out sight) {
	out.code, out.tag = code, tag
	if len(text) == 0 {
		return out
	}
	if inner, found := bytes.CutPrefix(text, []byte(`{"data":`)); found {
		text = inner[:len(inner)-1]
	}
	var o struct {
		N   int64          `json:"n"`
		Log []string       `json:"log"`
		C   map[string]int `json:"c"`
		Rev int            `json:"rev"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		h.t.Errorf("%s: %v", text, err)
	}
	out.note.n = o.N
	for _, marker := range o.Log {
		out.note.log += marker + ","
	}
	for name, value := range o.C {
		out.note = out.note.with(name, strconv.Itoa(value))
	}
	switch h.tagging {
	case weakTags: // the gateway makes ETags of the object's bytes
		out.version.note = out.note
		return out
	case hashTags:
		out.version.note = out.note
		if want := fastifyTag([]byte(canonical(text, func(map[string]any) {}))); out.tag != want && tag != "" {
			h.t.Errorf("the ETag of %s is %s, want %s", text, out.tag, want)
		}
		return out
	case fieldRevs:
		out.tag = strconv.Itoa(o.Rev)
	}
	out.version.number, _ = strconv.Atoi(strings.Trim(out.tag, `W/"`))
	return out
}

// json returns the text of a note, with a version if there is one.
func (o memo) json(name, rev string) string {
	text := fmt.Appendf(nil, `{"id":%q,"n":%d`, name, o.n)
	if rev != "" {
		text = append(text, `,"rev":`+rev...)
	}
	text = append(text, `,"log":[`...)
	for i, marker := range strings.Split(strings.TrimSuffix(o.log, ","), ",") {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendQuote(text, marker)
	}
	text = append(text, `],"c":{`...)
	for i, member := range strings.Split(strings.TrimSuffix(o.c, ";"), ";") {
		if name, value, found := strings.Cut(member, "="); found {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(strconv.AppendQuote(text, name), ":"+value...)
		}
	}
	return string(append(text, "}}"...))
}
