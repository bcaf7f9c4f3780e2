package scan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const replicas = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations: [{expression: object.spec.replicas <= 100, message: too many}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec: {policyName: replicas, validationActions: [Deny]}
`

// counts are the counts of a report.
type counts struct{ objects, assessed, denied, findings int64 }

func countsOf(r *Report) counts { return counts{r.Objects, r.Assessed, r.Denied, r.Findings} }

// TestWorkers: a report is the same whatever the number of workers, and lists no more than it may.
func TestWorkers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "objects.ndjson")
	testutil.WriteFile(t, file, string(deployments(3000)))
	var first *Report
	for _, workers := range []int{1, 2, 7} {
		o := offline(t, replicas)
		o.Files, o.Workers, o.List, o.GroupBy = []string{file}, workers, 17, "label=team"
		r, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		r.Seconds = 0
		if first == nil {
			first = r
		}
		if !reflect.DeepEqual(r, first) {
			t.Errorf("%d workers: got %+v, want %+v", workers, r, first)
		}
	}
	if got, want := countsOf(first), (counts{3000, 3000, 60, 60}); got != want || len(first.Listed) != 17 {
		t.Errorf("got %+v and %d listed, want %+v and 17", got, len(first.Listed), want)
	}
	if len(first.Groups) != 100 || first.Groups["team-49"].Denied != 30 || first.Listed[0].Line != 50 {
		t.Errorf("groups %d, team-49 %+v, first at line %d", len(first.Groups), first.Groups["team-49"],
			first.Listed[0].Line)
	}
}

// stopping reads a text, and calls stop when it has read so much of it.
type stopping struct {
	text  io.Reader
	after int
	stop  func()
}

func (s *stopping) Read(p []byte) (int, error) {
	n, err := s.text.Read(p[:min(len(p), 64<<10)])
	if s.after -= n; s.after <= 0 {
		s.stop()
	}
	return n, err
}

// TestResume: a scan that was interrupted resumes, and its final report equals the report of one scan.
func TestResume(t *testing.T) {
	text := deployments(4000)
	o := offline(t, replicas)
	o.Files, o.Workers = []string{"-"}, 2
	o.Input = bytes.NewReader(text)
	want, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.StateFile = filepath.Join(t.TempDir(), "state")
	for round := 1; ; round++ {
		ctx, cancel := context.WithCancel(context.Background())
		o.Input = &stopping{bytes.NewReader(text), round * len(text) / 3, cancel}
		if round == 3 {
			o.Input = bytes.NewReader(text)
		}
		got, err := Run(ctx, o)
		cancel()
		if round < 3 {
			if !errors.Is(err, ErrInterrupted) {
				t.Fatal(round, err)
			}
			if _, err := os.Stat(o.StateFile); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Seconds, want.Seconds = 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		break
	}
	if _, err := os.Stat(o.StateFile); !os.IsNotExist(err) {
		t.Error("the state of a scan that is over is there:", err)
	}
	other := o
	other.List = 5
	ctx, cancel := context.WithCancel(context.Background())
	o.Input = &stopping{bytes.NewReader(text), 1, cancel}
	if _, err := Run(ctx, o); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	other.Input = bytes.NewReader(text)
	var mistake UsageError
	if _, err := Run(context.Background(), other); !errors.As(err, &mistake) {
		t.Errorf("the state of another scan: %v", err)
	}
}

// pods is an API server with so many Deployments in each of two namespaces. Tokens of lists are good until expire is
// called.
type apiServer struct {
	mu        sync.Mutex
	objects   []string // sorted
	keys      []string
	moment    int  // of the lists that can be continued
	isLenient bool // it gives a token to go on with if one has expired
	asked     []string
	onPage    func(*apiServer)
}

func newAPIServer(each int) *apiServer {
	s := &apiServer{}
	for _, namespace := range []string{"shop", "team"} {
		for i := range each {
			name := fmt.Sprintf("web-%04d", i)
			replicas := 1
			if i%10 == 9 {
				replicas = 500
			}
			s.keys = append(s.keys, namespace+"/"+name)
			s.objects = append(s.objects, fmt.Sprintf(`{"metadata":{"name":"%s","namespace":"%s","uid":"u-%d"},"spec":{"replicas":%d}}`, name, namespace, i, replicas))
		}
	}
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case "/apis":
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[{"name":"apps","preferredVersion":{"version":"v1"},"versions":[{"version":"v1"}]},{"name":"down.example.com","preferredVersion":{"version":"v1"},"versions":[{"version":"v1"}]}]}`)
	case "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","create"]}]}`)
	case "/apis/apps/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["list","create"]},{"name":"deployments/status","kind":"Deployment","namespaced":true,"verbs":["get"]}]}`)
	case "/apis/apps/v1/deployments":
		s.list(w, r)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"kind":"Status","code":503}`)
	}
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from := 0
	if token := r.URL.Query().Get("continue"); token != "" {
		var moment int
		_, _ = fmt.Sscanf(token, "%d-%d", &moment, &from)
		if moment != s.moment {
			again := ""
			if s.isLenient {
				again = fmt.Sprintf("%d-%d", s.moment, from)
			}
			w.WriteHeader(http.StatusGone)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","status":"Failure","reason":"Expired","code":410,"metadata":{"continue":"%s"}}`, again)
			return
		}
	}
	to := min(from+limit, len(s.objects))
	token := ""
	if to < len(s.objects) {
		token = fmt.Sprintf("%d-%d", s.moment, to)
	}
	_, _ = fmt.Fprintf(w, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"continue":"%s"},"items":[%s]}`, token, strings.Join(s.objects[from:to], ","))
	if s.onPage != nil {
		s.onPage(s)
	}
}

// before returns options with the gateway in front of a server.
func before(t testing.TB, text, url string, dialect config.Dialect) Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.yaml")
	testutil.WriteFile(t, file, text)
	set, err := Compile([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("", config.Flags{Upstream: url, Dialect: string(dialect)})
	if err != nil {
		t.Fatal(err)
	}
	side, end, err := Before(context.Background(), set, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	name, err := UpstreamOf(c, "")
	if err != nil {
		t.Fatal(err)
	}
	return Options{New: side, Upstream: name, Backend: side.Gateway.Backend(name, ""), As: Create,
		User: identity.User{Name: "gateway-scan"}, List: 1000}
}

// TestAPIServer: the resources that policies match are read page by page, each object once, also if lists expire.
func TestAPIServer(t *testing.T) {
	expired := "the list of deployments.apps expired while it was read: it is of more than one moment"
	down := "the resources of down.example.com/v1 are not all known: GET /apis/down.example.com/v1 was answered 503"
	expire := func(s *apiServer) {
		if s.moment == 0 {
			s.moment = 1
		}
	}
	for _, c := range []struct {
		name   string
		onPage func(*apiServer)
		again  bool
		as     Operation
		notes  []string
	}{
		{name: "pages", notes: []string{down}},
		{name: "updates", as: Update, notes: []string{down}},
		{name: "expired", onPage: expire, notes: []string{down, expired}},
		{name: "expired, with another token", onPage: expire, again: true, notes: []string{down, expired}},
		{name: "objects before it are new", onPage: func(s *apiServer) {
			if expire(s); len(s.objects) == 1400 {
				s.objects = append([]string{`{"metadata":{"name":"aaa","namespace":"shop"},"spec":{"replicas":500}}`},
					s.objects...)
			}
		}, notes: []string{down, expired}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newAPIServer(700)
			s.onPage, s.isLenient = c.onPage, c.again
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			o := before(t, replicas, server.URL, config.Kubernetes)
			o.As = cmp.Or(c.as, Create)
			r, err := Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := countsOf(r), (counts{1400, 1400, 140, 140}); got != want ||
				!reflect.DeepEqual(r.Notes, c.notes) {
				t.Errorf("got %+v, %q; want %+v, %q", got, r.Notes, want, c.notes)
			}
			f := r.Listed[0]
			want := Finding{
				Effect: Deny, Policy: "replicas", Binding: "replicas", Group: "apps", Version: "v1",
				Resource: "deployments",
				Kind:     "Deployment", Namespace: "shop", Name: "web-0009", UID: f.UID,
				Source: "/apis/apps/v1/deployments", Field: "spec.replicas",
				Message: "ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: too many",
			}
			if f != want {
				t.Errorf("got %+v, want %+v", f, want)
			}
			for _, asked := range s.asked {
				if !strings.HasPrefix(asked, "GET ") {
					t.Error("the backend was asked", asked)
				}
			}
		})
	}
}

// TestResumePages: a scan of a server goes on at the page where it was interrupted.
func TestResumePages(t *testing.T) {
	s := newAPIServer(1500)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	o := before(t, replicas, server.URL, config.Kubernetes)
	o.StateFile, o.Workers = filepath.Join(t.TempDir(), "state"), 1
	ctx, cancel := context.WithCancel(context.Background())
	pages := 0
	s.onPage = func(*apiServer) {
		if pages++; pages == 4 {
			cancel()
		}
	}
	if _, err := Run(ctx, o); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := countsOf(r), (counts{3000, 3000, 300, 300}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if pages >= 4+6 {
		t.Errorf("%d pages were read, as if the scan had begun anew", pages)
	}
}

// TestOrdinaryAPI: a collection of an ordinary API is one answer, wherever its items are; what the
// API itself sets is not a finding on its objects.
func TestOrdinaryAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v2/orders":
			_, _ = io.WriteString(w, `{"page":1,"data":[{"id":"1","amount":5},{"id":"2","amount":0},{"id":"3","amount":7}]}`)
		case "/v2/team-a/parts":
			_, _ = io.WriteString(w, `{"items":[{"id":"p1"}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	o := before(t, `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  group: shop.example.com
  version: v1
  names: {kind: Order, plural: orders}
  paths: {collection: /v2/orders, item: "/v2/orders/{name}"}
  fields: {name: id, items: data}
  schema:
    openAPIV3Schema:
      type: object
      properties: {id: {type: string}, amount: {type: integer, minimum: 1}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: parts}
spec:
  group: shop.example.com
  version: v1
  names: {kind: Part, plural: parts}
  paths: {collection: "/v2/{namespace}/parts", item: "/v2/{namespace}/parts/{name}"}
  fields: {name: id, items: items}
  schema: {openAPIV3Schema: {type: object, properties: {id: {type: string}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: not-here}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v1], resources: [parts], operations: [CREATE]}]}
  validations: [{expression: "request.namespace != 'team-a'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: not-here}
spec: {policyName: not-here, validationActions: [Deny]}
`, server.URL, config.Plain)
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	notes := []string{"parts.shop.example.com is not read: its path /v2/{namespace}/parts has a namespace: say which with --namespace"}
	if got, want := countsOf(r), (counts{3, 3, 1, 1}); got != want || !reflect.DeepEqual(r.Notes, notes) {
		t.Errorf("got %+v, %q; want %+v, %q", got, r.Notes, want, notes)
	}
	if f := r.Listed[0]; f.Name != "2" || f.Field != "amount" || f.Resource != "orders" {
		t.Errorf("got %+v", f)
	}
	o.Namespace, o.Resources = "team-a", []string{"parts"}
	if r, err = Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if len(r.Listed) != 1 || r.Listed[0].Namespace != "team-a" || r.Listed[0].Policy != "not-here" {
		t.Errorf("an object is judged in the namespace of the path that it comes from, not as %+v, %+v", r.Listed, r.Notes)
	}
}

// TestPolicyReports: reports are split before an API server would refuse them.
func TestPolicyReports(t *testing.T) {
	defer func(f func() time.Time) { now = f }(now)
	now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	r := &Report{Tally: newTally()}
	r.Namespaces["shop"] = &Counts{Objects: 1300, Denied: 1200, Passed: 100}
	r.Namespaces["quiet"] = &Counts{Objects: 1, Passed: 1}
	long := strings.Repeat("x", maxText)
	for i := range 1200 {
		f := Finding{Effect: Deny, Policy: "p", Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop",
			Name: strconv.Itoa(i), Message: "no"}
		if i >= 600 {
			f.Message = long
		}
		r.Listed = append(r.Listed, f)
	}
	r.Listed = append(r.Listed, Finding{Effect: Warn, Message: "<&>", Kind: "Namespace", Version: "v1", Name: "n"},
		Finding{Effect: Unjudged, Namespace: "No Namespace", Message: "?"})
	var out bytes.Buffer
	if err := r.Write(&out, "policyreport"); err != nil {
		t.Fatal(err)
	}
	type report struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Summary  *reportSummary
		Results  []reportResult
	}
	var all []report
	for text := range bytes.Lines(out.Bytes()) {
		var one report
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	var got []string
	results := 0
	for _, p := range all {
		text, err := json.Marshal(p)
		if err != nil || len(text) > 1<<20 || len(p.Results) > maxResults {
			t.Errorf("%s has %d bytes and %d results (%v)", p.Metadata.Name, len(text), len(p.Results), err)
		}
		results += len(p.Results)
		got = append(got, fmt.Sprint(p.Kind, " ", p.Metadata.Namespace, "/", p.Metadata.Name, " ", len(p.Results), " ",
			p.Summary != nil))
	}
	want := []string{
		"ClusterPolicyReport /gateway-scan 2 false", "PolicyReport quiet/gateway-scan 0 true",
		"PolicyReport shop/gateway-scan 500 true",
		"PolicyReport shop/gateway-scan-2 489 false", "PolicyReport shop/gateway-scan-3 211 false",
	}
	if results != 1202 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMemory: what a scan holds does not grow with its objects. With SCAN_OBJECTS it is run with so many.
func TestMemory(t *testing.T) {
	n := testutil.Amount(50_000, 15_000)
	if text := os.Getenv("SCAN_OBJECTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const bound = 300 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(bound))
	o := offline(t, tenRules())
	o.Files, o.GroupBy, o.List = []string{"-"}, "label=team", 10_000
	source := &endless{left: n, page: deployments(1000)}
	o.Input = source
	var most atomic.Uint64
	batches := 0
	o.Progress = func(Progress) {
		if batches++; batches%10 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.Sys-m.HeapReleased))
		}
	}
	started := time.Now()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Objects != int64(n) || r.Denied != int64(n/50) {
		t.Errorf("%d objects, %d denied", r.Objects, r.Denied)
	}
	t.Logf("%d objects in %v: at most %d MB", n, time.Since(started), most.Load()>>20)
	if peak := most.Load(); peak == 0 || peak > bound {
		t.Errorf("the scan of %d objects holds %d MB", n, peak>>20)
	}
}

// endless is a text of so many objects, a thousand after the other.
type endless struct {
	left int
	page []byte
	rest []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.left <= 0 {
			return 0, io.EOF
		}
		e.left -= 1000
		e.rest = e.page
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
