package proxy

import (
	"fmt"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// limitedGateway starts a gateway before an echo, with one policy whose spec is given.
func limitedGateway(t *testing.T, spec string, words ...string) string {
	t.Helper()
	policy := "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: per-key}\nspec: " + spec
	dir := policiestest.Write(t, policy)
	return startGateway(t, gatewayFor(t, dir, newRecorder(t).Addr().String(), words))
}

// codes sends requests with these further header lines, one after the other, and returns the codes of the answers.
func codes(t *testing.T, address string, further ...string) []int {
	t.Helper()
	var got []int
	nc, br := dial(t, address)
	for _, lines := range further {
		send(t, nc, "GET /v2/x HTTP/1.1\r\nHost: gw\r\n"+lines+"\r\n")
		a, _ := readAnswer(t, br, false)
		got = append(got, a.StatusCode)
	}
	return got
}

func expectCodes(t *testing.T, got []int, want ...int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answered %v, want %v", got, want)
	}
}

// Hostile input, "X-Forwarded-For from an untrusted peer": what a client says of its address gives it no bucket of its
// own.
func TestUntrustedForwardedForIsNoKey(t *testing.T) {
	address := limitedGateway(t, "{requests: 2, periodSeconds: 3600}")
	expectCodes(t, codes(t, address, "X-Forwarded-For: 1.1.1.1\r\n",
		"X-Forwarded-For: 2.2.2.2\r\nX-Real-IP: 3.3.3.3\r\n",
		"Forwarded: for=4.4.4.4\r\n", "X-Forwarded-For: 127.0.0.2\r\n"), 200, 200, 429, 429)
}

// Hostile input, "from trusted peers walk right to left": only the proxy's own entry names the
// client.
func TestForwardedForIsWalkedRightToLeft(t *testing.T) {
	address := limitedGateway(t, "{requests: 1, periodSeconds: 3600}", "trust=127.0.0.0/8")
	expectCodes(t, codes(t, address,
		"X-Forwarded-For: 1.1.1.1, 203.0.113.7\r\n",
		"X-Forwarded-For: 2.2.2.2, 203.0.113.7\r\n",                    // the same client, with another lie
		"X-Forwarded-For: 3.3.3.3\r\nX-Forwarded-For: 203.0.113.7\r\n", // in two lines
		"X-Forwarded-For: 203.0.113.7, 127.0.0.1\r\n",                  // through a second proxy
		"X-Forwarded-For: 203.0.113.8\r\n",
		"X-Forwarded-For: 2001:db8::1\r\n",
		"X-Forwarded-For: 2001:db8::ffff\r\n",  // of the same /64
		"X-Forwarded-For: 203.0.113.9, x\r\n",  // what is no address ends the walk at the proxy
		"X-Forwarded-For: 203.0.113.10, y\r\n", // which is one client, whatever it sends
	), 200, 429, 429, 429, 200, 200, 429, 200, 429)
}

// Hostile input, "Connection: X-Remote-User": a header that its client has dropped on the way is no key either.
func TestDroppedHeaderIsNoKey(t *testing.T) {
	address := limitedGateway(t, "{key: Header, headerName: X-Tenant, requests: 1, periodSeconds: 3600}")
	expectCodes(t, codes(t, address,
		"X-Tenant: a\r\n", "x-tenant: a\r\n", "X-Tenant: b\r\n",
		"X-Tenant: c\r\nConnection: keep-alive, X-Tenant\r\n", // counted with requests that have none
		"X-Tenant: d\r\nConnection: keep-alive, x-tenant\r\n", "",
	), 200, 429, 200, 200, 429, 429)
}

// A cost that depends on what the client sends cannot be made cheap by sending what cannot be read, nor by sending
// nothing.
func TestCostCannotBeTalkedDown(t *testing.T) {
	for _, query := range []string{"limit=many", "limit=-5", "limit=5&limit=5", "limit=99999999999999999999",
		"%6cimit=1000", "limit=1000", ""} {
		address := limitedGateway(t, "{key: Global, requests: 10, periodSeconds: 3600, cost: \"int(request.query['limit']) <= 0 ? 10 : int(request.query['limit']) / 100\"}")
		nc, br := dial(t, address)
		for i, want := range []int{200, 429} {
			send(t, nc, "GET /v2/x?"+query+" HTTP/1.1\r\nHost: gw\r\n\r\n")
			if a, _ := readAnswer(t, br, false); a.StatusCode != want {
				t.Errorf("%s: request %d is answered %d, want %d", query, i, a.StatusCode, want)
			}
		}
	}
}

