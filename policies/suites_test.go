package policies

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/source"
)

// suitesDir is the folder of the recorded suites.
func suitesDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "suites")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	return dir
}

// TestRealDefinitions loads every CustomResourceDefinition of the recorded suites.
func TestRealDefinitions(t *testing.T) {
	root := suitesDir(t)
	loaded := 0
	err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !source.IsManifest(name) {
			return err
		}
		objects, _ := manifest.ReadFile(name)
		for _, o := range objects {
			if o.Kind != "CustomResourceDefinition" {
				continue
			}
			set, found := Load([]string{name})
			for _, f := range found {
				if f.Severity == Error {
					t.Error(f)
				} else {
					t.Log(f)
				}
			}
			if set != nil {
				loaded++
			}
			break
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files with definitions", loaded)
	if loaded == 0 {
		t.Error("no file holds a definition")
	}
}

// loadCase is a case of policy-load.jsonl: the request brings a policy object to the API server.
type loadCase struct {
	ID      string `json:"id"`
	Request struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Body   json.RawMessage `json:"body"`
	} `json:"request"`
	Note   string `json:"note"`
	Expect struct {
		Code   int `json:"code"`
		Causes []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"causes"`
		Message string `json:"message"`
	} `json:"expect"`
}

// TestPolicyLoadCases holds what Load refuses against what the API server refused.
func TestPolicyLoadCases(t *testing.T) {
	policy := `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": {
		"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
		"validations": [{"expression": "true"}]}}`
	f, err := os.Open(filepath.Join(suitesDir(t), "cases", "policy-load.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	cases, agreed := 0, 0
	for lines.Scan() {
		var c loadCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"policy.json": string(c.Request.Body)}
		if strings.HasPrefix(c.ID, "load/binding/") {
			files["bound.json"] = policy
		}
		var got, want []string
		for _, f := range Check([]string{testutil.WriteFiles(t, files)}) {
			if f.Severity == Error {
				got = append(got, f.Field)
			}
		}
		for _, cause := range c.Expect.Causes {
			want = append(want, strings.Replace(cause.Field, "spec.validation.", "spec.versions[0].schema.", 1))
		}
		slices.Sort(got)
		slices.Sort(want)
		cases++
		switch refused := c.Expect.Code >= 400; {
		case refused == (len(got) > 0) && (len(want) == 0 || slices.Equal(got, want)):
			agreed++
		default:
			t.Errorf("%s: got errors in %q, the server answers %d with causes in %q", c.ID, got, c.Expect.Code, want)
		}
	}
	t.Logf("%d of %d cases agree", agreed, cases)
}
