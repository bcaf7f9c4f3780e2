package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// A limit for each user is refused by the check and by the start if the configuration does not say
// how to know users, for both kinds of backends; that every client is anonymous has to be said.
func TestNobodyIsAssumed(t *testing.T) {
	const limit = "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec: {requests: 1, periodSeconds: 1, key: User}\n"
	for _, dialect := range []string{"Kubernetes", "Plain"} {
		for said, isRefused := range map[string]bool{
			"":                               true,
			"identity: {anonymous: Allow}\n": false,
			"identity: {authenticators: [{requestHeader: {addresses: [127.0.0.1]}}]}\n": false,
		} {
			dir := testutil.WriteFiles(t,
				map[string]string{"limit.yaml": limit,
					"gateway.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n" +
						"listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nupstreams: [{name: a, endpoints: [http://127.0.0.1:1], dialect: " + dialect + "}]\npolicies: [limit.yaml]\n" + said})
			config := filepath.Join(dir, "gateway.yaml")
			const problem = ": spec.key: reads who asks, but the configuration has no `identity`"
			got := run("check", "--config", config)
			if (got.code != 0) != isRefused || strings.Contains(got.stdout+got.stderr, problem) != isRefused {
				t.Errorf("check of %s with %q: %+v", dialect, said, got)
			}
			if !isRefused {
				continue // it would start
			}
			if got := run("serve", "--config", config); got.code == 0 ||
				!strings.Contains(got.stdout+got.stderr, problem) {
				t.Errorf("serve of %s with %q: %+v", dialect, said, got)
			}
		}
	}
}
