package proxy

import (
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// architecture returns a part of the page about the architecture, from a heading to the next one.
func architecture(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/internals/architecture.md has no '%s'", heading)
	}
	if end := regexp.MustCompile(`\n##+ `).FindStringIndex(part); end != nil {
		part = part[:end[0]]
	}
	return part
}

// TestStagesAreDocumented compares the lists of stages and of answer steps, and when each exists, with
// docs/internals/architecture.md.
func TestStagesAreDocumented(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| ([^|]*) \\| [^|]* \\| `([^`]*)` \\|$")
	for heading, of := range map[string]struct{ file, function string }{
		"### Stages": {"stages.go", "stagesOf"}, "### Answers": {"answer.go", "answerOf"},
	} {
		var got []string
		for _, m := range row.FindAllStringSubmatch(strings.ReplaceAll(architecture(t, heading), `\|`, "¦"), -1) {
			got = append(got, m[1]+" if "+strings.ReplaceAll(m[2], "¦", "|"))
		}
		if want := addedIn(t, of.file, of.function); len(want) < 5 || !slices.Equal(got, want) {
			t.Errorf("%s: docs/internals/architecture.md has\n%s\nand %s has\n%s", heading, strings.Join(got, "\n"),
				of.file, strings.Join(want, "\n"))
		}
	}
}

// TestStagesOfRequests compares the stages of the requests that docs/internals/architecture.md shows with those that
// they have.
func TestStagesOfRequests(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| `([^`]*)` \\| ([^|]*) \\|$").FindAllStringSubmatch(
		architecture(t, "### Stages"), -1)
	if len(rows) < 5 {
		t.Fatalf("there are %d requests", len(rows))
	}
	for _, row := range rows {
		f := gatewayFor(t, t.TempDir(), "127.0.0.1:1", strings.Fields(row[1])).Forecast(row[2])
		if got := strings.Join(f.Stages, ", "); got != row[3] {
			t.Errorf("%s, %s: the stages are %s (%v), and docs/internals/architecture.md has %s", row[1], row[2], got,
				f.Refusal, row[3])
		}
	}
}

// addedIn returns what a function adds to its list by add(condition, name, …), and all conditions of each.
func addedIn(t *testing.T, file, function string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var look func(n ast.Node, within []string)
	look = func(n ast.Node, within []string) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				look(n.Body, append(slices.Clone(within), types.ExprString(n.Cond)))
				return false
			case *ast.CaseClause:
				in := within
				if len(n.List) > 0 {
					in = append(slices.Clone(within), types.ExprString(n.List[0]))
				}
				for _, s := range n.Body {
					look(s, in)
				}
				return false
			case *ast.FuncLit:
				return false // add itself
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "add" {
					conditions := within
					if is := types.ExprString(n.Args[0]); is != "true" || len(within) == 0 {
						conditions = append(slices.Clone(within), is)
					}
					all = append(all, strings.Trim(types.ExprString(n.Args[1]), `"`)+" if "+
						strings.Join(conditions, " && "))
				}
			}
			return true
		})
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
			look(f.Body, nil)
		}
	}
	return all
}

