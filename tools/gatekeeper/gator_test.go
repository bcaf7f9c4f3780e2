package gatekeeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/verify"
)

// TestSuitesAsGator: suites have the verdicts of gator's own runner, case by case. What the gateway skips says why, and
// is none of what both play.
func TestSuitesAsGator(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	dir := t.TempDir()
	count := 120
	if testing.Short() {
		count = 30
	}
	for i := range count {
		writeSuite(t, rnd, filepath.Join(dir, fmt.Sprintf("s%03d", i)))
	}
	want, reasons := verdictsOfGator(t, dir)
	got := verdictsOfGateway(t, dir)
	counts := map[string]int{}
	for id, outcome := range want {
		if counts[outcome]++; got[id] != outcome {
			t.Errorf("%s: %s, and %s by gator: %v", id, got[id], outcome, reasons[id])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d cases are played, and %d by gator", len(got), len(want))
	}
	t.Log(counts)
	if least := count / 6; counts["passed"] < least || counts["failed"] < least || counts["skipped"] < 5 {
		t.Errorf("%v proves little", counts)
	}
}

// verdictsOfGator runs the suites of a folder as `gator verify` does. It returns why cases fail, too.
func verdictsOfGator(t *testing.T, dir string) (verdicts map[string]string, reasons map[string]error) {
	t.Helper()
	files := os.DirFS(dir)
	suites, err := verify.ReadSuites(files, ".", ".", true)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := verify.NewFilter("")
	if err != nil {
		t.Fatal(err)
	}
	runner, err := verify.NewRunner(files,
		func(opts ...gator.Opt) (gator.Client, error) { return gator.NewOPAClient(false, opts...) })
	if err != nil {
		t.Fatal(err)
	}
	verdicts, reasons = map[string]string{}, map[string]error{}
	for _, s := range suites {
		r := runner.Run(t.Context(), filter, s)
		folder := filepath.Dir(s.AbsolutePath)
		for i, test := range s.Tests {
			if test.Invalid {
				verdicts[folder+" "+test.Name] = outcome(s.Skip || test.Skip, s.Skip || r.TestResults[i].Error == nil)
				continue
			}
			for j, c := range test.Cases {
				id := folder + " " + test.Name + "/" + c.Name
				switch {
				case s.Skip || test.Skip || c.Skip:
					verdicts[id] = "skipped"
				case r.TestResults[i].Error != nil:
					verdicts[id], reasons[id] = "failed", r.TestResults[i].Error
				default:
					reasons[id] = r.TestResults[i].CaseResults[j].Error
					verdicts[id] = outcome(false, r.TestResults[i].CaseResults[j].Error == nil)
				}
			}
		}
	}
	return verdicts, reasons
}

func outcome(isSkipped, isPassed bool) string {
	switch {
	case isSkipped:
		return "skipped"
	case isPassed:
		return "passed"
	}
	return "failed"
}

// verdictsOfGateway runs them by `gateway test`.
func verdictsOfGateway(t *testing.T, dir string) map[string]string {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.Command(binary, "test", "-o", "json", dir)
	cmd.Stdout, cmd.Stderr = &out, &said
	_ = cmd.Run() // cases fail
	var summary struct {
		Results []struct{ File, ID, Outcome string }
	}
	if err := json.Unmarshal(out.Bytes(), &summary); err != nil {
		t.Fatal(err, out.String(), said.String())
	}
	verdicts := map[string]string{}
	for _, r := range summary.Results {
		folder, err := filepath.Rel(dir, filepath.Dir(r.File))
		if err != nil {
			t.Fatal(err)
		}
		verdicts[folder+" "+r.ID] = r.Outcome
	}
	return verdicts
}

// writeSuite writes a suite about flaws, which are annotations of an object, and all that it names.
func writeSuite(t *testing.T, rnd *rand.Rand, dir string) {
	t.Helper()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	write("template.yaml", `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: flaws}
spec:
  crd: {spec: {names: {kind: Flaws}, validation: {openAPIV3Schema: {type: object, properties: {prefix: {type: string}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package flaws
      violation[{"msg": msg, "details": {"key": key}}] {
        text := input.review.object.metadata.annotations[key]
        startswith(text, object.get(input, ["parameters", "prefix"], ""))
        msg := sprintf("has %s", [text])
      }
      violation[{"msg": "is flawed", "details": {"key": key}}] {
        startswith(input.review.object.metadata.annotations[key], object.get(input, ["parameters", "unnamed"], "g"))
      }
      violation[{"msg": msg}] {
        other := data.inventory.namespace[_][_]["ConfigMap"][name]
        other.data.flaw == input.review.object.metadata.name
        msg := sprintf("is a flaw of %s", [name])
      }
`)
	write("constraint.yaml", fmt.Sprintf("apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Flaws\nmetadata: {name: flaws}\nspec:\n  enforcementAction: %s\n  match: %s\n  parameters: %s\n",
		pick("deny", "deny", "warn", "dryrun"),
		pick("{}", "{}", "{kinds: [{apiGroups: [''], kinds: [ConfigMap]}]}",
			"{kinds: [{apiGroups: ['*'], kinds: ['*']}]}", "{kinds: [{apiGroups: [apps], kinds: [Deployment]}]}",
			"{namespaces: [team-a]}", "{excludedNamespaces: ['team-*']}",
			"{labelSelector: {matchLabels: {tier: gold}}}", "{name: 'obj-*'}", "{scope: Namespaced}",
			"{scope: Cluster}"),
		pick("{}", "{}", "{}", "{prefix: a}", "{prefix: a}", "{prefix: b}", "{prefix: 5}", "{unnamed: a}",
			"{unnamed: b, prefix: b}", "{unnamed: 5}")))
	var objects []string
	for i := range 4 {
		var notes []string
		for j := range rnd.IntN(4) {
			notes = append(notes, fmt.Sprintf("k%d: %s %d", j, pick("alpha", "beta", "a beta", "gamma"), j))
		}
		name := fmt.Sprintf("object%d.yaml", i)
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: %s, labels: {tier: %s}, annotations: {%s}}\n",
			pick("obj", "thing"), i, pick("team-a", "team-b", "other"), pick("gold", "tin"), strings.Join(notes, ", "))
		if rnd.IntN(5) == 0 {
			text = strings.Replace(text, "kind: ConfigMap", "kind: Namespace", 1)
		}
		if rnd.IntN(12) == 0 {
			text += "---\n" + text
		}
		write(name, text)
		objects = append(objects, name)
	}
	write("inventory.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: known, namespace: team-a}\ndata: {flaw: obj-1}\n")
	var b strings.Builder
	fmt.Fprintf(&b, "kind: Suite\napiVersion: test.gatekeeper.sh/v1alpha1\n")
	if rnd.IntN(20) == 0 {
		fmt.Fprint(&b, "skip: true\n")
	}
	fmt.Fprint(&b, "tests:\n")
	for i := range 2 {
		fmt.Fprintf(&b, "- name: t%d\n  template: template.yaml\n  constraint: constraint.yaml\n", i)
		switch rnd.IntN(8) {
		case 0:
			fmt.Fprint(&b, "  invalid: true\n")
			continue
		case 1:
			fmt.Fprint(&b, "  skip: true\n")
		}
		fmt.Fprint(&b, "  cases:\n")
		for j, object := range objects {
			fmt.Fprintf(&b, "  - name: c%d\n    object: %s\n", j, object)
			if rnd.IntN(10) == 0 {
				fmt.Fprint(&b, "    skip: true\n")
			}
			if rnd.IntN(3) == 0 {
				fmt.Fprint(&b, "    inventory: [inventory.yaml]\n")
			}
			fmt.Fprint(&b, "    assertions:\n")
			for range 1 + rnd.IntN(2) {
				fmt.Fprintf(&b, "    - {%s}\n",
					pick("violations: yes", "violations: no", "violations: 0", "violations: 1", "violations: 2",
						"violations: 3", "message: alpha", "message: 'has a.*'",
						"message: beta, violations: 1", "message: '^has', violations: 2",
						"message: nothing, violations: no", "message: flawed, violations: 2",
						"message: flawed, violations: 1", "message: flawed", "message: gamma, violations: yes",
						`violations: "1"`, "message: 'flaw of known'"))
			}
		}
	}
	write("suite.yaml", b.String())
}
