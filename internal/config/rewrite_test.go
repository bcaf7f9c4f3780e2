package config

import "testing"

func TestPrefixes(t *testing.T) {
	c, problem, _ := load(t, head+`
upstreams:
- {name: a, endpoints: ["http://a:1/base/", "http://b:2/base"], dialect: Plain}
- {name: b, endpoints: ["http://b"], dialect: Plain}
routes:
- {upstream: a}
- {pathPrefix: /shop, upstream: a, stripPrefix: true, backendHost: Replace}
- {pathPrefix: /x, upstream: a, stripPrefix: true, addPrefix: /v2, backendHost: "name:81"}
- {pathPrefix: /y, upstream: b, backendHost: Keep}
- {pathPrefix: /z, upstream: b, addPrefix: /v2, backendHost: Replace}
`, Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	for i, want := range [][3]string{{"", "/base", ""}, {"/shop", "/base", "a:1"}, {"/x", "/base/v2", "name:81"},
		{"/y", "/y", ""}, {"/z", "/v2/z", "b"}} {
		r := &c.Routes[i]
		u := c.upstreamOf(r)
		from, to := u.Prefixes(r)
		if got := [3]string{from, to, u.HostOn(r)}; got != want {
			t.Errorf("route %d: got %q, want %q", i, got, want)
		}
	}
	if got := c.Upstreams[0].Servers(); got[0] != "http://a:1" || got[1] != "http://b:2" {
		t.Errorf("got %q", got)
	}
}

func TestRewriteProblems(t *testing.T) {
	const upstream = "upstreams: [{name: a, endpoints: [http://a], dialect: Plain}]\n"
	for _, tt := range []struct {
		name, content string
		flags         Flags
		want          string
	}{
		{"different paths", head + "upstreams: [{name: a, endpoints: [http://a/x, http://b/y, http://c], dialect: Plain}]\n", Flags{}, "" +
			"gateway.yaml:3: upstreams[0].endpoints[1]: must have the path '/x' of `upstreams[0].endpoints[0]`, not '/y'\n" +
			"gateway.yaml:3: upstreams[0].endpoints[2]: must have the path '/x' of `upstreams[0].endpoints[0]`, not ''"},
		{"a path that can be read in two ways",
			head + "upstreams: [{name: a, endpoints: ['http://a/x/../y'], dialect: Plain}]\n", Flags{},
			"gateway.yaml:3: upstreams[0].endpoints[0]: has the path '/x/../y', which must not have empty segments, '.' or '..'"},
		{"an API server below a path", head + "upstreams: [{name: a, endpoints: [http://a/x], dialect: Kubernetes}]\n",
			Flags{},
			"gateway.yaml:3: upstreams[0].endpoints[0]: must end after the host and port for the dialect Kubernetes, not 'http://a/x'"},
		{"an API server below a path, by flags", "", Flags{Upstream: "http://a/x", Dialect: "Kubernetes"},
			"--dialect: must not be 'Kubernetes' where the backend's URL has a path"},
		{"routes", head + upstream + "routes:\n- {upstream: a, stripPrefix: true}\n- {upstream: a, pathPrefix: /b, addPrefix: v2/}\n- {upstream: a, pathPrefix: /c, backendHost: keep.}\n- {upstream: a, pathPrefix: /d, backendHost: 'a b'}\n- {upstream: a, pathPrefix: /e, backendHost: 'a/b'}\n", Flags{}, "" +
			"gateway.yaml:5: routes[0].stripPrefix: must not be set without a `pathPrefix`, the part that is stripped\n" +
			"gateway.yaml:6: routes[1].addPrefix: must begin with '/', not 'v2/'\n" +
			"gateway.yaml:8: routes[3].backendHost: must be 'Keep', 'Replace' or a host name in lower case with or without a port, not 'a b'\n" +
			"gateway.yaml:9: routes[4].backendHost: must be 'Keep', 'Replace' or a host name in lower case with or without a port, not 'a/b'"},
		{"a word misspelt", head + upstream + "routes:\n- {upstream: a, pathPrefix: /b, stripprefix: true}\n", Flags{}, "gateway.yaml:5: routes[0].stripprefix: unknown field; did you mean `stripPrefix`?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, problem, _ := load(t, tt.content, tt.flags); problem != tt.want {
				t.Errorf("got\n%s\nwant\n%s", problem, tt.want)
			}
		})
	}
}
