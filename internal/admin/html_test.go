package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/markup/markuptest"
)

// TestPage: the page of a status with all that one can have, and of one with nothing, shows every value as text.
func TestPage(t *testing.T) {
	var full admin.Status
	var forecast admin.Forecast
	markuptest.Fill(&full)
	markuptest.Fill(&forecast)
	full.Upstreams[0].Versions[0].ETags = "Varying"
	full.Policies.LastReload.Outcome, full.Upstreams[0].Endpoints[0].Status = "Refused", "Ready"
	forecast.About.IsDescribed, forecast.Policies[0].Applies, forecast.Policies[1].Applies = false, "Yes", "Maybe"
	c := serve(t, admin.New(admin.Options{
		Status: func() admin.Status { return full }, Foresee: func(string) admin.Forecast { return forecast },
	}))
	markuptest.Same(t, c.get("GET", "/?request=%22%3E%3Cscript%3E").Body, "full.html")
	c = serve(t, admin.New(admin.Options{Status: func() admin.Status { return admin.Status{} }}))
	markuptest.Same(t, c.get("GET", "/").Body, "empty.html")
}

// TestPageOfManyOperations: the page has no more than 200 operations, and says where the others are.
func TestPageOfManyOperations(t *testing.T) {
	const row, rest = "<td><code>/v1/things-", "<p>These are 200 of %d operations. <code>gateway check --list</code> and <a href=\"/status\">/status</a> have all.</p>"
	for count, want := range map[int]int{0: 0, 1: 1, 199: 199, 200: 200, 201: 200, 1200: 200} {
		s := admin.Status{}
		for i := range count {
			s.Operations = append(s.Operations, admin.Operation{Method: "GET", Path: fmt.Sprintf("/v1/things-%04d", i), Resource: "things", Holds: "path"})
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
