package apis

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
)

// A framework is a server of notes as its guide writes it. None of them compares If-Match, but for CouchDB, which wants
// a revision in the object.
type framework struct {
	start func(t *testing.T) *program
	// methods are those by which it writes notes that exist.
	methods []string
	// items is what the paths of notes begin with, and the collection's without the slash.
	items string
	// hasETags says that notes have strong ETags, which middleware makes.
	hasETags bool
}

const notes = "/notes/"

var allMethods = []string{"PUT", "PATCH", "DELETE"}

func frameworks() map[string]framework {
	return map[string]framework{
		"Express":  {nodeFramework("express"), allMethods, notes, false},
		"NestJS":   {nodeFramework("nest"), allMethods, notes, false},
		"LoopBack": {nodeFramework("loopback"), allMethods, notes, false},
		"FastAPI":  {startFastAPI, allMethods, notes, false},
		// It has no PATCH, and a DELETE names the revision in its query.
		"CouchDB":            {nodeFramework("couchdb"), []string{"PUT"}, notes, false},
		"Fastify":            {fastifyNotes("plain"), allMethods, notes, false},
		"Fastify with ETags": {fastifyNotes("etags"), allMethods, notes, true},
		"PocketBase":         {startPocketBaseNotes, []string{"PATCH", "DELETE"}, "/api/collections/notes/records/", false},
	}
}

// described is the file that describes the notes.
func (f *framework) described() string {
	collection := strings.TrimSuffix(f.items, "/")
	return `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: ` + collection + `, item: "` + collection + `/{name}"}
  fields: {name: id}
`
}

// request is a request about a note, with a line of its head.
func (f *framework) request(method, name, body, line string) request {
	r := request{method: method, target: f.items + name, header: []string{"Accept: application/json"}, body: body}
	if body != "" {
		r.header = append(r.header, "Content-Type: application/json")
	}
	if line != "" {
		r.header = append(r.header, line)
	}
	return r
}

// newNote is the request that creates a note.
func (f *framework) newNote(name string, n int) request {
	if slices.Contains(f.methods, "PUT") {
		return f.request("PUT", name, fmt.Sprintf(`{"n":%d}`, n), "If-None-Match: *")
	}
	r := f.request("POST", "", fmt.Sprintf(`{"id":%q,"n":%d}`, name, n), "")
	r.target = strings.TrimSuffix(r.target, "/")
	return r
}

