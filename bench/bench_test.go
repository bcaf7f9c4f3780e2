package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// listen serves on a free port until the test ends and returns the address.
func listen(t *testing.T, serve func(net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(l) // ends with the listener
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestPeersPassThrough(t *testing.T) {
	backend := listen(t, serveBackend)
	for name, address := range map[string]string{
		"backend":  backend,
		"fasthttp": listen(t, func(l net.Listener) error { return serveFasthttp(l, backend, atOnce) }),
		"in turn":  listen(t, func(l net.Listener) error { return serveFasthttp(l, backend, inTurn()) }),
		"net/http": listen(t, func(l net.Listener) error { return serveNetHTTP(l, backend, "") }),
	} {
		if err := checkPassThrough(address); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := checkHTTP2("http")(address); (err == nil) != (name == "net/http") {
			t.Errorf("%s by HTTP/2: %v", name, err)
		}
	}
	if err := checkGRPC(listen(t, serveGRPCBackend)); err != nil {
		t.Error(err)
	}
}

func TestCheckAdmissionNoticesItsAbsence(t *testing.T) {
	if err := checkAdmission(listen(t, serveBackend)); err == nil ||
		!strings.Contains(err.Error(), "must lack its status") {
		t.Errorf("a backend that admits everything as it is: got %v", err)
	}
	admitted := func(denies string) string {
		return listen(t, func(l net.Listener) error {
			//nolint:gosec // a test's server
			return http.Serve(l,
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerAdmitted(w, r, denies) }))
		})
	}
	if err := checkAdmission(admitted("")); err == nil || !strings.Contains(err.Error(), "the schema does not deny") {
		t.Errorf("a server that only sets defaults: got %v", err)
	}
	if err := checkAdmission(admitted("all")); err != nil {
		t.Errorf("a server that denies every change: got %v", err)
	}
}

