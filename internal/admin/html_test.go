package admin_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/pages/pagestest"
)

// TestPage: the page of a status with all that one can have, and of one with nothing, shows every value as text.
func TestPage(t *testing.T) {
	var full admin.Status
	var forecast admin.Forecast
	pagestest.Fill(&full)
	pagestest.Fill(&forecast)
	full.Upstreams[0].Versions[0].ETags = "Varying"
	full.Policies.LastReload.Outcome, full.Upstreams[0].Endpoints[0].Status = "Refused", "Ready"
	forecast.About.IsDescribed, forecast.Policies[0].Applies, forecast.Policies[1].Applies = false, "Yes", "Maybe"
	c := serve(t, admin.New(admin.Options{
		Status: func() admin.Status { return full }, Forecast: func(string) admin.Forecast { return forecast },
	}))
	pagestest.Same(t, c.get("GET", "/?request=%22%3E%3Cscript%3E").Body, "full.html")
	c = serve(t, admin.New(admin.Options{Status: func() admin.Status { return admin.Status{} }}))
	pagestest.Same(t, c.get("GET", "/").Body, "empty.html")
}

// TestPolicies: browsers run and apply what is on a page, which its policy names by hashes.
func TestPolicies(t *testing.T) {
	a := &asked{}
	c := serve(t,
		admin.New(admin.Options{Status: func() admin.Status { return admin.Status{} }, Playground: a.options()}))
	for path, kinds := range map[string][]string{"/": {"style"}, "/playground": {"style", "script"}} {
		page, header := c.send("GET", "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		for _, kind := range kinds {
			_, rest, _ := strings.Cut(page.Body, "<"+kind+">")
			text, _, isWhole := strings.Cut(rest, "</"+kind+">")
			sum := sha256.Sum256([]byte(text))
			want := kind + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			if policy := header.Get("Content-Security-Policy"); !isWhole || !strings.Contains(policy, want) {
				t.Errorf("%s has the policy %q, want %s in it", path, policy, want)
			}
		}
	}
}

// TestFindingsOnce: the findings of files that are refused stand on the page once, whether or not they are what was
// read last.
func TestFindingsOnce(t *testing.T) {
	failed := &admin.Failure{Findings: []string{"a.yaml:1: a finding"}}
	for outcome, last := range map[string]*admin.Reload{"read": {Outcome: "Refused", Findings: failed.Findings},
		"not read yet": nil, "read before": {Outcome: "Loaded"}} {
		c := serve(t, admin.New(admin.Options{Status: func() admin.Status {
			return admin.Status{Policies: admin.Policies{LastReload: last, LastFailure: failed}}
		}}))
		if page := c.get("GET", "/").Body; strings.Count(page, "a finding") != 1 ||
			!strings.Contains(page, "The newest files are not in force") {
			t.Errorf("%s: the finding stands %d times on\n%s", outcome, strings.Count(page, "a finding"), page)
		}
	}
}

// TestRefusals: each refusal has a link that explains it: with its request in the fragment, or by method and path alone
// where there is no playground.
func TestRefusals(t *testing.T) {
	s := admin.Status{Refusals: []admin.Refusal{{Method: "POST", Host: "shop.example", Path: "/orders/<1>", Code: 422,
		Reason: "Invalid", Policy: "p", Field: "spec.a"}}}
	for _, c := range []struct {
		with *admin.Playground
		want string
	}{
		{nil, `<a href="/?request=POST&#43;%2Forders%2F%3C1%3E">explain this</a>`},
		{(&asked{}).options(), `<a href="/playground#` + base64.RawURLEncoding.EncodeToString([]byte(`{"inForce":true,"method":"POST","path":"http://shop.example/orders/\u003c1\u003e"}`)) + `">explain this</a>`},
	} {
		page := serve(t, admin.New(admin.Options{Status: func() admin.Status { return s }, Playground: c.with})).get(
			"GET", "/").Body
		if !strings.Contains(page, c.want) {
			t.Errorf("%s is missing in\n%s", c.want, page)
		}
	}
}

// TestEndpointState: an endpoint that cannot be reached is not shown as ready in silence.
func TestEndpointState(t *testing.T) {
	at := time.Date(2026, 1, 14, 9, 12, 44, 0, time.UTC)
	for _, c := range []struct {
		endpoint   admin.Endpoint
		want       string
		isTroubled bool
	}{
		{admin.Endpoint{Status: "Ready"}, "Not tried yet", false},
		{admin.Endpoint{Status: "Ready", Connections: 1}, "No answer yet", false},
		{admin.Endpoint{Status: "Ready", LastAnswerTime: &at, Connections: 1}, "Ready", false},
		{admin.Endpoint{Status: "Ready", LastAnswerTime: &at, IsChecked: true}, "Ready", false},
		{admin.Endpoint{Status: "Ready", LastAnswerTime: &at}, "Idle, answered last at 2026-01-14T09:12:44Z", false},
		{admin.Endpoint{Status: "Ready", ConsecutiveFailures: 1}, "Failing, its last request failed", true},
		{admin.Endpoint{Status: "Ready", LastAnswerTime: &at, Connections: 1, ConsecutiveFailures: 5},
			"Failing, its last 5 requests failed", true},
		{admin.Endpoint{Status: "Ready", LastAnswerTime: &at, HealthCheck: "refused"}, "Failing: refused", true},
		{admin.Endpoint{Status: "Unhealthy", HealthCheck: "refused", ConsecutiveFailures: 2},
			"Unhealthy: refused, its last 2 requests failed", true},
		{admin.Endpoint{Status: "Ejected"}, "Ejected", true},
	} {
		if got := c.endpoint.State(); got != c.want || c.endpoint.IsTroubled() != c.isTroubled {
			t.Errorf("%+v is %q, troubled %v; want %q, %v", c.endpoint, got, c.endpoint.IsTroubled(), c.want,
				c.isTroubled)
		}
	}
}

// TestPageOfManyOperations: the page has no more than 200 operations, and says where the others are.
func TestPageOfManyOperations(t *testing.T) {
	const row, rest = `<td data-head="Path"><code>/v1/things-`, "<p>These are 200 of %d operations. <code>gateway check --list</code> and <a href=\"/status\">/status</a> have all.</p>"
	for count, want := range map[int]int{0: 0, 1: 1, 199: 199, 200: 200, 201: 200, 1200: 200} {
		s := admin.Status{}
		for i := range count {
			s.Operations = append(s.Operations, admin.Operation{Method: "GET", Path: fmt.Sprintf("/v1/things-%04d", i),
				Resource: "things", Holds: "path"})
		}
		c := serve(t, admin.New(admin.Options{Status: func() admin.Status { return s }}))
		page := c.get("GET", "/").Body
		if got := strings.Count(page, row); got != want {
			t.Errorf("of %d operations %d are shown, want %d", count, got, want)
		}
		if last := fmt.Sprintf("/v1/things-%04d<", want-1); want > 0 && !strings.Contains(page, last) {
			t.Errorf("of %d operations the first %d are not shown", count, want)
		}
		if has := strings.Contains(page, fmt.Sprintf(rest, count)); has != (count > want) {
			t.Errorf("of %d operations %d are shown, and the page says so: %v", count, want, has)
		}
		if got := strings.Count(c.get("GET", "/status").Body, "/v1/things-"); got != count {
			t.Errorf("/status has %d of %d operations", got, count)
		}
	}
}