// scaledPolicies match the Scales of parcels, and the parcels themselves.
const scaledPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v1], operations: [UPDATE], resources: [parcels, parcels/scale]}]}
  validations: [{expression: "request.operation == 'UPDATE'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec: {policyName: few, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labelled}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v1], operations: [UPDATE], resources: [parcels, parcels/scale]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labelled}
spec: {policyName: labelled}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: patches}
spec: {match: {verbs: [patch], apiGroups: [shop.example.com], resources: [parcels/scale]}, requests: 100, periodSeconds: 1}
`

// TestWalkOfScale serves a PATCH of a Scale, and compares the functions that run, in their order and as they call each
// other, with those that docs/internals/architecture.md has. They are seen on the stack whenever a stage, the resolver
// or the storage is called.
func TestWalkOfScale(t *testing.T) {
	blocks := strings.Split(architecture(t, "### A PATCH of a Scale"), "```")
	if len(blocks) != 3 {
		t.Fatal("the walk must have one block")
	}
	// without remarks
	want := regexp.MustCompile(`(?m)^( *\w+).*`).ReplaceAllString(strings.TrimPrefix(blocks[1], "\n"), "$1")
	const parcel = `{"apiVersion":"shop.example.com/v1","kind":"Parcel","metadata":{"name":"p1","namespace":"team-a"},"spec":{"pieces":2,"weight":1}}`
	stored := parcel
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			text, _ := io.ReadAll(r.Body)
			stored = string(text)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, stored)
	}))
	defer api.Close()
	g := gatewayFor(t, policiestest.Write(t, scaledPolicies), strings.TrimPrefix(api.URL, "http://"),
		[]string{"policies=parcels"})
	w := &watched{Gateway: g, address: serveGateway(t, g, nil)}
	patch := func(pieces string) int {
		return w.ask(t, "PATCH", "/v1/tenants/team-a/parcels/p1/scale", `{"spec":{"replicas":`+pieces+`}}`,
			"Content-Type", "application/merge-patch+json").StatusCode
	}
	if code := patch("3"); code != http.StatusOK {
		t.Fatalf("the scope is not made: %d", code)
	}
	var calls callTree
	all := g.current.Load()
	for i := range all.resolvers {
		var walked resource.Resolver = walkedResolver{all.resolver(g.routes.table[i]), &calls}
		all.resolvers[i].Store(&walked)
	}
	for n := range all.compiled {
		for _, s := range all.compiled[n].all() {
			s.storage, s.scaler = walkedStorage{s.storage, &calls}, walkedScaler{s.scaler, &calls}
			for i := range s.stages {
				s.stages[i].run = calls.watch(s.stages[i].run)
			}
		}
	}
	if code := patch("4"); code != http.StatusOK || !strings.Contains(stored, `"pieces":4`) {
		t.Fatalf("the Scale is answered %d, and stored is %s", code, stored)
	}
	if got := calls.only(strings.Fields(want)); got != want {
		t.Errorf("the functions that ran are\n%s\nwant those of docs/internals/architecture.md\n%s\nof all these:\n%s", got, want, calls.only(nil))
	}
}

// A callTree has what functions were called, in their order.
type callTree struct {
	lines []calledAt
	stack []runtime.Frame // as it was last
}

// A calledAt is a function, and how deep it was on the stack.
type calledAt struct {
	depth int
	name  string
}

// note looks at the stack, from runStages on, and adds the functions that were not on it before.
func (c *callTree) note() {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var stack []runtime.Frame
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		stack = append(stack, f)
		if strings.HasSuffix(f.Function, ".runStages") {
			break
		}
	}
	slices.Reverse(stack)
	same := 0 // functions that are called from the same line of the same functions
	for same < len(stack) && same < len(c.stack) && stack[same].Entry == c.stack[same].Entry &&
		(same == 0 || stack[same-1].Line == c.stack[same-1].Line) {
		same++
	}
	for i := min(same, len(stack)-1); i < len(stack); i++ {
		c.lines = append(c.lines, calledAt{i, baseOf(stack[i].Function)})
	}
	c.stack = stack
}

// watch notes a stage too that calls nothing which is watched.
func (c *callTree) watch(run func(*request) error) func(*request) error {
	return func(r *request) error {
		before := len(c.lines)
		err := run(r)
		if len(c.lines) == before {
			c.lines = append(c.lines, calledAt{1, baseOf(runtime.FuncForPC(reflect.ValueOf(run).Pointer()).Name())})
			c.stack = nil
		}
		return err
	}
}

// baseOf returns the name of a function without package and receiver.
func baseOf(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }

// only returns the tree of the functions with one of the names, each a line; all of them if there are no names.
func (c *callTree) only(names []string) string {
	var b strings.Builder
	var above []int // the depths of the functions that the last one was called by
	for i, l := range c.lines {
		if l.depth == 0 && i > 0 {
			continue // runStages, which is there already
		}
		for len(above) > 0 && above[len(above)-1] >= l.depth {
			above = above[:len(above)-1]
		}
		if len(names) == 0 || slices.Contains(names, l.name) {
			b.WriteString(strings.Repeat("  ", len(above)) + l.name + "\n")
			above = append(above, l.depth)
		}
	}
	return b.String()
}