// answerAdmitted sets the defaults, drops the status, and denies changed objects if denies is not empty.
func answerAdmitted(w http.ResponseWriter, r *http.Request, denies string) {
	var body bytes.Buffer
	var object map[string]any
	if _, err := body.ReadFrom(r.Body); err != nil || json.Unmarshal(body.Bytes(), &object) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if denies != "" && !bytes.Equal(body.Bytes(), workloadJSON) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	delete(object, "status")
	for path, value := range defaulted() {
		set(object, path, value)
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(object)
}

func TestWorkload(t *testing.T) {
	if n := len(workloadJSON); n < 1250 || n > 1350 {
		t.Errorf("the object has %d bytes; it is to have 1.3 KB", n)
	}
}

func TestParseWrk(t *testing.T) {
	out := "Running 1s test\n" + `{"requests":20000,"microseconds":2000000,"p50":900,"p99":2100,"refused":0,"broken":2}` + "\n"
	got, err := parseWrk([]byte(out), 300*time.Millisecond)
	want := Sample{Requests: 20000, Throughput: 10000, P50: 900, P99: 2100, CPU: 15, Broken: 2}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, out := range []string{
		"",
		"Running\n{",
		`{"requests":10,"microseconds":1,"refused":1}`,
		`{"requests":0,"microseconds":1,"refused":0}`,
	} {
		if got, err := parseWrk([]byte(out), 0); err == nil {
			t.Errorf("%q: got %+v", out, got)
		}
	}
}

func TestParseH2load(t *testing.T) {
	const out = `starting benchmark...
Application protocol: h2c
Main benchmark duration is started for all threads.

finished in 2.00s, 10000.50 req/s, 13.1MB/s
requests: 20000 total, 20100 started, 20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 20001 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 26.30MB (27578944) total
`
	const log = "1\t200\t900\n2\t200\t2100\n3\t200\t700\n"
	got, err := parseH2load([]byte(out), []byte(log), 300*time.Millisecond, true)
	want := Sample{Requests: 20000, Throughput: 10000.5, P50: 900, P99: 2100, CPU: 15}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, wrong := range [][2]string{
		{out, ""},
		{"protocol: h2c", "protocol: http/1.1"},
		{"0 failed", "1 failed"},
		{"20000 done", "0 done"},
		{"20001 2xx, 0 3xx, 0 4xx", "1 2xx, 0 3xx, 20000 4xx"},
	} {
		if got, err := parseH2load([]byte(strings.Replace(out, wrong[0], wrong[1], 1)), []byte(log), 0,
			true); err == nil {
			t.Errorf("%q: got %+v", wrong[1], got)
		}
	}
}

func TestLargeWorkload(t *testing.T) {
	for _, l := range largeLoads() {
		var object struct {
			Spec struct {
				Template struct {
					Spec struct{ Containers []json.RawMessage }
				}
			}
		}
		if err := json.Unmarshal(l.Body, &object); err != nil {
			t.Fatalf("%s: %v", l.Name, err)
		}
		size := map[string]int{post10KBLoad: 10_000, post100KBLoad: 100_000}[l.Name]
		if n := len(l.Body); n < size*9/10 || n > size*11/10 ||
			len(object.Spec.Template.Spec.Containers) > maxContainers {
			t.Errorf("%s has %d bytes, and %d containers", l.Name, n, len(object.Spec.Template.Spec.Containers))
		}
	}
}

// The large set, and the policies that are measured beside full admission, are files that can be used.
func TestFurtherPolicies(t *testing.T) {
	resource, err := os.ReadFile("policies/workloads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	texts := largeSet(string(resource))
	if len(texts) != setFiles ||
		strings.Count(strings.Join(texts, ""), "kind: ValidatingAdmissionPolicy\n") != setResources*setPolicies {
		t.Errorf("%d files", len(texts))
	}
	if err := os.WriteFile(dir+"/set.yaml", []byte(texts[setFiles/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	set, findings := policies.Load([]string{dir})
	if set == nil || len(findings) > 0 || !strings.Contains(texts[setFiles/2], "<= 100") {
		t.Errorf("the files cannot be used: %v", findings)
	}
}

func TestScript(t *testing.T) {
	g := Generator{dir: t.TempDir()}
	file, err := g.script(Load{Name: "POST x", Method: "POST", Body: []byte(`{"a":"\n"}`)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	want := "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nwrk.body = [==[{\"a\":\"\\n\"}]==]\n" + wrkDone
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := g.script(Load{Name: "x", Body: []byte("]==]")}); err == nil {
		t.Error("a body that ends the Lua string was written")
	}
}

func firstCPU(t *testing.T) string {
	t.Helper()
	first, _, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// Requests to many objects name each in path and body, and the backend shows each by its name.
func TestSpread(t *testing.T) {
	g := Generator{dir: t.TempDir()}
	file, err := g.script(Load{Name: "PUT", Method: "PUT", Body: changedWorkload(), IsSpread: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	want := `string.gsub(wrk.body, '"name":"checkout"', '"name":"checkout-' .. i .. '"', 1)`
	if err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), "n = n % #all + 1\n") {
		t.Errorf("the script has no line %s: %s, %v", want, got, err)
	}
	if n := bytes.Count(changedWorkload(), []byte(`"name":"checkout"`)); n != 1 {
		t.Errorf("the object says its name %d times", n)
	}
	backend := listen(t, serveBackend)
	for path, name := range map[string]string{"": "checkout", "/checkout": "checkout", "/checkout-7": "checkout-7",
		"/checkout-77?pretty=false": "checkout-77"} {
		got, err := exchange(backend, http.MethodGet, collection+path, nil)
		want := bytes.Replace(workloadJSON, []byte(`"name":"checkout"`), []byte(`"name":"`+name+`"`), 1)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("GET of %q answered %s, %v", path, got, err)
		}
	}
}

// The configurations and policies of all features are ones that the gateway takes.
func TestFeatures(t *testing.T) {
	m := &Machine{Root: "..", Dir: t.TempDir(), Gateway: "gateway", Unmeasured: "unmeasured", Backend: "127.0.0.1:1"}
	if err := m.issueToken(); err != nil {
		t.Fatal(err)
	}
	defer m.issuer.Close()
	for _, f := range append(features(), moreFeatures()...) {
		command, err := m.featured(&f, "127.0.0.1:2")
		if err != nil {
			t.Fatal(err)
		}
		if counts := command[0] == "gateway"; counts != f.IsMeasured {
			t.Errorf("%s runs %s", f.Name, command[0])
		}
		flags := config.Flags{}
		var file string
		for i, word := range command {
			switch word {
			case "--config":
				file = command[i+1]
			case "--policies":
				flags.Policies = append(flags.Policies, command[i+1])
			}
		}
		flags.Upstream = "http://" + m.Backend
		c, err := config.Load(file, flags)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		for _, path := range c.Policies.Names() {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
		if (c.Telemetry.Tracing != nil) != (f.Traces >= 0) || (c.Telemetry.Audit != nil) != f.IsAudited ||
			string(c.Telemetry.Log.Requests) != cmp.Or(f.Logs, "None") {
			t.Errorf("%s is configured as %+v", f.Name, c.Telemetry)
		}
	}
}

func TestSizes(t *testing.T) {
	result := func(load, target, title string, cpu float64) Result {
		return Result{Load: load, Target: target, Title: title, IdleMiB: 20,
			Samples: []Sample{{Requests: 1, Throughput: 1e6 / cpu, P99: 1500, CPU: cpu, MiB: 31}}}
	}
	var got bytes.Buffer
	p := printer{to: &got}
	if err := sizesTable(&p, []*Report{
		{Results: []Result{result(postLoad, gatewayTarget, "gateway", 20)}},
		{Results: []Result{result(postLoad, gatewayTarget, "gateway", 25)}},
	}); err != nil {
		t.Fatal(err)
	}
	all := []Feature{features()[0], features()[1], {Name: usersRow, Title: "users"}}
	if err := featuresTable(&p, &Report{Results: []Result{
		result(postLoad, quietTarget, "", 40), result(postLoad, "gateway-log", "", 42),
		result(sizesUser, usersRow, "", 50),
	}}, all); err != nil {
		t.Fatal(err)
	}
	want := `| request | gateway | cores | requests/s | p99 ms | CPU µs/request | MiB idle | MiB under load |
|---|---|--:|--:|--:|--:|--:|--:|
| POST 1.3 KB | gateway | 1 | 50000 | 1.50 | 20.0 | 20 | 31 |
| POST 1.3 KB | gateway | 2 | 40000 | 1.50 | 25.0 | 20 | 31 |

| added to full admission of a POST | CPU µs/request | ÷ without it | MiB idle | MiB under load |
|---|--:|--:|--:|--:|
| nothing | 40.0 | 1.00 | 20 | 31 |
| access log of refusals | 42.0 | 1.05 | 20 | 31 |
| users | 50.0 | 1.25 | 20 | 31 |
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	for list, want := range map[string]int{"1": 1, "12-15": 2, "3,5": 1, "": 0} {
		if got := digits(list); got != want {
			t.Errorf("%q begins with %d digits, want %d", list, got, want)
		}
	}
}

func TestProcessFigures(t *testing.T) {
	stat, err := readStat(os.Getpid())
	if err != nil || stat.parent != os.Getppid() || stat.pages == 0 {
		t.Errorf("got %+v, %v", stat, err)
	}
	if _, err := readStat(0); err == nil {
		t.Error("process 0 was read")
	}
	p, err := startProcess(t.TempDir(), "sh", firstCPU(t), "sh", "-c", "while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(withChildren(os.Getpid()), p.cmd.Process.Pid) {
		t.Errorf("%d is not among the children", p.cmd.Process.Pid)
	}
	testutil.Eventually(t, "the busy process has used time", func() bool {
		cpu, err := p.cpu()
		if err != nil {
			t.Fatal(err)
		}
		return cpu > 0
	})
	p.stop()
	if _, err := p.cpu(); err == nil {
		t.Error("the process is still there after it was stopped")
	}
}

func TestReport(t *testing.T) {
	sample := func(throughput, cpu float64) Sample {
		return Sample{Requests: 1, Throughput: throughput, P50: 1000, P99: 2500, CPU: cpu, User: cpu / 4}
	}
	r := Report{Rounds: 3, Seconds: 1, Connections: 64, Results: []Result{
		{Load: "GET", Target: "nginx", Title: "nginx",
			Samples: []Sample{sample(100, 10), sample(50, 20), sample(100, 10)}},
		{Load: "GET", Target: "fasthttp", Title: "fasthttp",
			Samples: []Sample{sample(100, 10), sample(50, 20), sample(90, 12)}},
		{Load: "GET", Target: "gateway", Title: "gateway",
			Samples: []Sample{sample(90, 12), sample(45, 24), sample(100, 12)}},
		{Load: "PUT", Target: "gateway", Title: "gateway",
			Samples: []Sample{{Requests: 1, Throughput: 9, P50: 10, P99: 20, CPU: 30, Broken: 2}}},
	}}
	verdict := r
	verdict.Results = append(slices.Clone(r.Results),
		Result{Load: pacedLoad, Target: "nginx", Samples: []Sample{sample(100, 10)}},
		Result{Load: pacedLoad, Target: admissionTarget, Samples: []Sample{{P99: 5000}}},
		Result{Load: postLoad, Target: admissionTarget, Samples: []Sample{sample(100, 34)}})
	var got bytes.Buffer
	if err := r.table(&got); err != nil {
		t.Fatal(err)
	}
	want := `Medians of 3 interleaved rounds of 1 s, 64 keep-alive connections; the server under test has one core, the load generator and the backend have the others. Ratios are medians of the ratios in each round.

| request | server | requests/s | ÷ nginx | p50 ms | p99 ms | CPU µs/request | user | ÷ nginx | ÷ fasthttp |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|
| GET | nginx | 100 | 1.00 | 1.00 | 2.50 | 10.0 | 2.5 | 1.00 | 1.00 |
| GET | fasthttp | 90 | 1.00 | 1.00 | 2.50 | 12.0 | 3.0 | 1.00 | 1.00 |
| GET | gateway | 90 | 0.90 | 1.00 | 2.50 | 12.0 | 3.0 | 1.20 | 1.20 |
| PUT | gateway | 9 | – | 0.01 | 0.02 | 30.0 | 0.0 | – | – |

gateway under PUT: 2 connections failed or timed out.
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	got.Reset()
	verdict.Set = SetResult{StartSeconds: 2, StartMB: 149, ChangeSeconds: 0.08, ChangeMB: 160}
	verdict.Footprint = Footprint{StartMilliseconds: 120, IdleMiB: 61, DocumentSeconds: 0.5, DocumentMB: 101}
	reached, err := verdict.verdict(&got)
	want = `- GET, gateway: 1.20 × (1.00 to 1.20) fasthttp's CPU, goal at most 1.00: MISSED
- POST 1.3 KB at 70 % of its peak, gateway-admission: 2.00 × (2.00 to 2.00) nginx's 99th percentile of latency, goal at most 1.50: MISSED
- start with the demo's policies: 120 ms, goal at most 300; idle: 61 MiB resident, goal at most 60
- load of GitHub's OpenAPI document: 0.50 s of CPU time, goal at most 1; 101 MB at the peak above a gateway without files, goal at most 100
- POST 1.3 KB, gateway-admission: 8.5 µs in user space, goal at most 9
- start with 500 resources and 2000 policies: 2.00 s of CPU time, goal at most 1.5; 149 MB at the peak, goal at most 150
- one changed line of them: 0.08 s of CPU time, goal at most 0.1; 160 MB at the peak since the start
`
	if got.String() != want || reached || err != nil {
		t.Errorf("got %v, %v\n%s\nwant\n%s", reached, err, got.String(), want)
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := middle(slices.Clone(c.values)); got != c.want {
			t.Errorf("middle(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestSplitCPUs(t *testing.T) {
	for list, want := range map[string][2]string{
		"0-1": {"0", "1-1"}, "0": {"0", "0"}, "4-7,9": {"4", "5-7,9"}, "3,5-6": {"3", "5-6"}, "": {"", ""},
		"a-b": {"", ""},
	} {
		first, rest, err := splitCPUs(list)
		if first != want[0] || rest != want[1] || (err == nil) != (want[0] != "") {
			t.Errorf("%q: got %q, %q, %v", list, first, rest, err)
		}
	}
}

func TestGoalsAreAboutRows(t *testing.T) {
	measured := func(load, target string) bool {
		i := slices.Index(loadNames(loads()), load)
		return i >= 0 && slices.Contains(targetNames(), target) && loads()[i].sentTo(target)
	}
	for _, g := range goals() {
		of := g.Of
		if of == nil {
			of = []string{g.Load}
		}
		for _, load := range of {
			if !measured(load, g.Reference) || !measured(g.Load, g.Target) || g.Beyond != "" &&
				(!measured(load, g.Beyond) || !measured(g.Load, g.Beyond)) {
				t.Errorf("%+v names something that is not measured", g)
			}
		}
	}
}

func TestTogether(t *testing.T) {
	r := Report{Results: []Result{
		{Load: "GET", Target: "gateway", Samples: []Sample{{CPU: 10}, {CPU: 30}}},
		{Load: "PUT", Target: "gateway", Samples: []Sample{{CPU: 15}, {CPU: 45}, {CPU: 1}}},
	}}
	if got := r.together([]string{"GET", "PUT"}, "gateway"); !slices.Equal(got, []Sample{{CPU: 25}, {CPU: 75}}) {
		t.Errorf("got %v", got)
	}
	if got := r.together([]string{"GET", "PATCH"}, "gateway"); got != nil {
		t.Errorf("a request that was not measured: got %v", got)
	}
	both := []Sample{{CPU: 25}, {CPU: 75}}
	if got := r.beyond(both, []string{"GET"}, "gateway"); !slices.Equal(got, []Sample{{CPU: 15}, {CPU: 45}}) {
		t.Errorf("got %v", got)
	}
	if got := r.beyond(both, []string{"PATCH"}, "gateway"); len(got) != 0 {
		t.Errorf("beyond what was not measured: got %v", got)
	}
}

func TestCheckEmulationNoticesItsAbsence(t *testing.T) {
	err := checkEmulation(listen(t, serveBackend))
	if err == nil || !strings.Contains(err.Error(), "the answer is not the changed object with its new version") {
		t.Errorf("a backend that stores what it is sent: got %v", err)
	}
}

func TestChosen(t *testing.T) {
	rows, err := chosen([]string{"fasthttp", "nginx"})
	if err != nil || len(rows) != 2 || rows[0].Name != "nginx" || rows[1].Name != "fasthttp" {
		t.Errorf("got %v, %v", rows, err)
	}
	if _, err := chosen([]string{"apache"}); err == nil {
		t.Error("a target that does not exist was chosen")
	}
	requests, err := chosenLoads([]string{"GET"})
	if err != nil || len(requests) != 1 || requests[0].Name != "GET" {
		t.Errorf("got %v, %v", requests, err)
	}
	if _, err := chosenLoads([]string{"HEAD"}); err == nil {
		t.Error("a load that does not exist was chosen")
	}
}

// The files of each step are ones that the gateway takes, and have what the steps up to it need alone.
func TestSteps(t *testing.T) {
	m := &Machine{Root: "..", Dir: t.TempDir()}
	for place, s := range steps() {
		dir, err := s.write(m)
		if err != nil {
			t.Fatal(err)
		}
		set, findings := policies.Load([]string{dir})
		if set == nil || len(findings) > 0 {
			t.Errorf("%s: the files cannot be used: %v", s.Title, findings)
		}
		text, err := os.ReadFile(dir + "/workloads.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(dir + "/admission.yaml")
		for what, got := range map[string][2]bool{
			"a schema":     {bytes.Contains(text, []byte("maxLength")), place >= 1},
			"the status":   {bytes.Contains(text, []byte("Emulated")), place >= 2},
			"the defaults": {bytes.Contains(text, []byte("default: RollingUpdate")), place >= 3},
			"the rules":    {err == nil, place >= 4},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: has %s: %t", s.Title, what, got[0])
			}
		}
	}
}
