package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestMain lets tests run this program itself, as a process with signals and an exit code.
func TestMain(m *testing.M) {
	if os.Getenv("GATEWAY_TEST_RUN_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// result holds the output and exit code of a command.
type result struct {
	code           int
	stdout, stderr string
}

func run(args ...string) result {
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.AddCommand(commands()...)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code := execute(root, args)
	return result{code, stdout.String(), stderr.String()}
}

// write makes a file in a new directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	return testutil.WriteFile(t, filepath.Join(t.TempDir(), name), text)
}

const limitPolicy = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata:
  name: per-client
spec:
  key: ClientAddress
  requests: 50
  periodSeconds: 1
`

// Each mistake is one sentence on stderr and exit code 2; nothing is on stdout and no usage buries the sentence.
func TestMistakesOnTheCommandLine(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // in a pod there is a backend by default
	typo := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: 127.0.0.1:0\nupstrems: []\n")
	twice := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: 127.0.0.1:0\nlisten: 127.0.0.1:1\n")
	policy := write(t, "limit.yaml", strings.Replace(limitPolicy, "requests: 50", "requests: -1", 1))
	serve := func(args ...string) []string {
		return append([]string{"serve", "--admin", "127.0.0.1:0", "--listen", "localhost:0", "--upstream",
			"http://127.0.0.1:9"}, args...)
	}
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"srve"}, "gateway: unknown command \"srve\" for \"gateway\"; did you mean 'serve'?\n"},
		{[]string{"serve", "--polices", "x"}, "gateway serve: unknown flag: --polices; did you mean --policies?\n"},
		{[]string{"serve", "--conf", "x"}, "gateway serve: unknown flag: --conf; did you mean --config?\n"},
		{[]string{"serve", "--frobnicate"}, "gateway serve: unknown flag: --frobnicate; 'gateway serve --help' lists the flags\n"},
		{[]string{"serve", "--listen"}, "gateway serve: flag needs an argument: --listen\n"},
		{[]string{"serve", "policies/"}, "gateway serve: unexpected argument 'policies/'; 'gateway serve --help' shows what can be given\n"},
		{[]string{"serve"}, "gateway serve: --upstream: Required value: name the backend's URL, a file with --kubeconfig, or one with --config\n"},
		{serve("--listen", "8080"), "gateway serve: --listen: must be a host and a port such as '127.0.0.1:8080', not '8080'\n"},
		{serve("--dialect", "Soap"), "gateway serve: --dialect: must be 'Kubernetes' or 'Plain', not 'Soap'\n"},
		{serve("--upstream", "localhost"), "gateway serve: --upstream: must be a URL such as 'http://127.0.0.1:9000', not 'localhost'\n"},
		{serve("--policies", "/nowhere"), "gateway serve: the policy files have errors:\n/nowhere: must be a file or directory that can be read: no such file or directory\n"},
		{serve("--policies", policy), "gateway serve: the policy files have errors:\n" + policy +
			":7:3: spec.requests: Invalid value: -1: must be greater than or equal to 1\n"},
		{[]string{"serve", "--config", "/nowhere.yaml"},
			"gateway serve: /nowhere.yaml: may not be read: no such file or directory\n"},
		{[]string{"serve", "--config", typo}, "gateway serve: " + typo +
			":4: upstrems: unknown field; did you mean `upstreams`?\n"},
		{[]string{"serve", "--config", twice}, "gateway serve: " + twice +
			":4: listen: must not be set twice; it is set on line 3 already\n"},
		{[]string{"help", "policies"}, "gateway help: there is no command 'policies'; 'gateway --help' lists them\n"},
		{[]string{"help", "serve", "policies"}, "gateway help: there is no command 'serve policies'; 'gateway --help' lists them\n"},
		{[]string{"demo", "now"}, "gateway demo: unexpected argument 'now'; 'gateway demo --help' shows what can be given\n"},
		{[]string{"backend", "--listen", "127.0.0.1:99999"}, "gateway backend: --listen: must be a host and a port such as '127.0.0.1:8080', not '127.0.0.1:99999'\n"},
		{[]string{"backend", "--listen", "9000"}, "gateway backend: --listen: must be a host and a port such as '127.0.0.1:8080', not '9000'\n"},
	} {
		if got, want := run(c.args...), (result{2, "", c.stderr}); got != want {
			t.Errorf("gateway %s: %+v, want\n%+v", strings.Join(c.args, " "), got, want)
		}
	}
}

// An address in use is one sentence, and exit code 1: the command line is right, the machine is not.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	used := l.Addr().String()
	for _, c := range []struct {
		args []string
		flag string
	}{
		{[]string{"demo", "--listen", used, "--admin", "127.0.0.1:0"}, "--listen"},
		{[]string{"demo", "--admin", used, "--listen", "127.0.0.1:0"}, "--admin"},
		{[]string{"backend", "--listen", used}, "--listen"},
		{[]string{"serve", "--upstream", "http://127.0.0.1:9", "--listen", used, "--admin", "127.0.0.1:0"}, "--listen"},
	} {
		got := run(c.args...)
		want := "gateway " + c.args[0] + ": cannot listen on " + used +
			": another program does already; choose another address with " + c.flag + "\n"
		if got.code != 1 || !strings.HasSuffix(got.stderr, want) || got.stdout != "" {
			t.Errorf("gateway %s: %+v, want code 1 and\n%s", strings.Join(c.args, " "), got, want)
		}
	}
}

// TestJSONLog: where the log is JSON every line is an object of texts, numbers and booleans, the last words of the
// process too.
func TestJSONLog(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	file := write(t, "gateway.yaml", `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+l.Addr().String()+`
admin: {listen: "127.0.0.1:0"}
upstreams: [{name: a, endpoints: ["http://127.0.0.1:9"], dialect: Plain}]
routes: [{upstream: a}]
telemetry: {log: {format: JSON}}
`)
	got := run("serve", "--config", file)
	last := map[string]any{}
	for line := range strings.Lines(got.stderr) {
		clear(last)
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		for key, value := range last {
			switch value.(type) {
			case string, float64, bool:
			default:
				t.Errorf("%s is %v in %s", key, value, line)
			}
		}
	}
	if cause, _ := last["cause"].(string); got.code != 1 || last["level"] != "ERROR" ||
		last["msg"] != "the gateway ends" || !strings.Contains(cause, "another program does already") {
		t.Errorf("it ended with %d and %v", got.code, last)
	}
}

