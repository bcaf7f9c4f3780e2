package proxy

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

var simulationSeed = flag.Uint64("simulation-seed", 0, "seed of the simulation; 0 takes another one each time")

// TestSimulation has many writers change the same few objects through gateways, while others write
// behind their back and the backend fails. All that was ever stored is then compared with a model:
// no object was stored that was not admitted as the change of exactly the one before it, none of
// the updates that clients were answered of was lost or made twice, none that was refused was made,
// no spec write changed a status and no status write a spec (RW-1, RW-3, STAT-1, STAT-2, META-1).
func TestSimulation(t *testing.T) {
	for _, c := range []struct {
		name                 string
		gateways             int
		etags, field, faults bool
		asks                 bool // the gateways find out whether the backend compares ETags
		annotations          string
	}{
		{"two gateways, ETags", 2, true, false, false, false, ""},
		{"two gateways, ETags, faults", 2, true, false, true, false, ""},
		{"two gateways, compared ETags, faults", 2, true, false, true, true, ""},
		{"two gateways, versions in a field", 2, false, true, true, false,
			"backend.admission-gateway.io/versions: Field, backend.admission-gateway.io/version-field: rev"},
		{"one gateway, no versions", 1, false, false, true, false,
			"backend.admission-gateway.io/versions: None, backend.admission-gateway.io/concurrency: BestEffort"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seed := *simulationSeed
			if seed == 0 {
				seed = uint64(time.Now().UnixNano())
			}
			t.Logf("-simulation-seed %d", seed)
			store := newModelStore(seed, c.etags, c.field, c.faults)
			server := httptest.NewServer(store)
			t.Cleanup(server.Close)
			s := &simulation{t: t, store: store}
			set := policiestest.LoadFiles(t, annotatedLedgers(t, c.annotations))
			for range c.gateways {
				g := retrying(t, server.Listener.Addr().String(), false, false, set, historyTimeout)
				g.routes.backends[0].comparisons.Asks = c.asks
				s.gateways = append(s.gateways, "http://"+serveTable(t, g))
			}
			s.run(seed)
			s.check()
		})
	}
}

// annotatedLedgers is the file of policies with annotations for the definition in it.
func annotatedLedgers(t *testing.T, annotations string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/policies/ledgers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const metadata = "metadata: {name: ledgers.example.com}"
	text = []byte(strings.Replace(string(text), metadata, "metadata: {name: ledgers.example.com, annotations: {"+
		annotations+"}}", 1))
	return policiestest.Write(t, string(text))
}

const ledgersPath = "/apis/example.com/v1/namespaces/team-a/ledgers"

type simulation struct {
	t        *testing.T
	store    *modelStore
	gateways []string

	mu       sync.Mutex
	outcomes map[string]outcome // of each marker that a client tried to store
	answers  []answered
}

// outcome says how a write ended for its client.
type outcome uint8

const (
	made outcome = iota
	refusedWrite
	unknown // the answer did not come, or reports a fault
)

// answered is an object as an answer to a write showed it.
type answered struct {
	path, version string
	object        map[string]any
}

func (s *simulation) run(seed uint64) {
	const clients, names = 6, 3
	rounds := testutil.Amount(60, 15)
	s.outcomes = map[string]outcome{}
	for i := range names {
		code, _, _ := s.do(0, "POST", ledgersPath, "application/json",
			fmt.Sprintf(`{"metadata":{"name":"l%d"},"spec":{"entries":{}}}`, i))
		for code >= 500 {
			code, _, _ = s.do(0, "POST", ledgersPath, "application/json",
				fmt.Sprintf(`{"metadata":{"name":"l%d"},"spec":{"entries":{}}}`, i))
		}
	}
	var group sync.WaitGroup
	for n := range clients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)+10))
			for i := range rounds {
				s.act(random, n%len(s.gateways), fmt.Sprintf("m-%d-%d", n, i),
					fmt.Sprint(ledgersPath, "/l", random.IntN(names)))
			}
		})
	}
	group.Wait()
}

