package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
)

// TestHosts asks by names that a page of another origin could have pointed at the listener (DNS rebinding).
func TestHosts(t *testing.T) {
	c := serve(t, admin.New(admin.Options{
		Hosts:     []string{"gateway-admin.team-a.svc", "tools.localhost"},
		Metrics:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		Policies:  func() admin.Policies { return admin.Policies{} },
		Upstreams: func() admin.Upstreams { return admin.Upstreams{} },
	}))
	pages := []string{"/metrics", "/policies", "/upstreams"}
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:8081", "10.1.2.3:8081", "[::1]", "[::1]:8081", "[fe80::1]:1", "localhost",
		"LOCALHOST:8081", "tools.localhost", "Tools.LOCALHOST.:8081",
		"gateway-admin.team-a.svc", "gateway-admin.team-a.svc:8081", "Gateway-Admin.team-a.SVC.",
	} {
		for _, page := range append(pages, "/livez", "/readyz", "/readyz/draining") {
			if got := c.getFrom("GET", host, page); got.Code != 200 {
				t.Errorf("GET %s of '%s' answered %+v", page, host, got)
			}
		}
		if got := c.getFrom("GET", host, "/"); got.Code != 404 {
			t.Errorf("GET / of '%s' answered %+v", host, got)
		}
	}
	for _, host := range []string{
		"attacker.example", "attacker.example:8081", "127.0.0.1.attacker.example", "localhost.attacker.example",
		"notlocalhost", ":8081", "team-a.svc",
		"gateway-admin.team-a.svc.attacker.example", "app.localhost", "a.localhost:8081", "a.tools.localhost",
		"localhost.", "LOCALHOST.", "localhost.:8081", "localhost..", ".localhost", "tools.localhost..", "127.0.0.1.",
		"0x7f.1", "2130706433", "127.1", strings.Repeat("a", 300),
	} {
		for _, page := range append(pages, "/", "/debug") {
			if got := c.getFrom("GET", host, page); got.Code != 421 || strings.Contains(got.Body, "generation") ||
				len(got.Body) > 600 {
				t.Errorf("GET %s of '%s' answered %+v", page, host, got)
			}
		}
		for _, page := range []string{"/livez", "/readyz", "/readyz/draining"} {
			if got := c.getFrom("GET", host, page); got.Code != 200 {
				t.Errorf("GET %s of '%s' answered %+v", page, host, got)
			}
		}
	}
	for _, host := range []string{"", "[::1", "127.0.0.1:8081:1"} {
		if got := c.getFrom("GET", host, "/policies"); got.Code != 400 || strings.Contains(got.Body, "generation") {
			t.Errorf("GET /policies of '%s', which is no host, answered %+v", host, got)
		}
	}
	for _, request := range []string{
		"GET http://localhost/policies HTTP/1.1\r\nHost: attacker.example",
		"GET http://attacker.example/policies HTTP/1.1\r\nHost: localhost",
		"GET //localhost/policies HTTP/1.1\r\nHost: attacker.example",
		"GET x://localhost/policies HTTP/1.1\r\nHost: attacker.example",
		"GET /livez/../policies HTTP/1.1\r\nHost: attacker.example",
		"GET /livez/%2e%2e/policies HTTP/1.1\r\nHost: attacker.example",
		"GET /policies?x=://localhost/ HTTP/1.1\r\nHost: attacker.example", "GET /policies HTTP/1.0\r\nX: x",
	} {
		if got, _ := c.send("GET", request+"\r\nConnection: close\r\n\r\n"); got.Code != 421 {
			t.Errorf("%q answered %+v", request, got)
		}
	}
	want := answer{421, jsonT, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the admin listener does not answer for the host 'attacker.example': ` +
		"ask it by an IP address or as localhost, or name the host in `admin.hosts` of the configuration" + `","reason":"BadRequest","code":421}` + "\n"}
	if got := c.getFrom("GET", "attacker.example", "/policies"); got != want {
		t.Errorf("answered\n%+v, want\n%+v", got, want)
	}
}
