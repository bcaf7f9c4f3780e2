package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestErrorFormat: a route's word counts before its upstream's, and an API server's clients read Status alone.
func TestErrorFormat(t *testing.T) {
	read := func(upstream, route string) (*Configuration, error) {
		return Load(testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"),
			head+"upstreams: [{name: api, endpoints: [http://127.0.0.1:9000], dialect: "+upstream+
				"}]\nroutes: [{pathPrefix: /, upstream: api"+route+"}]\n"), Flags{})
	}
	for setting, want := range map[[2]string]ErrorFormat{
		{"Plain", ""}: StatusErrors, {"Plain, errorFormat: Problem", ""}: ProblemErrors,
		{"Plain", ", errorFormat: Problem"}:                      ProblemErrors,
		{"Plain, errorFormat: Problem", ", errorFormat: Status"}: StatusErrors,
		{"Kubernetes, errorFormat: Status", ""}:                  StatusErrors,
	} {
		c, err := read(setting[0], setting[1])
		if err != nil {
			t.Errorf("%q: %v", setting, err)
		} else if got := c.Upstreams[0].ErrorFormatOn(&c.Routes[0]); got != want {
			t.Errorf("%q: %s, want %s", setting, got, want)
		}
	}
	for setting, want := range map[[2]string]string{
		{"Plain, errorFormat: JSON", ""}: "upstreams[0].errorFormat: must be 'Status', 'Problem' or 'Template', not 'JSON'",
		{"Kubernetes, errorFormat: Problem",
			""}: "upstreams[0].errorFormat: must not be 'Problem' for the upstream 'api'",
		{"Kubernetes, errorFormat: Template, errorTemplate: nest",
			""}: "upstreams[0].errorFormat: must not be 'Template' for the upstream 'api'",
		{"Plain, errorFormat: Template", ""}: "upstreams[0].errorTemplate: Required value: must be the name of an ErrorTemplate of the policy files where `errorFormat` is 'Template'",
		{"Plain",
			", errorTemplate: nest"}: "routes[0].errorTemplate: must not be set unless `errorFormat` is 'Template'",
		{"Kubernetes", ", errorFormat: Problem"}: "routes[0].errorFormat: must not be 'Problem' for the upstream 'api'",
	} {
		if _, err := read(setting[0], setting[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", setting, err, want)
		}
	}
}

// TestErrorTemplate: a route that says a format says its template too.
func TestErrorTemplate(t *testing.T) {
	upstream := UpstreamSpec{ErrorFormat: TemplateErrors, ErrorTemplate: "nest"}
	for _, c := range []struct {
		route Route
		want  string
	}{
		{Route{}, "nest"}, {Route{ErrorFormat: TemplateErrors, ErrorTemplate: "own"}, "own"},
		{Route{ErrorFormat: StatusErrors}, ""},
	} {
		if got := upstream.ErrorTemplateOn(&c.route); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.route, got, c.want)
		}
	}
}
