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
		if !slices.Contains(paths, f.Name) || f.Role != source.Objects || !strings.Contains(string(f.Data), "RegoPolicy") {
			continue
		}
		for _, one := range source.Read([]string{filepath.Dir(f.Name)}, &source.Progress{}).Files {
			known := func(k source.File) bool { return k.Name == one.Name }
			if one.Role != source.Objects && !slices.ContainsFunc(read.Files, known) && !slices.ContainsFunc(beside, known) {
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

// readModules finds the tests in Rego that paths lead to, and the ones in bundles of their
// policies, with the modules that they are of. c records the policies that have these.
func readModules(paths []string, gateway *policies.Gateway, c *coverage) (all []moduleTest) {
	var folders, asked []string
	for _, path := range paths {
		name := filepath.Clean(path)
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			asked = append(asked, name)
			if name = filepath.Dir(name); !isOfTests(path) || filepath.Ext(path) != ".rego" {
				continue
			}
		}
		folders = append(folders, name)
	}
	if len(folders) == 0 {
		return nil
	}
	read := source.Read(folders, &source.Progress{})
	isTest := func(f source.File) bool { return f.Role == source.Module && isOfTests(f.Name) }
	if !slices.ContainsFunc(read.Files, isTest) && len(gateway.Bundles) == 0 {
		return nil
	}
	files := slices.DeleteFunc(slices.Clone(read.Files), func(f source.File) bool { return isOfTests(f.Name) && !isTest(f) })
	compiled := policies.CompileWithPlansFor(source.Of(files), gateway)
	c.know(compiled.Modules)
	for _, s := range compiled.Suites {
		one := moduleTest{Suite: s}
		for _, name := range s.Tests() {
			inFolder := slices.ContainsFunc(paths, func(path string) bool { return isBelow(name, filepath.Clean(path)) })
			if inFolder || slices.Contains(asked, name) || modules.IsInBundle(name) {
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
	return err == nil && relative != "." && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// run runs tests in Rego, and returns the results of the ones that match; nil matches all.
func (m *moduleTest) run(ctx context.Context, matching *regexp.Regexp, c *coverage) (all []Result) {
	observer := c.rule
	if matching != nil {
		observer = nil // all tests are run
	}
	found, err := m.test(ctx, observer)
	if err != nil {
		for _, name := range m.files {
			id := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			all = append(all, Result{File: name, Line: 1, ID: id, Outcome: Failed, Problems: []string{"its modules have errors: " + err.Error()}})
		}
		return all
	}
	for _, one := range found {
		r := Result{
			File: one.File, Line: one.Line, ID: fmt.Sprintf("%s/%s", one.Package, one.Name),
			Outcome: Passed, Problems: one.Problems, Seconds: one.Took.Seconds(),
		}
		switch {
		case !slices.Contains(m.files, one.File) || matching != nil && !matching.MatchString(r.ID):
			continue
		case one.Skipped:
			r.Outcome, r.Problems = Skipped, []string{"its name begins with 'todo_'"}
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
