package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// A dashboard has the parts of Grafana's model that the test reads.
type dashboard struct {
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct{ Name, Type, Query, AllValue string }

type panel struct {
	Type, Title string
	Targets     []struct {
		Expr    string
		Instant bool
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	b, err := os.ReadFile(bases + "/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A prometheus is a running server, asked by its API as Grafana asks it.
type prometheus struct{ url string }

// startPrometheus scrapes the gateway, and evaluates the alerts.
func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	program, dir, address := debian(t, "prometheus"), t.TempDir(), testutil.FreeAddress(t)
	text, _, _ := rules(t)
	write(t, filepath.Join(dir, "alerts.yaml"), text)
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`global: {scrape_interval: 500ms, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs: [{job_name: gateway, static_configs: [{targets: ["%s"]}]}]
`, target))
	start(t, answers("http://"+address+"/-/ready"), filepath.Join(dir, "log"), program, "--config.file="+
		filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	return &prometheus{"http://" + address}
}

// get asks for data of the API.
func (p *prometheus) get(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	answer, err := http.Get(p.url + path + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		Error string
		Data  json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || body.Error != "" {
		t.Fatalf("%s %s: %v %s", path, query, err, body.Error)
	}
	if err := json.Unmarshal(body.Data, into); err != nil {
		t.Fatalf("%s %s: %v\n%s", path, query, err, body.Data)
	}
}

// count is how many numbers the answer to a query has: now, or over the last half minute in steps of a second.
func (p *prometheus) count(t *testing.T, expr string, instant bool) int {
	t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	seconds := func(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
	path, query := "/api/v1/query", url.Values{"query": {expr}, "time": {seconds(now)}}
	if !instant {
		path, query = "/api/v1/query_range",
			url.Values{"query": {expr}, "start": {seconds(now - 30)}, "end": {seconds(now)}, "step": {"1"}}
	}
	var data struct {
		Result []struct {
			Value  []any
			Values [][]any
		}
	}
	p.get(t, path, query, &data)
	n := 0
	for _, r := range data.Result {
		for _, v := range append(r.Values, r.Value) {
			if len(v) == 2 && v[1] != "NaN" {
				n++
			}
		}
	}
	return n
}

// values are the values of a label of the series that match.
func (p *prometheus) values(t *testing.T, label, match string) (all []string) {
	t.Helper()
	p.get(t, "/api/v1/label/"+label+"/values", url.Values{"match[]": {match}}, &all)
	return all
}

// Every panel of the dashboard shows something of a gateway to which everything happens, every variable has values, and
// every alert asks for metrics that there are.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	demo := startDemo(t)
	p := startPrometheus(t, demo.admin)
	demo.disturb(t)

	fill := strings.NewReplacer("$__rate_interval", "5s", "$job", ".+", "$instance", ".+")
	empty := map[string]bool{}
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			expr := fill.Replace(q.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: %s has a variable that the dashboard does not have", panel.Title, expr)
			}
			empty[panel.Title+": "+expr] = true
		}
	}
	if len(empty) < 60 {
		t.Errorf("the dashboard has %d queries", len(empty))
	}
	eventuallyEmpty(t, empty, func() {
		for _, panel := range d.Panels {
			for _, q := range panel.Targets {
				expr := fill.Replace(q.Expr)
				if key := panel.Title + ": " + expr; empty[key] && p.count(t, expr, q.Instant) > 0 {
					delete(empty, key)
				}
			}
		}
	})
	checkVariables(t, p, d)
	checkAlerts(t, p)
}

// eventuallyEmpty looks again until nothing is left.
func eventuallyEmpty(t *testing.T, left map[string]bool, look func()) {
	t.Helper()
	defer func() {
		for what := range left {
			t.Errorf("shows nothing: %s", what)
		}
	}()
	eventually(t, "every panel shows something", func() bool {
		look()
		return len(left) == 0
	})
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

func checkVariables(t *testing.T, p *prometheus, d dashboard) {
	t.Helper()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Query)
		if m == nil {
			t.Errorf("the variable %s asks %s", v.Name, v.Query)
			continue
		}
		if len(p.values(t, m[2], strings.ReplaceAll(m[1], "$job", ".+"))) == 0 || v.AllValue != ".+" {
			t.Errorf("the variable %s has no values", v.Name)
		}
	}
}

// clusterMetrics are the documented metrics of a watched cluster, which the demo's gateway does not watch. Tests of the
// package telemetry compare the page with the metrics.
func clusterMetrics(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/observability/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\bgateway_cluster_[a-z_]+`).FindAllString(string(page), -1)
}

// checkAlerts compares the metrics in the alerts with the metrics that there are, and lets Prometheus say how it fares
// with the alerts.
func checkAlerts(t *testing.T, p *prometheus) {
	t.Helper()
	known := append(p.values(t, "__name__", `{job="gateway"}`), clusterMetrics(t)...)
	text, names, records := rules(t)
	for _, name := range records {
		eventually(t, "there is "+name, func() bool { return p.count(t, name, true) > 0 })
	}
	// Records have the names of metrics within theirs.
	expressions := regexp.MustCompile(`\w+:\w+:\w+`).ReplaceAllString(text, "")
	for _, metric := range regexp.MustCompile(`\b(gateway|process|go)_[a-z0-9_]+`).FindAllString(expressions, -1) {
		if !slices.Contains(known, metric) {
			t.Errorf("an alert asks for %s, which the gateway does not have", metric)
		}
	}
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.get(t, "/api/v1/rules", nil, &data)
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			names = slices.DeleteFunc(names, func(name string) bool { return name == r.Name && r.Health == "ok" })
		}
	}
	if len(names) > 0 {
		t.Errorf("Prometheus does not evaluate %q: %+v", names, data)
	}
}
