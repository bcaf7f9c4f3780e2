package policies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestUnknownUpstream: a StateSource that names an upstream which the configuration has not is an error with its line,
// when the files are checked, when the gateway starts, and in a change, which the set in force outlives.
func TestUnknownUpstream(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write := func(upstream string) {
		text := "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: classes}\nspec:\n  path: /v2/classes\n  upstream: " + upstream + "\n"
		testutil.WriteFile(t, file, text)
	}
	g := Gateway{Upstreams: []string{"storage", "orders"}}
	want := file + ":6: spec.upstream: must be the name of an upstream of the configuration: 'orders', 'storage'\n"
	text := func(found []Finding) (lines string) {
		for _, f := range found {
			lines += f.String() + "\n"
		}
		return lines
	}
	write("strage")
	if found := CheckFor([]string{dir}, g); text(found) != want {
		t.Errorf("checked: %s", text(found))
	}
	if found := Check([]string{dir}); len(found) != 0 {
		t.Errorf("checked without a configuration: %s", text(found))
	}
	if m, found := NewManager([]string{dir}, Options{Gateway: g}); m != nil || text(found) != want {
		t.Errorf("started: %s", text(found))
	}
	write("storage")
	m, found := NewManager([]string{dir}, Options{Gateway: g})
	if m == nil {
		t.Fatal(text(found))
	}
	write("strage")
	if found := m.Reload(); text(found) != want || m.Current().Generation() != 1 {
		t.Errorf("changed: %s in generation %d", text(found), m.Current().Generation())
	}
}

// TestRacedWrites: writes that depend on what was read meet several gateways that lock for themselves alone.
func TestRacedWrites(t *testing.T) {
	const rules = "  schema:\n    openAPIV3Schema:\n      type: object\n      properties: {a: {type: integer}, b: {type: integer}}\n      x-kubernetes-validations: [{rule: '!has(self.a) || !has(self.b) || self.a < self.b', message: must be less than b}]\n"
	const advice = ": have the gateways share locks by `redis` in the configuration, whose `writeLocks` is 'Shared' by default\n"
	const want = "a.yaml:5: spec.backend: warning: rules over several fields may be broken by patches that reach the backend through two gateways at the same time, " +
		"unless it compares If-Match with a strong ETag" + advice
	const lost = "a.yaml:9: spec.backend: updates would be lost: two gateways store whole what each of them read and patched, and the backend compares no versions" + advice +
		"a.yaml:10: spec.concurrency: warning: the writes to one object come one after the other in one gateway only: where several gateways run, or others write to the backend, " +
		"an update may be lost unless the backend compares If-Match with a strong ETag\n"
	const mayBeLost = "a.yaml:9: spec.backend: warning: updates may be lost if two gateways store whole what each of them read and patched, " +
		"unless the backend compares If-Match with a strong ETag" + advice
	const left = "a.yaml:5: spec.backend: warning: If-Match and If-None-Match are left to the backend, which may carry out what they forbid" + advice
	const compared = "a.yaml:5: spec.backend: updates would be lost: two gateways compare If-Match with what each of them read, and the backend does not" + advice
	for name, c := range map[string]struct {
		file    string
		gateway Gateway
		want    string
	}{
		"rules and local locks":  {orders + rules, Gateway{SharedLimits: true, LocalLocks: true}, want},
		"rules and shared locks": {orders + rules, Gateway{SharedLimits: true}, ""},
		"no rules":               {orders, Gateway{LocalLocks: true}, left},
		"the backend compares":   {orders + "  preconditions: Backend\n", Gateway{LocalLocks: true}, ""},
		"the gateway compares":   {orders + "  preconditions: Gateway\n", Gateway{LocalLocks: true}, compared},
		"it does, with locks":    {orders + "  preconditions: Gateway\n", Gateway{}, ""},
		"it does, as is stated": {orders + "  preconditions: Gateway\n",
			Gateway{LocalLocks: true, MayLoseUpdates: true},
			strings.Replace(compared, "updates would", "warning: updates would", 1)},
		"a PUT in their place": {orders + "  backend: {patch: Emulated}\n" + rules, Gateway{LocalLocks: true},
			mayBeLost},
		"a PUT, without rules": {orders + "  backend: {patch: Emulated}\n", Gateway{LocalLocks: true}, mayBeLost},
		"a PUT, shared locks":  {orders + "  backend: {patch: Emulated}\n", Gateway{}, ""},
		"a PUT, stated": {orders + "  backend: {patch: Emulated}\n  concurrency: BestEffort\n",
			Gateway{LocalLocks: true, MayLoseUpdates: true},
			strings.Replace(lost, "updates would", "warning: updates would", 1)},
		"a PUT, no versions": {orders + "  backend: {patch: Emulated}\n  concurrency: BestEffort\n",
			Gateway{LocalLocks: true}, lost},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})
			if got := text(dir, CheckFor([]string{dir}, c.gateway)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
