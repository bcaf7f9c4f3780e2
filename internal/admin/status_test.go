package admin_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/admission-gateway/gateway/internal/admin"
)

const htmlT = "text/html; charset=utf-8"

func wholeStatus() admin.Status {
	at := time.Unix(1_700_000_000, 0).UTC()
	return admin.Status{
		Version: "v1.2.3", GoVersion: "go1.26", StartTime: at, UptimeSeconds: 3723,
		Policies: admin.Policies{
			Generation: 2, Hash: "abcd", LoadTime: at,
			Files: []admin.PolicyFile{
				{Path: "demo/limits.yaml",
					Objects: []admin.PolicyObject{{APIVersion: "v1", Kind: "RateLimitPolicy", Name: "per-client"}}}},
			Folders: []admin.PolicyFolder{
				{Path: "common/a", Owner: "team-a", Concerns: "all requests", Hash: "ef01", ConfirmationTime: &at},
				{Path: "b", Owner: "team-b", Concerns: "the route 'b'", Hash: "ef02", ConfirmationTime: &at,
					LastFailure: &admin.Failure{Time: at, Findings: []string{"b/a.yaml:1: must be <1>"}}},
				{Path: "c", Owner: "team-c", Concerns: "the group 'c'",
					LastFailure: &admin.Failure{Time: at, Findings: []string{"c/a.yaml:1: must be <1>"}}},
			},
			LastReload: &admin.Reload{Time: at, Outcome: "Refused",
				Findings: []string{"demo/limits.yaml:3: spec.requests: must be <1>"}},
			LastFailure: &admin.Failure{Time: at, Findings: []string{"demo/limits.yaml:3: spec.requests: must be <1>"}},
		},
		Verdicts: []admin.Tally{{Policy: "owners", Verdict: "Error", Count: 2},
			{Policy: "sizes", Verdict: "Deny", Count: 7}},
		Limits: []admin.Tally{{Policy: "per-client", Verdict: "Refuse", Count: 9}},
		Rollouts: []admin.Rollout{{Policy: "RegoPolicy/owners", Enforced: "for 10 %", Would: 12, Tried: 4000,
			Since: at}, {Policy: "RegoPolicy/all", Since: at}},
		Exceptions: []admin.Exception{
			{Name: "legacy", Policies: []string{"RegoPolicy/owners"}, Reason: "<imported>", ExpireTime: &at,
				IsExpired: true, Used: 2},
			{Name: "forever", Policies: []string{"RegoPolicy/all", "RegoPolicy/owners"}, Reason: "agreed"},
		},
		RateLimits: []admin.RateLimit{{
			Name: "per-client", Mode: "Enforce", Key: "ClientAddress", Verbs: []string{"list"}, Requests: 600,
			PeriodSeconds: 60, Burst: 100, MaxInFlight: 10,
		}},
		RequestLimits: admin.RequestLimits{BodyBytes: 3145728, HeaderBytes: 65536, URIBytes: 8192, Headers: 100,
			JSONDepth: 99, JSONNodes: 12345, Connections: 4000, HeavyRequests: 2},
		Requests: admin.InUse{InFlight: 3, BodyBytes: 17, BodyBytesLimit: 4711},
		Upstreams: []admin.Upstream{{
			Name: "orders", Circuit: "Open",
			Endpoints: []admin.Endpoint{{Address: "10.0.0.3:9000", Host: "orders.example.com:9000",
				Status: "Unhealthy", HealthCheck: "the answer has the status 500"}},
			UnresolvedNames: []admin.UnresolvedName{{Host: "more.example.com:80", Message: "no such host"}},
		}},
		Listeners: []admin.Listener{
			{Name: "listen", Addresses: []string{"127.0.0.1:8080"}, Protocol: "HTTP", Hosts: []string{},
				RedirectsToHTTPS: true, Routes: 2},
			{
				Name: "shop/web/<https>", Addresses: []string{":443"}, Protocol: "HTTPS",
				Hosts:       []string{"shop.example.com", "*.shop.example.com"},
				AsksClients: true, ProxyProtocol: true, StrictTransport: "max-age=1", Routes: 1,
				Problem: "cannot listen on :443",
			},
		},
		States:       []admin.State{{Path: "/v2/users", AgeSeconds: 61}},
		Certificates: []admin.Certificate{{Name: "the public listener", ExpireTime: at}},
		Lost:         admin.Lost{LogLines: 5, AuditEvents: []admin.Audit{{Sink: "webhook", Events: 6}}},
	}
}

