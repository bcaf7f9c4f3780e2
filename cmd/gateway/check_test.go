package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckConfig: policy files are held to the configuration that they are for.
func TestCheckConfig(t *testing.T) {
	source := write(t, "classes.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: classes}\nspec: {path: /v2/classes, upstream: strage}\n")
	config := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams:\n- {name: storage, endpoints: ['http://127.0.0.1:9000']}\npolicies: [" + source + "]\n"
	file := write(t, "gateway.yaml", config)
	right := write(t, "gateway.yaml", strings.Replace(config, "name: storage", "name: strage", 1))
	unread := write(t, "gateway.yaml", strings.Replace(config, "upstreams:", "upstream:", 1))
	finding := source + ":4: spec.upstream: must be the name of an upstream of the configuration: 'storage'\n"
	for _, c := range []struct {
		args []string
		want result
	}{
		{[]string{source}, result{0, "", ""}},
		{[]string{"--config", right}, result{0, "", ""}},
		{[]string{"--config", file}, result{1, finding, "gateway check: 1 error, 0 warnings\n"}},
		{[]string{"--config", file, filepath.Dir(source)}, result{1, finding, "gateway check: 1 error, 0 warnings\n"}},
	} {
		if got := run(append([]string{"check"}, c.args...)...); got != c.want {
			t.Errorf("check %v: %+v, want\n%+v", c.args, got, c.want)
		}
	}
	if got := run("check", "--config", unread); got.code != 2 || !strings.Contains(got.stderr, unread+":3: upstream: ") {
		t.Errorf("a wrong configuration: %+v", got)
	}
}
