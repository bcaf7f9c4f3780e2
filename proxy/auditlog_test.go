package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// keptEvents is a sink in memory.
type keptEvents struct {
	bytes.Buffer
	err error
}

func (k *keptEvents) Name() string { return "memory" }
func (k *keptEvents) Close() error { return nil }
func (k *keptEvents) Write(_ context.Context, lines []byte) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	return k.Buffer.Write(lines)
}

// audited starts a gateway that records events in a sink.
func audited(t *testing.T, backend string, to *keptEvents, mode audit.Mode, policy string) *watched {
	t.Helper()
	w := &watched{Gateway: gatewayFor(t, policiestest.Write(t, observedPolicies+"---\n"+policy), backend,
		[]string{"policies=widgets"})}
	log := audit.New(audit.Options{Mode: mode, QueueBytes: 1 << 20, Backoff: time.Second, MaxBackoff: time.Second},
		audit.Waiting{Sink: to})
	w.observers.audit = &audit.Auditor{Log: log, MaxEvent: 100 << 10}
	w.address = startGateway(t, w.Gateway)
	return w
}

// events returns what was recorded, without what no two runs have the same.
func (w *watched) events(t *testing.T, from *keptEvents) string {
	t.Helper()
	if err := w.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.observers.audit.Log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(unlikeEvents.ReplaceAllString(from.String(), `$1"…"`), "\n")
	slices.Sort(lines) // an event is written after its answer
	return strings.Join(lines, "")
}

var unlikeEvents = regexp.MustCompile(`("(?:auditID|requestReceivedTimestamp|stageTimestamp|admission-gateway.io/configuration|admission-gateway.io/policies)":)"[^"]*"`)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, nonResourceURLs: ["/free*"]}
- {level: RequestResponse, verbs: [create, patch], resources: [{group: example.com}], omitStages: [RequestReceived]}
- {level: Request, verbs: [update], omitStages: [RequestReceived]}
- {level: Metadata}
`

// Events are whole, for each level and stage, for answers of the backend and of the gateway.
func TestAuditEvents(t *testing.T) {
	to := &keptEvents{}
	w := audited(t, newRecorder(t).Addr().String(), to, audit.Batch, auditPolicy)
	managed := strings.Replace(widget(""), `"metadata":{`, `"metadata":{"managedFields":[{"manager":"x"}],`, 1)
	w.ask(t, "POST", widgetsPath, managed, "Audit-ID", "mine")
	w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":70`, 1))
	w.ask(t, "PUT", widgetsPath+"/w1", widget(""))
	w.ask(t, "PATCH", widgetsPath+"/w1", `{"spec":{"size":6}}`, "Content-Type", "application/merge-patch+json")
	w.ask(t, "DELETE", widgetsPath+"/w1", "")
	w.ask(t, "GET", widgetsPath+"/w1?x=%3C", "", "Authorization", "Bearer secret-token", "Cookie", "secret-cookie")
	w.ask(t, "GET", "/healthz", "")
	got := w.events(t, to)
	const file = "testdata/audit.txt"
	if *isUpdate {
		testutil.WriteFile(t, file, got)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A log that must not lose an event refuses what it cannot record, before the backend sees anything of it.
func TestAuditRefuses(t *testing.T) {
	backend, to := newRecorder(t), &keptEvents{err: errors.New("the disk is full")}
	w := audited(t, backend.Addr().String(), to, audit.Blocking, auditPolicy)
	t.Cleanup(func() { _ = w.observers.audit.Log.Close(t.Context()) }) // which is over then: the sink never works
	w.ask(t, "GET", widgetsPath+"/w1", "")                             // its event finds out that the sink fails
	testutil.Eventually(t, "a refusal", func() bool {
		backend.Take()
		answer := w.ask(t, "PUT", widgetsPath+"/w1", widget(""))
		return answer.StatusCode == 503 && answer.Header.Get("Retry-After") == "1" && backend.Take() == ""
	})
	if answer := w.ask(t, "GET", "/free/1", ""); answer.StatusCode == 503 {
		t.Error("what is not recorded is refused")
	}
}

// The body of an answer that goes on without its handler is recorded in the events of its own request, and not in the
// events of the request that the handler serves next.
func TestAuditDetachedAnswer(t *testing.T) {
	url, conns := driven(t)
	to := &keptEvents{}
	w := audited(t, strings.TrimPrefix(url, backendScheme(t)), to, audit.Batch, `
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: RequestResponse, omitStages: [RequestReceived, ResponseStarted]}]
`)
	const next = "GET /next HTTP/1.1\r\nHost: gw\r\nUser-Agent: test\r\n\r\n"
	// it may last, for all that is known
	long, source := ask(t, w.address, conns, "/long?watch=false", "1.1", chunkedHead)
	send(t, source, chunk(`{"long":[1`))
	expect(t, long.Body, `{"long":[1`)
	client, br := dial(t, w.address)
	send(t, client, next)
	backend, _ := accept(t, conns) // the handler serves this request by now
	send(t, source, chunk(`,2]}`))
	expect(t, long.Body, `,2]}`)
	send(t, backend, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"next\":1}")
	answer, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, answer.Body, `{"next":1}`)
	send(t, source, "0\r\n\r\n")
	if rest, err := io.ReadAll(long.Body); len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
	got := map[string]string{}
	for line := range strings.Lines(w.events(t, to)) {
		var event struct {
			RequestURI     string
			SourceIPs      []string
			ResponseObject json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		got[event.RequestURI] += string(event.ResponseObject) + " for " + strings.Join(event.SourceIPs, ",")
	}
	want := map[string]string{"/long?watch=false": `{"long":[1,2]} for 127.0.0.1`, "/next": `{"next":1} for 127.0.0.1`}
	if !maps.Equal(got, want) {
		t.Errorf("the events have the answers %v, want %v", got, want)
	}
}
