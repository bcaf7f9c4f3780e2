package admin_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/playground"
	"github.com/admission-gateway/gateway/internal/scan"
	"github.com/admission-gateway/gateway/internal/testutil/browser"
)

var pictures = flag.String("pictures", "", "write pictures of the pages into a folder, and the one of README into docs/images")

// busy is the status of a gateway with much to show, in words as long as they get.
func busy(isReady bool) admin.Status {
	at := time.Date(2026, 1, 14, 9, 12, 44, 0, time.UTC)
	hash := strings.Repeat("5f0c6a1e8a0b4c53", 4)
	s := admin.Status{
		Version: "v1.2.3", GoVersion: "go1.26.8", StartTime: at, UptimeSeconds: 123456,
		Policies: admin.Policies{Generation: 12, Hash: hash, LoadTime: at,
			LastReload: &admin.Reload{Time: at, Outcome: "Loaded"}, Files: []admin.PolicyFile{
				{Path: "/etc/gateway/policies/workloads/pod-security/restricted/privilege-escalation.yaml", Objects: []admin.PolicyObject{
					{Kind: "ValidatingAdmissionPolicyBinding",
						Name: "restricted-privilege-escalation-of-containers-in-every-workload.example.com"}}},
			}},
		Resources: []admin.Resource{{Name: "queues.messaging.example.com", Version: "v1", Kind: "Queue"},
			{Name: "orders.shop.example.com", Version: "v2", Kind: "Order",
				Paths: []string{"/v2/orders", "/v2/orders/{name}"}}},
		Answers: []admin.RequestCounts{{Resource: "orders.shop.example.com", Requests: 1234567, Refused: 123,
			Failed: 4, LastMinute: 777}},
		Refusals: []admin.Refusal{
			{Time: at, Method: "POST", Host: "127.0.0.1:8080",
				Path: "/apis/messaging.example.com/v1/namespaces/team-a/queues", Code: 422, Reason: "Invalid",
				Field: "spec.partitions"},
			{Time: at, Method: "POST", Host: "127.0.0.1:8080", Path: "/v2/orders", Code: 429, Reason: "TooManyRequests",
				Policy: "sandbox-creates"},
		},
		Operations: []admin.Operation{{Path: "/apis/messaging.example.com/v1/namespaces/{namespace}/queues/{name}",
			Method: "PATCH", Resource: "queues.messaging.example.com", Routes: []string{"/ to default"},
			Holds: "a schema; defaults; no other writes"}},
		Verdicts: []admin.Tally{{Policy: "partition-limit", Verdict: "Allow", Count: 12},
			{Policy: "owners", Verdict: "Error", Count: 2}},
		Limits: []admin.Tally{{Policy: "sandbox-creates", Verdict: "Refuse", Count: 3}},
		RateLimits: []admin.RateLimit{{Name: "sandbox-creates", Mode: "Enforce", Key: "Namespace", Requests: 3,
			PeriodSeconds: 60, Verbs: []string{"create"}, Resources: []string{"queues"}}},
		Idle: []admin.Idle{{Kind: "ValidatingAdmissionPolicy", Name: "sizes", Reason: "NoResource",
			Place: "policies/sizes.yaml:7:3", Field: "spec.matchConstraints.resourceRules[0].resources[0]",
			Message: "no API server has the resource 'widgets'"}},
		Upstreams: []admin.Upstream{{Name: "orders", Circuit: "Closed", Endpoints: []admin.Endpoint{
			{Address: "10.0.0.3:9000", Host: "orders.example.com:9000", Status: "Ready", Connections: 3,
				LastAnswerTime: &at}, {Address: "10.0.0.5:9000", Host: "orders.example.com:9000", Status: "Ready"},
			{Address: "10.0.0.4:9000", Host: "orders.example.com:9000", Status: "Ready", ConsecutiveFailures: 7}}}},
		Certificates: []admin.Certificate{{Name: "the public listener", ExpireTime: at}},
	}
	if !isReady {
		findings := []string{"/etc/gateway/policies/team-a/limits.yaml:7:3: spec.requests: Invalid value: -1: must be greater than or equal to 1"}
		s.Policies.LastReload = &admin.Reload{Time: at, Outcome: "Refused", Findings: findings}
		s.Policies.LastFailure = &admin.Failure{Time: at, Findings: findings}
	}
	return s
}

