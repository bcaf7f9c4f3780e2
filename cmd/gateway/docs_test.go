package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/doctest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

// TestTutorials follows the pages that show how something is done with a plain API: their files and commands do what
// the pages say.
func TestTutorials(t *testing.T) {
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	for _, page := range []string{"tutorial-ordinary-api.md", "tasks.md", "policies/from-opa.md"} {
		if err := doctest.Follow(filepath.Join("../../docs", page), doctest.Options{
			Gateway:  os.Args[0],
			Env:      []string{"GATEWAY_TEST_RUN_MAIN=1"},
			Volatile: regexp.MustCompile(`after \d+ seconds|"retryAfterSeconds":\d+`),
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestOwnAPI follows the tutorial from a clone to an API of one's own, which takes one file and few commands. That make
// builds the gateway is proved elsewhere; here it puts the program of the test in its place.
func TestOwnAPI(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	const page = "../../docs/tutorial-your-api.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(files) != 1 || bytes.Count(files[0][1], []byte("\n")) > 30 {
		t.Errorf("the tutorial has %d files, want one of at most 30 lines", len(files))
	}
	commands := regexp.MustCompile("(?s)```sh\n([^\n]*\n)```").FindAllSubmatch(text, -1)
	if blocks := bytes.Count(text, []byte("```sh\n")); blocks > 5 || len(commands) != blocks {
		t.Errorf("the tutorial has %d commands in %d blocks, want at most 5, each in a block", len(commands), blocks)
	}
	builder := write(t, "make", "#!/bin/sh\n[ \"$*\" = build ] && mkdir -p bin && ln -s \"$(command -v gateway)\" bin/gateway\n")
	if err := os.Chmod(builder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := doctest.Follow(page, doctest.Options{
		Gateway: os.Args[0], Commands: map[string]string{"make": builder}, Env: []string{"GATEWAY_TEST_RUN_MAIN=1"},
		Volatile: regexp.MustCompile(`in \d+\.\d+s`),
	}); err != nil {
		t.Error(err)
	}
}

// TestTestingPages follows the pages about tests of policies, and about policies that have some.
func TestTestingPages(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	for _, page := range testutil.Sampled(2, []string{"testing", "library", "explain", "scan"}) {
		if err := doctest.Follow("../../docs/"+page+".md", doctest.Options{
			Gateway: os.Args[0], Env: []string{"GATEWAY_TEST_RUN_MAIN=1"}, Volatile: regexp.MustCompile(`in \d+\.\d+s`),
		}); err != nil {
			t.Error(err)
		}
	}
}

// pages returns the text of README and of all pages of docs/, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}
	for _, path := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs"} {
		if err := filepath.WalkDir(filepath.Join("../..", path), read); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noLabel = regexp.MustCompile("[^a-z0-9 _-]")
)

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(noLabel.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestDocs checks the form of the pages: README is short, links lead somewhere, and lines are short
// outside of tables and blocks.
func TestDocs(t *testing.T) {
	all := pages(t)
	if n := strings.Count(all["../../README.md"], "\n"); n > 150 {
		t.Errorf("README has %d lines, want at most 150", n)
	}
	for path, page := range all {
		inBlock := false
		for i, line := range strings.Split(page, "\n") {
			if strings.HasPrefix(line, "```") {
				inBlock = !inBlock
			}
			if !inBlock && !strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > 100 {
				t.Errorf("%s:%d has more than 100 columns", path, i+1)
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if inBlock || strings.Contains(target, "://") {
					continue
				}
				to := path
				if target != "" {
					to = filepath.Join(filepath.Dir(path), target)
				}
				if _, err := os.Stat(to); err != nil {
					t.Errorf("%s:%d: the link %s leads nowhere", path, i+1, m[1])
				}
				if anchor != "" && !anchors(all[to])[anchor] {
					t.Errorf("%s:%d: %s has no heading %s", path, i+1, to, anchor)
				}
			}
		}
	}
}

// TestIndex: the index of the pages, or that of the policies, has a link to each page.
func TestIndex(t *testing.T) {
	all := pages(t)
	const root = "../../docs"
	linked := map[string]bool{root + "/README.md": true}
	for _, index := range []string{root + "/README.md", root + "/policies/README.md"} {
		for _, m := range link.FindAllStringSubmatch(all[index], -1) {
			target, _, _ := strings.Cut(m[1], "#")
			linked[filepath.Join(filepath.Dir(index), target)] = true
		}
	}
	for path := range all {
		if strings.HasPrefix(path, root) && !linked[path] {
			t.Errorf("no index has %s", path)
		}
	}
}

// TestQuotes looks for the messages that the pages show in the scenarios that the proxy's tests play: what a page says
// is sent, or answered, is.
func TestQuotes(t *testing.T) {
	message := regexp.MustCompile("(?s)```http\n(.*?)```")
	scenarios := scenario.ReadAll(t, "../../proxy/testdata/way")
	quotes := 0
	for path, page := range pages(t) {
		for _, m := range message.FindAllStringSubmatch(page, -1) {
			quotes++
			if !slices.ContainsFunc(scenarios, func(s *scenario.Scenario) bool { return s.Shows(m[1]) }) {
				t.Errorf("%s: no scenario has the message\n%s", path, m[1])
			}
		}
	}
	if quotes < 3 {
		t.Errorf("the pages show %d messages", quotes)
	}
}

// TestExamples loads the policies and the configuration that the pages show. What a page shows of a file compiles.
func TestExamples(t *testing.T) {
	yaml := regexp.MustCompile("(?s)```yaml\n((?:# yaml-language-server: [^\n]*\n)?apiVersion: .*?)```")
	policies, configurations := 0, 0
	for path, page := range pages(t) {
		for _, m := range yaml.FindAllStringSubmatch(page, -1) {
			switch file := write(t, "example.yaml", m[1]); {
			case strings.Contains(m[1], "kind: GatewayConfiguration"):
				configurations++
				if err := os.Mkdir(filepath.Join(filepath.Dir(file), "policies"), 0o700); err != nil {
					t.Fatal(err)
				}
				if _, err := config.Load(file,
					config.Flags{Pod: config.Pod{Host: "127.0.0.1", Port: "443"}}); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			case strings.HasPrefix(m[1], "apiVersion: tutorial.example.com/"): // an object, not a policy
			case path == "../../docs/tutorial-ingress.md" && !strings.Contains(m[1], "admission-gateway.io/"):
				// a cluster's, as its test follows
			default:
				policies++
				// A page shows a part of a set: a binding, say, and its policy somewhere else.
				if got := run("check", "--strict=false", file); got.code != 0 {
					t.Errorf("%s: %s%s\n%s", path, got.stdout, got.stderr, m[1])
				}
			}
		}
	}
	if policies < 14 || configurations < 1 {
		t.Errorf("the pages show %d policies and %d configurations", policies, configurations)
	}
}
