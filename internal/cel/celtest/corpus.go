package celtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
		dir = filepath.Join(root(t), dir)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	return dir
}

// root is the folder of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal(err)
	return ""
}

// EachLine calls do for each line of a recorded suite.
func EachLine(t testing.TB, name string, do func(line []byte)) {
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

// PolicyDocuments are the objects in all policy files of the suites, as JSON.
func PolicyDocuments(t testing.TB) []json.RawMessage {
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
		EachLine(t, name, func(line []byte) {
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

// RequestBodies are some objects of recorded requests, the largest of each kind and shape.
func RequestBodies(t testing.TB) []string {
	t.Helper()
	bodies := []string{PlainObject, BenchObject}
	seen := map[string]bool{}
	for _, name := range []string{"vap-kubescape.jsonl", "vap-map-lab.jsonl"} {
		EachLine(t, name, func(line []byte) {
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
