package apis

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
)

// The numbers of each document, as the last run that wrote them found them.
const corpusNumbers = "testdata/corpus.txt"

var (
	corpusUpdate = flag.Bool("corpus-update", false, "write "+corpusNumbers)
	corpusReport = flag.String("corpus-report", "",
		"write each difference and each refusal to the `FILE`, a line of JSON each")
	corpusOnly = flag.String("corpus-only", "", "take only the documents whose names match the `REGEXP`")
)

// wholeCorpus is how many requests all documents together get at least.
const wholeCorpus = 20000

// corpusBudget is how many requests a document gets at most: enough for a whole corpus.
var corpusBudget = flag.Int("corpus-budget", 600, "send at most `N` requests for a document")

// packaged are documents of packages of npm, by their names here.
var packaged = map[string]string{
	"npm-directus":             "@directus/specs/dist/openapi.json",
	"npm-galaxy31":             "@scalar/galaxy/dist/3.1.yaml",
	"npm-callbacks":            "@readme/oas-examples/3.0/yaml/callbacks.yaml",
	"npm-circular-bodies":      "@readme/oas-examples/3.0/json/circular-request-bodies.json",
	"npm-complex-nesting":      "@readme/oas-examples/3.0/json/complex-nesting.json",
	"npm-discriminators":       "@readme/oas-examples/3.0/json/discriminators.json",
	"npm-file-uploads":         "@readme/oas-examples/3.0/json/file-uploads.json",
	"npm-parameters-common":    "@readme/oas-examples/3.0/json/parameters-common.json",
	"npm-parameters-style":     "@readme/oas-examples/3.0/json/parameters-style.json",
	"npm-petstore2":            "@readme/oas-examples/2.0/json/petstore.json",
	"npm-petstore31":           "@readme/oas-examples/3.1/json/petstore.json",
	"npm-polymorphism":         "@readme/oas-examples/3.0/json/polymorphism.json",
	"npm-readme31":             "@readme/oas-examples/3.1/json/readme.json",
	"npm-request-examples":     "@readme/oas-examples/3.0/json/request-examples.json",
	"npm-schema-circular":      "@readme/oas-examples/3.0/json/schema-circular.json",
	"npm-schema-types":         "@readme/oas-examples/3.0/json/schema-types.json",
	"npm-schema-types31":       "@readme/oas-examples/3.1/json/schema-types.json",
	"npm-schema-validation":    "@readme/oas-examples/3.0/json/schema-validation.json",
	"npm-schema-validation31":  "@readme/oas-examples/3.1/json/schema-validation-local.json",
	"npm-schema-additional":    "@readme/oas-examples/3.0/json/schema-additional-properties.json",
	"npm-security":             "@readme/oas-examples/3.0/json/security.json",
	"npm-server-path-level":    "@readme/oas-examples/3.0/json/server-path-level.json",
	"npm-star-trek":            "@readme/oas-examples/3.0/json/star-trek.json",
	"npm-train-travel31":       "@readme/oas-examples/3.1/yaml/train-travel.yaml",
	"npm-schema-enums":         "@readme/oas-examples/3.0/json/schema-enums.json",
	"npm-schema-visibility":    "@readme/oas-examples/3.0/json/schema-visibility.json",
	"npm-petstore-readme-old":  "@readme/oas-examples/3.0/json/readme-legacy.json",
	"npm-validation-toplevel3": "@readme/oas-examples/3.1/json/schema-validation-top-level.json",
}

// TestPublishedDocuments compares the gateway, for each published document, with two validators of others:
// openapi-backend with ajv, and santhosh-tekuri/jsonschema. A request counts if both agree. It fails if a
// refused request reached the backend, if an answer is 5xx, or if more differs than testdata/corpus.txt has. Without
// E2E_ALL it takes a few small documents.
func TestPublishedDocuments(t *testing.T) {
	suites := os.Getenv("SUITES_DIR")
	if suites == "" {
		t.Skip("SUITES_DIR is not set: the published documents are missing")
	}
	dir := t.TempDir()
	need(t, programs.Corpus(dir))
	files := corpusFiles(t, suites, dir)
	validator := startValidator(t, dir)
	backend := startSink(t)
	var report io.Writer = io.Discard
	if *corpusReport != "" {
		file, err := os.Create(*corpusReport)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		report = file
	}
	numbers := readNumbers(t)
	var total tally
	for _, name := range sortedKeys(files) {
		if !isChosen(name) {
			continue
		}
		c := &corpusRun{name: name, file: files[name], validator: validator, backend: backend, report: report,
			objects: map[string]any{}}
		t.Run(name, func(t *testing.T) {
			c.run(t)
			t.Log(&c.tally)
			if !*corpusUpdate {
				c.compare(t, numbers[name])
			}
		})
		total.add(&c.tally)
		if numbers[name] = c.String(); *corpusUpdate {
			writeNumbers(t, numbers)
		}
	}
	t.Logf("all: %s", &total)
	if wrong := total.wrong(); wrong != "" {
		t.Errorf("%s: %s", wrong, &total)
	}
	if isWhole := os.Getenv("E2E_ALL") != "" && *corpusOnly == ""; isWhole && total.requests < wholeCorpus {
		t.Errorf("%d requests are too few: the whole corpus takes %d", total.requests, wholeCorpus)
	}
}

