package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/telemetry"
)

// TestDashboards: the queries of the dashboards name metrics and labels that the gateway has.
func TestDashboards(t *testing.T) {
	metrics, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	metrics.RateLimited("p")
	metrics.RateLimitWarned("p")
	metrics.AdmissionDenied("p")
	metrics.UpstreamError("u", "r")
	metrics.PoliciesLoaded(1, "h", time.Now())
	metrics.PoliciesRejected()
	metrics.RequestDone(&telemetry.Record{Outcome: telemetry.Outcome{Code: 422}})
	page := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	labels := map[string]string{} // of each metric
	for line := range strings.Lines(page.Body.String()) {
		if m := regexp.MustCompile(`^(gateway_\w+)(?:\{(.*)\})? `).FindStringSubmatch(line); m != nil {
			labels[m[1]] += m[2] + ","
		}
	}
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	selector, by := regexp.MustCompile(`(gateway_\w+)(?:\{(\w+)[^}]*\})?`), regexp.MustCompile(`by \(([^)]*)\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				names := selector.FindAllStringSubmatch(target.Expr, -1)
				if len(names) == 0 {
					t.Errorf("%s, %q: %s names no metric", file, p.Title, target.Expr)
				}
				for _, name := range names {
					want := []string{name[2]}
					for _, group := range by.FindAllStringSubmatch(target.Expr, -1) {
						want = append(want, strings.Split(group[1], ", ")...)
					}
					has, found := labels[name[1]]
					for _, label := range want {
						if !found || label != "" && !strings.Contains(","+has, ","+label+`="`) {
							t.Errorf("%s, %q: the gateway has no %s by %q", file, p.Title, name[1], label)
						}
					}
				}
			}
		}
	}
}
