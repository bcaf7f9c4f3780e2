package modules

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/source"
)

// A Suite is modules that are compiled together, and the tests among them.
type Suite struct {
	Options rego.Options
	Modules []rego.Module
	// Errors concern the data beside the modules. The tests must not be run then.
	Errors rego.Errors
	// Tests are the files with the tests that this suite runs.
	Tests []string
}

// Has reports whether a file has a module of the suite.
func (s *Suite) Has(file string) bool {
	return slices.ContainsFunc(s.Modules, func(m rego.Module) bool { return m.File == file })
}

// IsInBundle reports whether the file of a module is one in a bundle.
func IsInBundle(file string) bool { return strings.HasPrefix(file, bundle.FilePrefix) }

// folder is the folder of a policy that has its modules in files.
type folder struct {
	name string
	Suite
}

// Suites are the suites that have tests. A test is a rule 'test_…' of any module, and in one suite: with the modules of
// the policy in its folder or in the nearest folder above. Beside policies that have their modules as texts it is with
// these. Tests of no policy are with all modules and data, as OPA's runner of tests has them; other files may have data
// too.
func (f *Files) Suites(others []source.File) []Suite {
	var all []Suite
	taken := map[string]bool{}
	add := func(s Suite) {
		s.Modules = slices.DeleteFunc(slices.Clone(s.Modules),
			func(m rego.Module) bool { return m.Tests && taken[m.File] })
		for _, m := range s.Modules {
			isFile := m.Line == 0
			if isFile && !taken[m.File] && (m.Tests || rego.HasTests(m)) {
				s.Tests, taken[m.File] = append(s.Tests, m.File), true
			}
		}
		if len(s.Tests) > 0 {
			all = append(all, s)
		}
	}
	// Of the folders that a file is in, the nearest has the longest name.
	folders := slices.Clone(f.folders)
	slices.SortStableFunc(folders, func(a, b folder) int { return cmp.Compare(len(b.name), len(a.name)) })
	for _, at := range folders {
		add(at.Suite)
	}
	for _, s := range f.bundles {
		add(s)
	}
	var left []string // the folders of tests that are of no policy
	for _, file := range f.files {
		if file.Role != source.Module || taken[file.Name] || !f.isOrHasTests(file) {
			continue
		}
		if name := filepath.Dir(file.Name); len(f.texts[name]) > 0 {
			add(f.around(name))
		} else if !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return all
	}
	together := f.together(others)
	if c := compile(together.Options, together.Modules...); len(together.Errors)+len(c.Errors) == 0 || len(left) == 1 &&
		!f.isOther(left[0]) {
		add(together)
		return all
	}
	for _, name := range left {
		add(f.around(name))
	}
	return all
}

func (f *Files) isOrHasTests(file source.File) bool {
	return isTest(file.Name) || rego.HasTests(rego.Module{File: file.Name, Source: file.Data})
}

// isOther reports whether there are modules elsewhere than in a folder and below.
func (f *Files) isOther(name string) bool {
	return slices.ContainsFunc(f.files, func(file source.File) bool {
		_, isBelow := below(name, file.Name)
		return file.Role == source.Module && !isBelow
	})
}

// together is the suite of all modules, with the data of all files that hold no objects.
func (f *Files) together(others []source.File) Suite {
	s := Suite{Options: rego.Options{Foreign: true}}
	for _, file := range slices.Concat(f.files, f.loose(others)) {
		if file.Role == source.Module {
			s.Modules = append(s.Modules,
				rego.WithVersion(rego.Module{File: file.Name, Source: file.Data, Tests: isTest(file.Name)}))
			continue
		}
		within, isBelow := below(file.Root, file.Name)
		if !isBelow {
			continue
		}
		data, err := dataOf(file, within)
		if err == nil {
			s.Options.Data, err = joined(s.Options.Data, data)
		}
		if err != nil {
			s.Errors = append(s.Errors, rego.Error{File: file.Name, Message: err.Error()})
		}
	}
	return s
}

// loose are the files of data that have other names than those of bundles: in a folder with modules and below, or below
// a path without a module. Objects and documents that describe an API are not among them.
func (f *Files) loose(others []source.File) (all []source.File) {
	var roots, folders []string
	for _, file := range f.files {
		if file.Role == source.Module {
			roots, folders = append(roots, file.Root), append(folders, filepath.Dir(file.Name))
		}
	}
	for _, file := range others {
		if file.Role != source.Objects {
			continue
		}
		isBeside := !slices.Contains(roots, file.Root) || slices.ContainsFunc(folders, func(name string) bool {
			_, isBelow := below(name, file.Name)
			return isBelow
		})
		if isBeside && isLoose(file) {
			all = append(all, file)
		}
	}
	return all
}

// isLoose reports whether a file holds one JSON object that is not an object of an API.
func isLoose(file source.File) bool {
	text := file.Data
	if !json.Valid(text) {
		var err error
		if text, err = manifest.ReadBody(text); err != nil {
			return false
		}
	}
	var is map[string]json.RawMessage
	if json.Unmarshal(text, &is) != nil {
		return false
	}
	for _, key := range []string{"kind", "apiVersion", "openapi", "swagger", "overlay"} {
		if _, has := is[key]; has {
			return false
		}
	}
	return true
}

// around returns the suite of the tests in a folder that belong to no policy with modules in files. It has the modules
// in the folder and below.
func (f *Files) around(name string) Suite {
	s := Suite{Options: rego.Options{Foreign: true}}
	texts := f.texts[name]
	if len(texts) > 0 {
		s.Options = texts[0].Options
	}
	s.Modules, s.Errors = f.gather(name, &s.Options)
	s.Modules = slices.DeleteFunc(s.Modules,
		func(m rego.Module) bool { return m.Tests && filepath.Dir(m.File) != name })
	for i := range s.Modules {
		if len(texts) == 0 {
			s.Modules[i] = rego.WithVersion(s.Modules[i])
		}
	}
	for i, t := range texts {
		s.Modules = append(s.Modules, t.Modules...)
		if i == 0 || !t.Options.Data.Valid() {
			continue
		}
		var err error
		if s.Options.Data, err = rego.Merge(t.Options.Data, s.Options.Data); err != nil {
			s.Errors = append(s.Errors, rego.Error{File: t.Modules[0].File, Message: err.Error()})
		}
	}
	return s
}
