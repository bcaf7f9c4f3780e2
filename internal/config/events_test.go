package config

import "testing"

func TestEvents(t *testing.T) {
	const routes = "routes: [{upstream: a}]\n"
	for _, test := range []struct{ name, upstream, want string }{
		{"recorded", "{name: a, endpoints: [https://a], dialect: Kubernetes, events: Record}", ""},
		{"none", "{name: a, endpoints: [http://a], events: None}", ""},
		{"an ordinary API", "{name: a, endpoints: [http://a], events: Record}",
			"gateway.yaml:3: upstreams[0].events: must be 'None' for the upstream 'a': only an upstream of the dialect Kubernetes has Events"},
		{"another word", "{name: a, endpoints: [https://a], dialect: Kubernetes, events: All}",
			"gateway.yaml:3: upstreams[0].events: must be 'None' or 'Record', not 'All'"},
	} {
		c, problem, _ := load(t, head+"upstreams: ["+test.upstream+"]\n"+routes, Flags{})
		if problem != test.want {
			t.Errorf("%s: %s, want %s", test.name, problem, test.want)
		}
		if want := test.name == "recorded"; problem == "" && (c.Upstreams[0].Events == RecordEvents) != want {
			t.Errorf("%s: events are %q", test.name, c.Upstreams[0].Events)
		}
	}
}