// isChosen reports whether a run takes the document.
func isChosen(name string) bool {
	if *corpusOnly != "" {
		return regexp.MustCompile(*corpusOnly).MatchString(name)
	}
	return os.Getenv("E2E_ALL") != "" ||
		slices.Contains([]string{"museum", "petstore3", "npm-galaxy31", "nest", "loopback", "fastapi"}, name)
}

func corpusFiles(t *testing.T, suites, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	found, err := filepath.Glob(filepath.Join(suites, "data", "openapi", "*.gz"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no documents in %s: %v", suites, err)
	}
	for _, from := range found {
		base := strings.TrimSuffix(filepath.Base(from), ".gz")
		if filepath.Ext(base) == ".tar" { // trees of files, which the validators do not read
			continue
		}
		to := filepath.Join(dir, base)
		unzip(t, from, to)
		name, _, _ := strings.Cut(base, ".")
		files[name] = to
	}
	generate := exec.Command("node", "frameworks.mjs")
	generate.Dir = dir
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", generate, err, out)
	}
	if _, err := os.Stat(programs.FastAPI); err != nil {
		need(t, fmt.Errorf("Debian's package python3-fastapi is missing: %w", err))
	}
	fast := exec.Command("/usr/bin/python3", "frameworks.py")
	fast.Dir = dir
	out, err := fast.Output()
	if err != nil {
		t.Fatalf("%s: %v", fast, err)
	}
	write(t, filepath.Join(dir, "fastapi.json"), string(out))
	for _, framework := range []string{"nest", "loopback", "fastapi"} {
		files[framework] = filepath.Join(dir, framework+".json")
	}
	for name, from := range packaged {
		files[name] = filepath.Join(dir, "node_modules", from)
	}
	for _, name := range unmeetable {
		text, err := os.ReadFile(files[name])
		if err != nil {
			t.Fatal(err)
		}
		files[name] = filepath.Join(dir, name+".json")
		write(t, files[name], strings.Replace(string(text), "{", `{"x-admission-gateway-unused": "Allow",`, 1))
	}
	return files
}

// unmeetable are documents that show tools what to do with schemas that no value can meet: they mean them.
var unmeetable = []string{"npm-schema-types", "npm-schema-types31"}

func unzip(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	plain, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(text))
}

// readNumbers returns the numbers by document.
func readNumbers(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(corpusNumbers)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, rest, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(line, "#") {
			numbers[name] = rest
		}
	}
	return numbers
}

func writeNumbers(t *testing.T, numbers map[string]string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# What TestPublishedDocuments counts. E2E_ALL=1 go test -run Published -corpus-update writes it.\n")
	for _, name := range sortedKeys(numbers) {
		fmt.Fprintf(&text, "%s: %s\n", name, numbers[name])
	}
	write(t, corpusNumbers, text.String())
}

// compare fails if the gateway and the validators differ about more requests than before, or a document does not load
// that did. There is nothing to compare with for a document that did not load, or is new.
func (c *corpusRun) compare(t testing.TB, before string) {
	t.Helper()
	_, differences, found := strings.Cut(before, "refused ")
	if !found {
		return
	}
	var refused, missed, unnamed int
	if _, err := fmt.Sscanf(differences, "%d, missed %d (%d named nowhere)", &refused, &missed, &unnamed); err != nil {
		t.Fatalf("%s: %q: %v", corpusNumbers, before, err)
	}
	if c.error != "" || c.refused > refused || c.missed > missed || c.missed-c.named > unnamed {
		t.Errorf("more than before differs: %s\nbefore: %s", &c.tally, before)
	}
}

// A tally counts requests by what became of them.
type tally struct {
	error              string // why the document is not loaded
	operations, silent int    // silent operations have no right request
	requests, agreed   int
	undecided          int            // the validators differ, or have no judgement
	refused            int            // right, and refused
	missed, named      int            // wrong, and not refused; of these, in a place that check names
	ruled              map[string]int // right, and refused on purpose, by rule
	leaked, failed     int            // refused, but the backend got it; answered with 5xx
}

