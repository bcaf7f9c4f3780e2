package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// Operators see the servers of the backends on /upstreams and in the metrics.
func TestUpstreamsAreShown(t *testing.T) {
	_, backend := startBackend(t)
	p := startServe(t, backend)
	shown := func() (page admin.Upstreams) {
		if err := json.Unmarshal([]byte(p.get("/upstreams").body), &page); err != nil {
			t.Fatal(err)
		}
		return page
	}
	// The gateway has no question to the backend left, and the connection of the last one is free again.
	testutil.Becomes(t, 200, func() int { return p.get("/readyz").code })
	testutil.Eventually(t, "the connection is free", func() bool { return shown().Upstreams[0].IdleConnections == 1 })
	if r := fetch("http://" + p.listen + "/v2/things"); r.code != 200 {
		t.Fatalf("got %+v", r)
	}
	testutil.Eventually(t, "the connection is free again", func() bool { return shown().Upstreams[0].IdleConnections == 1 })
	page := shown()
	want := admin.Upstreams{Upstreams: []admin.Upstream{{
		Name: "default", Circuit: "Closed", Connections: 1, IdleConnections: 1,
		Endpoints: []admin.Endpoint{{Address: backend, Host: backend, Status: "Ready", Connections: 1}},
	}}}
	if !reflect.DeepEqual(page, want) {
		t.Errorf("/upstreams is\n%+v\nwant\n%+v", page, want)
	}
	metrics := p.get("/metrics").body
	for _, line := range []string{
		`gateway_upstream_endpoints{status="Ready",upstream="default"} 1`,
		`gateway_upstream_endpoints{status="Ejected",upstream="default"} 0`,
		`gateway_upstream_circuit{state="Closed",upstream="default"} 1`,
		`gateway_upstream_connections{state="Idle",upstream="default"} 1`,
		`gateway_upstream_retries_total{upstream="default"} 0`,
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("the metrics have no line\n%s\nbut\n%s", line, metrics)
		}
	}
}