// changed is the body of a request that gives a note that was read another number.
func changed(t *testing.T, method, read string, n int64) string {
	t.Helper()
	object := map[string]any{}
	switch method {
	case "DELETE":
		return ""
	case "PUT": // with all that was read: CouchDB has the revision there
		if err := json.Unmarshal([]byte(read), &object); err != nil {
			t.Fatal(err)
		}
	}
	object["n"] = n
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func nodeFramework(name string) func(t *testing.T) *program {
	return func(t *testing.T) *program {
		t.Helper()
		dir := t.TempDir()
		need(t, programs.Frameworks(dir))
		return startNode(t, dir, "", func(port string) []string { return []string{"frameworks.mjs", name, port} })
	}
}

func fastifyNotes(etags string) func(t *testing.T) *program {
	return func(t *testing.T) *program {
		t.Helper()
		return startNode(t, nodeDir(t), "", func(port string) []string { return []string{"notes.mjs", port, etags} })
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

// startPocketBaseNotes starts PocketBase with a collection of notes that everybody may write.
func startPocketBaseNotes(t *testing.T) *program {
	t.Helper()
	p := startPocketBase(t, pocketBase(t))
	login := withJSON("", "POST", "/api/collections/_superusers/auth-with-password", `{"identity":"`+pocketBaseUser+
		`","password":"`+pocketBasePassword+`"}`)
	var session struct{ Token string }
	if a := login.mustSend(t, p.address); json.Unmarshal([]byte(a.body), &session) != nil || session.Token == "" {
		t.Fatalf("the login is answered %d %s", a.code, a.body)
	}
	create := withJSON("", "POST", "/api/collections", `{"name":"notes","type":"base","listRule":"","viewRule":"","createRule":"","updateRule":"","deleteRule":"",
		"fields":[{"name":"n","type":"number"}]}`)
	create.header = append(create.header, "Authorization: "+session.Token)
	if a := create.mustSend(t, p.address); a.code != 200 {
		t.Fatalf("the collection is answered %d %s", a.code, a.body)
	}
	return p
}

// TestPreconditions: what a client names of an object is compared, before servers that compare nothing. A write that
// names another state is 412 and changes nothing, and any other is carried out.
func TestPreconditions(t *testing.T) {
	for name, f := range frameworks() {
		t.Run(name, func(t *testing.T) {
			gateway := startGateway(t, f.start(t).url(), f.described()).address
			ask := func(r request) *answer { return r.mustSend(t, gateway) }
			for i, c := range []struct {
				line string // a star stands for the ETag
				ok   bool
			}{
				{"", true}, {"If-Match: *E*", true}, {`If-Match: "bogus"`, false}, {"If-Match: *", true},
				{`If-Match: "bogus", *E*`, true},
				{"If-Match: W/*E*", false}, {"If-None-Match: *", false}, {"If-None-Match: *E*", false},
				{"If-None-Match: W/*E*", false}, {`If-None-Match: "bogus"`, true},
			} {
				for _, method := range f.methods {
					note := fmt.Sprintf("n%014d", 10*i+slices.Index(allMethods, method)) // as long as PocketBase has it
					if a := ask(f.newNote(note, 1)); a.code != 200 && a.code != 201 {
						t.Fatalf("a note is created: %d %s", a.code, a.body)
					}
					read := ask(f.request("GET", note, "", ""))
					tag := read.header.Get("ETag")
					if strings.HasPrefix(tag, `"gw-`) == f.hasETags || !strings.HasPrefix(tag, `"`) {
						t.Fatalf("a note has the ETag %s: %d %s", tag, read.code, read.body)
					}
					body := changed(t, method, read.body, 2)
					line := strings.ReplaceAll(c.line, "*E*", tag)
					a := ask(f.request(method, note, body, line))
					after := ask(f.request("GET", note, "", ""))
					isChanged := after.body != read.body
					if c.ok && (a.code/100 != 2 || !isChanged) || !c.ok && (a.code != 412 || isChanged) {
						t.Errorf("%s, %s: answered %d %s, and changed: %v", method, line, a.code, a.body, isChanged)
					}
					if !c.ok {
						continue
					}
					if again := ask(f.request(method, note, body, "If-Match: "+tag)); again.code != 412 &&
						(again.code != 404 || method != "DELETE") {
						t.Errorf("%s of the state before: answered %d %s", method, again.code, again.body)
					}
				}
			}
			for _, method := range f.methods {
				a := ask(f.request(method, "n00000000000none", changed(t, method, "{}", 1), "If-Match: *"))
				if want := map[string]int{"PUT": 412, "PATCH": 404, "DELETE": 404}[method]; a.code != want {
					t.Errorf("nothing is stored, %s If-Match: *: answered %d %s, want %d", method, a.code, a.body, want)
				}
			}
		})
	}
}

// TestAcknowledged: 32 writers read a number and store the next one in the state that they have read, through two
// gateways that share locks. What was acknowledged is stored.
func TestAcknowledged(t *testing.T) {
	redis := startRedis(t)
	for name, f := range frameworks() {
		t.Run(name, func(t *testing.T) {
			const note = "n00000000000000"
			clients, rounds := 32, 2
			if testing.Short() {
				clients, rounds = 8, 1
			}
			backend, lines := f.start(t), "redis: {addresses: [\""+redis.address+"\"]}\n"
			var gateways []string
			for range 2 {
				gateways = append(gateways, startGatewayWith(t, lines, backend.url(), f.described()).address)
			}
			create := f.newNote(note, 0)
			if a := create.mustSend(t, gateways[0]); a.code/100 != 2 {
				t.Fatal(a)
			}
			var acknowledged atomic.Int64
			var all sync.WaitGroup
			for i := range clients {
				all.Go(func() {
					for done := 0; done < rounds; {
						get := f.request("GET", note, "", "")
						read, err := get.send(gateways[i%2])
						var object struct{ N int64 }
						if err != nil || json.Unmarshal([]byte(read.body), &object) != nil {
							t.Errorf("a GET is answered %v %v", read, err)
							return
						}
						write := f.request(f.methods[0], note, changed(t, f.methods[0], read.body, object.N+1),
							"If-Match: "+read.header.Get("ETag"))
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
			get := f.request("GET", note, "", "")
			a := get.mustSend(t, backend.address)
			var object struct{ N int64 }
			if err := json.Unmarshal([]byte(a.body), &object); err != nil || object.N != acknowledged.Load() ||
				object.N != int64(clients*rounds) {
				t.Errorf("%s is stored, and %d writes were acknowledged", a.body, acknowledged.Load())
			}
		})
	}
}

// TestVaryingReads: an API that puts a time into each answer gives no two reads of an object the same ETag. The first
// write that names one finds that out. From then on its objects have no ETags, If-Match is refused with the reason, and
// operators see it.
func TestVaryingReads(t *testing.T) {
	f := framework{start: fastifyNotes("plain"), methods: []string{"PUT"}, items: "/timed/"}
	gateway := startGateway(t, f.start(t).url(), f.described())
	ask := func(method, body, line string) *answer {
		t.Helper()
		r := f.request(method, "n1", body, line)
		return r.mustSend(t, gateway.address)
	}
	const noETag = "the header 'If-Match' must be '*' or be left out, for the object has no strong ETag"
	if a := ask("PUT", `{"n":1}`, "If-None-Match: *"); a.code != 200 {
		t.Fatalf("a note is created: %d %s", a.code, a.body)
	}
	tag := ask("GET", "", "").header.Get("ETag")
	if !strings.HasPrefix(tag, `"gw-`) || ask("GET", "", "").header.Get("ETag") == tag {
		t.Fatalf("two reads have the ETag %s", tag)
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"If-Match: " + tag, 412, noETag}, {"If-Match: " + tag, 412, noETag}, {"If-Match: *", 200, `"n":2`},
		{"", 200, `"n":2`},
		{`If-None-Match: "other"`, 200, `"n":2`},
		{"If-None-Match: *", 412, "the object must not exist where the header 'If-None-Match' is '*'"},
	} {
		if a := ask("PUT", `{"n":2}`, c.line); a.code != c.code || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: answered %d %s, want %d %s", c.line, a.code, a.body, c.code, c.want)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		if a := ask(method, "", ""); a.code != 200 || a.header.Get("ETag") != "" {
			t.Errorf("a %s is answered %d with the ETag %s", method, a.code, a.header.Get("ETag"))
		}
	}
	if said := gateway.log.String(); !strings.Contains(said, "Varying") && !strings.Contains(said, "differ") {
		t.Errorf("the log does not say that reads differ:\n%s", said)
	}
}
