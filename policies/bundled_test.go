package policies

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lastgood"
	"github.com/admission-gateway/gateway/policies/modules"
)

// bundled is a policy whose modules are in a bundle.
const bundled = `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: bundled}
spec:
  bundle: team
  package: team
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
`

func bundleOf(t *testing.T, module string) modules.Bundle {
	t.Helper()
	b, err := bundle.Read(bundletest.Archive(t, map[string]string{"team.rego": module}),
		bundle.Options{Name: "team", MaxBytes: 1 << 20, MaxFiles: 10})
	if err != nil {
		t.Fatal(err)
	}
	return modules.Bundle{Bundle: b, Usable: func() error { return nil }}
}

// A bundle comes into force with the files in force, also while other files are refused, and what was said of those
// stays. A bundle that does not compile leaves everything as it was.
func TestActivate(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"widgets.yaml": widgets, "bundled.yaml": bundled})
	e := &events{}
	o := e.options()
	activated := 0
	o.Activated = func(*Set, time.Time) { activated++ }
	o.Gateway.Bundles = map[string]modules.Bundle{
		"team": {Usable: func() error { return errors.New("it is not loaded") }}}
	m, found := NewManager([]string{dir}, o)
	if m == nil {
		t.Fatal(found)
	}
	first := m.Current().Hash()
	expect := func(step string, generation int64, times int, differs string) {
		t.Helper()
		if got := m.Current(); got.Generation() != generation || activated != times || got.Hash() == differs {
			t.Errorf("%s: the generation is %d, bundles were activated %d times, the hash is %s", step,
				got.Generation(), activated, got.Hash())
		}
	}
	expect("at first", 1, 0, "")

	const good = "package team\n\ndeny contains \"no\" if input.review.object.spec.size > 5\n"
	if found := m.Activate("team", bundleOf(t, good)); finding.HasErrors(found) {
		t.Error(found)
	}
	expect("the first version", 2, 1, first)
	second := m.Current().Hash()
	for _, wrong := range []string{"package other\n\ndeny contains 1 if true\n",
		"package team\n\ndeny contains x if true\n", "package team\n\ndeny contains 1 if http.send({}) == 1\n"} {
		if found := m.Activate("team", bundleOf(t, wrong)); !finding.HasErrors(found) {
			t.Errorf("a wrong version is taken: %v", found)
		}
		expect(wrong, 2, 1, first)
	}
	m.Activate("team", bundleOf(t, good))
	expect("the same version", 2, 1, first)

	// Files that are refused do not keep a bundle back, and a bundle does not excuse them.
	replace(t, dir+"/widgets.yaml", strings.Replace(widgets, "kind: ", "kinds: ", 1))
	if found := m.Reload(); !finding.HasErrors(found) {
		t.Fatal("wrong files are taken")
	}
	m.Activate("team", bundleOf(t, good+"\nwarn contains \"new\" if true\n"))
	expect("another version", 3, 2, second)
	if outcome := m.LastReading().Outcome; outcome != ReadRefused {
		t.Errorf("the last reading is %s", outcome)
	}
	loaded, rejected := e.counts()
	if loaded != 1 || rejected != 1 {
		t.Errorf("files were loaded %d times and rejected %d times", loaded, rejected)
	}

	// The files are read with the version in force, and the same files and bundles have the same hash.
	third := m.Current().Hash()
	replace(t, dir+"/widgets.yaml", widgetsOf(3))
	if found := m.Reload(); finding.HasErrors(found) {
		t.Error(found)
	}
	expect("other files", 4, 2, third)
	replace(t, dir+"/widgets.yaml", widgets)
	m.Reload()
	if got := m.Current().Hash(); got != third {
		t.Errorf("the hash is %s, want %s", got, third)
	}
}

// The texts of files are kept for bundles, with which the files are compiled again, for gateways that start later, and
// if they have Rego, whose lines findings show.
func TestTextsOfDocuments(t *testing.T) {
	const shop = "openapi: 3.0.3\npaths: {/shop/orders: {post: {requestBody: {content: {application/json: {schema: {type: object}}}}}}}\n"
	written := strings.NewReplacer("name: bundled", "name: written", "bundle: team\n  package: team",
		`rego: "package p\n\ndeny contains \"no\" if input.review.name == \"x\"\n"`)
	for _, need := range []string{"nothing", "bundles", "later"} {
		hasBundles := need == "bundles"
		files := map[string]string{"shop.yaml": shop, "widgets.yaml": widgets, "rego.yaml": written.Replace(bundled)}
		e := &events{}
		o := e.options()
		want := "rego.yaml"
		switch need {
		case "later":
			dir := testutil.WriteFiles(t, map[string]string{"key": strings.Repeat("k", 32)})
			s, err := lastgood.New(lastgood.Options{Path: filepath.Join(dir, "kept"),
				KeyFile: filepath.Join(dir, "key"), MaxAge: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			o.LastGood, want = s, "rego.yaml shop.yaml widgets.yaml"
		case "bundles":
			files["bundled.yaml"], want = bundled, "bundled.yaml rego.yaml shop.yaml widgets.yaml"
			o.Gateway.Bundles = map[string]modules.Bundle{
				"team": {Usable: func() error { return errors.New("it is not loaded") }}}
		}
		m, found := NewManager([]string{testutil.WriteFiles(t, files)}, o)
		if m == nil {
			t.Fatal(found)
		}
		var kept []string
		for _, f := range m.states[0].files.Files {
			if f.Data != nil {
				kept = append(kept, filepath.Base(f.Name))
			}
		}
		if got := strings.Join(kept, " "); got != want {
			t.Errorf("for %s: the texts of %s are kept, want %s", need, got, want)
		}
		before := len(m.Current().Registry().Resources())
		if hasBundles {
			m.Activate("team",
				bundleOf(t, "package team\n\ndeny contains \"no\" if input.review.object.spec.size > 5\n"))
		} else {
			m.Reload()
		}
		if after := len(m.Current().Registry().Resources()); after != before || before != 2 {
			t.Errorf("for %s: there are %d resources, then %d, want 2", need, before, after)
		}
	}
}
