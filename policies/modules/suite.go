package modules

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/policies/source"
)

// A Suite is modules with the tests of them, whose files end in '_test.rego'.
type Suite struct {
	Options rego.Options
	Modules []rego.Module
	// Errors concern the data beside the modules. The tests must not be run then.
	Errors rego.Errors
}

// Tests are the files of the suite's tests.
func (s *Suite) Tests() (files []string) {
	for _, m := range s.Modules {
		if m.Tests {
			files = append(files, m.File)
		}
	}
	return files
}

// IsInBundle reports whether the file of a module is one in a bundle.
func IsInBundle(file string) bool { return strings.HasPrefix(file, bundle.FilePrefix) }

// folder is the folder of a policy whose modules are files.
type folder struct {
	name string
	Suite
}

// Suites are the suites that have tests. A test is in one of them: with the modules of the policy
// in its folder or in the nearest folder above. Beside policies that have their modules as texts it
// is with these, and without a policy it is with the modules in its folder and below.
func (f *Files) Suites() []Suite {
	var all []Suite
	taken := map[string]bool{}
	add := func(s Suite) {
		s.Modules = slices.DeleteFunc(slices.Clone(s.Modules), func(m rego.Module) bool { return m.Tests && taken[m.File] })
		files := s.Tests()
		for _, name := range files {
			taken[name] = true
		}
		if len(files) > 0 {
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
	for _, file := range f.files {
		if file.Role == source.Module && isTest(file.Name) && !taken[file.Name] {
			add(f.around(filepath.Dir(file.Name)))
		}
	}
	return all
}

// around is the suite of the tests in a folder that are of no policy whose modules are files.
func (f *Files) around(name string) Suite {
	var s Suite
	texts := f.texts[name]
	if len(texts) > 0 {
		s.Options = texts[0].Options
	}
	s.Modules, s.Errors = f.gather(name, &s.Options)
	s.Modules = slices.DeleteFunc(s.Modules, func(m rego.Module) bool { return m.Tests && filepath.Dir(m.File) != name })
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
