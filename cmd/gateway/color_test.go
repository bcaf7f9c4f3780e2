package main

import (
	"os"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/paint"
)

// TestColors: what fails, denies or errs is red, and what is said otherwise stays as it is.
func TestColors(t *testing.T) {
	for _, c := range []struct {
		rules         []paint.Rule
		text, painted string // the painted part; empty if none is
		colour        paint.Colour
	}{
		{findingColors(), "a b.yaml:3:5: spec.a: must be set", "a b.yaml:3:5", paint.Red},
		{findingColors(), "a.yaml: must not be empty", "a.yaml", paint.Red},
		{findingColors(), "a.yaml:3: spec.a: warning: has no effect", "warning", paint.Yellow},
		{findingColors(), "a.yaml:3: note: is a note", "note", paint.Faint},
		{findingColors(), "    size(a): b", "", paint.None},
		{testColors(), "FAIL limits/too many (a_test.yaml:7)", "FAIL", paint.Red},
		{testColors(), "PASS limits/few (a_test.yaml:3)", "PASS", paint.Green},
		{testColors(), "3 passed, 0 failed, 1 skipped in 0.10s", "", paint.None},
		{testColors(), "3 passed, 2 failed, 1 skipped in 0.10s", "2 failed", paint.Red},
		{scanColors(), "deny deployments.apps shop/api [replicas]: no", "deny", paint.Red},
		{scanColors(), "added deny deployments.apps shop/api [replicas]: no", "deny", paint.Red},
		{scanColors(), "warn deployments.apps shop/api [replicas]: no", "warn", paint.Yellow},
		{scanColors(), "3 objects: 0 denied, 0 not judged", "", paint.None},
		{scanColors(), "denied  3        1", "", paint.None},
		{statusColors(), "gateway v1 is NOT READY, up 1s", "NOT READY", paint.Red},
		{statusColors(), "gateway v1 is ready, up 1s", "ready", paint.Green},
		{statusColors(), "THE NEWEST FILES ARE NOT IN FORCE since now", "THE NEWEST FILES ARE NOT IN FORCE since now",
			paint.Red},
		{statusColors(), "lost: 0 lines of the log", "", paint.None},
		{statusColors(), "lost: 0 lines of the log, 2 events of the decision log for its service (Full)",
			"lost: 0 lines of the log, 2 events of the decision log for its service (Full)", paint.Yellow},
		{statusColors(), "orders  Closed  10.0.0.1:80  Ready, its last 2 requests failed  0  0",
			"Ready, its last 2 requests failed", paint.Red},
	} {
		var b strings.Builder
		if _, err := paint.Lines(&b, c.rules).Write([]byte(c.text + "\n")); err != nil {
			t.Fatal(err)
		}
		want := c.text + "\n"
		if c.painted != "" {
			want = strings.Replace(want, c.painted, c.colour.Text(c.painted), 1)
		}
		if got := b.String(); got != want {
			t.Errorf("%q is painted as %q, want %q", c.text, got, want)
		}
	}
}

// TestWantsColor: colours are for terminals that have them, unless their users want none.
func TestWantsColor(t *testing.T) {
	device, err := os.OpenFile("/dev/null", os.O_WRONLY, 0) // is a device, as a terminal is
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = device.Close() }()
	for _, c := range []struct {
		noColor, term string
		want          bool
	}{{"", "xterm", true}, {"", "", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := wantsColor(device); got != c.want {
			t.Errorf("NO_COLOR=%s TERM=%s: %v, want %v", c.noColor, c.term, got, c.want)
		}
		if wantsColor(&strings.Builder{}) {
			t.Error("a text has colours")
		}
		if _, isPlain := inColor(device, "json", nil).(*os.File); !isPlain {
			t.Error("JSON has colours")
		}
	}
}

// TestCompletion: shells complete the values of flags, and the names of commands after help.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"serve --dialect ": "Kubernetes\nPlain\n:4\n", "explain --dialect ": "Kubernetes\nPlain\n:4\n",
		"explain -o ":      "text\njson\nhtml\n:4\n",
		"explain --color ": "auto\nalways\nnever\n:4\n", "check -o ": "text\njson\nsarif\ngithub\n:4\n",
		"test -o ": "text\njson\njunit\ngithub\nsarif\ntap\n:4\n",
		"scan -o ": "text\njson\nhtml\npolicyreport\n:4\n", "status -o ": "text\njson\n:4\n",
		"scan --as ": "create\nupdate\n:4\n", "init --enforce ": "Warn\nDeny\n:4\n",
	} {
		got := run(append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
		if got.code != 0 || got.stdout != want {
			t.Errorf("%q is completed by %+v, want %q", line, got, want)
		}
	}
	if got := run("__complete", "help", ""); !strings.Contains(got.stdout, "explain\t") {
		t.Errorf("help is completed by %+v", got)
	}
	if got := run("help", "check"); got.code != 0 || !strings.Contains(got.stdout, "gateway check [PATH...]") {
		t.Errorf("help of check is %+v", got)
	}
}
