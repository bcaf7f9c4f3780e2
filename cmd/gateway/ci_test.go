package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// ordersAPI is an API and its test, which passes because the field amount has a minimum.
const ordersAPI = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  version: v1
  names: {plural: orders, kind: Order}
  paths: {collection: /orders, item: "/orders/{name}"}
  fields: {name: id}
  schema: {openAPIV3Schema: {type: object, properties: {id: {type: string}, amount: {type: integer, minimum: 1}}}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: orders}
spec:
  cases:
  - {name: nothing, request: {path: /orders, body: {id: a, amount: 0}}, expect: {decision: Denied, causes: [{field: amount}]}}
`

// A repositoryOfPolicies is what a hook or a workflow finds, and the first of its commands that must fail.
type repositoryOfPolicies struct{ name, policies, fails string }

func repositoriesOfPolicies() []repositoryOfPolicies {
	return []repositoryOfPolicies{
		{"right", ordersAPI, ""},
		{"a mistake", strings.Replace(ordersAPI, "minimum: 1", "minimum: x", 1), "check"},
		{"a test that fails", strings.Replace(ordersAPI, "minimum: 1", "minimum: 0", 1), "test"},
		{"two ways to write names", strings.Replace(ordersAPI, "minimum: 1}", "minimum: 1}, list: {type: array, items: {type: string}}, first_name: {type: string}, firstName: {type: string}", 1), ""},
	}
}

// TestPreCommitHooks runs the hooks as pre-commit does, in repositories that are right or have a mistake.
func TestPreCommitHooks(t *testing.T) {
	text, err := os.ReadFile("../../.pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct {
		ID, Language, Entry, Files string
		Args                       []string
		PassFilenames              bool `yaml:"pass_filenames"`
	}
	if err := yaml.Unmarshal(text, &hooks); err != nil {
		t.Fatal(err)
	}
	if len(hooks) != 3 {
		t.Fatalf("there are %d hooks, want check, lint and test", len(hooks))
	}
	for _, r := range repositoriesOfPolicies() {
		t.Chdir(testutil.WriteFiles(t, map[string]string{"policies/orders.yaml": r.policies}))
		for _, h := range hooks {
			command, ok := strings.CutPrefix(h.Entry, "gateway ")
			if !ok || h.ID != "gateway-"+command || h.Language != "golang" || h.PassFilenames ||
				!regexp.MustCompile(h.Files).MatchString("policies/orders.yaml") {
				t.Errorf("the hook %s: %+v", h.ID, h)
			}
			got := run(append([]string{command}, h.Args...)...)
			if isWrong := got.code != 0; command == r.fails && !isWrong || r.fails == "" && isWrong {
				t.Errorf("%s: %s has the exit code %d: %s%s", r.name, h.ID, got.code, got.stdout, got.stderr)
			}
		}
	}
}

// An action is a composite action of GitHub.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Steps []struct {
			Uses, Name, Run string
			With, Env       map[string]string
		}
	}
}

var placeholder = regexp.MustCompile(`\$\{\{ (inputs|github)\.(\w+) \}\}`)

// play runs the steps of the action as GitHub does, in a folder, and returns the name of the step that fails and what
// all print. In place of the gateway's source it has a Makefile that builds the program of the test.
func (a *action) play(t *testing.T, dir string, inputs map[string]string) (failed, printed string) {
	t.Helper()
	source := testutil.WriteFiles(t, map[string]string{
		"Makefile": "build:\n\tmkdir -p bin && printf '#!/bin/sh\\nexec " + os.Args[0] +
			" \"$$@\"\\n' > bin/gateway && chmod +x bin/gateway\n",
		"deploy/ci/in": "", "go.mod": "", "go.sum": "",
	})
	value := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(m string) string {
			name := placeholder.FindStringSubmatch(m)
			if name[1] == "github" && name[2] == "action_path" {
				return filepath.Join(source, "deploy", "ci")
			}
			input, ok := a.Inputs[name[2]]
			if name[1] != "inputs" || !ok {
				t.Errorf("there is no %s", m)
			}
			if given, ok := inputs[name[2]]; ok {
				return given
			}
			return input.Default
		})
	}
	var out strings.Builder
	path := filepath.Join(t.TempDir(), "path")
	for _, step := range a.Runs.Steps {
		if step.Uses != "" {
			if !regexp.MustCompile(`^[a-z/-]+@[0-9a-f]{40}$`).MatchString(step.Uses) {
				t.Errorf("%s is not pinned by its commit", step.Uses)
			}
			for _, name := range []string{"go-version-file", "cache-dependency-path"} {
				if _, err := os.Stat(value(step.With[name])); err != nil {
					t.Error(err)
				}
			}
			continue
		}
		programs, _ := os.ReadFile(path) // it is not there before the first step
		c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		c.Dir = dir
		c.Env = append(os.Environ(), "GATEWAY_TEST_RUN_MAIN=1", "GITHUB_PATH="+path,
			"PATH="+strings.TrimSpace(string(programs))+":"+os.Getenv("PATH"))
		for key, text := range step.Env {
			c.Env = append(c.Env, key+"="+value(text))
		}
		c.Stdout, c.Stderr = &out, &out
		if err := c.Run(); err != nil {
			return step.Name, out.String()
		}
	}
	return "", out.String()
}

// TestAction plays the action of GitHub in the same repositories, and with a checksum that is right or wrong.
func TestAction(t *testing.T) {
	for _, program := range []string{"bash", "make", "sha256sum"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	text, err := os.ReadFile("../../deploy/ci/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	for _, r := range repositoriesOfPolicies() {
		dir := testutil.WriteFiles(t, map[string]string{"policies/orders.yaml": r.policies})
		failed, printed := a.play(t, dir, nil)
		if strings.ToLower(failed) != r.fails {
			t.Errorf("%s: the step %q fails, want %q:\n%s", r.name, failed, r.fails, printed)
		}
		if r.fails != "" && !strings.Contains(printed, "::error file=policies/orders.yaml") {
			t.Errorf("%s: no line of the file is annotated:\n%s", r.name, printed)
		}
	}
	dir := testutil.WriteFiles(t, map[string]string{"policies/orders.yaml": ordersAPI})
	built := sha256.Sum256([]byte("#!/bin/sh\nexec " + os.Args[0] + " \"$@\"\n"))
	if failed, printed := a.play(t, dir,
		map[string]string{"sha256": hex.EncodeToString(built[:]),
			"paths": "policies policies/orders.yaml"}); failed != "" {
		t.Errorf("the right checksum: %q fails:\n%s", failed, printed)
	}
	if failed, printed := a.play(t, dir,
		map[string]string{"sha256": strings.Repeat("0", 64)}); failed != "Build the gateway" ||
		strings.Contains(printed, "passed") {
		t.Errorf("a wrong checksum: %q fails, want the build:\n%s", failed, printed)
	}
}
