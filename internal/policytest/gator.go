package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/natives"
)

// gatorSuite is a suite of gator, the test tool of Gatekeeper.
type gatorSuite struct {
	Skip  bool
	Tests []gatorTest
}

// gatorTest is a template and a constraint with cases, or a constraint that has to be invalid.
type gatorTest struct {
	Name, Template, Constraint, Expansion string
	Invalid, Skip                         bool
	Cases                                 []gatorCase
}

type gatorCase struct {
	Name, Object string
	Skip         bool
	Inventory    []string
	Assertions   []struct {
		Violations any
		Message    string
	}
}

// readGator reads a suite of gator.
func readGator(s *suite, o *manifest.Object) error {
	var g gatorSuite
	if err := json.Unmarshal(o.JSON, &g); err != nil {
		return err
	}
	for i := range g.Tests {
		test, path := &g.Tests[i], fmt.Sprintf("tests[%d]", i)
		test.Skip = test.Skip || g.Skip
		if test.Invalid {
			one := s.gator(o, path, test, test.Name)
			one.invalid = filepath.Join(filepath.Dir(s.file), test.Constraint)
			continue
		}
		for j := range test.Cases {
			c := &test.Cases[j]
			one := s.gator(o, fmt.Sprintf("%s.cases[%d]", path, j), test, test.Name+"/"+c.Name)
			one.Name = c.Name
			if c.Skip {
				one.skip = saysSkip
			}
			if one.skip == "" {
				one.ofGator(c)
			}
		}
	}
	return nil
}

// saysSkip is why a case is skipped that has `skip`.
const saysSkip = "the suite says so"

// gator adds a case at a path of the suite.
func (s *suite) gator(o *manifest.Object, path string, test *gatorTest, id string) *testCase {
	dir := filepath.Dir(s.file)
	one := &testCase{file: s.file, id: id, skip: unserved(dir, test.Template)}
	one.at(o, path)
	one.setting.Denies = true
	one.setting.Paths = relative(dir, []string{test.Template, test.Constraint})
	switch {
	case test.Skip:
		one.skip = saysSkip
	case test.Expansion != "":
		one.skip = "this version of the gateway expands no objects that generate others"
	}
	s.cases = append(s.cases, one)
	return one
}

// ofGator reads the object of a case, and what is expected. What gator finds wrong with a case fails it.
func (t *testCase) ofGator(c *gatorCase) {
	dir := filepath.Dir(t.file)
	t.files = relative(dir, append([]string{c.Object}, c.Inventory...))
	objects, err := objectsIn(filepath.Join(dir, c.Object))
	switch {
	case c.Object == "":
		t.mistake = "must have an object"
	case err != nil:
		t.mistake = err.Error()
	case len(objects) != 1:
		t.mistake = fmt.Sprintf("'%s' must have one object, not %d", c.Object, len(objects))
	case len(c.Assertions) == 0:
		t.mistake = "must have at least one assertion"
	case nameOf(objects[0]).Kind == "AdmissionReview":
		t.skip = "this version of the gateway plays objects, and no AdmissionReviews"
	default:
		t.Object = clusterWide(objects[0])
	}
	for _, file := range c.Inventory {
		more, err := objectsIn(filepath.Join(dir, file))
		if err != nil {
			t.mistake = err.Error()
		}
		t.setting.Objects = append(t.setting.Objects, more...)
	}
	t.violations = []violations{}
	for k, a := range c.Assertions {
		v, err := assertion(a.Violations, a.Message)
		if err != nil {
			t.mistake = fmt.Sprintf("assertions[%d]: %v", k, err)
		}
		t.violations = append(t.violations, v)
	}
}

