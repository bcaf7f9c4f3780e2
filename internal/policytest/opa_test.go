package policytest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// opaFolders are folders as people give them to `opa test` and to `conftest verify`.
var opaFolders = map[string]map[string]string{
	"tests in any file": {
		"policy.rego": "package p\n\ndeny contains \"no\" if input.a > data.limits.most\n\ntest_deny if deny[\"no\"] with input as {\"a\": 4}\n\ntest_few if count(deny) == 1 with input as {\"a\": 2}\n",
		"limits.yaml": "limits: {most: 3}\n",
	},
	"data of folders": {
		"lib/lib.rego":            "package lib\n\ndouble(x) := x * 2\n",
		"policy/tests/a.rego":     "package tests\n\nimport data.lib\n\ntest_double if lib.double(data.policy.numbers.n) == 4\n\ntest_other if data.n == 2\n",
		"policy/a.rego":           "package a\n\nx := 1\n",
		"policy/numbers/n.json":   `{"n": 2}`,
		"policy/numbers/more.yml": "m: [1, 2]\n",
		"policy/tests/b.rego":     "package b\n\ntest_m if data.policy.numbers.m[1] == 2\n\ntodo_test_later if false\n",
	},
	"conftest": {
		"policy/deny.rego": "package main\n\ndeny contains msg if {\n\tinput.kind == \"Deployment\"\n\tnot input.spec.replicas\n\tmsg := \"must have replicas\"\n}\n\n" +
			"violation contains {\"msg\": \"must not be root\"} if input.user in data.users.banned\n\nwarn contains \"is old\" if input.version < 2\n",
		"policy/deny_test.rego": "package main\n\ntest_deny if deny[\"must have replicas\"] with input as {\"kind\": \"Deployment\", \"spec\": {}}\n\n" +
			"test_violation if count(violation) == 1 with input as {\"user\": \"root\"}\n\ntest_warn if count(warn) == 0 with input as {\"version\": 1}\n",
		"policy/data/users.yaml": "banned: [root]\n",
	},
	"undefined errors": {
		"a.rego": "package a\n\ntest_undefined if not to_number(\"x\")\n\ntest_error if to_number(\"x\") == 1\n\ntest_cases[name] if {\n\tsome name in [\"1\", \"2\"]\n\tto_number(name) == 1\n}\n",
	},
	"old language": {
		"a.rego":      "package a\n\ndeny[msg] { msg := input.msg }\n",
		"a_test.rego": "package a\n\ntest_deny { deny[\"x\"] with input as {\"msg\": \"x\"} }\n\ntest_wrong { count(deny) == 1 }\n",
	},
	"twice": {
		"a.rego":     "package a\n\ntest_a if true\n\ntest_a if false\n",
		"sub/b.rego": "package a\n\ntest_a if true\n\ntest_b if data.sub.x\n",
		"sub/x.json": `{"sub": 1}`,
	},
}

// TestOPATest: tests in Rego that are of no policy have the verdicts that `opa test` has for the folder.
func TestOPATest(t *testing.T) {
	for name, files := range opaFolders {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, files)
			s, err := Run(context.Background(), Options{Paths: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range s.Results {
				got = append(got, fmt.Sprintf("%s:%d %s %s", r.File, r.Line, strings.Split(r.ID, "#")[0], r.Outcome))
			}
			want := byOPA(t, dir)
			slices.Sort(got)
			if !slices.Equal(got, want) || len(got) == 0 {
				t.Errorf("got\n%s\nby OPA\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// byOPA returns what `opa test` says of a folder.
func byOPA(t *testing.T, dir string) (all []string) {
	t.Helper()
	version := ast.RegoV1
	loaded, err := loader.NewFileLoader().WithRegoVersion(version).All([]string{dir})
	if err != nil {
		version = ast.RegoV0
		loaded, err = loader.NewFileLoader().WithRegoVersion(version).All([]string{dir})
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := loaded.Store()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	err = storage.Txn(ctx, store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		found, err := tester.NewRunner().SetStore(store).SetModules(loaded.ParsedModules()).SetDefaultRegoVersion(
			version).RunTests(ctx, txn)
		if err != nil {
			return err
		}
		for r := range found {
			outcome := Passed
			if r.Skip {
				outcome = Skipped
			} else if !r.Pass() {
				outcome = Failed
			}
			all = append(all, fmt.Sprintf("%s:%d %s/%s %s", r.Location.File, r.Location.Row,
				strings.TrimPrefix(r.Package, "data."), strings.Split(r.Name, "#")[0], outcome))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestOPATestOfPolicies: folders that do not compile together, with a RegoPolicy among them, still have their tests
// run, and what does not compile fails.
func TestOPATestOfPolicies(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{
		"queues/queues.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: queues}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [mq.example.com], apiVersions: [v1], operations: [CREATE], resources: [queues]}]}
`,
		"queues/queues.rego": "package queues\n\ndeny contains \"no\" if not input.review.object.owner\n\ntest_deny if count(deny) == 1 with input as {\"review\": {\"object\": {}}}\n\ntest_error if not to_number(\"x\")\n",
		"one/a.rego":         "package a\n\ndefault x := 1\n\ntest_x if x == 1\n",
		"two/a.rego":         "package a\n\ndefault x := 2\n\ntest_x if x == 2\n",
		"three/a.rego":       "package c\n\ntest_c if unknown(1)\n",
		"four/a.rego":        "package d\n\ntest_parsed if parse_config(\"toml\", \"a=1\").a == 1\n",
	})
	s, err := Run(context.Background(), Options{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Results {
		file, _ := filepath.Rel(dir, r.File)
		got = append(got, fmt.Sprintf("%s %s %s %s", file, r.ID, r.Outcome,
			strings.ReplaceAll(strings.Join(r.Problems, "; "), dir+string(os.PathSeparator), "")))
	}
	slices.Sort(got)
	want := []string{
		"four/a.rego d/test_parsed skipped it calls 'parse_config': it is a function of conftest's, which the gateway does not have",
		"one/a.rego a/test_x passed ",
		"queues/queues.rego queues/test_deny passed ",
		"queues/queues.rego queues/test_error failed queues.rego:7:15: eval_builtin_error: to_number: parsing \"x\": invalid syntax",
		"three/a.rego a failed its modules have errors: three/a.rego:3:11: rego_type_error: undefined function unknown",
		"two/a.rego a/test_x passed ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
