package policies

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lastgood"
)

// events records the calls of a Manager.
type events struct {
	mu       sync.Mutex
	loaded   []string // "generation hash"
	kept     int      // how often the files were those in force
	rejected []string // the findings
}

func (e *events) options() Options {
	return Options{
		Loaded: func(set *Set, at time.Time) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.loaded = append(e.loaded, fmt.Sprintf("%d %s", set.Generation(), set.Hash()))
			if at.IsZero() {
				e.loaded = append(e.loaded, "without a time")
			}
		},
		Confirmed: func(*Set, time.Time) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.kept++
		},
		Rejected: func(found []Finding) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.rejected = append(e.rejected, fmt.Sprint(found))
		},
		Quiet: time.Millisecond,
		Poll:  time.Hour,
	}
}

func (e *events) counts() (loaded, rejected int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.loaded), len(e.rejected)
}

// defaultSize is the default that distinguishes the versions of the files.
func defaultSize(t *testing.T, set *Set) string {
	t.Helper()
	_, r, err := set.Registry().Resolve("POST", []byte("/apis/example.com/v1/namespaces/team-a/widgets"))
	if err != nil || r == nil {
		t.Errorf("got %v, %v", r, err)
		return ""
	}
	d, err := document.Parse([]byte(`{"spec":{}}`), document.Limits{})
	if err != nil {
		t.Error(err)
		return ""
	}
	defer d.Release()
	defaults.Apply(d, set.Schema(r))
	size := strings.TrimPrefix(string(d.AppendTo(nil)), `{"spec":{"size":`)
	return strings.TrimSuffix(size, "}}")
}

func widgetsOf(size int) string {
	return strings.Replace(widgets, "default: 1", fmt.Sprintf("default: %d", size), 1)
}

// replace puts a file in place of another in one step.
func replace(t *testing.T, name, content string) {
	t.Helper()
	testutil.WriteFile(t, name+".new~", content)
	if err := os.Rename(name+".new~", name); err != nil {
		t.Fatal(err)
	}
}

