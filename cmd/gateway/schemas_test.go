package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// writtenSchemas returns the folder that 'gateway schemas' writes, and its schemas by their files.
func writtenSchemas(t *testing.T) (dir string, all map[string]*jsonschema.Schema) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "schemas")
	if got := run("schemas", dir); got.code != 0 {
		t.Fatalf("schemas: %s%s", got.stdout, got.stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]*jsonschema.Schema{}
	compiler := jsonschema.NewCompiler()
	for _, e := range entries {
		if all[e.Name()], err = compiler.Compile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return dir, all
}

// refusal returns why a schema refuses an object, nil if it does not.
func refusal(t *testing.T, s *jsonschema.Schema, object []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// TestSchemasTakeOurFiles: the schemas for editors have no false alarm in the policies, configurations and examples of
// this repository. Each kind has an example in the pages that names its schema.
func TestSchemasTakeOurFiles(t *testing.T) {
	_, schemas := writtenSchemas(t)
	objects := map[string]int{}
	take := func(name string) {
		found, errs := manifest.ReadFile(name)
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		for _, o := range found {
			if err := refusal(t, schemas["any.json"], o.JSON); err != nil {
				t.Errorf("%s: %s: %v", name, o.Kind, err)
			}
			objects[o.Kind]++
		}
	}
	for _, dir := range []string{"../../policies/library", "../../deploy/kustomize"} {
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".yaml" {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				if bytes.Contains(text, []byte("apiVersion: admission-gateway.io/")) {
					take(path)
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	example := regexp.MustCompile("(?s)```yaml\n((?:# yaml-language-server: [^\n]*\n)?apiVersion: admission-gateway.io/.*?)```")
	modeline := regexp.MustCompile(`^# yaml-language-server: \$schema=schemas/(\S+)\n`)
	named := map[string]bool{}
	for path, page := range pages(t) {
		for _, m := range example.FindAllStringSubmatch(page, -1) {
			take(write(t, "example.yaml", m[1]))
			if line := modeline.FindStringSubmatch(m[1]); line != nil {
				named[line[1]] = true
				if kind := strings.TrimSuffix(line[1], ".json"); schemas[line[1]] == nil ||
					!strings.Contains(m[1], "kind: "+kind+"\n") {
					t.Errorf("%s: an example of another kind names the schema %s", path, line[1])
				}
			}
		}
	}
	for file := range schemas {
		if kind := strings.TrimSuffix(file, ".json"); file != "any.json" && (!named[file] || objects[kind] == 0) {
			t.Errorf("no page shows a %s that names its schema", kind)
		}
	}
	if objects["PolicyTest"] < 50 {
		t.Errorf("only these objects were found: %v", objects)
	}
}

// TestSchemasRefuse: the schemas mark what the gateway would refuse, and know no other kinds.
func TestSchemasRefuse(t *testing.T) {
	_, schemas := writtenSchemas(t)
	const limit = `{"apiVersion":"admission-gateway.io/v1alpha1","kind":"RateLimitPolicy","metadata":{"name":"a"},"spec":{"key":"ClientAddress","requests":1,"periodSeconds":1`
	for object, want := range map[string]string{
		limit + `}}`:                 "",
		limit + `,"burts":2}}`:       "burts",
		limit + `,"burst":"2"}}`:     "want integer",
		limit + `,"match":{"a":1}}}`: "additional properties 'a'",
		`{"apiVersion":"admission-gateway.io/v1","kind":"RateLimitPolicy","metadata":{},"spec":{}}`: "apiVersion",
		`{"apiVersion":"admission-gateway.io/v1alpha1","kind":"GatewayConfiguration","listens":""}`: "listens",
		`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[]}}`:                                 "",
		`{"apiVersion":"kyverno.io/v2","kind":"PolicyException","spec":{"exceptions":[]}}`:          "",
	} {
		if err := refusal(t, schemas["any.json"], []byte(object)); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", object, err, want)
		}
	}
}