// TestPictures: on wide and narrow screens, light and dark, no page runs out of its place or is hard to read. -pictures
// writes what is seen.
func TestPictures(t *testing.T) {
	b := browser.Start(t)
	play := playground.New(playground.Options{Memory: memory.NewBudget(1<<30, 2)})
	isReady := true
	checks := make([]admin.Check, 0, 7)
	for _, name := range []string{"configuration", "policies", "bundles", "state", "dialects", "upstreams",
		"listener"} {
		checks = append(checks, admin.Check{Name: name, Probe: func() error {
			if name == "policies" && !isReady {
				return errors.New("the policy files of '/etc/gateway/policies/team-a' of 'team-a' have errors, and all requests are refused")
			}
			return nil
		}})
	}
	c := serve(t, admin.New(admin.Options{
		Ready:  checks,
		Status: func() admin.Status { return busy(isReady) },
		Forecast: func(string) admin.Forecast {
			return admin.Forecast{Route: &admin.Route{PathPrefix: "/", Upstream: "orders"},
				About: &admin.RequestResource{Verb: "create", Resource: "orders", Group: "shop.example.com",
					Version: "v2"},
				Policies: []admin.Applicability{{Name: "sizes", Kind: "ValidatingAdmissionPolicy", Phase: "Validating",
					Applies: "Maybe", Because: "if its matchConditions hold"}}}
		},
		Playground: &admin.Playground{Ask: play.Ask, Examples: func() (any, error) { return playground.Examples() }},
	}))
	written := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/scan.html" {
			report := &scan.Report{As: scan.Create,
				Tally: &scan.Tally{Objects: 1, Denied: 1, Findings: 1,
					Policies: map[string]*scan.PolicyTally{"replicas": {Assessed: 3, Denied: 1}}},
				Listed: []scan.Finding{{Effect: "deny", Policy: "replicas", Field: "spec.replicas",
					Message: "ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: must be less than or equal to 3"}}}
			_ = report.Write(w, "html")
			return
		}
		told, err := play.Ask(r.Context(), []byte(firstQuestion(t)))
		if err != nil {
			t.Error(err)
			return
		}
		_ = explanation.WriteHTML(w, told)
	}))
	t.Cleanup(written.Close)
	for _, page := range []struct {
		name, url, ready string
		isReady          bool
	}{
		{"status", "http://" + c.address + "/?request=POST+/v2/orders", "true", true},
		{"not-ready", "http://" + c.address + "/", "true", false},
		{"playground", "http://" + c.address + "/playground", "document.querySelector('.answer.Refused')", true},
		{"explain", written.URL + "/explain.html", "true", true},
		{"scan", written.URL + "/scan.html", "true", true},
	} {
		isReady = page.isReady
		for _, width := range []int{1280, 390} {
			for _, isDark := range []bool{false, true} {
				name := fmt.Sprintf("%s-%d", page.name, width)
				if isDark {
					name += "-dark"
				}
				b.Show(page.url, width, 900, isDark, page.ready)
				for _, fault := range b.Faults() {
					t.Errorf("%s: %s", name, fault)
				}
				if *pictures != "" {
					keep(t, filepath.Join(*pictures, name+".png"), b.Picture(true))
				}
			}
		}
	}
	if *pictures != "" {
		b.Show("http://"+c.address+"/playground", 1100, 720, false, "document.querySelector('.answer.Refused')")
		keep(t, "../../docs/images/playground.png", b.Picture(false))
	}
}

// TestFaultsOfPages: what is wrong with a page is found.
func TestFaultsOfPages(t *testing.T) {
	b := browser.Start(t)
	b.Show("data:text/html,<body style='color:rgb(170,170,170)'><p>pale</p><div style='width:50px'>"+strings.Repeat("a", 200)+"</div>", 390, 900, false, "true")
	all := strings.Join(b.Faults(), "\n")
	for _, want := range []string{"the page is ", "has a contrast of 2.3", "runs out of its place"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not found, but\n%s", want, all)
		}
	}
}

// TestPlaygroundPage: the page carries what is written in its link, and its script shows a hostile answer as text.
func TestPlaygroundPage(t *testing.T) {
	b := browser.Start(t)
	play := playground.New(playground.Options{Memory: memory.NewBudget(1<<30, 2)})
	c := serve(t,
		admin.New(admin.Options{Playground: &admin.Playground{Ask: play.Ask,
			Examples: func() (any, error) { return playground.Examples() }}}))
	page := "http://" + c.address + "/playground"
	b.Show(page, 1280, 900, false, "document.querySelector('.answer.Refused')")
	var link string
	b.Evaluate(`(() => {
  const set = (id, text) => { field(id).value = text; field(id).dispatchEvent(new Event('input')); };
  set('policies', ''); set('method', ''); set('path', '/<img src=x onerror=document.title="ran">/ü');
  set('body', '{"kind": "<script>document.title = \'ran\'</script>"}');
  return new Promise(done => { const wait = setInterval(() => { if (document.querySelector('.story h1')?.textContent.includes('ü')) { clearInterval(wait); done(location.href); } }, 20); });
})()`, &link)
	var got struct{ Path, Title, Markup string }
	b.Show(link, 1280, 900, false, "document.querySelector('.story h1')?.textContent.includes('ü')")
	b.Evaluate(`({Path: field('path').value, Title: document.title, Markup: field('answer').querySelectorAll('img, script').length + ''})`, &got)
	if !strings.HasSuffix(got.Path, "/ü") || strings.Contains(got.Title, "ran") || got.Markup != "0" ||
		strings.Contains(link, "?") {
		t.Errorf("%s shows %+v", link, got)
	}
}

// firstQuestion is the question of the first example.
func firstQuestion(t *testing.T) string {
	t.Helper()
	all, err := playground.Examples()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(all[0].Question)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
