package main

import (
	"compress/gzip"
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

	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// decision has the members of an event in a decision log at which the tests look.
type decision struct {
	Labels     map[string]string
	DecisionID string `json:"decision_id"`
	Bundles    map[string]struct{ Revision string }
	Path       string
	Input      struct {
		Review struct{ Object map[string]any }
	}
	Result         any
	Erased, Masked []string
	Error          *struct{ Code, Message string }
	RequestedBy    string `json:"requested_by"`
	ReqID          uint64 `json:"req_id"`
	Custom         map[string]any
}

func (d *decision) String() string {
	message := ""
	if d.Error != nil {
		message = d.Error.Message
	}
	return fmt.Sprint(d.ReqID, " ", d.Custom["policy"], " ", d.Path, " ", d.Bundles, " ", d.Input.Review.Object, " ",
		d.Result, " ", message, " ", d.Erased, " ", d.Masked)
}

// TestDecisionLogs runs the gateway with a service that takes decision logs, and with a bundle whose rules
// mask them: nothing is shown before the bundle is there, and the file has what the service has.
func TestDecisionLogs(t *testing.T) {
	_, backend := startBackend(t)
	var mu sync.Mutex
	var taken []decision
	var masks []byte // none: 503
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/team.tar.gz":
			_, _ = w.Write(bundletest.Archive(t, map[string]string{
				".manifest":            `{"revision": "r1", "roots": ["tickets"]}`,
				"tickets/tickets.rego": "package tickets\n\ndeny contains \"not urgent\" if contains(input.review.object.subject, \"urgent\")\n",
			}))
		case r.URL.Path == "/masks.tar.gz" && masks != nil:
			_, _ = w.Write(masks)
		case r.URL.Path == "/v1/logs/team-a" && r.Header.Get("Authorization") == "Bearer log-token":
			var body []decision
			z, err := gzip.NewReader(r.Body)
			if err == nil {
				err = json.NewDecoder(z).Decode(&body)
			}
			if err != nil {
				t.Errorf("the service cannot read a body: %v", err)
			}
			taken = append(taken, body...)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	credentialstest.WriteFile(t, dir, "token", []byte("log-token\n"))
	credentialstest.WriteFile(t, dir, "tickets.yaml", []byte(bundledTickets))
	config := credentialstest.WriteFile(t, dir, "gateway.yaml", []byte(strings.ReplaceAll(`
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
policies: [tickets.yaml]
drainSeconds: 0
bundles:
- {name: team, url: URL/team.tar.gz, minDelaySeconds: 1, maxDelaySeconds: 1}
- {name: masks, url: URL/masks.tar.gz, minDelaySeconds: 1, maxDelaySeconds: 1}
telemetry:
  decisionLogs:
    labels: {app: shop}
    maskBundle: masks
    log: {path: decisions.log}
    service: {url: URL/v1, partition: team-a, tokenFile: token, minDelaySeconds: 0, maxDelaySeconds: 1}
`, "URL", server.URL)))
	p := startBundled(t, config, backend)
	testutil.Eventually(t, "the bundle is there",
		func() bool { return strings.Contains(p.log.String(), "bundle=team revision=r1") })
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(taken)
	}
	if got := p.ticket(t, `{"id":"t1","subject":"urgent","phone":"555"}`); !strings.HasPrefix(got, "422 ") {
		t.Errorf("the answer is %s", got)
	}
	if got := p.ticket(t, `{"id":"t2","subject":"boring"}`); got != "201" {
		t.Errorf("the answer is %s", got)
	}
	if n := count(); n > 0 {
		t.Errorf("%d decisions were shown without the rules that mask them", n)
	}
	mu.Lock()
	masks = bundletest.Archive(t, map[string]string{"log.rego": `package system.log

mask contains {"op": "upsert", "path": "/input/review/object/phone", "value": "**"} if input.input.review.object.phone
mask contains "/input/review/object/subject"
drop if {
	input.custom.policy == "warns"
	input.custom.violations == 0
}
`})
	mu.Unlock()
	testutil.Becomes(t, 3, count)
	const erased = " [/input/review/object/subject] "
	want := []string{
		"1 tickets tickets/deny map[team:{r1}] map[id:t1 phone:**] [not urgent] " + erased +
			"[/input/review/object/phone]",
		"1 warns tickets/deny map[team:{r1}] map[id:t1 phone:**] [not urgent] " + erased +
			"[/input/review/object/phone]",
		"2 tickets tickets/deny map[team:{r1}] map[id:t2] [] " + erased + "[]",
	}
	check := func(where string, got []decision) {
		t.Helper()
		ids := map[string]bool{}
		for i := range got {
			d := &got[i]
			ids[d.DecisionID] = true
			if i >= len(want) || d.String() != want[i] || d.Labels["app"] != "shop" || len(d.Labels["id"]) != 36 ||
				d.Labels["version"] == "" || d.RequestedBy != "127.0.0.1" {
				t.Errorf("%s has %s of %s with %v", where, d, d.RequestedBy, d.Labels)
			}
		}
		if len(ids) != len(want) {
			t.Errorf("%s has %d ids", where, len(ids))
		}
	}
	mu.Lock()
	check("the service", taken)
	mu.Unlock()

	// Waiting events are sent before the gateway ends.
	if got := p.ticket(t, `{"id":"t3","subject":"urgent"}`); !strings.HasPrefix(got, "422 ") {
		t.Errorf("the answer is %s", got)
	}
	testutil.Eventually(t, "counted", func() bool {
		return strings.Contains(p.get("/metrics").body, `gateway_decision_log_uploads_total{outcome="Sent"} `)
	})
	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	for _, policy := range []string{"tickets", "warns"} {
		want = append(want, "3 "+policy+" tickets/deny map[team:{r1}] map[id:t3] [not urgent] "+erased+"[]")
	}
	check("the service", taken)
	text, err := os.ReadFile(filepath.Join(dir, "decisions.log"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []decision
	for line := range strings.Lines(string(text)) {
		var d decision
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Errorf("the file has %s: %v", line, err)
		}
		lines = append(lines, d)
	}
	check("the file", lines)
}

// TestCheckMasks: what is wrong with the rules that mask decisions is found in a file.
func TestCheckMasks(t *testing.T) {
	dir := t.TempDir()
	config := credentialstest.WriteFile(t, dir, "gateway.yaml",
		[]byte("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
			"upstreams: [{name: api, endpoints: ['http://127.0.0.1:9000']}]\nbundles: [{name: masks, file: masks.tar.gz}]\n"+
			"policies: [tickets.yaml]\ntelemetry: {decisionLogs: {maskBundle: masks, log: {path: '-'}}}\n"))
	resource, _, _ := strings.Cut(bundledTickets, "---")
	credentialstest.WriteFile(t, dir, "tickets.yaml", []byte(resource+`---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: urgent}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [support.example.com], apiVersions: [v2], operations: [CREATE], resources: [tickets]}]}
  rego: |
    package urgent

    deny contains "must not be urgent" if input.review.object.subject == "urgent"
`))
	for module, want := range map[string]string{
		"package system.log\n\nmask contains \"/input\"\n": "",
		"package log\n\nmask contains \"/input\"\n":        "masks.tar.gz: no module defines data.system.log.mask or data.system.log.drop, which decision logs need\n",
	} {
		credentialstest.WriteFile(t, dir, "masks.tar.gz", bundletest.Archive(t, map[string]string{"log.rego": module}))
		if got := run("check", "--config", config); (got.code == 0) != (want == "") ||
			!strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v, want %s", module, got, want)
		}
	}
}
