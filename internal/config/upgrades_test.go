package config

import (
	"slices"
	"testing"
)

func TestUpgrades(t *testing.T) {
	for _, test := range []struct {
		setting string
		want    []string
		problem string
	}{
		{"", nil, ""},
		{"\n  dialect: Kubernetes", []string{"pods/exec", "pods/attach", "pods/portforward"}, ""},
		{"\n  upgrades: []", []string{}, ""},
		{"\n  upgrades: [/live]", []string{"/live"}, ""},
		{"\n  upgrades: [/live, pods/exec]", nil, "gateway.yaml:6: upstreams[0].upgrades[1]: must be a path, such as '/live', not 'pods/exec': " +
			"what files describe of an upstream of the dialect Plain is served in no other protocol"},
		{"\n  dialect: Kubernetes\n  upgrades: [pods/exec, nodes/proxy, machines.subresources.example.com/console, /live, /v2/events]",
			[]string{"pods/exec", "nodes/proxy", "machines.subresources.example.com/console", "/live", "/v2/events"},
			""},
		{"\n  upgrades: [pods]", nil, "gateway.yaml:6: upstreams[0].upgrades[0]: must be a subresource such as 'pods/exec' or 'machines.example.com/console', or a path such as '/live', not 'pods'"},
		{"\n  upgrades: [pods/exec/x]", nil, "gateway.yaml:6: upstreams[0].upgrades[0]: must be a subresource such as 'pods/exec' or 'machines.example.com/console', or a path such as '/live', not 'pods/exec/x'"},
		{"\n  upgrades: [deployments.apps/scale]", nil, "gateway.yaml:6: upstreams[0].upgrades[0]: must not be the subresource 'scale', which is part of an object"},
		{"\n  upgrades: [/live/]", nil, "gateway.yaml:6: upstreams[0].upgrades[0]: must not end with '/': a prefix counts whole segments, so '/v2' is all of '/v2/…'"},
		{"\n  dialect: Kubernetes\n  upgrades: [pods/exec, pods/exec]", nil, "gateway.yaml:7: upstreams[0].upgrades[1]: must be unique; 'pods/exec' is listed twice"},
	} {
		c, problem, _ := load(t, head+"upstreams:\n- name: cluster\n  endpoints: [http://127.0.0.1:9000]"+test.setting+
			"\n", Flags{})
		switch {
		case problem != test.problem:
			t.Errorf("%q: got the problem\n%s\nwant\n%s", test.setting, problem, test.problem)
		case problem == "" && !slices.Equal(c.Upstreams[0].AllowedUpgrades(), test.want):
			t.Errorf("%q: got %q, want %q", test.setting, c.Upstreams[0].AllowedUpgrades(), test.want)
		}
	}
}