func manage(t *testing.T, paths []string, options Options) *Manager {
	t.Helper()
	m, found := NewManager(paths, options)
	if m == nil {
		t.Fatal(found)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return m
}

func TestReload(t *testing.T) {
	var e events
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	file := filepath.Join(dir, "a.yaml")
	m := manage(t, []string{dir}, e.options())
	first := m.Current()
	if first.Generation() != 1 || defaultSize(t, first) != "1" {
		t.Fatalf("got generation %d", first.Generation())
	}

	replace(t, file, widgetsOf(2))
	testutil.Eventually(t, "a file that an editor replaced", func() bool { return m.Current().Generation() == 2 })
	testutil.WriteFile(t, file, widgetsOf(3))
	testutil.Eventually(t, "a file that was written in place",
		func() bool { return defaultSize(t, m.Current()) == "3" })

	good := m.Current()
	testutil.WriteFile(t, file, "kind: [")
	testutil.Eventually(t, "a bad file that is refused", func() bool { _, rejected := e.counts(); return rejected > 0 })
	if m.Current() != good {
		t.Error("a bad file replaced the set")
	}
	if found := m.Reload(); !finding.HasErrors(found) || m.Current() != good {
		t.Errorf("got %v", found)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	testutil.WriteFile(t, filepath.Join(dir, "b.yaml"), widgetsOf(4))
	testutil.Eventually(t, "a file under another name", func() bool { return defaultSize(t, m.Current()) == "4" })
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	testutil.WriteFile(t, filepath.Join(dir, "sub", "c.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
	testutil.Eventually(t, "a new directory",
		func() bool { _, ok := m.Current().Object("", "ConfigMap", "", "c"); return ok })
	replace(t, filepath.Join(dir, "sub", "c.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n")
	testutil.Eventually(t, "a file in the new directory",
		func() bool { _, ok := m.Current().Object("", "ConfigMap", "", "d"); return ok })
	if defaultSize(t, first) != "1" || first.Generation() != 1 {
		t.Error("a set that is in use changed")
	}
	if first.Hash() == m.Current().Hash() {
		t.Error("other files have the same hash")
	}
}

// Files that come back to what is in force are no new generation.
func TestReloadWithoutChange(t *testing.T) {
	var e events
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	file := filepath.Join(dir, "a.yaml")
	m, found := NewManager([]string{file}, e.options())
	if m == nil {
		t.Fatal(found)
	}
	set := m.Current()
	if found := m.Reload(); len(found) != 0 || m.Current() != set {
		t.Errorf("got %v", found)
	}
	testutil.WriteFile(t, file, "{")
	if found := m.Reload(); !finding.HasErrors(found) {
		t.Errorf("got %v", found)
	}
	m.refresh(false)
	testutil.WriteFile(t, file, widgetsOf(1))
	if found := m.Reload(); len(found) != 0 || m.Current() != set {
		t.Errorf("got %v", found)
	}
	if loaded, rejected := e.counts(); loaded != 1 || rejected != 1 || e.kept != 2 {
		t.Errorf("loaded %d times, refused %d times, confirmed %d times, want 1, 1 and 2", loaded, rejected, e.kept)
	}
}

// Files that are gone leave the policies in force.
func TestReloadOfNothing(t *testing.T) {
	var e events
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	m, found := NewManager([]string{dir}, e.options())
	if m == nil {
		t.Fatal(found)
	}
	set := m.Current()
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	want := "DIR: must hold policy files; to run without any the gateway must be started anew\nDIR: warning: holds no policy files\n"
	if got := strings.ReplaceAll(text(dir, m.Reload()), dir, "DIR"); got != want {
		t.Errorf("got\n%s", got)
	}
	if m.Current() != set {
		t.Error("the policies are no longer in force")
	}
}

func TestPoll(t *testing.T) {
	var e events
	o := e.options()
	o.Poll, o.Quiet = time.Millisecond, time.Hour // every event of the watch waits for ever
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	m := manage(t, []string{filepath.Join(dir, "a.yaml")}, o)
	replace(t, filepath.Join(dir, "a.yaml"), widgetsOf(2))
	testutil.Eventually(t, "the poll", func() bool { return m.Current().Generation() == 2 })
}

func TestNoFirstSet(t *testing.T) {
	m, found := NewManager([]string{testutil.WriteFiles(t, map[string]string{"a.yaml": "kind: ["})}, Options{})
	if m != nil || !finding.HasErrors(found) {
		t.Errorf("got %v, %v", m, found)
	}
}

// Readers see whole sets while a ConfigMap mount is replaced again and again: what a set says in different files
// always belongs together, and the generation never goes back.
func TestOneGenerationThroughout(t *testing.T) {
	var e events
	mount := t.TempDir()
	put := func(n int) {
		version := fmt.Sprintf("..%d", n)
		if err := os.Mkdir(filepath.Join(mount, version), 0o700); err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, filepath.Join(mount, version, "a.yaml"), widgetsOf(n))
		testutil.WriteFile(t, filepath.Join(mount, version, "b.yaml"),
			fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nversion: %d\n", n))
		link(t, version, filepath.Join(mount, "..tmp"))
		if err := os.Rename(filepath.Join(mount, "..tmp"), filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	link(t, filepath.Join("..data", "a.yaml"), filepath.Join(mount, "a.yaml"))
	link(t, filepath.Join("..data", "b.yaml"), filepath.Join(mount, "b.yaml"))
	m := manage(t, []string{mount}, e.options())

	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			last := int64(0)
			for !stop.Load() {
				set := m.Current()
				if set.Generation() < last {
					t.Errorf("generation %d after %d", set.Generation(), last)
				}
				last = set.Generation()
				o, ok := set.Object("", "ConfigMap", "", "c")
				if !ok {
					t.Error("a file is missing")
					continue
				}
				n, _ := o.Document.Root().Get("version")
				if size := defaultSize(t, set); size != string(n.Raw()) {
					t.Errorf("one file is of version %s, another of version %s", size, n.Raw())
				}
			}
		})
	}
	const versions = 15
	for n := 2; n <= versions; n++ {
		put(n)
		if n%3 == 0 {
			m.Reload()
		}
	}
	testutil.Eventually(t, "the last version",
		func() bool { return defaultSize(t, m.Current()) == fmt.Sprint(versions) })
	stop.Store(true)
	readers.Wait()
	if _, rejected := e.counts(); rejected != 0 {
		t.Errorf("the files were refused %d times: %v", rejected, e.rejected)
	}
}

// TestLastGood: a manager that starts while the files have errors begins with those that were in force last, says so,
// and follows the files once they are mended.
func TestLastGood(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	file, kept := filepath.Join(dir, "a.yaml"), filepath.Join(t.TempDir(), "last")
	key := filepath.Join(testutil.WriteFiles(t, map[string]string{"key": strings.Repeat("k", 32)}), "key")
	store := func(maxAge time.Duration) *lastgood.Store {
		t.Helper()
		s, err := lastgood.New(lastgood.Options{Path: kept, KeyFile: key, MaxAge: maxAge, Configuration: "c"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	start := func(s *lastgood.Store) (*Manager, *events, []Finding) {
		var e events
		o := e.options()
		o.LastGood = s
		m, found := NewManager([]string{dir}, o)
		return m, &e, found
	}
	good, e, found := start(store(time.Hour))
	if good == nil || len(found) > 0 || len(e.rejected) > 0 {
		t.Fatalf("got %v, %v", found, e.rejected)
	}
	testutil.WriteFile(t, file, widgetsOf(2))
	if found := good.Reload(); len(found) > 0 {
		t.Fatal(found)
	}
	testutil.WriteFile(t, file, "kind: [")
	if found := good.Reload(); !finding.HasErrors(found) {
		t.Fatal("the file is no error")
	}
	if m, _, found := start(nil); m != nil || !finding.HasErrors(found) {
		t.Errorf("without a store got %v, %v", m, found)
	}

	m, e, found := start(store(time.Hour))
	if m == nil {
		t.Fatal(found)
	}
	if got := defaultSize(t, m.Current()); got != "2" || m.Current().Hash() != good.Current().Hash() {
		t.Errorf("got size %s", got)
	}
	last := found[len(found)-1].String()
	if !finding.HasErrors(found) || !strings.HasPrefix(last, dir+": warning: the policy files have errors, so that the gateway began with the policy files that were in force at 20") {
		t.Errorf("got %v", found)
	}
	if len(e.loaded) != 1 || len(e.rejected) != 1 || m.LastReading().Outcome != ReadRefused {
		t.Errorf("got %+v, %v", e, m.LastReading())
	}
	if again, err := os.ReadFile(kept); err != nil || len(again) == 0 {
		t.Errorf("the kept files are gone: %v", err)
	}
	testutil.WriteFile(t, file, widgetsOf(3))
	if found := m.Reload(); len(found) > 0 || defaultSize(t, m.Current()) != "3" {
		t.Errorf("got %v", found)
	}

	testutil.WriteFile(t, file, "kind: [")
	if m, _, found := start(store(time.Nanosecond)); m != nil ||
		!strings.Contains(fmt.Sprint(found),
			"must have no errors, because there are no older policy files to begin with: "+
				kept+" may not be used: it is older than `maxAgeSeconds`") {
		t.Errorf("older than its age: got %v, %v", m, found)
	}
	testutil.WriteFile(t, key, strings.Repeat("x", 32))
	if m, _, found := start(store(time.Hour)); m != nil ||
		!strings.Contains(fmt.Sprint(found), kept+" may not be used: it was not written with the key of `keyFile`") {
		t.Errorf("with another key: got %v, %v", m, found)
	}
}

// TestLastGoodAges: files that are refused are not kept as if they were good, however long the process runs.
func TestLastGoodAges(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1), "key": strings.Repeat("k", 32)})
	policies, kept := filepath.Join(dir, "a.yaml"), filepath.Join(t.TempDir(), "last")
	s, err := lastgood.New(lastgood.Options{Path: kept, KeyFile: filepath.Join(dir, "key"), MaxAge: time.Nanosecond,
		Configuration: "c"})
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		t.Helper()
		data, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	o := (&events{}).options()
	o.LastGood = s
	m, found := NewManager([]string{policies}, o)
	if m == nil {
		t.Fatal(found)
	}
	first := read()
	m.refresh(false)
	good := read()
	if good == first {
		t.Error("files without errors are not kept anew")
	}
	testutil.WriteFile(t, policies, "kind: [")
	m.refresh(false)
	m.refresh(false)
	m.refresh(true)
	if read() != good {
		t.Error("files with errors are kept, or make older ones younger")
	}
}

// TestLostDefinition: a reload that takes away a definition whose resource a policy names is refused, unless it is
// meant or the policy goes too.
func TestLostDefinition(t *testing.T) {
	const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: GROUPS, apiVersions: ["*"], operations: [CREATE], resources: RESOURCES}]}
  validations: [{expression: "object.spec.size < 5"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sizes}
spec: {policyName: sizes, validationActions: [Deny]}
`
	const needs = "policy.yaml:5: spec.matchConstraints.resourceRules[0].resources[0]: needs the definition of WHAT, which the policy files had until now: " +
		"put it back, take away the rule too, or say with the annotation 'admission-gateway.io/unused: Allow' of the object that it is meant\n"
	meant := strings.Replace(policy, "{name: sizes}\nspec:\n  match", "{name: sizes, annotations: {admission-gateway.io/unused: Allow}}\nspec:\n  match", 1)
	for name, c := range map[string]struct{ policy, groups, resources, want string }{
		"by name":             {policy, "[example.com]", "[widgets]", "'widgets' of the group 'example.com'"},
		"by group":            {policy, "[example.com]", `["*"]`, "a resource of the group 'example.com'"},
		"in any group":        {policy, `["*"]`, "[widgets]", "'widgets'"},
		"a subresource":       {policy, "[example.com]", "[widgets/status]", "'widgets' of the group 'example.com'"},
		"everything":          {policy, `["*"]`, `["*"]`, ""},
		"what is still there": {policy, "[apps]", "[deployments]", ""},
		"it is meant":         {meant, "[example.com]", "[widgets]", ""},
		"the policy goes, too": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "[example.com]", "[widgets]",
			""},
	} {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("GROUPS", c.groups, "RESOURCES", c.resources)
			dir := testutil.WriteFiles(t,
				map[string]string{"widgets.yaml": widgets, "policy.yaml": fill.Replace(policy)})
			m, found := NewManager([]string{dir}, Options{Quiet: time.Millisecond})
			if m == nil {
				t.Fatal(found)
			}
			before := m.Current()
			testutil.WriteFile(t, filepath.Join(dir, "policy.yaml"), fill.Replace(c.policy))
			if err := os.Remove(filepath.Join(dir, "widgets.yaml")); err != nil {
				t.Fatal(err)
			}
			found = m.Reload()
			if c.want == "" {
				if finding.HasErrors(found) || m.Current() == before {
					t.Errorf("got %v", found)
				}
				return
			}
			var errs []Finding
			for _, f := range found {
				if f.Severity == Error {
					errs = append(errs, f)
				}
			}
			want := strings.Replace(needs, "WHAT", c.want, 1)
			if got := text(dir, errs); got != want || m.Current() != before {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if again := m.Reload(); !finding.HasErrors(again) || m.Current() != before {
				t.Errorf("the second time got %v", again)
			}
		})
	}
}
