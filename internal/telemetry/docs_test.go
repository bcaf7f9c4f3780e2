package telemetry

import (
	"flag"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables of docs/observability")

// expectTable compares the table of a page below a heading row with the code.
func expectTable(t *testing.T, name, header string, rows []string) {
	t.Helper()
	page := "../../docs/observability/" + name
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), header+"\n")
	if !found {
		t.Fatalf("%s has no table %q", page, header)
	}
	old, after, _ := strings.Cut(rest, "\n\n")
	table := "|" + strings.Repeat("---|", strings.Count(header, "|")-1) + "\n" + strings.Join(rows, "\n")
	if old == table {
		return
	}
	if !*update {
		t.Errorf("%s has another table; go test ./internal/telemetry -run TestDocs -update writes\n%s", page, table)
		return
	}
	if err := os.WriteFile(page, []byte(before+header+"\n"+table+"\n\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDocsOfLog(t *testing.T) {
	var rows []string
	for _, f := range AccessFields {
		ecs := "`" + f.ECS + "`"
		if f.ECS == f.OpenTelemetry {
			ecs = ""
		}
		rows = append(rows, "| `"+f.OpenTelemetry+"` | "+ecs+" | "+f.Meaning+" |")
	}
	expectTable(t, "logs.md", "| field | with `ECS` | is |", rows)
}

// Each metric that the gateway has, with its labels, is in the table.
func TestDocsOfMetrics(t *testing.T) {
	tel := newTelemetry(t)
	fill(tel)
	families, err := tel.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "gateway_") || f.GetName() == "gateway_build_info" {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		rows = append(rows, "| `"+f.GetName()+"` | "+strings.Join(labels, ", ")+" | "+
			strings.TrimSuffix(f.GetHelp(), ".")+" |")
	}
	if len(rows) < 35 {
		t.Fatalf("there are only %d metrics", len(rows))
	}
	expectTable(t, "metrics.md", "| metric | labels | is |", rows)
}

// fill records something of each kind.
func fill(t *Telemetry) {
	t.PoliciesCompiled([]PolicyStage{{"read", time.Second}})
	t.PolicyFolders([]PolicyFolder{{"a", "team-a", "", time.Unix(1, 0)}})
	t.FolderRefused("a", "team-a")
	r := denied()
	r.Routing.Rule, r.Routing.Listener = "0", "infra/gw/http"
	t.RequestDone(r, nil)
	t.PolicyDecided("p", "Deny", 3)
	t.SchemaRefused("widgets", "FieldValueInvalid")
	AnswerChecked(t, "users", "Invalid")
	AnswerDeparted(t, "users", "Body")
	t.LimitDecided("l", "Admit")
	t.RateLimited("l")
	t.RateLimitWarned("l")
	t.AdmissionDenied("p", "widgets", "Invalid")
	t.PolicyIgnored("p")
	t.AdmissionAudited("p")
	WouldDeny(t, "p")
	ContractTried(t, "APIResource/orders", "POST /v2/orders", "Invalid")
	Excepted(t, "p", "e")
	t.ErrorTemplateFailed("nest")
	t.UpstreamError("api", "Busy")
	t.CredentialsRefused("jwt")
	t.AuditLost("log", 1)
	t.PolicyErred("p")
	SinkFailed(t, "audit", "log", syscall.ENOSPC)
	t.EventRecorded("api", "Sent")
	t.RequestMirrored("api", "Sent")
	t.SharedLimitDecided("Admitted", time.Millisecond)
	t.ConfigurationLoaded("h", []string{"listen"}, time.Now())
	t.PoliciesLoaded(1, "h", time.Now())
	t.BundleFailed("b", "Download")
	DecisionsLost(t, "service", "QueueFull", 1)
	DecisionsSent(t, "Sent")
	t.ObserveBundles(func() map[string]time.Duration { return map[string]time.Duration{"b": 0} })
	t.ObserveCertificates(func() map[string]time.Time {
		return map[string]time.Time{"the public listener": time.Now()}
	})
	t.ObserveCluster(func() Cluster {
		return Cluster{Kinds: []ClusterKind{{Name: "HTTPRoute", Events: 1, Lists: 1, LastEvent: time.Now()}},
			Lag: time.Millisecond}
	})
	t.ObserveListeners(func() map[string]int { return map[string]int{"Serving": 1, "Failed": 0} })
	t.ObserveIdle(func() map[string]int { return map[string]int{"NoResource": 1} })
	t.ObserveStates(func() map[string]time.Duration { return map[string]time.Duration{"/api/v1/namespaces": 0} })
	t.ObserveUpstreams(func() []Upstream {
		return []Upstream{{Name: "api", Endpoints: map[string]int{"Ready": 1}, Circuits: map[string]int{"Closed": 1},
			Varying: []string{"notes"}}}
	})
}