// act is one thing that a client does, with a marker of its own.
func (s *simulation) act(random *rand.Rand, gateway int, marker, path string) {
	const merge, patch = "application/merge-patch+json", "application/json-patch+json"
	switch random.IntN(12) {
	case 0, 1:
		s.write(gateway, marker, "PATCH", path, merge, `{"spec":{"entries":{"`+marker+
			`":1}},"status":{"phase":"forged"}}`, "200 409 5")
	case 2, 3:
		s.write(gateway, marker, "PATCH", path, patch, `[{"op":"add","path":"/spec/entries/`+marker+
			`","value":1},{"op":"add","path":"/status","value":{"phase":"forged"}}]`, "200 409 5")
	case 4, 5:
		s.replace(gateway, marker, path, path, func(o map[string]any) {
			spec, _ := o["spec"].(map[string]any)
			entries, _ := spec["entries"].(map[string]any)
			entries[marker] = 1
			count, _ := spec["count"].(json.Number).Int64()
			spec["count"] = count + 1
			o["status"] = map[string]any{"phase": "forged"}
			if metadata := members(o, "metadata"); random.IntN(2) == 0 {
				// Some clients only send what they care for, and some what is not theirs.
				delete(metadata, "uid")
				delete(metadata, "creationTimestamp")
				metadata["generation"] = 1000
			}
		})
	case 6:
		s.replace(gateway, marker, path, path+"/status", func(o map[string]any) {
			o["spec"] = map[string]any{"note": "forged", "entries": map[string]any{}}
			status, _ := o["status"].(map[string]any)
			if status == nil {
				status = map[string]any{}
			}
			seen, _ := status["seen"].(map[string]any)
			if seen == nil {
				seen = map[string]any{}
			}
			seen[marker] = 1
			status["seen"] = seen
			o["status"] = status
		})
	case 7:
		s.write(gateway, marker, "PATCH", path+"/status", merge, `{"status":{"seen":{"`+marker+
			`":1}},"spec":{"note":"forged"}}`, "200 409 5")
	case 8:
		s.write(gateway, "", "PATCH", path+"/scale", merge, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+random.IntN(9)),
			"200 409 5")
		s.write(gateway, "", "PATCH", path+"/scale", merge, `{"spec":{"replicas":10}}`, "422 409 5")
	case 9:
		// What the policies do not allow, whatever is stored by then.
		s.write(gateway, marker, "PATCH", path, merge, `{"spec":{"entries":{"`+marker+`":1,"`+marker+`-too":1}}}`,
			"422 409 5")
		s.write(gateway, marker+"-count", "PATCH", path, merge, `{"spec":{"count":1000000,"entries":{"`+marker+
			`-count":1}}}`, "422 409 5")
	case 10:
		s.write(gateway, marker, "PATCH", path, merge, `{"metadata":{"labels":{"`+marker+`":"x"}}}`, "200 409 5")
		s.write(gateway, marker+"-stale", "PUT", path, "application/json",
			`{"metadata":{"resourceVersion":"1000","labels":{"`+marker+`-stale":"x"}},"spec":{"entries":{}}}`, "409 5")
	case 11:
		s.churn(random, gateway, marker)
	}
}

// churn creates, replaces and deletes an object of a name that others use too: a PUT must never create one.
func (s *simulation) churn(random *rand.Rand, gateway int, marker string) {
	path := fmt.Sprint(ledgersPath, "/c", random.IntN(2))
	name := path[len(ledgersPath)+1:]
	s.write(gateway, marker, "POST", ledgersPath, "application/json", `{"metadata":{"name":"`+name+
		`","uid":"forged","labels":{"`+marker+`":"x"}},"spec":{"entries":{}},"status":{"phase":"forged"}}`, "201 409 5")
	s.replace(gateway, marker+"-put", path, path, func(o map[string]any) {
		metadata, _ := o["metadata"].(map[string]any)
		metadata["labels"] = map[string]any{marker + "-put": "x"}
	})
	s.write(gateway, "", "DELETE", path, "", "", "200 204 404 409 5")
	s.write(gateway, marker+"-any", "PUT", path, "application/json", `{"metadata":{"labels":{"`+marker+
		`-any":"x"}},"spec":{"entries":{}}}`, "404 422 5")
	s.write(gateway, marker+"-late", "PATCH", path, "application/merge-patch+json", `{"metadata":{"labels":{"`+marker+
		`-late":"x"}}}`, "200 404 409 5")
	s.write(gateway, marker+"-made", "POST", ledgersPath, "application/json",
		`{"metadata":{"generateName":"made-","labels":{"`+marker+`-made":"x"}},"spec":{"entries":{}}}`, "201 5")
}

// replace reads an object, changes it and puts it back, as controllers do.
func (s *simulation) replace(gateway int, marker, path, to string, change func(map[string]any)) {
	code, _, body := s.do(gateway, "GET", path, "", "")
	if code != 200 {
		if code != 404 && code < 500 {
			s.t.Errorf("GET %s answered %d %s", path, code, body)
		}
		return
	}
	o := decoded(body)
	change(o)
	b, err := json.Marshal(o)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.write(gateway, marker, "PUT", to, "application/json", string(b), "200 409 404 5")
}