func (n *tally) add(o *tally) {
	n.operations, n.silent, n.requests, n.agreed, n.undecided = n.operations+o.operations, n.silent+o.silent,
		n.requests+o.requests, n.agreed+o.agreed, n.undecided+o.undecided
	n.refused, n.missed, n.named, n.leaked, n.failed = n.refused+o.refused, n.missed+o.missed, n.named+o.named,
		n.leaked+o.leaked, n.failed+o.failed
	for rule, count := range o.ruled {
		n.rule(rule, count)
	}
}

func (n *tally) String() string {
	if n.error != "" {
		return "does not load: " + n.error
	}
	text := fmt.Sprintf("operations %d (%d without a right request), requests %d: agree %d, undecided %d, refused %d, missed %d (%d named nowhere)",
		n.operations, n.silent, n.requests, n.agreed, n.undecided, n.refused, n.missed, n.missed-n.named)
	if n.leaked+n.failed > 0 {
		text += fmt.Sprintf(", LEAKED %d, FAILED %d", n.leaked, n.failed)
	}
	for _, rule := range sortedKeys(n.ruled) {
		text += fmt.Sprintf(", refused by %s %d", rule, n.ruled[rule])
	}
	return text
}

func (n *tally) rule(rule string, count int) {
	if n.ruled == nil {
		n.ruled = map[string]int{}
	}
	n.ruled[rule] += count
}

// wrong says what a gateway may not do; empty if all is well. Right requests may be refused by rules alone. Of a
// hundred requests on which the validators agree one wrong one may pass, in a place that check names.
func (n *tally) wrong() string {
	switch decided := n.requests - n.undecided; {
	case n.refused > 0:
		return "right requests are refused by no rule"
	case n.missed*100 > decided:
		return "more than a hundredth of the requests passes and is wrong"
	case n.missed > n.named:
		return "wrong requests pass where check says nothing"
	}
	return ""
}

type corpusRun struct {
	name, file string
	validator  *validator
	backend    *sink
	report     io.Writer
	strict     func() *published // with discriminators
	objects    map[string]any    // what the backend has, by path
	tally
}

func (c *corpusRun) run(t *testing.T) {
	d := readPublished(c.validator.load(t, c.file), false)
	c.strict = sync.OnceValue(func() *published { return readPublished(c.validator.load(t, c.file), true) })
	found := c.check(t)
	if c.error != "" {
		return
	}
	gateway := startGatewayFor(t, "", c.backend.URL, c.file)
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(c.name))
	g := &generator{Rand: rand.New(rand.NewPCG(seed.Sum64(), 1)), d: d}
	samples := c.samples(g)
	for _, s := range samples {
		s.object = c.stored(g, s.operation)
	}
	for _, s := range samples {
		c.try(t, d, s, gateway, found)
	}
	if c.leaked+c.failed > 0 {
		t.Errorf("%s", &c.tally)
	}
}

