package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// process is the gateway as a process of its own.
type process struct {
	*exec.Cmd
	listen, admin string
	log           *lockedBuffer
}

// startServe runs `gateway serve` on free ports in front of the given backend, with more flags, and
// waits until it is ready.
func startServe(t *testing.T, backend string, more ...string) *process {
	t.Helper()
	p := startUnready(t, backend, more...)
	testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
	// The log comes through a pipe, later than an answer does.
	testutil.Eventually(t, "logged", func() bool { return strings.Contains(p.log.String(), "msg=serving") })
	return p
}

// startUnready runs `gateway serve` as startServe does, and waits for nothing. Without a backend the configuration file
// says which there are.
func startUnready(t *testing.T, backend string, more ...string) *process {
	t.Helper()
	args := more
	if backend != "" {
		args = append([]string{"--upstream", "http://" + backend, "--dialect", "plain"}, more...)
	}
	return startProcess(t, testutil.FreeAddress(t), testutil.FreeAddress(t), args...)
}

// startProcess runs `gateway serve` on the given addresses.
func startProcess(t *testing.T, listen, admin string, more ...string) *process {
	t.Helper()
	p := newProcess(listen, admin, more...)
	p.start(t)
	return p
}

// newProcess returns `gateway serve` on the given addresses, which does not run yet.
func newProcess(listen, admin string, more ...string) *process {
	p := &process{listen: listen, admin: admin, log: &lockedBuffer{}}
	p.Cmd = exec.Command(os.Args[0], append([]string{"serve", "--listen", p.listen, "--admin", p.admin}, more...)...)
	p.Env = append(os.Environ(), "GATEWAY_TEST_RUN_MAIN=1")
	p.Stderr = p.log
	return p
}

// start runs the process until the test is over.
func (p *process) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", p.log)
		}
	})
}

type reply struct {
	code       int
	body       string
	connection string
}

// get asks the admin listener; code 0 means no answer.
func (p *process) get(path string) reply { return fetch("http://" + p.admin + path) }

