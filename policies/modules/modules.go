// Package modules gathers the modules in Rego that policies are made of: the text in a policy, or
// the files in its folder and below.
package modules

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/source"
)

// Files are the modules and data among the policy files.
type Files struct {
	files    []source.File
	sums     []string // of the files, as far as they were asked for
	used     map[string]bool
	print    func(file string, line int, text string)
	programs map[[sha256.Size]byte]*Compiled
	folders  []folder
	texts    map[string][]Suite // the modules that are texts of policies or in bundles, by the folders of the policies
	bundles  []Suite
}

// New takes the modules and data out of the policy files. What modules print is given to print;
// nil: they print nothing.
func New(files []source.File, print func(file string, line int, text string)) *Files {
	f := &Files{used: map[string]bool{}, print: print, programs: map[[sha256.Size]byte]*Compiled{},
		texts: map[string][]Suite{}}
	for _, file := range files {
		if file.Role != source.Objects {
			f.files = append(f.files, file)
		}
	}
	return f
}

// Compiled is a program with what was found in its modules.
type Compiled struct {
	// Program is nil if there are errors.
	Program          *rego.Program
	Errors, Warnings rego.Errors
	// Count is how many modules there are that are no tests.
	Count int
}

// A Unit is modules that are compiled together.
type Unit struct {
	// Sum is the SHA-256 of all that the unit is compiled from.
	Sum     [sha256.Size]byte
	compile func() *Compiled
}

// Compile compiles the unit.
func (u *Unit) Compile() *Compiled { return u.compile() }

// sumOf returns the sum of texts. No two lists of texts are written in the same way.
func sumOf(texts ...string) [sha256.Size]byte { return sha256.Sum256(fmt.Appendf(nil, "%q", texts)) }

// wayOf says in which way options have modules compiled.
func wayOf(o *rego.Options) string { return fmt.Sprintf("%v %q", o.V0, o.Hosts) }

// Text finds a text that is the only module of a policy. The tests in the policy's folder may test
// it.
func (f *Files) Text(m rego.Module, o rego.Options) *Unit {
	f.addText(filepath.Dir(m.File), Suite{Options: o, Modules: []rego.Module{m}})
	o.Print = f.print
	return &Unit{sumOf("text", wayOf(&o), m.File, strconv.Itoa(m.Line), string(m.Source)),
		func() *Compiled { return compile(o, m) }}
}

// addText notes modules of a policy in a folder. The tests in it may test them.
func (f *Files) addText(folder string, s Suite) {
	for _, known := range f.texts[folder] {
		if len(s.Modules) > 0 && len(known.Modules) > 0 && known.Modules[0].File == s.Modules[0].File &&
			known.Modules[0].Line == s.Modules[0].Line {
			return // another policy has them too
		}
	}
	f.texts[folder] = append(f.texts[folder], s)
	for _, file := range f.files {
		if file.Role == source.Module && isTest(file.Name) && filepath.Dir(file.Name) == folder {
			f.used[file.Name] = true
		}
	}
}

// A Bundle is a bundle of the gateway's configuration as it is when policies are compiled.
type Bundle struct {
	// Bundle has its content; nil while it was not loaded.
	Bundle *bundle.Bundle
	// Usable returns why no policy may judge requests by it now, and nil if they may.
	Usable func() error
}

// Bundle finds the modules of a bundle, which has been loaded. The tests in the policy's folder may
// test them.
func (f *Files) Bundle(name, folder string, b *bundle.Bundle, o rego.Options) *Unit {
	o.Data = b.Data()
	beside := Suite{Options: o}
	for _, m := range b.Modules() {
		if !m.Tests {
			beside.Modules = append(beside.Modules, m)
		}
	}
	f.addText(folder, beside)
	return f.once(sumOf("bundle", name, wayOf(&o), b.Sum), func() *Compiled {
		f.bundles = append(f.bundles, Suite{Options: o, Modules: b.Modules()})
		o.Print = f.print
		return compile(o, b.Modules()...)
	})
}

