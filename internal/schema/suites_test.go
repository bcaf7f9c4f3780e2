package schema_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// suites is the folder of recorded suites: SUITES_DIR, relative to the root of the repository.
func suites(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = "../shared/suites"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("the recorded suites are not here: %v (set SUITES_DIR)", err)
	}
	return dir
}

// definitions reads every CustomResourceDefinition in a file or folder.
func definitions(tb testing.TB, path string) (all []*apiextensionsv1.CustomResourceDefinition) {
	tb.Helper()
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
		for {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(text, crd); err != nil || crd.Kind != "CustomResourceDefinition" {
				continue // not for us
			}
			all = append(all, crd)
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// Every definition of the suites compiles, without warnings other than of the cost of rules.
func TestSuitesCompile(t *testing.T) {
	dir := suites(t)
	found := 0
	for _, crd := range append(definitions(t, filepath.Join(dir, "data")),
		definitions(t, filepath.Join(dir, "cases", "policies"))...) {
		found++
		versions, warnings, errs := schema.CompileCRD(crd)
		if len(errs) > 0 || len(versions) != len(crd.Spec.Versions) {
			t.Errorf("%s: %d of %d versions, %v", crd.Name, len(versions), len(crd.Spec.Versions), errs)
		}
		for _, w := range warnings {
			t.Logf("%s: %v", crd.Name, w)
		}
	}
	if found < 25 {
		t.Errorf("found %d definitions only", found)
	}
}

// recorded is a case of the suites, as far as it concerns schemas.
type recorded struct {
	ID          string
	PolicyFiles []string
	Request     struct {
		Method, Path string
		Body         json.RawMessage
	}
	Setup, Follow []json.RawMessage
	Expect        struct {
		Code   int
		Causes []struct{ Reason, Message, Field string }
		Object map[string]any
	}
}

func readCases(tb testing.TB, file string) (all []recorded) {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for d := json.NewDecoder(f); ; {
		var c recorded
		if err := d.Decode(&c); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			tb.Fatal(err)
		}
		all = append(all, c)
	}
}

// deliberate are the fields in which we differ from a real API server, with the reason.
var deliberate = map[string]struct {
	fields []string
	why    string
}{
	"proto/create/case-mismatch-key":       {nil, "a field that differs in case alone is refused with 400"},
	"proto/validate/int-1e1-literal":       {nil, "1e1 is an integer for rules too"},
	"proto/validate/int32-overflow":        {[]string{"spec.replicas"}, "one field, named: not <nil> and .spec.replicas"},
	"proto/validate/additional-wrong-type": {[]string{"<nil>", "spec.labels[a]"}, "keys of maps stand in brackets"},
	"proto/validate/gizmo-data-type":       {[]string{"<nil>", "data[a]", "data[b]"}, "keys of maps stand in brackets"},
	"proto/create/root-rule-metadata-name": {[]string{"metadata.name"},
		"rules about the whole object name the field that they read"},
	"gwapi-ex/standard/invalid/hack/invalid-examples/standard/gateway/invalid-addresses.yaml#0": {
		append(indexed("spec.addresses[%d]", 9), append(indexed("spec.addresses[%d].value", 9), "<nil>")...),
		"anyOf and oneOf name the value that they are about",
	},
}

func indexed(format string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// TestRecorded plays the creations of real API servers that schemas decide: valid objects come out with the recorded
// defaults (DEF-1), invalid ones fail in the recorded fields (VAL-1, VAL-2).
func TestRecorded(t *testing.T) {
	dir := suites(t)
	compiled := map[string]map[string]*schema.Schema{} // by policy file, then path of the collection
	for _, set := range []string{"gateway-api-examples", "gateway-api-cel-standard", "protocol"} {
		t.Run(set, func(t *testing.T) {
			played := 0
			for _, c := range readCases(t, filepath.Join(dir, "cases", set+".jsonl")) {
				if c.Request.Method != "POST" || len(c.Request.Body) == 0 || c.Request.Body[0] != '{' ||
					len(c.Setup) > 0 || strings.Contains(c.Request.Path, "?") ||
					c.Expect.Code != 201 && (c.Expect.Code != 422 || len(c.Expect.Causes) == 0) {
					continue
				}
				schemas := map[string]*schema.Schema{}
				for _, file := range c.PolicyFiles {
					if compiled[file] == nil {
						compiled[file] = bySuffix(t, filepath.Join(dir, file))
					}
					for suffix, s := range compiled[file] {
						schemas[suffix] = s
					}
				}
				if play(t, &c, schemas) {
					played++
				}
			}
			t.Logf("%d cases played", played)
			if played == 0 {
				t.Error("no case was played")
			}
		})
	}
}

// bySuffix compiles definitions, by GROUP/VERSION and plural.
func bySuffix(t *testing.T, path string) map[string]*schema.Schema {
	all := map[string]*schema.Schema{}
	for _, crd := range definitions(t, path) {
		versions, _, errs := schema.CompileCRD(crd)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", crd.Name, errs)
		}
		for _, v := range versions {
			all[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Plural] = v.Schema
		}
	}
	return all
}

func play(t *testing.T, c *recorded, schemas map[string]*schema.Schema) bool {
	parts := strings.Split(strings.TrimPrefix(c.Request.Path, "/apis/"), "/")
	if len(parts) < 3 {
		return false
	}
	s := schemas[parts[0]+"/"+parts[1]+" "+parts[len(parts)-1]]
	if s == nil {
		return false
	}
	d, err := document.Parse(c.Request.Body, document.Limits{})
	if err != nil {
		t.Errorf("%s: %v", c.ID, err)
		return true
	}
	defer d.Release()
	if kind, _ := d.Root().Get("kind"); !kind.Is(kindOf(c)) && c.Expect.Code == 422 {
		return false // another check than the schema's refuses it
	}
	difference, isDeliberate := deliberate[c.ID]
	if refusal := s.Prune(d, nil); refusal != nil {
		if !isDeliberate {
			t.Errorf("%s: %v", c.ID, refusal)
		}
		return true
	}
	if status, found := d.Root().Get("status"); found && c.Expect.Object["status"] == nil {
		d.Remove(status)
	}
	defaults.Apply(d, s)
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	result := s.Validate(frame, d.Root(), document.Node{})
	var got, want []string
	for _, err := range result.Errors {
		got = append(got, err.Field)
	}
	for _, cause := range c.Expect.Causes {
		want = append(want, cause.Field)
	}
	if isDeliberate {
		want = difference.fields
	}
	slices.Sort(got)
	slices.Sort(want)
	got, want = slices.Compact(got), slices.Compact(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: failing fields\n got %v\nwant %v\n(%v)", c.ID, got, want, result.Errors)
	}
	if c.Expect.Code == 201 {
		compareObject(t, c, d)
	}
	return true
}

// kindOf is the kind that the expected object has, or the request's.
func kindOf(c *recorded) string {
	var body struct{ Kind string }
	_ = json.Unmarshal(c.Request.Body, &body) // what is not JSON was found before
	plural := c.Request.Path[strings.LastIndexByte(c.Request.Path, '/')+1:]
	if !strings.HasPrefix(plural, strings.ToLower(body.Kind)[:max(len(body.Kind)-1, 0)]) {
		return ""
	}
	return body.Kind
}

// compareObject compares what stands outside of metadata and status.
func compareObject(t *testing.T, c *recorded, d *document.Document) {
	var got map[string]any
	if err := json.Unmarshal(d.AppendTo(nil), &got); err != nil {
		t.Fatal(err)
	}
	for _, object := range []map[string]any{got, c.Expect.Object} {
		delete(object, "metadata")
		delete(object, "status")
	}
	gotText, _ := json.Marshal(got) // both were JSON before
	wantText, _ := json.Marshal(c.Expect.Object)
	if !bytes.Equal(gotText, wantText) {
		t.Errorf("%s: object\n got %s\nwant %s", c.ID, gotText, wantText)
	}
}