func TestCheck(t *testing.T) {
	const inDocuments = "../../policies/library/ordinary-apis/pagination.yaml:11:48: note: 2 notes on what nearly every document has, such as answers, which are not enforced; 'gateway check -v' lists them\n"
	good := write(t, "limit.yaml", limitPolicy)
	bad := write(t, "limit.yaml", strings.Replace(limitPolicy, "key: ClientAddress", "key: Header", 1))
	for _, c := range []struct {
		paths []string
		want  result
	}{
		{[]string{good}, result{0, "", ""}},
		{[]string{"../../policies/library", "../../deploy/kustomize/ingress/policies.yaml"},
			result{0, inDocuments, ""}},
		{[]string{bad}, result{1, bad + ":5:1: spec.headerName: Required value: must be set when `key` is 'Header'\n",
			"gateway check: 1 error, 0 warnings\n"}},
		{[]string{good, bad},
			result{1, bad + ":4:3: metadata.name: must be unique; RateLimitPolicy 'per-client' is in " + good +
				":4 already\n", "gateway check: 1 error, 0 warnings\n"}},
	} {
		got := run(append([]string{"check"}, c.paths...)...)
		if got != c.want {
			t.Errorf("check %v: %+v, want\n%+v", c.paths, got, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, name := range []string{"serve", "demo", "backend", "status", "check", "version"} {
		if got := run("--help"); !strings.Contains(got.stdout, "\n  "+name+" ") {
			t.Errorf("gateway --help does not list %s:\n%s", name, got.stdout)
		}
		got := run(name, "--help")
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, "Usage:\n  gateway "+name) {
			t.Errorf("gateway %s --help: %+v", name, got)
		}
		if name != "version" && !strings.Contains(got.stdout, "Examples:\n  gateway "+name) {
			t.Errorf("gateway %s --help has no example:\n%s", name, got.stdout)
		}
	}
	serve := run("serve", "--help").stdout
	for _, flag := range []string{"--config FILE", "--listen ADDR", "--upstream URL", "--dialect DIALECT",
		"--policies PATH", "--admin ADDR"} {
		if !strings.Contains(serve, flag) {
			t.Errorf("gateway serve --help does not show %s:\n%s", flag, serve)
		}
	}
}

// TestVersion shows what the program says of itself: the release that it was built as, else what Go knows of the build.
func TestVersion(t *testing.T) {
	release = "v1.2.3"
	defer func() { release = "" }()
	want := result{stdout: fmt.Sprintf("gateway v1.2.3 %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	for _, arg := range []string{"version", "--version"} {
		if got := run(arg); got != want {
			t.Errorf("gateway %s: %+v, want %+v", arg, got, want)
		}
	}
	info := func(version string, settings ...string) *debug.BuildInfo {
		i := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			i.Settings = append(i.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		return i
	}
	for _, c := range []struct {
		release string
		info    *debug.BuildInfo
		want    string
	}{
		{"", info(""), "devel"},
		{"", info("(devel)"), "devel"},
		{"", info("v0.1.0"), "v0.1.0"},
		{"", info("v0.1.0", "vcs.revision=0123456789abcdef0123", "vcs.modified=false"), "v0.1.0 (0123456789ab)"},
		{"", info("(devel)", "vcs.revision=0123", "vcs.modified=true"), "devel (0123, modified)"},
		{"v0.2.0", info("(devel)"), "v0.2.0"},
		{"v0.2.0+dirty", info("v0.2.0", "vcs.revision=0123", "vcs.modified=true"), "v0.2.0+dirty"},
	} {
		if got := versionOf(c.release, c.info); got != c.want {
			t.Errorf("version is %q, want %q", got, c.want)
		}
	}
}

// TestVersionOfBuild checks that the builds of Makefile and Dockerfile have the version that git
// gives, and a binary without symbols and debug information.
func TestVersionOfBuild(t *testing.T) {
	for _, program := range []string{"make", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dockerfile, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if want := `-tags grpcnotrace -trimpath -buildvcs=false -ldflags="-s -w -X main.release=$(tools/version.sh)"`; !strings.Contains(string(dockerfile), want) {
		t.Errorf("deploy/Dockerfile does not build with %s", want)
	}
	made, err := exec.Command("make", "-C", "../..", "--no-print-directory", "-n", "build",
		"VERSION=v1.2.3").CombinedOutput()
	if want := `-tags grpcnotrace -trimpath -buildvcs=false -ldflags="-s -w -X main.release=v1.2.3"`; err != nil || !strings.Contains(string(made), want) {
		t.Errorf("make build runs %s, %v; want %s in it", made, err, want)
	}

	repository := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git",
			append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"},
				args...)...)
		cmd.Dir = repository
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-14T10:12:44+01:00",
			"GIT_COMMITTER_DATE=2026-01-14T10:12:44+01:00")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	version := func() string {
		t.Helper()
		out, err := exec.Command("../../tools/version.sh", repository).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	change := func(text string) {
		t.Helper()
		testutil.WriteFile(t, filepath.Join(repository, "a.txt"), text)
	}
	if got := version(); got != "" {
		t.Errorf("without a repository the version is %q, want none", got)
	}
	change("a")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "a")
	if got := version(); !regexp.MustCompile(`^v0\.0\.0-20260114091244-[0-9a-f]{12}$`).MatchString(got) {
		t.Errorf("without a tag the version is %q, want the time and the id of the commit", got)
	}
	git("tag", "v0.3.0")
	if got := version(); got != "v0.3.0" {
		t.Errorf("the version is %q, want the tag", got)
	}
	// as a container image is built: the index knows other files of the same content
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(repository)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../tools/version.sh", copied).Output(); err != nil ||
		strings.TrimSpace(string(out)) != "v0.3.0" {
		t.Errorf("of a copy the version is %q, %v", out, err)
	}
	change("b")
	if got := version(); got != "v0.3.0+dirty" {
		t.Errorf("of changed files the version is %q", got)
	}
	if err := os.Remove(filepath.Join(repository, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if got := version(); got != "v0.3.0" {
		t.Errorf("without some files the version is %q, want the tag", got)
	}
}
