package config

import "testing"

// The route's word goes before the upstream's, and Pass holds if neither says anything.
func TestUndescribed(t *testing.T) {
	c, problem, _ := load(t, head+`
upstreams:
- {name: a, endpoints: ["http://a"], dialect: Plain}
- {name: b, endpoints: ["http://b"], dialect: Plain, undescribed: DenyWrites}
routes:
- {upstream: a}
- {host: a.example.com, upstream: a, undescribed: Deny}
- {host: b.example.com, upstream: b}
- {host: open.example.com, upstream: b, undescribed: Pass}
`, Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	for i, want := range []Undescribed{PassUndescribed, DenyUndescribed, DenyWrites, PassUndescribed} {
		if got := c.upstreamOf(&c.Routes[i]).UndescribedOn(&c.Routes[i]); got != want {
			t.Errorf("route %d: got %s, want %s", i, got, want)
		}
	}
}

func TestUndescribedProblems(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		flags         Flags
		want          string
	}{
		{"another word", head + "upstreams: [{name: a, endpoints: [http://a], dialect: Plain, undescribed: deny}]\nroutes: [{upstream: a, undescribed: Open}]\n", Flags{}, "" +
			"gateway.yaml:3: upstreams[0].undescribed: must be 'Pass', 'DenyWrites' or 'Deny', not 'deny'\n" +
			"gateway.yaml:4: routes[0].undescribed: must be 'Pass', 'DenyWrites' or 'Deny', not 'Open'"},
		{"another spelling", head + "upstreams: [{name: a, endpoints: [http://a], undescribd: Deny}]\n", Flags{}, "gateway.yaml:3: upstreams[0].undescribd: unknown field; did you mean `undescribed`?"},
		{"an API server", head + "upstreams: [{name: a, endpoints: [http://a], dialect: Kubernetes, undescribed: Deny}]\nroutes: [{upstream: a, undescribed: Pass}]\n", Flags{}, "" +
			"gateway.yaml:3: upstreams[0].undescribed: must not be set for the upstream 'a', whose dialect is Kubernetes: only an upstream of the dialect Plain has undescribed requests\n" +
			"gateway.yaml:4: routes[0].undescribed: must not be set for the upstream 'a', whose dialect is Kubernetes: only an upstream of the dialect Plain has undescribed requests"},
		{"an API server by a flag", head + "upstreams: [{name: a, endpoints: [http://a], dialect: Plain}]\nroutes: [{upstream: a, undescribed: Deny}]\n", Flags{Dialect: "Kubernetes"},
			"--dialect: must not be 'Kubernetes' where the file says `undescribed`: only an upstream of the dialect Plain has undescribed requests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, problem, _ := load(t, tt.content, tt.flags); problem != tt.want {
				t.Errorf("got\n%s\nwant\n%s", problem, tt.want)
			}
		})
	}
}
