package policytest

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// TestRecorded: cases that real API servers answered have the same decision here: the policies, and
// which of them refuses.
func TestRecorded(t *testing.T) {
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	}
	file, err := os.Open(filepath.Join(dir, "cases", "vap-kubescape.jsonl"))
	if err != nil {
		t.Skipf("no recorded cases in %s: set SUITES_DIR to the folder that holds them", dir)
	}
	defer func() { _ = file.Close() }()
	var cases []*testCase
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var c struct {
			ID            string
			PolicyFiles   []string
			Setup, Follow []any
			Request       struct {
				Method, Path string
				Body         json.RawMessage
			}
			Expect struct {
				Code   int32
				Causes []testcase.Cause
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Setup)+len(c.Follow) > 0 {
			continue
		}
		one := &testCase{id: c.ID, file: "vap-kubescape.jsonl"}
		one.Object, one.Request = c.Request.Body, &testcase.Request{Method: c.Request.Method, Path: c.Request.Path}
		one.Expect = testcase.Expectation{Decision: "Allowed", Code: c.Expect.Code}
		if c.Expect.Code >= 400 {
			one.Expect.Decision = "Denied"
			for _, cause := range c.Expect.Causes {
				_, message, _ := strings.Cut(cause.Message, "denied request: ")
				one.Expect.Message = message
			}
		}
		for _, name := range c.PolicyFiles {
			one.setting.Paths = append(one.setting.Paths, filepath.Join(dir, name))
		}
		cases = append(cases, one)
	}
	if lines.Err() != nil || len(cases) < 100 {
		t.Fatalf("%d cases, %v", len(cases), lines.Err())
	}
	p, _, err := prepare(&Options{Paths: []string{writeTest(t, "a_test.yaml", someTest)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.playAll(context.Background(), cases) {
		if r.Outcome != Passed {
			t.Errorf("%s: %s", r.ID, strings.Join(r.Problems, "; "))
		}
	}
}

const someTest = `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: some}
spec: {cases: [{name: a, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, expect: {decision: Allowed}}]}
`

func writeTest(t *testing.T, name, text string) string {
	t.Helper()
	return testutil.WriteFile(t, filepath.Join(t.TempDir(), name), text)
}

// TestParallel: cases of one setting that several gateways share give the results in their order.
func TestParallel(t *testing.T) {
	var cases []string
	for i := range 350 {
		decision := "Denied"
		if i%7 == 0 {
			decision = "Allowed"
		}
		data, _ := json.Marshal(strings.Repeat("x", i)) // a text
		cases = append(cases, `{name: "`+strings.Repeat("c", 1+i%3)+string(rune('a'+i%26))+jsonOf(i)+`", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {count: "`+jsonOf(i%7)+`", x: `+string(data)+`}}, expect: {decision: `+decision+`}}`)
	}
	dir := testutil.WriteFiles(t, map[string]string{
		"n.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: numbers}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: object.data.count == '0'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: numbers}
spec: {policyName: numbers, validationActions: [Deny]}
`,
		"n_test.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: numbers}\nspec:\n  cases:\n  - " + strings.Join(cases, "\n  - ") + "\n",
	})
	s, err := Run(context.Background(), Options{Paths: []string{dir}, Parallel: 4})
	if err != nil {
		t.Fatal(err)
	}
	if s.Passed != 350 || s.Coverage.Branches != (CoverageCount{2, 2}) ||
		!slices.IsSortedFunc(s.Results, func(a, b Result) int { return a.Line - b.Line }) {
		t.Errorf("%d passed, coverage %+v", s.Passed, s.Coverage)
		for _, r := range s.Results {
			if r.Outcome != Passed {
				t.Fatal(r)
			}
		}
	}
}

func TestChanges(t *testing.T) {
	for expression, want := range map[string]string{
		"a <= 3 && b":             "a < 3 && b; a <= 4 && b; a <= 3 || b",
		"x.y2 == '<= 3'":          "x.y2 != '<= 3'",
		"!has(a.b)":               "has(a.b)",
		"a.all(x, x > 1.5)":       "a.exists(x, x > 1.5); a.all(x, x >= 1.5)",
		`a.startsWith("\"<") `:    `a.endsWith("\"<") `,
		"a != b || size(a) >= 10": "a == b || size(a) >= 10; a != b && size(a) >= 10; a != b || size(a) > 10; a != b || size(a) >= 11",
	} {
		var all []string
		for _, c := range changesIn(expression) {
			all = append(all, c.value.(string))
		}
		if got := strings.Join(all, "; "); got != want {
			t.Errorf("%s:\n\t%s, want\n\t%s", expression, got, want)
		}
	}
}

func TestCompareObjects(t *testing.T) {
	for _, c := range []struct{ got, want, problems string }{
		{`{"a":1,"metadata":{"uid":"x","name":"n"}}`, `{"a":1,"metadata":{"name":"n"}}`, ""},
		{`{"a":1,"metadata":{"uid":"x"}}`, `{"a":1}`, ""},
		{`{"a":1,"metadata":{"uid":"x"}}`, `{"a":1,"metadata":{"uid":"y"}}`, `metadata.uid is "x", want "y"`},
		{`{"a":[1,{"b":2}]}`, `{"a":[1,{"b":3,"c":4}]}`, `a[1].b is 2, want 3; a[1].c is not set, want 4`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `a is [1], want [1,2]`},
		{`{"a":null}`, `{}`, `a is null, want it unset`},
	} {
		if got := strings.Join(compareObjects([]byte(c.got), []byte(c.want)), "; "); got != c.problems {
			t.Errorf("%s and %s: %q, want %q", c.got, c.want, got, c.problems)
		}
	}
}
