package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// loggedPolicies record each request about notes, and judge each by a rule in Rego.
const loggedPolicies = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: "/v1/notes/{name}"}
  fields: {name: id}
  envelope: Bare
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: notes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [notes]}]}
  rego: |
    package notes
    deny contains "never" if input.review.object.id == "never"
---
apiVersion: audit.k8s.io/v1
kind: Policy
metadata: {name: all}
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// A logging is a gateway process that writes an audit log and a decision log, and how many requests it was sent.
type logging struct {
	*process
	sent int
}

// startLogging runs a gateway by the telemetry of a configuration file, with further files beside it. Its standard
// output and error may go to files.
func startLogging(t *testing.T, dir, telemetry string, to ...func(p *process)) *logging {
	t.Helper()
	_, backend := startBackend(t)
	testutil.WriteFile(t, filepath.Join(dir, "policies.yaml"), loggedPolicies)
	file := testutil.WriteFile(t, filepath.Join(dir, "gateway.yaml"),
		"apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\npolicies: [policies.yaml]\ndrainSeconds: 0\ntelemetry: "+telemetry+"\n")
	p := newProcess(testutil.FreeAddress(t), testutil.FreeAddress(t), "--upstream", "http://"+backend, "--dialect",
		"plain", "--config", file)
	for _, set := range to {
		set(p)
	}
	p.start(t)
	testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
	return &logging{process: p}
}

// try makes a note, and returns the code of the answer.
func (l *logging) try(t *testing.T) int {
	t.Helper()
	l.sent++
	answer, err := http.Post("http://"+l.listen+"/v1/notes", "application/json",
		strings.NewReader(fmt.Sprintf(`{"id":"n%d"}`, l.sent)))
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// send makes as many notes.
func (l *logging) send(t *testing.T, count int) {
	t.Helper()
	for range count {
		if code := l.try(t); code != http.StatusCreated {
			t.Fatalf("the answer is %d", code)
		}
	}
}

// idsIn returns the id of each line of a log.
func idsIn(t *testing.T, file string) (ids []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	if bytes.IndexByte(text, 0) >= 0 {
		t.Errorf("%s has a hole", file)
	}
	for line := range bytes.Lines(text) {
		var one struct {
			AuditID    string
			DecisionID string `json:"decision_id"`
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			return ids // the rest of it is not written yet
		}
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("%s: %v: %s", file, err, line)
		}
		ids = append(ids, one.AuditID+one.DecisionID)
	}
	return ids
}

// TestRotation: others rotate the files of both logs of a running gateway, in each way. Each event is in one of the
// files, once.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	p := startLogging(t, dir, "{audit: {log: {path: audit.log}}, decisionLogs: {log: {path: decisions.log}}}")
	logs := []string{filepath.Join(dir, "audit.log"), filepath.Join(dir, "decisions.log")}
	const burst = 25
	all := map[string]bool{}
	for step, rotate := range map[string]func(file, to string) error{
		"nothing": func(file, to string) error { return nil },
		"rename":  os.Rename,
		"rename, SIGHUP": func(file, to string) error {
			if err := os.Rename(file, to); err != nil {
				return err
			}
			p.signal(t, syscall.SIGHUP)
			return nil
		},
		"copytruncate": func(file, to string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				return err
			}
			return os.Truncate(file, 0)
		},
		"removed": func(file, to string) error { return os.Remove(file) },
	} {
		before := map[string]int{}
		for _, file := range logs {
			if before[file] = len(idsIn(t, file)); step != "nothing" {
				if err := rotate(file, fmt.Sprintf("%s.%d", file, p.sent)); err != nil {
					t.Fatal(err)
				}
				before[file] = 0
			}
		}
		p.send(t, burst)
		for _, file := range logs {
			testutil.Becomes(t, before[file]+burst, func() int { return len(idsIn(t, file)) })
			for _, id := range idsIn(t, file) {
				all[filepath.Base(file)+id] = true
			}
		}
	}
	if want := 2 * p.sent; len(all) != want {
		t.Errorf("%d events are in the files, want %d", len(all), want)
	}
	if strings.Contains(p.log.String(), "are lost") {
		t.Errorf("events were lost: %s", p.log)
	}
}

// TestSlowWebhookOfProcess: a webhook that does not answer loses none of the file's events, and gets its own when it
// does.
func TestSlowWebhookOfProcess(t *testing.T) {
	var mu sync.Mutex
	isSlow, got := true, map[string]bool{}
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var list struct{ Items []struct{ AuditID string } }
		err := json.NewDecoder(r.Body).Decode(&list)
		mu.Lock()
		slow := isSlow
		if !slow && err == nil {
			for _, one := range list.Items {
				got[one.AuditID] = true
			}
		}
		mu.Unlock()
		if slow {
			<-r.Context().Done()
		}
	}))
	defer webhook.Close()
	dir := testutil.WriteFiles(t, map[string]string{"webhook": fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":%q}}]}`, webhook.URL)})
	p := startLogging(t, dir, "{audit: {log: {path: audit.log}, webhook: {kubeconfig: webhook, maxWaitSeconds: 0, timeoutSeconds: 1}}}")
	p.send(t, 100)
	testutil.Becomes(t, p.sent, func() int { return len(idsIn(t, filepath.Join(dir, "audit.log"))) })
	testutil.Eventually(t, "the log has the cause", func() bool {
		return strings.Contains(p.log.String(), `msg="the audit log cannot be written" sink=webhook cause=`)
	})
	testutil.Eventually(t, "/readyz?verbose has the sink",
		func() bool { return strings.Contains(p.get("/readyz?verbose").body, "webhook: ") })
	testutil.Eventually(t, "the metrics have the sink", func() bool {
		return strings.Contains(p.get("/metrics").body, `log="audit",sink="webhook"}`)
	})
	mu.Lock()
	isSlow = false
	mu.Unlock()
	testutil.Becomes(t, p.sent, func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(got)
	})
}