// denying returns the content of a file with constraints that deny. A file that has no others stays as it is.
func denying(name string, data []byte) []byte {
	if !bytes.Contains(data, []byte("enforcementAction")) {
		return data
	}
	objects, _ := manifest.Read(name, data)
	var all bytes.Buffer
	changed := false
	for _, o := range objects {
		text := o.JSON
		action, has := o.At("spec.enforcementAction")
		if group, _ := o.GroupVersion(); group == "constraints.gatekeeper.sh" && has &&
			(action.Is("warn") || action.Is("dryrun")) {
			if d, err := document.Parse(o.JSON, document.Limits{}); err == nil {
				spec, _ := d.Root().Get("spec")
				d.SetString(spec, "enforcementAction", "deny")
				text, changed = d.AppendTo(nil), true
				d.Release()
			}
		}
		all.WriteString("---\n")
		all.Write(text)
		all.WriteByte('\n')
	}
	if !changed {
		return data
	}
	return all.Bytes()
}

// compareInvalid returns what is wrong if a constraint does not break the schema of its template. A field that the
// schema does not have is a mistake of the suite, as for gator.
func (t *testCase) compareInvalid(found []finding.Finding) []string {
	isInvalid, unknown := false, ""
	for _, f := range found {
		switch {
		case f.Severity != finding.Error:
		case f.File == t.invalid && strings.HasSuffix(f.Message, "have no such field"):
			unknown = f.Text()
		case f.File == t.invalid && (strings.HasPrefix(f.Field, "spec.parameters") ||
			strings.HasPrefix(f.Field, "spec.match")):
			isInvalid = true
		default:
			return []string{"its policies have other errors: " + f.Text()}
		}
	}
	if !isInvalid && unknown != "" {
		return []string{"the constraint must break the schema of its template, and has a field that the schema does not have: " + unknown}
	}
	if !isInvalid {
		return []string{"the constraint must be invalid, and is not"}
	}
	return nil
}

// manyViolations is more than any request has.
const manyViolations = 1 << 20

// assertion reads how many violations with a message a suite expects: a number, yes or no. Without it there must be one
// at least. The message is a regular expression; without one all violations count.
func assertion(expected any, message string) (v violations, err error) {
	if message != "" {
		if v.message, err = regexp.Compile(message); err != nil {
			return v, fmt.Errorf("message: must be a regular expression: %w", err)
		}
	}
	switch e := expected.(type) {
	case nil:
		v.least, v.most = 1, manyViolations
	case float64:
		v.least, v.most = int(e), int(e)
	case bool:
		if e {
			v.least, v.most = 1, manyViolations
		}
	case string:
		switch e {
		case "yes":
			v.least, v.most = 1, manyViolations
		case "no":
		default:
			return v, fmt.Errorf("violations: must be a number, 'yes' or 'no', not the text '%s'", e)
		}
	}
	return v, nil
}

// clusterWide returns an object without its namespace if objects of its kind are in none: gator judges it, an API
// server would refuse it.
func clusterWide(object json.RawMessage) json.RawMessage {
	o := nameOf(object)
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	native, isKnown := natives.Kinds[kind.GroupKind()]
	isNamespaced := native.Namespaced
	if isNamespaced || !isKnown || o.Metadata.Namespace == "" {
		return object
	}
	d, err := document.Parse(object, document.Limits{})
	if err != nil {
		return object
	}
	defer d.Release()
	metadata, _ := d.Root().Get("metadata")
	namespace, _ := metadata.Get("namespace")
	d.Remove(namespace)
	return d.AppendTo(nil)
}

// unserved returns why the policies of a template cannot be played; empty if they can.
func unserved(dir, template string) string {
	objects, errs := manifest.ReadFile(filepath.Join(dir, template))
	for _, err := range errs {
		if !err.Warning {
			return err.Error()
		}
	}
	for _, o := range objects {
		if group, _ := o.GroupVersion(); !policies.Serves(group, o.Kind) {
			return "this version of the gateway does not serve the kind " + o.Kind
		}
	}
	return ""
}

// objectsIn returns the objects of a file.
func objectsIn(file string) (all []json.RawMessage, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, errs := manifest.Read(file, data)
	for _, err := range errs {
		if !err.Warning {
			return nil, err
		}
	}
	for _, o := range objects {
		all = append(all, json.RawMessage(o.JSON))
	}
	return all, nil
}
