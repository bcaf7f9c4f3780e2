package resource

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestIsElsewhere: the quick answer is given for ordinary paths beside described ones, and for no others.
func TestIsElsewhere(t *testing.T) {
	api := spelledAPI(t)
	for path, want := range map[string]bool{
		"/carts": true, "/carts/": true, "/carts/1/lines/2": true, "/shop/carts": true, "/shop/carts/a.b": true,
		"/shop/user":           true,
		"/shop/carts.v2/lines": true, "/apis/batch/v1/jobs": true, "/v1.2/other": false, "/v3/kv/other": true,
		"/v3/kv/put.v2/x": true,
		"/vault/other/":   true, "/carts//": true, "/carts//1": true, "/carts/./1": true, "/carts/1;x": true,
		"/carts/a:b": true, "/carts/1.": true,
		"/carts/0/1/2/3/4.5.6/7": true,
		// A described path, or one below it.
		"/shop/users": false, "/shop/users/5": false, "/shop/users/5/other": false, "/Shop/Users": false,
		"/vault/secrets/5/versions": false,
		"/apis/apps/v1/jobs":        false,
		// Servers differ in how they read these, or in what follows them.
		"*": false, "/": false, "//carts": false, "/carts/../shop/users": false, "/carts/0/1/2/3/4/..": false,
		"/carts.php/shop/users": false, "/carts.json": false, "/shop/carts.json": false, "/shop/carts.v2/": false,
		"/carts/%2e%2e/shop/users": false,
		"/carts;/1":                false, `/carts\..\shop\users`: false, "/c%61rts": false, "/carts/é": false,
		"/shop": false, "/shop/": false,
	} {
		if got := api.spellings.isUndescribed(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
		sameLook(t, api, "GET", path)
	}
	for path, want := range map[string]bool{"/other": false, "/a/c": false} {
		// any first segment may be of an operation
		if got := routedAPI(t).spellings.isUndescribed(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// TestIsElsewhereSpelled: however paths beside described ones are spelled, the quick answer is the one of the whole
// look.
func TestIsElsewhereSpelled(t *testing.T) {
	api, seed := spelledAPI(t), rand.Uint64()
	r, quick := rand.New(rand.NewPCG(seed, 0)), 0
	beside := []string{"/carts/5", "/shop/carts/5", "/shop/users5", "/shopping/users", "/v1.2/report",
		"/v1.2.3/reports", "/apis/batch/v1/jobs", "/apis/apps.example.com/v1/jobs",
		"/v3/kv/get", "/vault/secret/5", "/shop/stop/5"}
	for range 30_000 {
		p := beside[r.IntN(len(beside))]
		for range r.IntN(3) {
			p = spell(r, p)
		}
		if api.spellings.isUndescribed(p) {
			quick++
		}
		if sameLook(t, api, "POST", p); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if quick < 1000 {
		t.Errorf("only %d paths are known at once", quick)
	}
}

// sameLook compares what is found of a request with the look at the whole path.
func sameLook(t testing.TB, api *Plain, method, path string) {
	t.Helper()
	if !strings.HasPrefix(path, "/") {
		return // no server takes such a target
	}
	info, res, err := api.Resolve(method, []byte(path))
	lookedAt, found, failed := api.look(method, []byte(path))
	if !reflect.DeepEqual(info, lookedAt) || res != found || !reflect.DeepEqual(err, failed) {
		t.Errorf("%s %q: found %+v, %v, %v, and by the whole look %+v, %v, %v", method, path, info, res, err, lookedAt,
			found, failed)
	}
}
