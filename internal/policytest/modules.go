package policytest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/policies/source"
)

// modulesBeside returns the modules and data that a RegoPolicy has beside it, if paths name its file
// and not its folder.
func modulesBeside(read *source.Source, paths []string) (beside []source.File) {
	for _, f := range slices.Clone(read.Files) {
		if !slices.Contains(paths, f.Name) || f.Role != source.Objects ||
			!strings.Contains(string(f.Data), "RegoPolicy") {
			continue
		}
		for _, one := range source.Read([]string{filepath.Dir(f.Name)}, &source.Progress{}).Files {
			known := func(k source.File) bool { return k.Name == one.Name }
			if one.Role != source.Objects && !slices.ContainsFunc(read.Files, known) &&
				!slices.ContainsFunc(beside, known) {
				beside = append(beside, one)
			}
		}
	}
	return beside
}

// A moduleTest is the tests in Rego that are compiled together.
type moduleTest struct {
	modules.Suite
	files []string // whose tests are asked for
}

// inRego are the files that paths lead to, as the tests in Rego see them.
type inRego struct {
	paths []string
	asked []string // the paths that are files
	files []source.File
}

// readModules reads the files that tests in Rego may be in.
func readModules(paths []string) *inRego {
	r := &inRego{}
	var folders []string
	for _, path := range paths {
		name := filepath.Clean(path)
		r.paths = append(r.paths, name)
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			r.asked = append(r.asked, name)
			if name = filepath.Dir(name); !strings.EqualFold(filepath.Ext(path), ".rego") {
				continue
			}
		}
		folders = append(folders, name)
	}
	if len(folders) == 0 {
		return r
	}
	for _, f := range source.Read(folders, &source.Progress{}).Files {
		if f.Role == source.Module || !isOfTests(f.Name) {
			r.files = append(r.files, f)
		}
	}
	return r
}

// compile returns the tests in Rego, and the ones in bundles of the policies, with the modules that they are of.
// changed has the content of files that is not the one on disk. c records the policies that have the modules; nil: none
// does.
func (r *inRego) compile(gateway *policies.Gateway, changed map[string][]byte, c *coverage) (all []moduleTest) {
	mayTest := func(f source.File) bool { return f.Role == source.Module && strings.Contains(string(f.Data), "test_") }
	if !slices.ContainsFunc(r.files, mayTest) && len(gateway.Bundles) == 0 {
		return nil
	}
	files := slices.Clone(r.files)
	for i, f := range files {
		if data, is := changed[f.Name]; is {
			files[i].Data = data
		}
	}
	compiled := policies.CompileWithPlansFor(source.Of(files), gateway)
	if c != nil {
		c.know(compiled.Modules)
	}
	for _, s := range compiled.Suites {
		one := moduleTest{Suite: s}
		for _, name := range s.Tests {
			inFolder := slices.ContainsFunc(r.paths, func(path string) bool { return isBelow(name, path) })
			if inFolder || slices.Contains(r.asked, name) || modules.IsInBundle(name) {
				one.files = append(one.files, name)
			}
		}
		if len(one.files) > 0 {
			all = append(all, one)
		}
	}
	return all
}

func isBelow(name, folder string) bool {
	relative, err := filepath.Rel(folder, name)
	return err == nil && relative != "." && relative != ".." &&
		!strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// run runs tests in Rego, and returns the results of the ones that match; nil matches all.
func (m *moduleTest) run(ctx context.Context, matching *regexp.Regexp, c *coverage) (all []Result) {
	var observer rego.Observer
	if c != nil && matching == nil { // all tests are run
		observer = c.rule
	}
	found, err := m.test(ctx, observer)
	if err != nil {
		for _, name := range m.files {
			id := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			all = append(all, Result{File: name, Line: 1, ID: id, Outcome: Failed,
				Problems: []string{"its modules have errors: " + err.Error()}})
		}
		return all
	}
	return m.results(found, matching)
}

// results returns the results of the tests that match.
func (m *moduleTest) results(found []rego.TestResult, matching *regexp.Regexp) (all []Result) {
	for _, one := range found {
		r := Result{
			File: one.File, Line: one.Line, Column: one.Column, ID: fmt.Sprintf("%s/%s", one.Package, one.Name),
			Outcome: Passed, Problems: one.Problems, Seconds: one.Took.Seconds(),
		}
		switch {
		case !slices.Contains(m.files, one.File) || matching != nil && !matching.MatchString(r.ID):
			continue
		case one.Skipped != "":
			r.Outcome, r.Problems = Skipped, []string{one.Skipped}
		case len(one.Problems) > 0:
			r.Outcome = Failed
		}
		all = append(all, r)
	}
	return all
}

func (m *moduleTest) test(ctx context.Context, by rego.Observer) ([]rego.TestResult, error) {
	if len(m.Errors) > 0 {
		return nil, m.Errors
	}
	return rego.Test(ctx, m.Options, by, m.Modules...)
}
