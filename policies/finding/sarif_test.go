package finding_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/xeipuuv/gojsonschema"

	"github.com/admission-gateway/gateway/policies/finding"
)

// schemaOfSARIF returns the schema of OASIS, which the library has in its source.
func schemaOfSARIF(t *testing.T) gojsonschema.JSONLoader {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/owenrumney/go-sarif/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg", "report", "v210", "sarif",
		"schema.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "`")
	schema, _, _ := strings.Cut(rest, "`")
	if !strings.Contains(schema, `"physicalLocation"`) {
		t.Fatal("the library has no schema")
	}
	return gojsonschema.NewStringLoader(schema)
}

// TestSARIFSchema: files in SARIF are valid by the schema of SARIF 2.1.0, and have no members that it does not know.
func TestSARIFSchema(t *testing.T) {
	schema := schemaOfSARIF(t)
	for _, found := range [][]finding.Finding{
		nil,
		{
			{File: "a.yaml", Message: "must be right"},
			{File: "of team a/100%/ü.yaml", Line: 3, Column: 7, Field: "spec.a", Message: "two\nlines",
				Severity: finding.Warning, Rule: "LINT-2/acronym"},
			{File: "a.yaml", Line: 4, Message: "not enforced", Severity: finding.Note},
			{File: "a.yaml", Line: 4, Message: "is longer", Severity: finding.Remark, Rule: "LINT-2/acronym"},
		},
	} {
		var out bytes.Buffer
		if err := finding.Write(&out, finding.SARIF, found,
			[]finding.Check{{ID: "LINT-2/acronym", Why: "names are read by people"}}); err != nil {
			t.Fatal(err)
		}
		result, err := gojsonschema.Validate(schema, gojsonschema.NewBytesLoader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range result.Errors() {
			t.Errorf("%s in\n%s", e, out.String())
		}
		var report sarif.Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		if len(report.Runs) != 1 || len(report.Runs[0].Results) != len(found) {
			t.Errorf("%d findings, and\n%s", len(found), out.String())
		}
	}
}
