package policytest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// sets compiles policy files, each combination once.
type sets struct {
	// observe is called with each set before it is in use; nil if not needed.
	observe func(*policies.Compiled)
	// changed has files whose content is not the one on disk, by their names.
	changed map[string][]byte
	// gateway is what the files are compiled for.
	gateway *policies.Gateway
	// from reads policy files and folders.
	from func(paths []string) *source.Source

	mu    sync.Mutex
	made  map[string]*compiled
	files map[string]*source.Source
}

type compiled struct {
	once  sync.Once
	set   *policies.Set
	found []finding.Finding
}

func newSets(gateway *policies.Gateway) *sets {
	from := func(paths []string) *source.Source { return source.Read(paths, &source.Progress{}) }
	return &sets{gateway: gateway, from: from, made: map[string]*compiled{}, files: map[string]*source.Source{}}
}

// of returns the set of a setting; nil if it has errors.
func (s *sets) of(from *setting) (*policies.Set, []finding.Finding) {
	at := setting{Paths: from.Paths, Objects: from.Objects, Denies: from.Denies}
	key := at.key()
	s.mu.Lock()
	c := s.made[key]
	if c == nil {
		c = &compiled{}
		s.made[key] = c
	}
	s.mu.Unlock()
	c.once.Do(func() { c.set, c.found = s.compile(from) })
	return c.set, c.found
}

func (s *sets) compile(from *setting) (*policies.Set, []finding.Finding) {
	read := s.read(from.Paths)
	if finding.HasErrors(read.Found) {
		return nil, read.Found
	}
	files := slices.Clone(read.Files)
	for i, f := range files {
		if data, ok := s.changed[f.Name]; ok {
			files[i].Data = data
		}
		if from.Denies {
			files[i].Data = denying(f.Name, files[i].Data)
		}
	}
	for i, o := range from.Objects {
		files = append(files, source.File{Name: fmt.Sprintf("object %d of the test.json", i), Data: o})
	}
	whole := source.Of(files)
	whole.Folders = read.Folders
	c := policies.CompileWithPlansFor(whole, s.gateway)
	if s.observe != nil {
		s.observe(c)
	}
	return c.Set, c.Found
}

// know has the files of a setting be those whose contents are given.
func (s *sets) know(from *setting, files []source.File) {
	s.files[strings.Join(from.Paths, "\x00")] = source.Of(files)
}

// read reads policy files once. Files of tests among them are left out.
func (s *sets) read(paths []string) *source.Source {
	key := strings.Join(paths, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.files[key]; known != nil {
		return known
	}
	read := s.from(paths)
	read.Files = append(read.Files, modulesBeside(read, paths)...)
	read.Files = slices.DeleteFunc(read.Files, func(f source.File) bool { return isOfTests(f.Name) })
	s.files[key] = read
	return read
}

// isOfTests reports whether a file is one of tests by its name, and none of policies.
func isOfTests(name string) bool {
	for _, part := range []string{"_test.", ".test.", ".golden.", "/testdata/", "kyverno-test."} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Compile compiles policy files and folders without the tests among them, for a gateway; nil: it is not known. The set
// is nil if they have errors.
func Compile(paths []string, gateway *policies.Gateway) (*policies.Set, []finding.Finding) {
	if gateway == nil {
		gateway = &policies.Gateway{}
	}
	return newSets(gateway).of(&setting{Paths: paths})
}
