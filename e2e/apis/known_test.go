package apis

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What fails today, one proof a line: its name, a colon, and why. A proof on the list that succeeds fails with the
// advice to take it off, so that the list only shrinks.
//
//go:embed known.txt
var knownText string

var known = parseKnown(knownText)

func parseKnown(text string) map[string]string {
	list := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, found := strings.Cut(line, ": ")
		if !found || list[name] != "" {
			panic("known.txt: a line must be 'name: reason', with each name once: " + line)
		}
		list[name] = reason
	}
	return list
}

// With -shrink the list is written without what succeeds now.
var shrink = flag.Bool("shrink", false, "take off known.txt what succeeds")

// Names of the proofs that ran, of the proofs on the list that succeeded, and of the tests that were skipped because a
// program is missing.
var (
	metMutex  sync.Mutex
	met       []string
	succeeded []string
	skipped   []string
)

// A proof is a test that may be on the list of what fails today.
type proof struct {
	testing.TB

	mutex    sync.Mutex
	failures []string
}

func (p *proof) fail(message string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.failures = append(p.failures, strings.TrimRight(message, "\n"))
}

func (p *proof) Errorf(format string, a ...any) { p.fail(fmt.Sprintf(format, a...)) }
func (p *proof) Error(a ...any)                 { p.fail(fmt.Sprint(a...)) }
func (p *proof) Fatal(a ...any)                 { p.Error(a...); runtime.Goexit() }
func (p *proof) Fatalf(format string, a ...any) { p.Errorf(format, a...); runtime.Goexit() }
func (p *proof) Failed() bool                   { return len(p.failures) > 0 }

// prove runs a proof as a subtest.
func prove(t *testing.T, name string, check func(p *proof)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		metMutex.Lock()
		met = append(met, t.Name())
		metMutex.Unlock()
		p := &proof{TB: t}
		var done sync.WaitGroup
		done.Go(func() { check(p) }) // a goroutine of its own, which Fatal ends
		done.Wait()
		reason := known[t.Name()]
		if *nginx {
			reason = ""
		}
		if *shrink && reason != "" && len(p.failures) == 0 {
			reason = ""
			metMutex.Lock()
			succeeded = append(succeeded, t.Name())
			metMutex.Unlock()
		}
		verdict(t, p.failures, reason)
	})
}

// verdict fails, skips or passes the test, by what failed in it and why it may.
func verdict(t testing.TB, failures []string, reason string) {
	t.Helper()
	switch {
	case len(failures) == 0 && reason == "":
	case len(failures) == 0:
		t.Errorf("this succeeds now: take it off known.txt (%s)", reason)
	case reason == "":
		t.Error(strings.Join(failures, "\n"))
	default:
		t.Skipf("known (%s):\n%s", reason, strings.Join(failures, "\n"))
	}
}

// unmet returns names of the list that no proof has.
func unmet() []string {
	var names []string
	for name := range known {
		if !slices.Contains(met, name) &&
			!slices.ContainsFunc(skipped, func(s string) bool { return strings.HasPrefix(name, s+"/") }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// takeOff writes the list without what succeeded.
func takeOff() error {
	var b strings.Builder
	for line := range strings.Lines(knownText) {
		if name, _, _ := strings.Cut(line, ": "); !slices.Contains(succeeded, name) {
			b.WriteString(line)
		}
	}
	return os.WriteFile("known.txt", []byte(b.String()), 0o644)
}

// need skips the test if a program is missing, or fails it where everything must be there.
func need(t *testing.T, missing error) {
	t.Helper()
	switch {
	case missing == nil:
	case os.Getenv("E2E_APIS_COMPLETE") != "":
		t.Fatalf("%v; install it with 'make e2e-apis'", missing)
	default:
		skipped = append(skipped, t.Name())
		t.Skipf("%v; 'make e2e-apis' installs it", missing)
	}
}

// A recordedTest records what verdict says.
type recordedTest struct {
	testing.TB
	said string
}

func (r *recordedTest) Helper()                   {}
func (r *recordedTest) Error(a ...any)            { r.said = "failed: " + fmt.Sprint(a...) }
func (r *recordedTest) Errorf(f string, a ...any) { r.said = "failed: " + fmt.Sprintf(f, a...) }
func (r *recordedTest) Skipf(f string, a ...any)  { r.said = "skipped: " + fmt.Sprintf(f, a...) }

func TestKnownListOnlyShrinks(t *testing.T) {
	for _, test := range []struct {
		failures     []string
		reason, want string
	}{
		{nil, "", ""},
		{nil, "a cause", "failed: this succeeds now: take it off known.txt (a cause)"},
		{[]string{"one", "two"}, "", "failed: one\ntwo"},
		{[]string{"one", "two"}, "a cause", "skipped: known (a cause):\none\ntwo"},
	} {
		r := &recordedTest{TB: t}
		if verdict(r, test.failures, test.reason); r.said != test.want {
			t.Errorf("%q with the reason %q: %q, want %q", test.failures, test.reason, r.said, test.want)
		}
	}
}
