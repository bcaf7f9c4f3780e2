package apis

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
)

const frameworkNotes = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /notes, item: "/notes/{name}"}
  fields: {name: id}
`

// A framework is a server of notes as its guide writes it. None of them compares If-Match, but for CouchDB, which wants a revision
// in the object.
type framework struct {
	start func(t *testing.T) *program
	// hasRevisions says that an object has the revision that it replaces.
	hasRevisions bool
}

func nodeFramework(name string) func(t *testing.T) *program {
	return func(t *testing.T) *program {
		t.Helper()
		dir := t.TempDir()
		need(t, programs.Frameworks(dir))
		return startNode(t, dir, "", func(port string) []string { return []string{"frameworks.mjs", name, port} })
	}
}

func startFastAPI(t *testing.T) *program {
	t.Helper()
	dir := t.TempDir()
	need(t, programs.Frameworks(dir))
	need(t, programs.NeedFastAPI())
	return start(t, "", func(address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		return exec.Command(programs.Python, filepath.Join(dir, "notes.py"), port)
	})
}

func frameworks() map[string]framework {
	return map[string]framework{
		"Express": {nodeFramework("express"), false}, "NestJS": {nodeFramework("nest"), false}, "LoopBack": {nodeFramework("loopback"), false},
		"FastAPI": {startFastAPI, false}, "CouchDB": {nodeFramework("couchdb"), true},
	}
}

// noteRequest is a request about a note, with a line of its head.
func noteRequest(method, name, body, line string) request {
	r := request{method: method, target: "/notes/" + name, header: []string{"Accept: application/json"}, body: body}
	if body != "" {
		r.header = append(r.header, "Content-Type: application/json")
	}
	if line != "" {
		r.header = append(r.header, line)
	}
	return r
}

// TestPreconditions: what a client names of an object is compared, before servers that compare nothing. A write that names another
// state is 412 and changes nothing, and any other is carried out.
func TestPreconditions(t *testing.T) {
	for name, f := range frameworks() {
		t.Run(name, func(t *testing.T) {
			backend := f.start(t)
			gateway := startGateway(t, backend.url(), frameworkNotes).address
			ask := func(r request) *answer {
				t.Helper()
				a, err := r.send(gateway)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			for i, c := range []struct {
				line string // a star stands for the ETag
				ok   bool
			}{
				{"", true}, {"If-Match: *E*", true}, {`If-Match: "bogus"`, false}, {"If-Match: *", true}, {`If-Match: "bogus", *E*`, true},
				{"If-Match: W/*E*", false}, {"If-None-Match: *", false}, {"If-None-Match: *E*", false}, {`If-None-Match: "bogus"`, true},
			} {
				for _, method := range []string{"PUT", "PATCH", "DELETE"} {
					if f.hasRevisions && method != "PUT" {
						continue // it has no PATCH, and a DELETE names the revision in its query
					}
					note := fmt.Sprintf("n%d-%s", i, strings.ToLower(method))
					if a := ask(noteRequest("PUT", note, `{"n":1}`, "If-None-Match: *")); a.code != 200 && a.code != 201 {
						t.Fatalf("a note is created: %d %s", a.code, a.body)
					}
					read := ask(noteRequest("GET", note, "", ""))
					tag := read.header.Get("ETag")
					if !strings.HasPrefix(tag, `"gw-`) {
						t.Fatalf("a note has the ETag %s: %d %s", tag, read.code, read.body)
					}
					var object map[string]any
					if err := json.Unmarshal([]byte(read.body), &object); err != nil {
						t.Fatal(err)
					}
					body := ""
					if object["n"] = 2; method != "DELETE" {
						text, _ := json.Marshal(object)
						body = string(text)
					}
					line := strings.ReplaceAll(c.line, "*E*", tag)
					a := ask(noteRequest(method, note, body, line))
					after := ask(noteRequest("GET", note, "", ""))
					isChanged := after.body != read.body
					if c.ok && (a.code/100 != 2 || !isChanged) || !c.ok && (a.code != 412 || isChanged) {
						t.Errorf("%s, %s: answered %d %s, and changed: %v", method, line, a.code, a.body, isChanged)
					}
					if !c.ok {
						continue
					}
					if again := ask(noteRequest(method, note, body, "If-Match: "+tag)); again.code != 412 && (again.code != 404 || method != "DELETE") {
						t.Errorf("%s of the state before: answered %d %s", method, again.code, again.body)
					}
				}
			}
			if a := ask(noteRequest("PUT", "none", `{"n":1}`, "If-Match: *")); a.code != 412 {
				t.Errorf("nothing is stored, PUT If-Match: *: answered %d %s", a.code, a.body)
			}
		})
	}
}

// TestAcknowledged: 32 writers read a number and store the next one in the state that they have read, through two gateways that
// share locks. What was acknowledged is stored.
func TestAcknowledged(t *testing.T) {
	redis := startRedis(t)
	for name, f := range frameworks() {
		t.Run(name, func(t *testing.T) {
			const clients, rounds = 32, 2
			backend, lines := f.start(t), "redis: {addresses: [\""+redis.address+"\"]}\n"
			gateways := []string{startGatewayWith(t, lines, backend.url(), frameworkNotes).address, startGatewayWith(t, lines, backend.url(), frameworkNotes).address}
			put := noteRequest("PUT", "n", `{"n":0}`, "")
			if a, err := put.send(gateways[0]); err != nil || a.code/100 != 2 {
				t.Fatal(err, a)
			}
			var acknowledged atomic.Int64
			var all sync.WaitGroup
			for i := range clients {
				all.Go(func() {
					for done := 0; done < rounds; {
						get := noteRequest("GET", "n", "", "")
						read, err := get.send(gateways[i%2])
						var object map[string]any
						if err != nil || json.Unmarshal([]byte(read.body), &object) != nil {
							t.Errorf("a GET is answered %v %v", read, err)
							return
						}
						n, _ := object["n"].(float64)
						object["n"] = n + 1
						text, _ := json.Marshal(object)
						write := noteRequest("PUT", "n", string(text), "If-Match: "+read.header.Get("ETag"))
						a, err := write.send(gateways[(i+done)%2])
						switch {
						case err != nil:
							t.Error(err)
							return
						case a.code/100 == 2:
							acknowledged.Add(1)
							done++
						case a.code != 412 && a.code != 503:
							t.Errorf("answered %d %s", a.code, a.body)
							return
						}
					}
				})
			}
			all.Wait()
			get := noteRequest("GET", "n", "", "")
			a, err := get.send(backend.address)
			if err != nil {
				t.Fatal(err)
			}
			var object struct{ N int64 }
			if err := json.Unmarshal([]byte(a.body), &object); err != nil || object.N != acknowledged.Load() || object.N != clients*rounds {
				t.Errorf("%s is stored, and %d writes were acknowledged", a.body, acknowledged.Load())
			}
		})
	}
}
