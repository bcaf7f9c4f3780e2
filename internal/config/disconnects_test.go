package config

import "testing"

// TestLeaving: a route's own word goes before the upstream's, and calls may last by an upstream of HTTP/2.
func TestLeaving(t *testing.T) {
	for _, c := range []struct {
		upstream UpstreamSpec
		route    Route
		writes   bool
		calls    bool
	}{
		{},
		{upstream: UpstreamSpec{AbandonedWrites: ContinueWrites, Protocol: HTTP2Protocol}, writes: true, calls: true},
		{upstream: UpstreamSpec{AbandonedWrites: ContinueWrites}, route: Route{AbandonedWrites: CancelWrites}},
		{upstream: UpstreamSpec{Protocol: AutoProtocol}, route: Route{AbandonedWrites: ContinueWrites, GRPC: true},
			writes: true, calls: true},
		{upstream: UpstreamSpec{Protocol: AutoProtocol}},
	} {
		if writes, calls := c.upstream.ContinuesWrites(&c.route), c.upstream.LastsCalls(&c.route); writes != c.writes ||
			calls != c.calls {
			t.Errorf("%+v: writes go on: %v, calls last: %v", c, writes, calls)
		}
	}
	const upstream = "upstreams: [{name: a, endpoints: ['http://a'], abandonedWrites: cancel}]\nroutes: [{upstream: a, abandonedWrites: Go}]\n"
	_, problem, _ := load(t, head+upstream, Flags{})
	if want := "gateway.yaml:3: upstreams[0].abandonedWrites: must be 'Cancel' or 'Continue', not 'cancel'\n" +
		"gateway.yaml:4: routes[0].abandonedWrites: must be 'Cancel' or 'Continue', not 'Go'"; problem != want {
		t.Errorf("got\n%s\nwant\n%s", problem, want)
	}
}
