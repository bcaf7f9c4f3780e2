package policies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

const sharedLimit = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: tenants}
spec:
  requests: 100
  periodSeconds: 60
  scope: Shared
`

func TestSharedLimit(t *testing.T) {
	for _, test := range []struct {
		text, want string
		sharing    *ratelimit.Sharing
	}{
		{sharedLimit, "", &ratelimit.Sharing{WhenUnavailable: ratelimit.LocalLimit}},
		{sharedLimit + "  whenStoreUnavailable: Deny\n  leaseSize: 100\n", "",
			&ratelimit.Sharing{WhenUnavailable: ratelimit.Deny, Lease: 100}},
		{strings.Replace(sharedLimit, "Shared", "Local", 1), "", nil},
		{sharedLimit + "  leaseSize: 101\n", "a.yaml:8: spec.leaseSize: Invalid value: must be less than or equal to `burst`\n", nil},
		{sharedLimit + "  burst: 20\n  leaseSize: 21\n", "a.yaml:9: spec.leaseSize: Invalid value: must be less than or equal to `burst`\n", nil},
		{strings.NewReplacer("100", "1", "60", "86400").Replace(sharedLimit) + "  burst: 101\n",
			"a.yaml:8: spec.burst: Invalid value: must be small enough for all of it to come back within 100 days when `scope` is 'Shared'\n", nil},
		{strings.Replace(sharedLimit, "Shared", "Local", 1) + "  whenStoreUnavailable: Allow\n  leaseSize: 1\n",
			"a.yaml:8: spec.whenStoreUnavailable: Forbidden: may not be set unless `scope` is 'Shared'\n" +
				"a.yaml:9: spec.leaseSize: Forbidden: may not be set unless `scope` is 'Shared'\n", nil},
		{strings.Replace(sharedLimit, "  requests: 100\n  periodSeconds: 60\n", "  maxInFlight: 1\n", 1),
			"a.yaml:4: spec.requests: Required value: must be set when `scope` is 'Shared'\n", nil},
		{sharedLimit + "  mode: Warn\n  whenStoreUnavailable: Deny\n",
			"a.yaml:9: spec.whenStoreUnavailable: warning: has no effect while `spec.mode` is 'Warn': nobody is refused\n", &ratelimit.Sharing{WhenUnavailable: ratelimit.Deny}},
		{sharedLimit + "  whenStoreUnavailable: Queue\n",
			"a.yaml:8: spec.whenStoreUnavailable: Unsupported value: \"Queue\": supported values: \"LocalLimit\", \"Allow\", \"Deny\"\n", nil},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": test.text})
		l := newLoader(&Gateway{})
		l.load(source.Read([]string{dir}, &source.Progress{}))
		got := strings.ReplaceAll(textOf(finding.Sort(l.Found)), dir+"/", "")
		if got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.text, got, test.want)
			continue
		}
		if test.want != "" && test.sharing == nil {
			continue
		}
		if s := part[rateLimits](l).limits[0].Sharing; (s == nil) != (test.sharing == nil) || s != nil &&
			*s != *test.sharing {
			t.Errorf("%s: got %+v, want %+v", test.text, s, test.sharing)
		}
	}
}

func textOf(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// TestSharedLimitWithoutStore: files that ask for shared limits are refused if there is nothing to
// share them by, when the gateway starts and later.
func TestSharedLimitWithoutStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	want := file + ":7: spec.scope: must be 'Local': there is nothing to share it by, as the configuration has no section `redis`\n"
	testutil.WriteFile(t, file, sharedLimit)
	if m, found := NewManager([]string{dir}, Options{Gateway: Gateway{SharedLimits: true}}); m == nil {
		t.Errorf("with a store: %s", textOf(found))
	}
	if m, found := NewManager([]string{dir}, Options{}); m != nil || textOf(found) != want {
		t.Errorf("got %s, want %s", textOf(found), want)
	}
	testutil.WriteFile(t, file, strings.Replace(sharedLimit, "Shared", "Local", 1))
	m, found := NewManager([]string{dir}, Options{})
	if m == nil {
		t.Fatal(textOf(found))
	}
	testutil.WriteFile(t, file, sharedLimit)
	if found := m.Reload(); textOf(found) != want || m.Current().Generation() != 1 {
		t.Errorf("got %s in generation %d, want %s", textOf(found), m.Current().Generation(), want)
	}
}
