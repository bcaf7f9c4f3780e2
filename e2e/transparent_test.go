package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const (
	widgets    = "/apis/e2e.example.com/v1/namespaces/team-a/widgets"
	mergePatch = "application/merge-patch+json"
)

// Where the gateway changes nothing, every answer is the server's own, byte for byte, headers included.
func TestTransparent(t *testing.T) {
	through := startGateway(t)
	for i, c := range []struct{ method, path, contentType, body, accept string }{
		{method: "GET", path: "/version"},
		{method: "GET", path: "/apis"},
		{method: "GET", path: "/apis/e2e.example.com/v1"},
		{method: "GET", path: "/openapi/v2"},
		{method: "GET", path: "/openapi/v3"},
		{method: "GET", path: "/openapi/v3/apis/e2e.example.com/v1"},
		{method: "POST", path: widgets, contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"NAME"},"spec":{"replicas":2}}`},
		{method: "POST", path: widgets, contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"NAME"},"spec":{"replicas":2}}`},
		{method: "POST", path: widgets + "?fieldValidation=Strict", contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"NAME-2"},"spec":{"rplicas":2}}`},
		{method: "GET", path: widgets + "/NAME"},
		{method: "GET", path: widgets + "/NAME", accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
		{method: "GET", path: widgets + "?fieldSelector=metadata.name=NAME"},
		{method: "GET", path: widgets + "/missing"},
		{method: "GET", path: widgets + "/NAME", accept: "application/yaml"},
		{method: "PATCH", path: widgets + "/NAME", contentType: mergePatch, body: `{"spec":{"replicas":3}}`},
		{method: "PATCH", path: widgets + "/NAME/status", contentType: mergePatch, body: `{"status":{"phase":"Ready"}}`},
		{method: "GET", path: widgets + "/NAME/scale"},
		{method: "DELETE", path: widgets + "/NAME"},
		{method: "DELETE", path: widgets + "/NAME"},
	} {
		t.Run(fmt.Sprintf("%d %s %s", i, c.method, c.path), func(t *testing.T) {
			get := func(base, name string) string {
				a := ask(t, c.method, base+strings.ReplaceAll(c.path, "NAME", name), c.contentType, strings.ReplaceAll(c.body, "NAME", name), "Accept", c.accept)
				return strings.ReplaceAll(fmt.Sprintf("%d %v\n%s", a.code, a.header, a.body), name, "NAME")
			}
			direct, proxied := get(server.HTTP, "by-direct-way"), get(through.url, "through-gateway")
			want, got := masked(direct), masked(proxied)
			at := 0
			for at < len(want) && at < len(got) && want[at] == got[at] {
				at++
			}
			if got != want {
				at = max(0, at-500)
				t.Errorf("through the gateway:\n%.1000s\nfrom the server:\n%.1000s", got[at:], want[at:])
			}
		})
	}
}

// changing matches what differs from one answer to the next of the same server.
var changing = regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time)":"[^"]*"|(uid|resourceVersion|creationTimestamp|time): [^\n]*|Audit-Id:\[[^\]]*\]|Date:\[[^\]]*\]|Content-Length:\[[^\]]*\]|Last-Modified:\[[^\]]*\]`)

func masked(s string) string {
	return changing.ReplaceAllStringFunc(s, func(match string) string {
		name, _, _ := strings.Cut(match, ":")
		return name + ":*"
	})
}