// write makes a write and notes what became of it. Codes may end in '5' for any fault.
func (s *simulation) write(gateway int, marker, method, path, contentType, body, codes string) {
	code, header, answer := s.do(gateway, method, path, contentType, body)
	result := refusedWrite
	switch {
	case code >= 500 || code == 0:
		result = unknown
	case code < 300:
		result = made
	}
	allowed := strings.HasSuffix(codes, " 5") && result == unknown
	for one := range strings.SplitSeq(codes, " ") {
		allowed = allowed || one == strconv.Itoa(code)
	}
	if !allowed {
		s.t.Errorf("%s %s %s answered %d %s, want %s", method, path, body, code, answer, codes)
	}
	o := decoded(answer)
	if code >= 400 && fmt.Sprint(o["kind"]) != "Status" {
		s.t.Errorf("%s %s answered %d %s, which is no Status", method, path, code, answer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if marker != "" {
		s.outcomes[marker] = result
	}
	if result == made && fmt.Sprint(o["kind"]) == "Ledger" {
		metadata := members(o, "metadata")
		version, _ := metadata["resourceVersion"].(string)
		if version == "" && header.Get("ETag") != "" {
			s.t.Errorf("%s %s answered without a version: %s", method, path, answer)
		}
		delete(metadata, "resourceVersion")
		s.answers = append(s.answers, answered{ledgersPath + "/" + fmt.Sprint(metadata["name"]), version, o})
	}
}

func (s *simulation) do(gateway int, method, path, contentType, body string) (int, http.Header, []byte) {
	r, err := http.NewRequest(method, s.gateways[gateway]+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil, nil
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
		return 0, nil, nil
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, answer.Header, b
}

// check compares the history of the store with the allowed changes.
func (s *simulation) check() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	added := map[string]int{} // how often each marker was stored anew
	for path, states := range s.store.history {
		for _, now := range states {
			s.checkStep(path, now, added)
		}
	}
	for marker, result := range s.outcomes {
		switch n := added[marker]; {
		case result == made && n != 1:
			s.t.Errorf("%s was confirmed, and stored %d times", marker, n)
		case result == refusedWrite && n != 0:
			s.t.Errorf("%s was refused, and stored %d times", marker, n)
		case n > 1:
			s.t.Errorf("%s was stored %d times", marker, n)
		}
	}
	s.checkAnswers()
}

// checkStep judges the result of a write by the object before it.
func (s *simulation) checkStep(path string, now *moment, added map[string]int) {
	if now.body == nil {
		return
	}
	var before map[string]any
	if now.before != nil && now.before.body != nil {
		before = decoded(now.before.body)
	}
	after := decoded(now.body)
	for _, place := range []string{"spec.entries", "status.seen", "metadata.labels"} {
		was := members(before, place)
		is := members(after, place)
		for key := range is {
			if _, had := was[key]; !had && strings.HasPrefix(key, "m-") {
				added[key]++
			}
		}
		for key := range was {
			if _, has := is[key]; !has && (place != "metadata.labels" || strings.HasPrefix(path, ledgersPath+"/l")) {
				s.t.Errorf("%s: version %d loses %s of %s", path, now.version, key, place)
			}
		}
	}
	switch {
	case strings.Contains(string(now.body), "forged"):
		s.t.Errorf("%s: version %d has what no client may write: %s", path, now.version, now.body)
	case members(after, "metadata")["resourceVersion"] != nil:
		s.t.Errorf("%s: version %d has a resourceVersion stored: %s", path, now.version, now.body)
	case now.method == "":
		return // another writer is not judged
	case before == nil && now.method != "POST":
		s.t.Errorf("%s: version %d was created by a %s", path, now.version, now.method)
	case before == nil:
		if m := members(after, "metadata"); fmt.Sprint(m["generation"]) != "1" || len(fmt.Sprint(m["uid"])) != 36 ||
			len(fmt.Sprint(m["creationTimestamp"])) != 20 {
			s.t.Errorf("%s: version %d was created without its metadata: %s", path, now.version, now.body)
		}
		return
	}
	if before != nil {
		s.checkUpdate(path, now, before, after)
	}
}

// checkUpdate judges an update as the policies should have, and what of the object it may change.
func (s *simulation) checkUpdate(path string, now *moment, before, after map[string]any) {
	fail := func(what string) {
		s.t.Errorf("%s: version %d %s:\n%s\n%s", path, now.version, what, now.before.body, now.body)
	}
	count := func(o map[string]any) int64 {
		n, _ := members(o, "spec")["count"].(json.Number)
		i, _ := n.Int64()
		return i
	}
	if grown := len(members(after, "spec.entries")) - len(members(before, "spec.entries")); grown > 1 {
		fail("gains more than one entry")
	}
	if d := count(after) - count(before); d != 0 && d != 1 {
		fail("counts by more than one")
	}
	spec := !reflect.DeepEqual(before["spec"], after["spec"])
	if spec && !reflect.DeepEqual(before["status"], after["status"]) {
		fail("changes spec and status")
	}
	was, is := members(before, "metadata"), members(after, "metadata")
	for _, name := range []string{"uid", "creationTimestamp", "name", "namespace"} {
		if was[name] != is[name] {
			fail("changes " + name)
		}
	}
	generation := func(m map[string]any) int64 {
		n, _ := m["generation"].(json.Number)
		i, _ := n.Int64()
		return i
	}
	want := generation(was)
	if spec {
		want++
	}
	if generation(is) != want {
		fail("has a wrong generation")
	}
}

// checkAnswers compares the object of each answer with the one stored under its version.
func (s *simulation) checkAnswers() {
	for _, a := range s.answers {
		n, err := strconv.Atoi(a.version)
		if err != nil {
			continue // the version is the content's, or the backend did not say
		}
		n -= 1000
		found := false
		for _, one := range s.store.history[a.path] {
			if one.version == n {
				found = reflect.DeepEqual(decoded(one.body), a.object)
			}
		}
		if !found {
			b, _ := json.Marshal(a.object)
			s.t.Errorf("%s: version %d was answered, and never stored, as %s", a.path, n, b)
		}
	}
}
