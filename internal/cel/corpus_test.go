package cel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// suites is the folder of recorded suites: SUITES_DIR, relative to the root of the repository.
func suites(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = "../shared/suites"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("../..", dir)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	return dir
}

// eachLine calls do for each line of a recorded suite.
func eachLine(t testing.TB, name string, do func(line []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join(suites(t), "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		do(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// policyDocuments are the objects in all policy files of the suites, as JSON.
func policyDocuments(t testing.TB) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	err := filepath.WalkDir(suites(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range bytes.Split(text, []byte("\n---")) {
			if object, err := yaml.YAMLToJSON(part); err == nil && len(object) > 0 && object[0] == '{' {
				all = append(all, object)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vap-map-lab.jsonl", "policy-load.jsonl"} {
		eachLine(t, name, func(line []byte) {
			var c struct {
				PolicyObjects []json.RawMessage
				Request       struct{ Body json.RawMessage }
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			all = append(append(all, c.PolicyObjects...), c.Request.Body)
		})
	}
	slices.SortFunc(all, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return slices.CompactFunc(all, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// requestBodies are some objects of recorded requests, the largest of each kind and shape.
func requestBodies(t testing.TB) []string {
	t.Helper()
	bodies := []string{plainObject, benchObject}
	seen := map[string]bool{}
	for _, name := range []string{"vap-kubescape.jsonl", "vap-map-lab.jsonl"} {
		eachLine(t, name, func(line []byte) {
			var c struct {
				Request struct{ Body json.RawMessage }
			}
			var shape struct{ Kind string }
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if json.Unmarshal(c.Request.Body, &shape) != nil || shape.Kind == "" {
				return
			}
			key := fmt.Sprint(shape.Kind, len(c.Request.Body)/100)
			if !seen[key] {
				seen[key] = true
				bodies = append(bodies, string(c.Request.Body))
			}
		})
	}
	return bodies
}

// tally counts what a corpus came to.
type tally struct {
	expressions, native, compared int
	reasons                       map[string]int
}

func (n *tally) planned(p *Program) {
	n.expressions++
	if p.native != nil {
		n.native++
		return
	}
	if n.reasons == nil {
		n.reasons = map[string]int{}
	}
	n.reasons[p.reason]++
}

// report prints the share of native plans, which must not fall.
func (n *tally) report(t *testing.T, least float64) {
	t.Helper()
	share := 100 * float64(n.native) / float64(max(n.expressions, 1))
	t.Logf("%d of %d expressions run natively (%.1f %%); %d values compared", n.native, n.expressions, share, n.compared)
	for reason, times := range n.reasons {
		t.Logf("%d times: %s", times, reason)
	}
	if share < least {
		t.Errorf("%.1f %% of the expressions run natively, want at least %v %%", share, least)
	}
}

// same tells whether two evaluations came to the same value, or both to an error.
func same(a, b outcome) bool { return a.value == b.value && (a.err == "") == (b.err == "") }

// uncomparable tells whether Kubernetes answers differently for a reason that has nothing to do with how expressions run.
func uncomparable(ours, theirs outcome) bool {
	return strings.Contains(ours.err, "beyond 64 bits") || // Kubernetes rounds
		strings.Contains(theirs.err, "cost limit") || strings.Contains(theirs.err, "cost budget") || // counted by another measure
		strings.HasPrefix(theirs.err, "internal error") // it panics where an argument is an error or of another type
}

// compare compares an expression's value in three ways; natively has it where there is a native plan.
func (n *tally) compare(t *testing.T, expression string, natively func() (outcome, bool), lazily, kubernetes func() outcome) {
	t.Helper()
	lazy, judged := lazily(), kubernetes()
	n.compared++
	for try := 0; try < 100 && !same(lazy, judged) && !uncomparable(lazy, judged); try++ {
		judged = kubernetes() // the order of a map's keys is random
	}
	if !same(lazy, judged) && !uncomparable(lazy, judged) {
		t.Errorf("%s\nlazily     %v\nKubernetes %v", expression, lazy, judged)
	}
	if got, ok := natively(); ok && got != lazy {
		t.Errorf("%s\nnatively %v\nlazily   %v", expression, got, lazy)
	}
}
