package policytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies"
)

// gatorSuite is a suite of gator, the test tool of Gatekeeper.
type gatorSuite struct {
	Tests []struct {
		Name, Template, Constraint string
		Skip                       bool
		Cases                      []struct {
			Name, Object string
			Skip         bool
			Inventory    []string
			Assertions   []struct {
				Violations any
				Message    string
			}
		}
	}
}

// readGator reads a suite of gator.
func readGator(s *suite, o *manifest.Object) error {
	var g gatorSuite
	if err := json.Unmarshal(o.JSON, &g); err != nil {
		return err
	}
	dir := filepath.Dir(s.file)
	for i, test := range g.Tests {
		for j, c := range test.Cases {
			one := &testCase{file: s.file, id: test.Name + "/" + c.Name}
			one.at(o, fmt.Sprintf("tests[%d].cases[%d]", i, j))
			one.Name = c.Name
			one.setting.Paths = relative(dir, []string{test.Template, test.Constraint})
			one.files = relative(dir, append([]string{c.Object}, c.Inventory...))
			objects, err := objectsIn(filepath.Join(dir, c.Object))
			if err != nil {
				return err
			}
			if len(objects) == 0 {
				return fmt.Errorf("%s has no object", c.Object)
			}
			one.Object = clusterWide(objects[0])
			for _, file := range c.Inventory {
				more, err := objectsIn(filepath.Join(dir, file))
				if err != nil {
					return err
				}
				one.setting.Objects = append(one.setting.Objects, more...)
			}
			one.violations = []violations{}
			for k, a := range c.Assertions {
				v, err := assertion(a.Violations, a.Message)
				if err != nil {
					return fmt.Errorf("tests[%d].cases[%d].assertions[%d]: %w", i, j, k, err)
				}
				one.violations = append(one.violations, v)
			}
			one.skip = unserved(dir, test.Template)
			if test.Skip || c.Skip {
				one.skip = "the suite says so"
			}
			s.cases = append(s.cases, one)
		}
	}
	return nil
}

// manyViolations is more than any request has.
const manyViolations = 1 << 20

// assertion reads how many violations with a message a suite expects: a number, yes or no. Without it there must be one at
// least. The message is a regular expression; without one all violations count.
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
		switch n, err := strconv.Atoi(e); {
		case err == nil:
			v.least, v.most = n, n
		case e == "yes":
			v.least, v.most = 1, manyViolations
		case e != "no":
			return v, fmt.Errorf("violations: must be a number, 'yes' or 'no', not '%s'", e)
		}
	}
	return v, nil
}

// clusterWide returns an object without its namespace if objects of its kind are in none: gator judges it, an API server would
// refuse it.
func clusterWide(object json.RawMessage) json.RawMessage {
	o := nameOf(object)
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	_, isNamespaced, isKnown := policies.NativeResource(kind.GroupKind())
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