func forecast(request string) admin.Forecast {
	return admin.Forecast{
		Request: request, Route: &admin.Route{Name: "shop", PathPrefix: "/", Upstream: "orders"},
		About: &admin.RequestResource{Verb: "create", Resource: "orders", Path: "/v2/orders"},
		Policies: []admin.Applicability{{
			Phase: "Validating", Kind: "ValidatingAdmissionPolicy", Name: "sizes", Applies: "Maybe",
			Because: "if its matchConditions hold",
			Bindings: []admin.Applicability{{Name: "team-b", Applies: "No",
				Because: "namespaceSelector does not select the namespace 'team-a'"}},
		}},
		Limits: []admin.Applicability{{Kind: "RateLimitPolicy", Name: "per-client", Applies: "Yes"}},
	}
}

// TestStatus: the status is the same for programs and for people, with the checks of readiness.
func TestStatus(t *testing.T) {
	c := serve(t, admin.New(admin.Options{
		Ready:  []admin.Check{{Name: "state", Probe: func() error { return errors.New("never read yet") }}},
		Status: wholeStatus, Forecast: forecast, Policies: func() admin.Policies { return admin.Policies{} },
	}))
	want := wholeStatus()
	want.Ready = []admin.Readiness{{Name: "state", Failure: "never read yet"}, {Name: "draining"}}
	var got admin.Status
	if answer := c.get("GET", "/status"); answer.Code != 200 || answer.ContentType != jsonT ||
		json.Unmarshal([]byte(answer.Body), &got) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("/status answered %+v, want %+v", answer, want)
	}
	page := c.get("GET", "/")
	if page.Code != 200 || page.ContentType != htmlT {
		t.Fatalf("/ answered %+v", page)
	}
	text := shownText(t, page.Body)
	for _, part := range []string{
		"Admission Gateway v1.2.3", "Not ready", "up 1h2m3s", "never read yet", "Generation 2, hash abcd", "Refused",
		"must be <1>", "demo/limits.yaml",
		"RegoPolicy/owners for 10 % would have refused or changed 12 of 4,000 requests since 2023-11-14T22:13:20Z", "RegoPolicy/all everywhere",
		"legacy RegoPolicy/owners <imported> 2023-11-14T22:13:20Z (expired) 2", "agreed never 0",
		"RateLimitPolicy per-client", "sizes Deny 7", "the policy 'owners' failed for 2 requests", "per-client Refuse 9", "per-client list ClientAddress 600 in 1m0s, 100 at once 10 of each key Local Enforce",
		"a body of 3145728 bytes, 99 deep, with 12345 values; a head of 65536 bytes, a target of 8192 bytes, 100 headers. In all: 4000 connections, 2 heavy requests",
		"In flight: 3 requests, with 17 of 4711 bytes",
		"orders Open 10.0.0.3:9000 (orders.example.com:9000) Unhealthy: the answer has the status 500", "more.example.com:80 no such host",
		"listen 127.0.0.1:8080 HTTP, redirects to https * 2 Serving",
		"shop/web/<https> :443 HTTPS, client certificates, PROXY protocol, HSTS shop.example.com, *.shop.example.com 1 FAILED: cannot listen on :443",
		"/v2/users 1m1s", "the public listener 2023-11-14T22:13:20Z",
		"5 lines of the log, 6 events of the audit log for its webhook",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not show %q:\n%s", part, text)
		}
	}
	var asked admin.Forecast
	if answer := c.get("GET", "/policies?request=POST%20/v2/orders"); answer.Code != 200 ||
		json.Unmarshal([]byte(answer.Body), &asked) != nil || !reflect.DeepEqual(asked, forecast("POST /v2/orders")) {
		t.Errorf("/policies?request= answered %+v", answer)
	}
	text = shownText(t, c.get("GET", "/?request=POST+/v2/orders").Body)
	for _, part := range []string{
		"Route shop / to the upstream orders", "create orders; no policy file describes it",
		"sizes binding team-b: No, namespaceSelector does not select the namespace 'team-a' ValidatingAdmissionPolicy Validating Maybe if its matchConditions hold",
		"per-client RateLimitPolicy Yes",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not show %q:\n%s", part, text)
		}
	}
}