// Hostile input, "slow body": who never ends its requests takes the places of its own key alone.
func TestSlowBodiesTakeTheirOwnPlaces(t *testing.T) {
	address := limitedGateway(t, "{key: Header, headerName: X-Tenant, maxInFlight: 1, maxInFlightTotal: 2}")
	nc, br := dial(t, address)
	send(t, nc, postHead+"X-Tenant: a\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
	expect(t, br, "HTTP/1.1 100 Continue\r\n\r\n") // it is being served
	expectCodes(t, codes(t, address, "X-Tenant: a\r\n", "X-Tenant: b\r\n"), 429, 200)
	_ = nc.Close()
}

// A second line of a header gives no client another key, cost or condition: which of them the
// backend takes is unknown.
func TestRepeatedHeaderIsNoKey(t *testing.T) {
	const (
		one  = "X-Tenant: a\r\n"
		two  = "X-Tenant: a\r\nX-Tenant: b\r\n"
		last = "x-tenant: b\r\nA: 1\r\nX-TENANT: a\r\n"
	)
	condition := `matchConditions: [{name: c, expression: "request.headers[?'x-tenant'].orValue('') == 'a'"}]`
	for _, tt := range []struct {
		name, spec string
		words      []string
		header     []string
		want       []int
	}{
		{"key", "{key: Header, headerName: X-Tenant, requests: 1, periodSeconds: 3600}", nil,
			[]string{one, two, last, one, two}, []int{200, 400, 400, 429, 400}},
		{"keyExpression", "{keyExpression: \"request.headers['x-tenant']\", requests: 1, periodSeconds: 3600}", nil, []string{one, two, last, one}, []int{200, 400, 400, 429}},
		{"a name that is computed", "{keyExpression: \"request.headers['x-' + (request.verb == 'get' ? 'tenant' : 'x')]\", requests: 9, periodSeconds: 3600}", nil, []string{one, two}, []int{200, 400}},
		{"iteration", "{keyExpression: \"request.headers.exists(k, k.startsWith('x-t') && request.headers[k] == 'a') ? '1' : '2'\", requests: 9, periodSeconds: 3600}", nil, []string{one, two, "A: 1\r\nA: 2\r\n"}, []int{200, 400, 200}},
		{"cost", "{key: Global, requests: 9, periodSeconds: 3600, cost: \"request.headers['x-tenant'] == 'a' ? 5 : 1\"}", nil, []string{two, one}, []int{400, 200}},
		{"condition", "{key: Global, requests: 1, periodSeconds: 3600, match: {" + condition + "}}", nil,
			[]string{one, two, last, "", one}, []int{200, 400, 400, 200, 429}},
		{"a limit of requests in flight", "{key: Header, headerName: X-Tenant, maxInFlight: 5}", nil,
			[]string{one, two}, []int{200, 400}},
		{"names that some backends read alike", "{key: Header, headerName: X-Tenant, requests: 9, periodSeconds: 3600}",
			[]string{"underscores=Pass"}, []string{one, one + "X_Tenant: b\r\n"}, []int{200, 400}},
		{"a list", "{key: Header, headerName: Accept, requests: 9, periodSeconds: 3600}", nil,
			[]string{"Accept: a\r\nAccept: b\r\n"}, []int{200}},
		{"Cookie, which is none", "{key: Header, headerName: Cookie, requests: 9, periodSeconds: 3600}", nil,
			[]string{"Cookie: a\r\nCookie: b\r\n"}, []int{400}},
		{"a header that no limit reads", "{key: Global, requests: 9, periodSeconds: 3600}", nil, []string{two},
			[]int{200}},
		{"a limit that is not about the request", "{key: Header, headerName: X-Tenant, requests: 9, periodSeconds: 3600, match: {verbs: [post]}}", nil, []string{two}, []int{200}},
		{"a limit that only warns", "{key: Header, headerName: X-Tenant, requests: 9, periodSeconds: 3600, mode: Warn}", nil, []string{two}, []int{200}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expectCodes(t, codes(t, limitedGateway(t, tt.spec, tt.words...), tt.header...), tt.want...)
		})
	}
	address := limitedGateway(t, "{key: Header, headerName: X-Tenant, requests: 1, periodSeconds: 3600}")
	nc, br := dial(t, address)
	send(t, nc, "GET /v2/x HTTP/1.1\r\nHost: gw\r\n"+two+"\r\n")
	a, _ := readAnswer(t, br, false)
	const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the request has the header 'X-Tenant' more than once, and the rate limit 'per-key' reads it","reason":"BadRequest","code":400}`
	if string(a.Content) != want {
		t.Errorf("answered\n%s\nwant\n%s", a.Content, want)
	}
}