// Folder finds the modules of a folder and below.
func (f *Files) Folder(name string, o rego.Options) *Unit {
	texts := []string{"folder", name, wayOf(&o)}
	for i, file := range f.files {
		if _, ok := below(name, file.Name); ok {
			f.used[file.Name] = true
			texts = append(texts, file.Name, f.sumOf(i))
		}
	}
	return f.once(sumOf(texts...), func() *Compiled {
		all, errs := f.gather(name, &o)
		f.folders = append(f.folders, folder{name, Suite{Options: o, Modules: all, Errors: errs}})
		o.Print = f.print
		c := compile(o, all...)
		if len(errs) > 0 {
			c.Program, c.Errors = nil, append(c.Errors, errs...)
		}
		return c
	})
}

// sumOf returns the sum of a file.
func (f *Files) sumOf(i int) string {
	if f.sums == nil {
		f.sums = make([]string, len(f.files))
	}
	if f.sums[i] == "" {
		sum := sha256.Sum256(f.files[i].Data)
		f.sums[i] = string(sum[:])
	}
	return f.sums[i]
}

// once returns a unit that is compiled once, however many policies have it.
func (f *Files) once(sum [sha256.Size]byte, compile func() *Compiled) *Unit {
	return &Unit{sum, func() *Compiled {
		c := f.programs[sum]
		if c == nil {
			c = compile()
			f.programs[sum] = c
		}
		return c
	}}
}

// gather returns the modules of a folder and below, and adds their data to the options.
func (f *Files) gather(folder string, o *rego.Options) (all []rego.Module, errs rego.Errors) {
	for _, file := range f.files {
		within, ok := below(folder, file.Name)
		if !ok {
			continue
		}
		if file.Role == source.Module {
			all = append(all, rego.Module{File: file.Name, Source: file.Data, Tests: isTest(file.Name)})
			continue
		}
		data, err := dataOf(file, within)
		if err == nil {
			o.Data, err = joined(o.Data, data)
		}
		if err != nil {
			errs = append(errs, rego.Error{File: file.Name, Message: err.Error()})
		}
	}
	return all, errs
}

func compile(o rego.Options, all ...rego.Module) *Compiled {
	c := &Compiled{}
	for _, m := range all {
		if !m.Tests {
			c.Count++
		}
	}
	var err error
	if c.Program, err = rego.Compile(o, all...); err == nil {
		c.Warnings = append(rego.Lint(o, all...), c.Program.Dangling()...)
	} else if found, ok := err.(rego.Errors); ok {
		c.Errors = found
	}
	return c
}

// Unused are the files that belong to no policy.
func (f *Files) Unused() []string {
	var names []string
	for _, file := range f.files {
		if !f.used[file.Name] {
			names = append(names, file.Name)
		}
	}
	return names
}

// below returns the folders between a folder and a file that is somewhere in it.
func below(folder, name string) (within []string, ok bool) {
	relative, err := filepath.Rel(folder, filepath.Dir(name))
	if err != nil || relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
		return nil, false
	}
	if relative == "." {
		return nil, true
	}
	return strings.Split(filepath.ToSlash(relative), "/"), true
}

// joined returns the data of several files. Two files must not say different things of one place.
func joined(all, more rego.Value) (rego.Value, error) {
	if !all.Valid() {
		return more, nil
	}
	data, ok := rego.Join(all, more)
	if !ok {
		return rego.Value{}, errors.New("must not say anything else of a place in `data` than another file")
	}
	return data, nil
}

func isTest(name string) bool { return strings.HasSuffix(strings.ToLower(name), "_test.rego") }

// dataOf reads a data file. As in OPA's bundles its folder gives its path in data.
func dataOf(file source.File, within []string) (rego.Value, error) {
	text := file.Data
	if strings.ToLower(filepath.Ext(file.Name)) != ".json" {
		var err error
		if text, err = manifest.ReadBody(file.Data); err != nil {
			return rego.Value{}, err
		}
	}
	d, err := document.Parse(text, document.Limits{Bytes: manifest.MaxBytes, Depth: 256, Nodes: 4 << 20})
	if err != nil {
		return rego.Value{}, err
	}
	defer d.Release()
	if d.Root().Kind() != document.Object {
		return rego.Value{}, fmt.Errorf("must hold an object, not %s", d.Root().Kind().WithArticle())
	}
	data, err := rego.ValueOf(d.Root())
	for i := len(within) - 1; i >= 0 && err == nil; i-- {
		data = rego.Object(rego.Member{Name: within[i], Value: data})
	}
	return data, err
}
