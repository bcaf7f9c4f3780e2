package admin_test

import (
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
	full.Policies.LastReload.Outcome, full.Upstreams[0].Endpoints[0].Status = "Refused", "Ready"
	forecast.About.IsDescribed, forecast.Policies[0].Applies, forecast.Policies[1].Applies = false, "Yes", "Maybe"
	c := serve(t, admin.New(admin.Options{
		Status: func() admin.Status { return full }, Foresee: func(string) admin.Forecast { return forecast },
	}))
	markuptest.Same(t, c.get("GET", "/?request=%22%3E%3Cscript%3E").Body, "full.html")
	c = serve(t, admin.New(admin.Options{Status: func() admin.Status { return admin.Status{} }}))
	markuptest.Same(t, c.get("GET", "/").Body, "empty.html")
}