func fetch(url string) reply {
	resp, err := http.Get(url)
	if err != nil {
		return reply{body: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{body: err.Error()}
	}
	r := reply{code: resp.StatusCode, body: string(body)}
	if resp.Close {
		r.connection = "close"
	}
	return r
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func startBackend(t *testing.T) (*backend.Server, string) {
	t.Helper()
	s := backend.New(backend.Options{})
	addr, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, addr
}

// SIGTERM: readiness fails first, requests are served with Connection: close until those in progress have finished,
// exit code 0.
func TestDrainOnSIGTERM(t *testing.T) {
	api, addr := startBackend(t)
	if _, err := api.Put("/v2/orders/o1", []byte(`{"id":"o1"}`)); err != nil {
		t.Fatal(err)
	}
	file := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 2\n")
	p := startServe(t, addr, "--config", file)

	arrived, release := make(chan struct{}), make(chan struct{})
	api.SetFault(func(r *backend.Request) backend.Fault {
		if r.Target == "/v2/orders/slow" {
			close(arrived)
			<-release
		}
		return backend.Fault{}
	})
	slow := make(chan reply, 1)
	go func() { slow <- fetch("http://" + p.listen + "/v2/orders/slow") }()
	<-arrived

	p.signal(t, syscall.SIGTERM)
	testutil.Eventually(t, "draining", func() bool { return p.get("/readyz").code == 503 })
	if got := p.get("/readyz").body; !strings.Contains(got, "[-]draining failed") ||
		!strings.Contains(got, "[+]listener ok") {
		t.Errorf("/readyz is %q, want that draining alone fails", got)
	}
	if got, want := fetch("http://"+p.listen+"/v2/orders/o1"), (reply{200, `{"id":"o1"}`, "close"}); got != want {
		t.Errorf("while draining the answer is %+v, want %+v", got, want)
	}
	testutil.Eventually(t, "the time to drain to be over",
		func() bool { return strings.Contains(p.log.String(), "msg=finishing") })
	if got, want := fetch("http://"+p.listen+"/v2/orders/o1"), (reply{200, `{"id":"o1"}`, "close"}); got != want {
		t.Errorf("while a request is in progress another one is answered %+v, want %+v", got, want)
	}
	close(release)
	if got := <-slow; got.code != 404 {
		t.Errorf("the request in progress was answered %+v, want the backend's 404", got)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// SIGTERM ends a start at once, whatever it waits for: here, a backend that does not say what it is.
func TestSIGTERMWhileStarting(t *testing.T) {
	asked, release := make(chan struct{}, 16), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer silent.Close()
	defer close(release)
	p := startUnready(t, "", "--upstream", silent.URL)
	<-asked
	p.signal(t, syscall.SIGTERM)
	var ended atomic.Bool
	var err error
	go func() {
		err = p.Wait()
		ended.Store(true)
	}()
	testutil.Eventually(t, "ended", ended.Load)
	if err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
	if got := p.log.String(); !strings.Contains(got, `msg="ending before the gateway serves" cause=terminated`) {
		t.Errorf("the log does not say why the process ended: %s", got)
	}
}

// A second SIGTERM does not wait for drainSeconds to pass.
func TestSecondSIGTERM(t *testing.T) {
	_, addr := startBackend(t)
	file := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 3600\n")
	p := startServe(t, addr, "--config", file)
	p.signal(t, syscall.SIGTERM)
	testutil.Eventually(t, "draining", func() bool { return p.get("/readyz").code == 503 })
	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// SIGHUP and a change of the files both bring new policies into force; a bad file brings none, and shows on the admin
// listener until it is mended.
func TestReload(t *testing.T) {
	_, addr := startBackend(t)
	file := write(t, "limit.yaml", limitPolicy)
	p := startServe(t, addr, "--policies", file)
	active := func() (set struct {
		Generation  int64
		Hash        string
		Files       json.RawMessage
		LastFailure *struct{ Findings []string }
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.get("/policies").body), &set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	metric := func(line string) bool { return strings.Contains(p.get("/metrics").body, "\n"+line+"\n") }
	replace := func(text string) {
		t.Helper()
		testutil.WriteFile(t, file+".new", text)
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	first := active()
	var files bytes.Buffer
	if err := json.Compact(&files, first.Files); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`[{"path":%q,"objects":[{"apiVersion":"admission-gateway.io/v1alpha1","kind":"RateLimitPolicy","name":"per-client"}]}]`, file)
	if first.Generation != 1 || files.String() != want || first.LastFailure != nil {
		t.Errorf("/policies has generation %d and files %s, failure %v; want 1 and %s", first.Generation, &files,
			first.LastFailure, want)
	}
	if !metric("gateway_policy_generation 1") || !metric(`gateway_policy_info{hash="`+first.Hash+`"} 1`) ||
		!metric("gateway_policy_reload_success_total 1") {
		t.Errorf("metrics are\n%s", p.get("/metrics").body)
	}

	replace(strings.Replace(limitPolicy, "requests: 50", "requests: 60", 1))
	p.signal(t, syscall.SIGHUP)
	testutil.Eventually(t, "reloaded", func() bool { return active().Generation == 2 })

	replace(strings.Replace(limitPolicy, "requests: 50", "requests: none", 1))
	testutil.Eventually(t, "refused", func() bool { return active().LastFailure != nil })
	if got := active(); got.Generation != 2 || len(got.LastFailure.Findings) != 1 ||
		!strings.HasPrefix(got.LastFailure.Findings[0], file+":7:3: spec.requests: ") {
		t.Errorf("after a bad file /policies has generation %d, failure %v", got.Generation, got.LastFailure)
	}
	if !metric("gateway_policy_generation 2") || !metric("gateway_policy_reload_failure_total 1") {
		t.Errorf("metrics are\n%s", p.get("/metrics").body)
	}
	if got := p.get("/readyz").code; got != 200 {
		t.Errorf("/readyz answers %d while the last good policies are in force, want 200", got)
	}
	// What was in force comes back: no new generation, and the failure is over.
	replace(strings.Replace(limitPolicy, "requests: 50", "requests: 60", 1))
	testutil.Eventually(t, "mended", func() bool { return active().LastFailure == nil })
	if got := active().Generation; got != 2 {
		t.Errorf("generation %d, want still 2", got)
	}
	testutil.Eventually(t, "the finding in the log",
		func() bool { return strings.Contains(p.log.String(), "spec.requests") })
}

// The admin pages are not on the public listener: there their paths are the backend's.
func TestAdminIsNotPublic(t *testing.T) {
	_, addr := startBackend(t)
	p := startServe(t, addr)
	for _, path := range []string{"/status", "/metrics", "/policies", "/upstreams", "/readyz", "/livez"} {
		if got := fetch("http://" + p.listen + path); got.code != 200 || got.body != `{"items":[]}` {
			t.Errorf("GET %s on the public listener answered %+v, want what the backend has there", path, got)
		}
	}
}

func TestBackendCommand(t *testing.T) {
	cmd := exec.Command(os.Args[0], "backend", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GATEWAY_TEST_RUN_MAIN=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "The in-memory API serves ")
	if !ok {
		t.Fatalf("the command printed %q", line)
	}
	if got := fetch(url + "/v2/orders"); got.code != 200 || got.body != `{"items":[]}` {
		t.Errorf("GET answered %+v", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// The commands that the demo prints, pasted into a shell, answer as README says.
func TestDemo(t *testing.T) {
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Patience)
	defer cancel()
	demo := exec.CommandContext(ctx, os.Args[0], "demo", "--listen", "127.0.0.1:0", "--admin", "localhost:0")
	demo.Env = append(os.Environ(), "GATEWAY_TEST_RUN_MAIN=1")
	stdout, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	lines := bufio.NewScanner(stdout)
	var commands []string
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "curl ") || strings.HasPrefix(lines.Text(), "for i ") {
			commands = append(commands, lines.Text())
		}
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			break
		}
	}
	if len(commands) != 5 {
		t.Fatalf("the demo prints %d commands, want 5:\n%s", len(commands), &printed)
	}
	date := regexp.MustCompile(`(?m)^Date: .*\r?\n`)
	created := regexp.MustCompile(`"uid":"[0-9a-f-]{36}","creationTimestamp":"[0-9TZ:-]{20}"`)
	const createdThen = `"uid":"5f0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f21","creationTimestamp":"2026-01-14T09:12:44Z"`
	paste := func(i int) string {
		t.Helper()
		out, err := exec.CommandContext(ctx, "sh", "-c",
			strings.ReplaceAll(commands[i], "curl -i", "curl -si")).Output()
		if err != nil {
			t.Fatalf("%s: %v", commands[i], err)
		}
		return created.ReplaceAllString(date.ReplaceAllString(string(out), ""), createdThen)
	}
	invoices := `{"metadata":{"name":"invoices","namespace":"team-a",` + createdThen + `,"generation":1,"resourceVersion":"1001"},"spec":{"owner":"team-billing","delivery":"Standard","maxMessageBytes":262144,"partitions":3,"retentionSeconds":86400},"kind":"Queue","apiVersion":"messaging.example.com/v1"}` + "\n"
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(answer string) string {
		t.Helper()
		if !bytes.Contains(readme, []byte(answer)) {
			t.Errorf("README does not show this answer of the demo: %s", answer)
		}
		return answer
	}
	if got := shown(paste(0)); got != invoices {
		t.Errorf("defaults: %s, want %s", got, invoices)
	}
	var invalid metav1.Status
	if err := json.Unmarshal([]byte(shown(paste(1))), &invalid); err != nil {
		t.Fatal(err)
	}
	if invalid.Code != 422 || invalid.Reason != metav1.StatusReasonInvalid || invalid.Details == nil {
		t.Fatalf("422: %+v", invalid)
	}
	fields := make([]string, 0, 3) // the words are internal/status's and the policies' to test
	for _, cause := range invalid.Details.Causes {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	if want := []string{"spec.owner", "spec.partitions", "spec.partitions"}; !slices.Equal(fields, want) {
		t.Errorf("422: the causes are about %v, want %v: %s", fields, want, invalid.Message)
	}
	if got, want := shown(paste(2)), `{"id":"o1","customer":"team-a","lines":[{"sku":"tea","unitPriceCents":450,"quantity":1}],"currency":"EUR","priority":"Standard"}`+"\n"; got != want {
		t.Errorf("status: %s, want %s", got, want)
	}
	limited := paste(3)
	if n := strings.Count(limited, "HTTP/1.1 201 Created\r\n"); n != 3 {
		t.Errorf("%d creates succeeded, want 3:\n%s", n, limited)
	}
	last := limited[strings.LastIndex(limited, "HTTP/1.1"):]
	if !regexp.MustCompile(`^HTTP/1\.1 429 Too Many Requests\r\n(?s:.*)Retry-After: (\d+)\r\n(?s:.*)"reason":"TooManyRequests","details":\{"retryAfterSeconds":\d+\},"code":429\}`).MatchString(last) {
		t.Errorf("the fourth create is answered\n%s", last)
	}
	digits := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+`)
	plain := func(answer string) string {
		return digits.ReplaceAllString(date.ReplaceAllString(strings.ReplaceAll(answer, "\r\n", "\n"), ""), "0")
	}
	if !strings.Contains(plain(string(readme)), plain(last)) {
		t.Errorf("README does not show the answer to the fourth create:\n%s", last)
	}
	if got := paste(4); got != invoices {
		t.Errorf("GET: %s, want %s", got, invoices)
	}
	_, dir, _ := strings.Cut(printed.String(), "the policies      ")
	dir, _, _ = strings.Cut(dir, " ")
	if _, err := os.Stat(dir + "/queues.yaml"); err != nil {
		t.Errorf("the policy files are not where the demo says: %v", err)
	}
	if err := demo.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := demo.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the demo left %s behind: %v", dir, err)
	}
}
