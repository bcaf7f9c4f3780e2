package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const sharedConfiguration = `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
drainSeconds: 0
redis: {addresses: ['%s'], username: gateway, passwordFile: '%s', timeoutMilliseconds: 1000}
`

const tlsConfiguration = `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
drainSeconds: 0
redis:
  addresses: ['%s']
  tls: {caFile: ca.crt, certFile: gateway.crt, keyFile: gateway.key}
  timeoutMilliseconds: 1000
`

const sharedPolicies = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: reads}
spec: {match: {verbs: [get]}, key: Global, requests: 1, periodSeconds: 3600, burst: 5, scope: Shared}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: lists}
spec: {match: {verbs: [list]}, key: Global, requests: 1, periodSeconds: 3600, burst: 5, scope: Shared, whenStoreUnavailable: Deny}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  group: ""
  version: v2
  envelope: Bare
  names: {plural: orders, kind: Order}
  fields: {name: id}
  paths: {collection: /v2/orders, item: '/v2/orders/{name}'}
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Two gateways count together; while Redis is gone each goes on as its policies say, ready all the time, and counts
// with the other again once it is back.
func TestSharedLimits(t *testing.T) {
	users := []string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "--user", "gateway", "on", ">secret",
		"~admission-gateway:*", "+evalsha", "+eval", "+time", "+mget", "+set", "+get", "+del", "+pexpire"}
	redis := redistest.Start(t, users...)
	api, addr := startBackend(t)
	if _, err := api.Put("/v2/orders/o1", []byte(`{"id":"o1"}`)); err != nil {
		t.Fatal(err)
	}
	password := write(t, "password", "secret\n")
	file := write(t, "gateway.yaml", fmt.Sprintf(sharedConfiguration, redis.Address, password))
	policy := write(t, "policies.yaml", sharedPolicies)
	var gateways []*process
	for range 2 {
		gateways = append(gateways, startServe(t, addr, "--config", file, "--policies", policy))
	}
	ask := func(path string, n int) string {
		var codes []string
		for i := range n {
			codes = append(codes, fmt.Sprint(fetch("http://"+gateways[i%2].listen+path).code))
		}
		return strings.Join(codes, " ")
	}
	if got, want := ask("/v2/orders/o1", 8), "200 200 200 200 200 429 429 429"; got != want {
		t.Errorf("with Redis: got %s, want %s", got, want)
	}

	redis.Kill()
	resp, err := http.Get("http://" + gateways[0].listen + "/v2/orders")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("a policy that denies without Redis: %d, Retry-After %q", resp.StatusCode,
			resp.Header.Get("Retry-After"))
	}
	// The policy that falls back has 5 for each of the two gateways; what Redis had said of it is forgotten after a
	// second.
	for _, p := range gateways {
		passed := 0
		testutil.Eventually(t, "limited by each gateway on its own", func() bool {
			switch r := fetch("http://" + p.listen + "/v2/orders/o1"); r.code {
			case 200:
				passed++
			case 429:
				return passed == 5
			default:
				t.Fatalf("the answer is %d: %s", r.code, r.body)
			}
			return false
		})
		if r := p.get("/readyz"); r.code != 200 {
			t.Errorf("the gateway is not ready without Redis: %s", r.body)
		}
		metrics := p.get("/metrics").body
		if !strings.Contains(metrics, `gateway_shared_limit_decision_duration_seconds_count{outcome="Error"}`) {
			t.Errorf("there is no metric of failures:\n%s", metrics)
		}
	}

	redis.Run()
	for _, p := range gateways {
		testutil.Eventually(t, "asking Redis again",
			func() bool { return fetch("http://"+p.listen+"/v2/orders").code == 200 })
	}
	if got, want := ask("/v2/orders", 4), "200 200 200 429"; got != want {
		t.Errorf("with Redis again: got %s, want %s", got, want)
	}
}

// By TLS both sides show certificates, from files beside the configuration; leases are given back when the gateway
// ends.
func TestSharedLimitsByTLS(t *testing.T) {
	dir, port := t.TempDir(), testutil.FreePort(t)
	authority := credentialstest.NewAuthority(t, "redis")
	cert, key := authority.Server(t, []string{"127.0.0.1"}).Write(t, dir, "redis")
	authority.Client(t, "gateway", nil).Write(t, dir, "gateway")
	ca := credentialstest.WriteFile(t, dir, "ca.crt", authority.PEM)
	redis := redistest.StartAt(t, port, "--tls-port", fmt.Sprint(port), "--port", "0", "--tls-auth-clients", "yes",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca)
	file := credentialstest.WriteFile(t, dir, "gateway.yaml", fmt.Appendf(nil, tlsConfiguration, redis.Address))
	policy := write(t, "policies.yaml",
		strings.ReplaceAll(sharedPolicies, "scope: Shared", "scope: Shared, leaseSize: 5"))
	_, addr := startBackend(t)
	// Of the five, or what is left of them, that each takes it uses one.
	for _, want := range []int{200, 200, 200, 200, 200, 429} {
		p := startServe(t, addr, "--config", file, "--policies", policy)
		if got := fetch("http://" + p.listen + "/v2/orders").code; got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
		p.signal(t, syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is wrong with how Redis is reached ends the start, or is said when a policy needs it.
func TestRedisUsage(t *testing.T) {
	policy := write(t, "policies.yaml", sharedPolicies)
	for name, test := range map[string]struct {
		code       int
		file, want string
	}{
		"a password that is not there": {2,
			write(t, "a.yaml", fmt.Sprintf(sharedConfiguration, "127.0.0.1:1", "/nonexistent/password")),
			"/nonexistent/password"},
		"an empty password": {2,
			write(t, "b.yaml", fmt.Sprintf(sharedConfiguration, "127.0.0.1:1", write(t, "empty", "\n"))),
			"must not be empty"},
		"no Redis": {2, write(t, "c.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"),
			"spec.scope: must be 'Local': there is nothing to share it by, as the configuration has no section `redis`"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run("serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1",
				"--dialect", "Plain", "--config", test.file, "--policies", policy)
			if r.code != test.code || !strings.Contains(r.stderr, test.want) {
				t.Errorf("the exit code is %d, want %d, and it says %s", r.code, test.code, r.stderr)
			}
		})
	}
}