// samples are the requests for a document: of each operation right ones, and ones with a change, as many as the budget
// allows. Of a document with more operations than that some are left out.
func (c *corpusRun) samples(g *generator) []*sample {
	operations := slices.Clone(g.d.operation)
	g.Shuffle(len(operations), func(i, j int) { operations[i], operations[j] = operations[j], operations[i] })
	operations = operations[:min(len(operations), max(1, *corpusBudget/2))]
	c.operations = len(operations)
	share := max(1, 2**corpusBudget/max(1, 3*len(operations)))
	var right, changed []*sample
	for _, o := range operations {
		bases := g.right(o)
		if len(bases) == 0 {
			c.silent++
			continue
		}
		right = append(right, bases...)
		for i, base := range bases {
			changed = append(changed, g.changes(base, max(1, share*(i+1)/len(bases)-share*i/len(bases)))...)
		}
	}
	for _, all := range [][]*sample{right, changed} {
		g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	right = right[:min(len(right), *corpusBudget/3)]
	return append(right, changed[:min(len(changed), *corpusBudget-len(right))]...)
}

// A difference is a request about which the gateway and the validators differ, or the validators do.
type difference struct {
	Document  string `json:"document"`
	What      string `json:"what"`
	Operation string `json:"operation"`
	Change    string `json:"change"`
	Keyword   string `json:"keyword"`
	Place     string `json:"place"`
	Schema    string `json:"schema,omitempty"`
	Validator string `json:"validator"`
	Judge     string `json:"judge"`
	Code      int    `json:"code"`
	Answer    string `json:"answer"`
	Request   string `json:"request"`
}

func (c *corpusRun) try(t *testing.T, d *published, s *sample, gateway *program, found findings) {
	c.requests++
	own := d.judge(s)
	other := c.validator.judge(t, s)
	if own.keyword == "content" { // which openapi-backend does not look at
		other = verdictOf{Valid: false, Keyword: "content"}
	}
	c.backend.keep(d.shown(s.operation, s.object))
	code, answer := send(t, s, gateway.address)
	reached, got := c.backend.took()
	note := func(what string) {
		schema := ""
		if len(own.schemas) > 0 {
			schema = own.schemas[len(own.schemas)-1]
		}
		line, _ := json.Marshal(difference{
			c.name, what, s.operation.String(), s.change, own.keyword, own.place, schema,
			strings.TrimSpace(fmt.Sprint(other.Valid, " ", other.Keyword, other.Place, " ", other.Error)), own.unknown,
			code, answer,
			fmt.Sprintf("%s %s?%s %v %v %s %.600s", s.operation.method, s.target(), encodeQuery(s.query), s.header,
				s.cookie, s.mediaType, s.body),
		})
		_, _ = fmt.Fprintf(c.report, "%s\n", line)
	}
	isRefused := code >= 400
	switch {
	case code >= 500:
		c.failed++
		note("failed")
	case isRefused && reached:
		c.leaked++
		note("leaked")
	case own.unknown != "" || other.Error != "" || own.isRight != other.Valid:
		c.undecided++
		note("undecided")
	case own.isRight && isRefused:
		if rule := c.ruleFor(d, s); rule != "" {
			c.rule(rule, 1)
			note("refused by " + rule)
		} else {
			c.refused++
			note("refused")
		}
	case !own.isRight && !isRefused && reached && d.isMended(s, own, got):
		c.agreed++
	case !own.isRight && !isRefused:
		c.missed++
		if found.names(s.operation, own) {
			c.named++
			note("missed, named")
		} else {
			note("missed")
		}
	default:
		c.agreed++
		if isRefused {
			note("agreed")
		}
	}
}

var corpusClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send sends a request with the credentials of the operation.
func send(t *testing.T, s *sample, address string) (int, string) {
	t.Helper()
	query := slices.Clone(s.query)
	request := &http.Request{Method: strings.ToUpper(s.operation.method), Host: address, Header: http.Header{},
		Body: http.NoBody}
	for _, pair := range s.header {
		request.Header[pair[0]] = append(request.Header[pair[0]], pair[1])
	}
	cookies := slices.Clone(s.cookie)
	for _, c := range s.operation.credentials {
		switch c.in {
		case "query":
			query = append(query, [2]string{c.name, c.value})
		case "cookie":
			cookies = append(cookies, [2]string{c.name, c.value})
		default:
			request.Header[c.name] = []string{c.value}
		}
	}
	pairs := make([]string, 0, len(cookies))
	for _, c := range cookies {
		pairs = append(pairs, c[0]+"="+c[1])
	}
	if len(pairs) > 0 {
		request.Header["Cookie"] = []string{strings.Join(pairs, "; ")}
	}
	if s.body != nil {
		request.Header["Content-Type"] = []string{s.mediaType}
		request.Body = io.NopCloser(bytes.NewReader(s.body))
		request.ContentLength = int64(len(s.body))
	}
	request.URL = &url.URL{Scheme: "http", Host: address, Opaque: "//" + address + s.target(),
		RawQuery: encodeQuery(query)}
	answer, err := corpusClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode < 400 {
		return answer.StatusCode, ""
	}
	return answer.StatusCode, string(text[:min(len(text), 700)])
}

// A sink is a backend that answers 200 with an object to everything, and knows the last write that came.
type sink struct {
	*httptest.Server
	mutex    sync.Mutex
	object   []byte
	hasWrite bool
	write    []byte
}

func startSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.hasWrite, s.write = true, body
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(s.object)
	}))
	t.Cleanup(s.Close)
	return s
}

// keep sets the object.
func (s *sink) keep(object any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.object = encoded(object)
}

// took reports whether a write came since it was asked last, and returns its body.
func (s *sink) took() (took bool, body []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	took, s.hasWrite = s.hasWrite, false
	return took, s.write
}

// A validator is judge.mjs.
type validator struct {
	in  io.Writer
	out *bufio.Reader
}

func startValidator(t *testing.T, dir string) *validator {
	t.Helper()
	cmd := exec.Command("node", "--max-old-space-size=3000",
		"--enable-experimental-regexp-engine-on-excessive-backtracks", "judge.mjs")
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &validator{in, bufio.NewReaderSize(out, 1<<16)}
}

