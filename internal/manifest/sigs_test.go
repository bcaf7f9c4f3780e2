package manifest

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzRead compares what Read accepts with sigs.k8s.io/yaml, which is how kubectl reads the same
// file: same value, numbers that it would round aside.
func FuzzRead(f *testing.F) {
	const head = "apiVersion: v1\nkind: K\n"
	for _, seed := range []string{
		"a: 1", "a: yes\nb: 'no'\nc: |\n  x\n  y\n", "a: &x {b: [1, 2.50, 0x1F]}\nc: *x\nd: {<<: *x, e: 1}\n",
		"a: ! 5\nb: !!str 5\nc: & a",
		"a: 18446744073709551617\nb: 1_000\nc: +1.50e+3\nd: -0\ne: 0777", "a: \"\\u263a\\x41\\\n  b\"", "- a\n- b",
		"a: 'it''s'\nb: >-\n  folded\n\n  text\n",
		"? a\n: b", "a: [a, [b], {c: d}]", "a:\n- b\n-\n  - c\n", "# c\na: b # d\n", "a: 2024-01-01\nb: ~\nc:\n",
		"a: !!float 3\n", "<<: {a: 1}\n<<: [{b: 1}, {b: 2}]\n", "&a x: *a\n", "a: \t1\n", "a: 070000000000080001\n",
		"a: &b c: d", "---\na: 1\n...\n", "%YAML 1.1\n---\na: 1\n", "\"\\ud83d\\ude00\": 1", "{\"a\": \"\\/\"}",
	} {
		f.Add(head + seed)
		f.Add(seed)
	}
	f.Add(`{"apiVersion":"v1","kind":"K","a":[1.0,1e2,"\ud83d\ude00\/",null,true]}`)
	f.Fuzz(func(t *testing.T, in string) {
		objects, errs := Read("a.yaml", []byte(in))
		for _, o := range objects {
			if !json.Valid(o.JSON) {
				t.Fatalf("not JSON: %s", o.JSON)
			}
			if o.Line("") < 1 || o.Line("kind") < 1 {
				t.Fatalf("no line for %s", o.JSON)
			}
		}
		if len(objects) != 1 || refused(errs) || objects[0].Kind == "List" || moreDocuments(in) {
			return
		}
		compare(t, objects[0], []byte(in))
	})
}

// FuzzReadJSON compares what Read accepts of JSON with encoding/json: same value, every number
// spelled as it was.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"K","a":[1.0,1e2,-0,"\ud83d\ude00\/",null,true,{"b":{}}]}`, "{\"apiVersion\":\"v1\",\n\"kind\":\"K\"}\n{}", `[]`, `{"a":01}`, `{"a":"\u0000"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		objects, errs := Read("a.json", []byte(in))
		if len(errs) > 0 {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(strings.TrimPrefix(in, "\xef\xbb\xbf")))
		decoder.UseNumber()
		for _, o := range objects {
			if o.Line("") < 1 || strings.Contains(in, "List") {
				return
			}
			var theirs any
			if err := decoder.Decode(&theirs); err != nil {
				t.Fatalf("%v, but we read %s", err, o.JSON)
			}
			if ours := decode(t, o.JSON); !reflect.DeepEqual(ours, theirs) {
				t.Fatalf("we read\n%v\nencoding/json reads\n%v", ours, theirs)
			}
		}
	})
}

func refused(errs []*Error) bool {
	return slices.ContainsFunc(errs, func(err *Error) bool { return !err.Warning })
}

// moreDocuments reports whether the stream may hold more than the one document that
// sigs.k8s.io/yaml reads.
func moreDocuments(in string) bool {
	return strings.Contains(in, "---") || strings.Contains(in, "...") || strings.Contains(in, "}{") ||
		strings.Contains(in, "List")
}

func compare(t *testing.T, o *Object, in []byte) {
	t.Helper()
	theirs, err := yaml.YAMLToJSON(in)
	if err != nil {
		if json.Valid(bytes.TrimPrefix(in, []byte("\xef\xbb\xbf"))) {
			return // JSON that YAML's scanner does not take
		}
		t.Fatalf("%v, but we read %s", err, o.JSON)
	}
	if got, want := decode(t, o.JSON), decode(t, theirs); !same(got, want) {
		t.Fatalf("we read\n%s\nsigs.k8s.io/yaml reads\n%s", o.JSON, theirs)
	}
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// same compares values; a number of ours may have more digits than a float64 holds.
func same(ours, theirs any) bool {
	switch ours := ours.(type) {
	case map[string]any:
		object, ok := theirs.(map[string]any)
		if !ok || len(object) != len(ours) {
			return false
		}
		for key, value := range ours {
			if other, ok := object[key]; !ok || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		list, ok := theirs.([]any)
		if !ok || len(list) != len(ours) {
			return false
		}
		for i := range ours {
			if !same(ours[i], list[i]) {
				return false
			}
		}
		return true
	case json.Number:
		number, ok := theirs.(json.Number)
		if !ok {
			return false
		}
		if ours == number || sameNumber(ours.String(), number.String()) {
			return true
		}
		a, errA := ours.Float64()
		b, errB := number.Float64()
		_, isInt := new(big.Int).SetString(number.String(), 10)
		// if theirs is a double, as of 070000000000080001
		isExact := strconv.FormatFloat(a, 'f', -1, 64) != ours.String()
		return errA == nil && errB == nil && a == b && (!isInt || isExact || a >= 1<<63 || a <= -1<<63)
	default:
		return reflect.DeepEqual(ours, theirs)
	}
}

// TestRealFiles reads every policy file and manifest of the recorded suites.
func TestRealFiles(t *testing.T) {
	root := os.Getenv("SUITES_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "suites")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	files, objects := 0, 0
	for _, dir := range []string{"cases/policies", "data/gateway-api", "data/cert-manager", "data/kubescape-cel",
		"data/gatekeeper-library"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if ext := filepath.Ext(name); entry.IsDir() || ext != ".yaml" && ext != ".json" {
				return nil
			}
			data, err := os.ReadFile(name) //nolint:gosec // a name that WalkDir gave
			if err != nil {
				return err
			}
			read, errs := Read(name, data)
			for _, err := range errs {
				if filepath.Base(name) != "kustomization.yaml" && !err.Warning {
					t.Error(err)
				}
			}
			if len(read) == 1 && !refused(errs) && !moreDocuments(string(data)) {
				compare(t, read[0], data)
			}
			files++
			objects += len(read)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d objects in %d files", objects, files)
}