// shownText is the text of a page, each run of spaces as one.
func shownText(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" {
			b.WriteString(n.Data)
		}
		if n.Type == html.ElementNode && (n.Data == "td" || n.Data == "br" || n.Data == "p") {
			b.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestPageRunsNothing: the page has no script, whatever is asked and shown, and its policy allows its one style alone.
func TestPageRunsNothing(t *testing.T) {
	c := serve(t, admin.New(admin.Options{Status: func() admin.Status {
		s := wholeStatus()
		s.Policies.Files[0].Path = `"><script>alert(1)</script>`
		s.Upstreams[0].Endpoints[0].HealthCheck = `<img src=x onerror=alert(1)>`
		return s
	}, Forecast: func(request string) admin.Forecast { return admin.Forecast{Request: request, Refusal: request} }}))
	got, header := c.send("GET", "GET /?request=%22%3E%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	root, err := html.Parse(strings.NewReader(got.Body))
	if err != nil {
		t.Fatal(err)
	}
	var style string
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "style" {
			style = n.FirstChild.Data
		}
		if n.Data == "script" || n.Data == "img" || n.Data == "iframe" {
			t.Errorf("the page has the element %s", n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || (a.Key == "href" || a.Key == "action") &&
				!strings.HasPrefix(a.Val, "/") {
				t.Errorf("the page has the attribute %s=%q", a.Key, a.Val)
			}
		}
	}
	if strings.Count(got.Body, "alert(1)") == 0 {
		t.Error("the page does not show what was asked")
	}
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if got := header.Get("Content-Security-Policy"); got != want {
		t.Errorf("the policy is %s, want %s", got, want)
	}
}

// TestToken: health needs no token, everything else does, and the token may change.
func TestToken(t *testing.T) {
	var token atomic.Pointer[string]
	set := func(s string) { token.Store(&s) }
	set("first")
	c := serve(t, admin.New(admin.Options{
		Metrics:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		Policies:  func() admin.Policies { return admin.Policies{} },
		Upstreams: func() admin.Upstreams { return admin.Upstreams{} },
		Status:    wholeStatus, Forecast: forecast, Profiling: true,
		Token: func() string { return *token.Load() },
	}))
	ask := func(path, authorization string) (answer, http.Header) {
		if authorization != "" {
			authorization = "Authorization: " + authorization + "\r\n"
		}
		return c.send("GET", "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+authorization+"\r\n")
	}
	basic := func(pair string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) }
	private := []string{"/", "/status", "/metrics", "/policies", "/policies?request=GET%20/", "/upstreams",
		"/debug/pprof/", "/debug/pprof/cmdline"}
	for _, path := range private {
		for _, wrong := range []string{
			"", "first", "Bearer", "Bearer ", "Bearer second", "Bearer first2", "Bearer firs", "Bearer FIRST",
			"Basic first", basic("first"), basic("first:"),
			basic("user:second"), "Basic !", "Digest first",
		} {
			got, header := ask(path, wrong)
			if got.Code != 401 || !strings.Contains(got.Body, "admin.tokenFile") ||
				!reflect.DeepEqual(header["Www-Authenticate"],
					[]string{`Bearer realm="admin"`, `Basic realm="admin", charset="UTF-8"`}) {
				t.Errorf("%s with %q answered %+v %v", path, wrong, got, header)
			}
		}
		for _, right := range []string{"Bearer first", "bearer  first", basic("user:first"), basic(":first")} {
			if got, _ := ask(path, right); got.Code != 200 {
				t.Errorf("%s with %q answered %+v", path, right, got)
			}
		}
	}
	if got, _ := ask("/nothing", ""); got.Code != 401 {
		t.Errorf("/nothing answered %+v", got)
	}
	for _, path := range []string{"/livez", "/readyz", "/readyz/draining"} {
		if got, _ := ask(path, ""); got.Code != 200 {
			t.Errorf("%s without a token answered %+v", path, got)
		}
	}
	set("second")
	for authorization, code := range map[string]int{"Bearer first": 401, "Bearer second": 200} {
		if got, _ := ask("/metrics", authorization); got.Code != code {
			t.Errorf("after a change %s is answered %d, want %d", authorization, got.Code, code)
		}
	}
	set("")
	for _, authorization := range []string{"", "Bearer ", basic("user:")} {
		if got, _ := ask("/metrics", authorization); got.Code != 401 {
			t.Errorf("an empty token lets %q pass", authorization)
		}
	}
}

// TestProfiles: profiles are there if they are asked for, and none is taken for long.
func TestProfiles(t *testing.T) {
	off := serve(t, admin.New(admin.Options{}))
	on := serve(t, admin.New(admin.Options{Profiling: true}))
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap",
		"/debug/pprof/profile?seconds=1"} {
		if got := off.get("GET", path); got.Code != 404 {
			t.Errorf("%s answered %d although it is off", path, got.Code)
		}
	}
	for path, want := range map[string]string{
		"/debug/pprof/": "Types of profiles available", "/debug/pprof/goroutine?debug=1": "goroutine profile: total",
		"/debug/pprof/cmdline": "admin.test",
	} {
		if got := on.get("GET", path); got.Code != 200 || !strings.Contains(got.Body, want) {
			t.Errorf("%s answered %d %.200q", path, got.Code, got.Body)
		}
	}
	if got := on.get("GET", "/debug/pprof/heap"); got.Code != 200 ||
		!bytes.HasPrefix([]byte(got.Body), []byte{0x1f, 0x8b}) {
		t.Errorf("the profile of the heap is %d %.20q", got.Code, got.Body)
	}
	for _, path := range []string{"/debug/pprof/profile?seconds=61", "/debug/pprof/trace?seconds=3600",
		"/debug/pprof/trace?seconds=-1", "/debug/pprof/heap?seconds=x"} {
		if got := on.get("GET", path); got.Code != 400 ||
			!strings.Contains(got.Body, "seconds must be a whole number up to 60") {
			t.Errorf("%s answered %+v", path, got)
		}
	}
	if got := on.getFrom("GET", "attacker.example", "/debug/pprof/"); got.Code != 421 {
		t.Errorf("another host answered %+v", got)
	}
}

// TestIsNewest: a status says whether newer files than those in force were refused, wherever they are.
func TestIsNewest(t *testing.T) {
	failed := &admin.Failure{}
	for _, s := range []admin.Status{
		{Configuration: admin.Configuration{LastFailure: failed}},
		{Policies: admin.Policies{LastFailure: failed}},
		{Policies: admin.Policies{Folders: []admin.PolicyFolder{{Path: "a"}, {Path: "b", LastFailure: failed}}}},
	} {
		if s.IsNewest() {
			t.Errorf("%+v", s)
		}
	}
	if s := (admin.Status{Policies: admin.Policies{Folders: []admin.PolicyFolder{{Path: "a"}}}}); !s.IsNewest() {
		t.Error("all files are in force")
	}
}
