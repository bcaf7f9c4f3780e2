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
		return Load(testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), head+"upstreams: [{name: api, endpoints: [http://127.0.0.1:9000], dialect: "+upstream+"}]\nroutes: [{pathPrefix: /, upstream: api"+route+"}]\n"), Flags{})
	}
	for setting, want := range map[[2]string]ErrorFormat{
		{"Plain", ""}: StatusErrors, {"Plain, errorFormat: Problem", ""}: ProblemErrors, {"Plain", ", errorFormat: Problem"}: ProblemErrors,
		{"Plain, errorFormat: Problem", ", errorFormat: Status"}: StatusErrors, {"Kubernetes, errorFormat: Status", ""}: StatusErrors,
	} {
		c, err := read(setting[0], setting[1])
		if err != nil {
			t.Errorf("%q: %v", setting, err)
		} else if got := c.Upstreams[0].ErrorFormatOn(&c.Routes[0]); got != want {
			t.Errorf("%q: %s, want %s", setting, got, want)
		}
	}
	for setting, want := range map[[2]string]string{
		{"Plain, errorFormat: JSON", ""}:         "upstreams[0].errorFormat: must be 'Status' or 'Problem', not 'JSON'",
		{"Kubernetes, errorFormat: Problem", ""}: "upstreams[0].errorFormat: must not be 'Problem' for the upstream 'api'",
		{"Kubernetes", ", errorFormat: Problem"}: "routes[0].errorFormat: must not be 'Problem' for the upstream 'api'",
	} {
		if _, err := read(setting[0], setting[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", setting, err, want)
		}
	}
}