type walkedResolver struct {
	resource.Resolver
	calls *callTree
}

func (r walkedResolver) Resolve(method string, target []byte) (resource.Info, *resource.Resource, error) {
	r.calls.note()
	return r.Resolver.Resolve(method, target)
}

type walkedScaler struct {
	storage.Scaler
	calls *callTree
}

func (s walkedScaler) Object() storage.Storage { return walkedStorage{s.Scaler.Object(), s.calls} }
func (s walkedScaler) ReadScale(w, asked *storage.Write) error {
	s.calls.note()
	return s.Scaler.ReadScale(w, asked)
}
func (s walkedScaler) ApplyScale(w, asked *storage.Write) error {
	s.calls.note()
	return s.Scaler.ApplyScale(w, asked)
}

type walkedStorage struct {
	storage.Storage
	calls *callTree
}

func (s walkedStorage) Lock(r *storage.Request, isOpaque bool) error {
	s.calls.note()
	return s.Storage.Lock(r, isOpaque)
}
func (s walkedStorage) CheckOptions(w *storage.Write) error {
	s.calls.note()
	return s.Storage.CheckOptions(w)
}
func (s walkedStorage) MediaTypes() *storage.MediaTypes {
	s.calls.note()
	return s.Storage.MediaTypes()
}
func (s walkedStorage) Get(w *storage.Write) error {
	s.calls.note()
	return s.Storage.Get(w)
}
func (s walkedStorage) Reveal(w *storage.Write, validates bool) {
	s.calls.note()
	s.Storage.Reveal(w, validates)
}
func (s walkedStorage) SetMetadata(w *storage.Write) {
	s.calls.note()
	s.Storage.SetMetadata(w)
}
func (s walkedStorage) Validate(of *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	s.calls.note()
	return s.Storage.Validate(of, f, w)
}
func (s walkedStorage) Preview(w *storage.Write) error {
	s.calls.note()
	return s.Storage.Preview(w)
}
func (s walkedStorage) Patched(w *storage.Write) (bool, error) {
	s.calls.note()
	return s.Storage.Patched(w)
}
func (s walkedStorage) Update(w *storage.Write) error {
	s.calls.note()
	return s.Storage.Update(w)
}
func (s walkedStorage) Patch(w *storage.Write) error {
	s.calls.note()
	return s.Storage.Patch(w)
}

// queryTest is a test of the verb that the walk adds.
const queryTest = `package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/audit"
)

const aboutQueries = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: Metadata, verbs: [query], omitStages: [RequestReceived]}\n- {level: None}\n" +
	"---\napiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few-queries}\n" +
	"spec:\n  requests: 2\n  periodSeconds: 1000\n  match: {verbs: [query], apiGroups: [example.com], resources: [widgets]," +
	" matchConditions: [{name: verb, expression: \"request.verb == 'query'\"}]}\n"

func TestQuery(t *testing.T) {
	var got []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+string(text))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer api.Close()
	to := &keptEvents{}
	w := audited(t, strings.TrimPrefix(api.URL, "http://"), to, audit.Batch, aboutQueries)
	if f := w.Forecast("QUERY " + widgetsPath); f.Info.Verb.String() != "query" || f.Refusal != nil || !slices.Contains(f.Stages, "query") {
		t.Errorf("the forecast is %+v", f)
	}
	for _, test := range []struct {
		method, path, body string
		code               int
	}{
		{"QUERY", widgetsPath, "{\"size\": 5}", 200},
		{"QUERY", widgetsPath, "{\"size\": 5, \"size\": 6}", 400}, // two servers could read two questions
		{"QUERY", widgetsPath, "{}", 429},
		{"QUERY", widgetsPath + "/w1", "{}", 405},
		{"GET", widgetsPath, "", 200}, // no limit counts it
	} {
		if a := w.ask(t, test.method, test.path, test.body); a.StatusCode != test.code {
			t.Errorf("%s %s %s is answered %d, want %d", test.method, test.path, test.body, a.StatusCode, test.code)
		}
	}
	if want := []string{"QUERY {\"size\": 5}", "GET "}; !slices.Equal(got, want) {
		t.Errorf("the API was asked %q, want %q", got, want)
	}
	if events := w.events(t, to); strings.Count(events, "\"verb\":\"query\"") != 3 || strings.Count(events, "\n") != 3 {
		t.Errorf("the events are %s", events)
	}
}
`

