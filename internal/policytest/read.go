package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// Errors say why tests cannot be played.
type Errors []finding.Finding

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Text()
	}
	return strings.Join(lines, "\n")
}

// read reads the tests in files and folders.
func read(paths []string) (all []*suite, err error) {
	var found Errors
	seen := map[string]bool{}
	for _, path := range paths {
		walked := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return fmt.Errorf("%s: must be a file or folder that can be read", name)
			case name != path && strings.HasPrefix(entry.Name(), "."):
				if entry.IsDir() {
					return filepath.SkipDir
				}
				return nil
			case entry.IsDir() || !source.IsManifest(name) || seen[name]:
				return nil
			}
			seen[name] = true
			s, errs := readFile(name)
			found = append(found, errs...)
			if s != nil {
				all = append(all, s)
			}
			return nil
		})
		if walked != nil {
			return nil, walked
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	return all, nil
}

// Reads returns the files and folders that tests and what they refer to are read from: the paths of the options first.
func Reads(o Options) []string {
	all := slices.Clone(o.Paths)
	suites, err := read(o.Paths)
	if err != nil {
		return all // the tests are read again once they are mended
	}
	for _, s := range suites {
		for _, c := range s.cases {
			for _, path := range slices.Concat(c.setting.Paths, c.files) {
				if !slices.Contains(all, path) {
					all = append(all, path)
				}
			}
		}
	}
	return all
}

// foreign reads the tests of other tools, by the kinds of their files.
var foreign = map[string]func(*suite, *manifest.Object) error{
	"test.gatekeeper.sh/Suite": readGator,
	"cli.kyverno.io/Test":      readKyverno,
	"kyverno.io/Test":          readKyverno,
}

// readFile reads the tests of a file; nil if it has none.
func readFile(name string) (*suite, Errors) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, Errors{{File: name, Message: err.Error()}}
	}
	s := &suite{file: name}
	if isKyvernoTest(name) {
		return s.ofKyverno(data)
	}
	if !mayHaveTests(data) {
		return nil, nil
	}
	objects, errs := manifest.Read(name, data)
	var unread finding.List
	if !unread.Read(errs) {
		return nil, unread.Found // a test that cannot be read would pass unseen
	}
	tests, from, found := policies.ReadTests(objects)
	for i := range tests {
		paths := policiesOf(name, tests[i].Spec.Policies)
		for j, c := range tests[i].Spec.Cases {
			one := &testCase{Case: c, file: name}
			one.at(from[i], fmt.Sprintf("spec.cases[%d]", j))
			one.id = from[i].Name + "/" + c.Name
			one.setting = setting{
				Paths: paths, Dialect: tests[i].Spec.Dialect,
				Objects: slices.Concat(tests[i].Spec.Objects, c.Params), State: merged(tests[i].Spec.State, c.State),
			}
			s.cases = append(s.cases, one)
		}
	}
	for _, o := range objects {
		group, _ := o.GroupVersion()
		if take := foreign[group+"/"+o.Kind]; take != nil {
			if err := take(s, o); err != nil {
				one := finding.Of(o, "")
				one.Message = err.Error()
				found = append(found, one)
			}
		}
	}
	if len(s.cases) == 0 {
		return nil, found
	}
	return s, found
}

// ofKyverno reads a file that is a test of Kyverno's by its name.
func (s *suite) ofKyverno(data []byte) (*suite, Errors) {
	o, errs := manifest.ReadFragment(s.file, data, nil)
	var unread finding.List
	if !unread.Read(errs) {
		return nil, unread.Found
	}
	if err := readKyverno(s, o); err != nil {
		one := finding.Of(o, "")
		one.Message = err.Error()
		return nil, Errors{one}
	}
	return s, nil
}

// mayHaveTests reports whether a file can have tests at all, so that others need not be read.
func mayHaveTests(data []byte) bool {
	text := string(data)
	return strings.Contains(text, "PolicyTest") || strings.Contains(text, "test.gatekeeper.sh") ||
		strings.Contains(text, "kyverno.io")
}

// merged returns the state of a case: its own in place of the one that all cases have.
func merged(all, own map[string][]json.RawMessage) map[string][]json.RawMessage {
	if len(all) == 0 {
		return own
	}
	m := maps.Clone(all)
	maps.Copy(m, own)
	return m
}

// policiesOf returns the policy files of a test.
func policiesOf(file string, named []string) []string {
	dir := filepath.Dir(file)
	if len(named) > 0 {
		return relative(dir, named)
	}
	ext := filepath.Ext(file)
	base := strings.TrimSuffix(file, ext)
	for _, mark := range []string{"_test", ".test", "-test"} {
		if name, ok := strings.CutSuffix(base, mark); ok {
			if _, err := os.Stat(name + ext); err == nil {
				return []string{name + ext}
			}
		}
	}
	return []string{dir}
}

func relative(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(dir, name)
	}
	return paths
}

var errNoTests = errors.New("there are no tests: a test is an object of the kind PolicyTest, a rule 'test_…' in Rego, a suite of gator or a kyverno-test.yaml")
