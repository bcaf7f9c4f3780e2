package graph_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/google/jsonschema-go/jsonschema" // which carries the suite for 2020-12
	_ "github.com/xeipuuv/gojsonschema"            // which carries the suite for draft 4

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// suite is JSON Schema's own for a dialect. A case is skipped for the reason that the longest
// prefix of its name has.
type suite struct {
	module, folder string
	dialect        graph.Dialect
	skipped        map[string]string
	least          int // verdicts
}

const (
	remote     = "the schema refers to another document"
	notInside  = "OpenAPI 3.0 has no references but paths within the document"
	otherDraft = "draft 4 has the keyword, OpenAPI 3.0 has not, and in 2020-12 it means something else"
)

var inDraft2020 = map[string]string{
	"refRemote.json/":                    remote,
	"ref.json/remote ref, containing":    remote,
	"defs.json/":                         remote,
	"dynamicRef.json/strict-tree schema": remote,
	"dynamicRef.json/tests for implementation dynamic anchor and reference link":     remote,
	"dynamicRef.json/$ref and $dynamicAnchor are independent of order - $defs first": remote,
	"dynamicRef.json/$ref and $dynamicAnchor are independent of order - $ref first":  remote,
	"dynamicRef.json/$ref to $dynamicRef finds detached $dynamicAnchor":              remote,
}

var suites = map[string]suite{
	"2020-12": {
		module: "github.com/google/jsonschema-go", folder: "jsonschema/testdata/draft2020-12", dialect: graph.Draft2020,
		least:   1000,
		skipped: inDraft2020,
	},
	"2020-12 in OpenAPI 3.1": {
		module: "github.com/google/jsonschema-go", folder: "jsonschema/testdata/draft2020-12", dialect: graph.OpenAPI31,
		least:   1000,
		skipped: inDraft2020,
	},
	"draft 4": {
		module: "github.com/xeipuuv/gojsonschema", folder: "testdata/draft4", dialect: graph.OpenAPI30, least: 250,
		skipped: map[string]string{
			"refRemote.json/":                               remote,
			"definitions.json/":                             remote,
			"ref.json/remote ref, ":                         remote,
			"dependencies.json/":                            otherDraft,
			"additionalItems.json/":                         otherDraft,
			"items.json/an array of schemas for items":      otherDraft,
			"ref.json/relative pointer ref to array":        otherDraft,
			"ref.json/Recursive references between schemas": notInside,
		},
	},
	"formats": {
		module: "github.com/xeipuuv/gojsonschema", folder: "testdata/draft7/optional/format", dialect: graph.OpenAPI31,
		least: 110,
		skipped: map[string]string{
			"iri.json/validation of IRIs: a valid IRI based on IPv6": "later versions of the suite have it wrong, for it lacks its brackets"},
	},
	"formats besides": {
		module: "github.com/santhosh-tekuri/jsonschema/v6",
		folder: "testdata/Extra-Test-Suite/tests/draft2020-12/optional/format", dialect: graph.OpenAPI31, least: 5,
		skipped: map[string]string{
			"email.json/validation of duration strings: tab ok if quoted": "RFC 5321 has no tabs in quoted texts"},
	},
}

// The verdicts are from JSON Schema's own test suite.
func TestSuites(t *testing.T) {
	for name, s := range suites {
		t.Run(name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder(t, s.module), s.folder, "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files of the suite: %v", err)
			}
			judged, used := 0, map[string]bool{}
			for _, file := range files {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var groups []suiteGroup
				if err := json.Unmarshal(raw, &groups); err != nil {
					t.Fatal(err)
				}
				for _, g := range groups {
					id := filepath.Base(file) + "/" + g.Description
					if skip := s.skip(id); skip != "" {
						used[skip] = true
						continue
					}
					g.Tests = slices.DeleteFunc(g.Tests, func(c suiteCase) bool {
						skip := s.skip(id + ": " + c.Description)
						used[skip] = true
						return skip != ""
					})
					judged += g.judge(t, id, s.dialect)
				}
			}
			for skip := range s.skipped {
				if !used[skip] {
					t.Errorf("no case has the name %s", skip)
				}
			}
			t.Logf("%d verdicts", judged)
			if judged < s.least {
				t.Errorf("there are %d verdicts, want at least %d", judged, s.least)
			}
		})
	}
}

func (s suite) skip(id string) string {
	for prefix := range s.skipped {
		if strings.HasPrefix(id, prefix) {
			return prefix
		}
	}
	return ""
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []suiteCase
}

type suiteCase struct {
	Description string
	Data        json.RawMessage
	Valid       bool
}

func (g suiteGroup) judge(t *testing.T, id string, dialect graph.Dialect) int {
	d, err := document.Parse(g.Schema, document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	defer d.Release()
	var findings []string
	s := graph.NewCompiler(d.Root(), dialect, func(f graph.Finding) {
		findings = append(findings, f.At.Path()+": "+f.Message)
	}).Compile(d.Root())
	for _, c := range g.Tests {
		v, err := document.Parse(c.Data, document.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if r := s.Check(v.Root(), graph.Requests); r.Valid() != c.Valid {
			t.Errorf("%s: %s: valid %v, want %v\nschema %s\nvalue %s\nfindings %q\nfailures %v", id, c.Description,
				r.Valid(), c.Valid, g.Schema, c.Data, findings, r.Failures)
		}
		v.Release()
	}
	return len(g.Tests)
}

// folder is where the module cache has a module that tests import.
func folder(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}