// TestWalkAddVerb takes the steps of docs/internals/architecture.md by which a verb is added, in a copy of the tree: Go
// reads the files that they change from elsewhere. The table is compiled with it, and with E2E_ALL=1 a gateway serves
// its requests.
func TestWalkAddVerb(t *testing.T) {
	step := regexp.MustCompile("(?s)\n`([^`\n]+)`(?:, (after|before) `([^`\n]+)`)?:\n\n```go\n(.*?)\n```\n")
	steps := step.FindAllStringSubmatch(architecture(t, "## Walk: add a verb"), -1)
	if len(steps) != 4 {
		t.Fatalf("the walk has %d steps, want 4", len(steps))
	}
	files := map[string]string{"proxy/query_test.go": queryTest}
	read := func(name string) string {
		if text, ok := files[name]; ok {
			return text
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, s := range steps {
		name, where, by, added := s[1], s[2], s[3], s[4]+"\n"
		if where == "" {
			if _, err := os.Stat(filepath.Join("..", name)); err == nil {
				t.Fatalf("%s is there already", name)
			}
			files[name] = added
			continue
		}
		text := read(name)
		at := strings.Index(text, "\n"+by) + 1
		if at == 0 || strings.Count(text, "\n"+by) != 1 && where == "before" {
			t.Fatalf("%s has no place %s %q", name, where, by)
		}
		if where == "after" {
			at += strings.IndexByte(text[at:], '\n') + 1
		}
		files[name] = text[:at] + added + text[at:]
	}
	// What TestVerbsOfDefinitions says.
	for name, list := range map[string][2]string{
		"policies/crds/ratelimitpolicies.yaml": {"deletecollection, head,", "deletecollection, query, head,"},
		"policies/crds/policytests.yaml":       {"[GET, POST, PUT, PATCH, DELETE]", "[GET, POST, PUT, PATCH, DELETE, QUERY]"},
	} {
		text := read(name)
		if files[name] = strings.Replace(text, list[0], list[1], 1); files[name] == text {
			t.Fatalf("%s has no %s", name, list[0])
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range files {
		formatted := []byte(text)
		if strings.HasSuffix(name, ".go") {
			if formatted, err = format.Source(formatted); err != nil || string(formatted) != text {
				t.Errorf("%s is not formatted: %v", name, err)
			}
		}
		replace[filepath.Join(root, name)] = testutil.WriteFile(t, filepath.Join(dir, name), string(formatted))
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := testutil.WriteFile(t, filepath.Join(dir, "overlay.json"), string(text))
	run := func(arguments ...string) string {
		c := exec.CommandContext(t.Context(), "go",
			append([]string{arguments[0], "-overlay", overlay}, arguments[1:]...)...)
		c.Dir = root
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		return string(out)
	}
	if os.Getenv("E2E_ALL") == "" {
		run("build", "./internal/resource")
		return
	}
	out := run("test", "-tags", "grpcnotrace", "-vet=off", "-ldflags=-s -w", "-count=1", "-v",
		"-run", "^(TestQuery|TestVerbs.*|TestMethodsHaveVerbs)$", "./proxy", "./policies", "./internal/resource")
	for _, name := range []string{"TestQuery", "TestVerbsOfDefinitions", "TestVerbsAreKubernetes", "TestVerbsAreWhole",
		"TestMethodsHaveVerbs"} {
		if !strings.Contains(out, "--- PASS: "+name) {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}