func (v *validator) ask(t *testing.T, question any) []byte {
	t.Helper()
	line, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	answer, err := v.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// load returns the document as OpenAPI 3.
func (v *validator) load(t *testing.T, file string) map[string]any {
	t.Helper()
	answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(v.ask(t, map[string]any{"load": file})))
	if err != nil {
		t.Fatal(err)
	}
	object := asObject(answer)
	if object["error"] != nil {
		t.Fatalf("%s: %v", file, object["error"])
	}
	return asObject(object["document"])
}

type verdictOf struct {
	Valid   bool   `json:"valid"`
	Keyword string `json:"keyword"`
	Place   string `json:"place"`
	Error   string `json:"error"`
}

func (v *validator) judge(t *testing.T, s *sample) verdictOf {
	t.Helper()
	headers := map[string]any{}
	for _, pair := range s.header {
		headers[strings.ToLower(pair[0])] = pair[1]
	}
	cookies := make([]string, 0, len(s.cookie))
	for _, c := range s.cookie {
		cookies = append(cookies, c[0]+"="+c[1])
	}
	if len(cookies) > 0 {
		headers["cookie"] = strings.Join(cookies, "; ")
	}
	path := s.operation.path
	for name, value := range s.path {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	request := map[string]any{"method": s.operation.method, "path": path, "query": encodeQuery(s.query),
		"headers": headers}
	if s.body != nil {
		headers["content-type"] = "application/json"
		request["body"] = string(s.body)
	}
	mediaType := s.mediaType
	if mediaType == "" && s.operation.body != nil && len(s.operation.body.media) > 0 {
		mediaType = s.operation.body.media[0]
	}
	var verdict verdictOf
	if err := json.Unmarshal(v.ask(t, map[string]any{
		"operation": map[string]any{"path": s.operation.path, "method": s.operation.method, "mediaType": mediaType},
		"request":   request,
	}), &verdict); err != nil {
		t.Fatal(err)
	}
	return verdict
}

// findings are what check says of a document: what is not held, by the parts of its field.
type findings [][]string

var isNotHeld = regexp.MustCompile(`not (be )?(enforced|held|validated|checked|read|judged|compared)|without being validated|passes|is left out|does not count|has no effect|no equal|must `)

func (c *corpusRun) check(t *testing.T) findings {
	t.Helper()
	cmd := exec.Command(gatewayProgram, "check", "-v", "-o", "json", c.file)
	out, err := cmd.Output()
	var said struct {
		Findings []struct {
			Field, Severity, Message string
		}
	}
	if e := json.Unmarshal(out, &said); e != nil {
		t.Fatalf("check: %v: %v %.300s", e, err, out)
	}
	var all findings
	for _, f := range said.Findings {
		if f.Severity == "error" && c.error == "" {
			c.error = strings.ReplaceAll(f.Field+": "+f.Message, filepath.Dir(c.file)+"/", "")
		}
		if isNotHeld.MatchString(f.Message) {
			all = append(all, fieldParts(f.Field))
		}
	}
	return all
}

// fieldParts takes a field path of a finding apart.
func fieldParts(field string) []string {
	var parts []string
	for field != "" {
		switch field[0] {
		case '[':
			part, rest, _ := strings.Cut(field[1:], "]")
			parts, field = append(parts, part), rest
		case '.':
			field = field[1:]
		default:
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			parts, field = append(parts, field[:end]), field[end:]
		}
	}
	return parts
}

// names reports whether a finding is about the operation as a whole, or about the keyword that was not held, or a
// schema on the way to it.
func (f findings) names(o *operation, j judgement) bool {
	var places [][]string
	body := []string{"paths", o.path, o.method, "requestBody"}
	if strings.HasPrefix(j.place, "body") {
		places = append(places, body)
	} else {
		places = append(places, []string{"paths", o.path, o.method, "parameters"})
	}
	for i, at := range j.schemas {
		parts := split(at)
		if i == len(j.schemas)-1 {
			parts = append(slices.Clone(parts), j.keyword)
		}
		places = append(places, parts)
		if len(parts) > 2 && parts[0] == "components" && parts[1] == "schemas" {
			places = append(places, append([]string{"definitions"}, parts[2:]...))
		}
	}
	for _, field := range f {
		if len(field) < 2 {
			continue
		}
		for _, place := range places {
			if len(field) <= len(place) && slices.Equal(field, place[:len(field)]) {
				return true
			}
		}
	}
	return false
}
