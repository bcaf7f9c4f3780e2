// House measures the rooms of the module: the files of packages, the methods of types, the fields and booleans of
// structs. What is larger than the rule allows needs a row in limits.txt, which may only shrink.
//
// Usage: house [-w] DIR, where DIR holds the module's go.mod.
package main

import (
	"go/types"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/tools/limits"
	"github.com/admission-gateway/gateway/tools/load"
)

// The rule. Tests and generated files do not count. Fields of embedded structs do, as if written out.
const (
	maxFiles    = 30
	maxMethods  = 40
	maxFields   = 20
	maxBooleans = 3
)

// bench is a program to measure with; it is not the house.
var outside = []string{"bench"}

func main() {
	limits.Main("house", "house/limits.txt", func(dir string) (limits.Counts, error) {
		packages, err := load.Module(dir)
		if err != nil {
			return nil, err
		}
		counts := limits.Counts{}
		for _, p := range packages {
			if !slices.Contains(outside, p.Room) {
				measure(p, counts)
			}
		}
		return counts, nil
	})
}

// measure adds what is too large in the package to the counts.
func measure(p load.Package, counts limits.Counts) {
	add := func(what, name string, n, limit int) {
		if n > limit {
			counts[what+" of "+name] = n
		}
	}
	add("files", p.Room, len(p.GoFiles), maxFiles)
	for _, name := range p.Types.Scope().Names() {
		declared, is := p.Types.Scope().Lookup(name).(*types.TypeName)
		if !is || declared.IsAlias() {
			continue
		}
		named, is := declared.Type().(*types.Named)
		if !is {
			continue
		}
		full := p.Room + "." + name
		add("methods", full, named.NumMethods(), maxMethods)
		if s, is := named.Underlying().(*types.Struct); is && !isSetting(name) {
			fields, booleans := sizeOf(s, p.Module.Path)
			add("fields", full, fields, maxFields)
			add("booleans", full, booleans, maxBooleans)
		}
	}
}

// isSetting reports whether the type is a list of settings, which is as long as there are settings.
func isSetting(name string) bool {
	return strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Options") || strings.HasSuffix(name, "Spec")
}

// sizeOf counts the fields of a struct, and the booleans among them. An embedded struct of the module, or a pointer to
// one, counts with all that it holds, and so does a field that is a struct without a name.
func sizeOf(s *types.Struct, module string) (fields, booleans int) {
	for f := range s.Fields() {
		if inner := contained(f, module); inner != nil {
			more, flags := sizeOf(inner, module)
			fields, booleans = fields+more, booleans+flags
			continue
		}
		fields++
		if basic, is := f.Type().Underlying().(*types.Basic); is && basic.Kind() == types.Bool {
			booleans++
		}
	}
	return fields, booleans
}

// contained returns the struct whose fields count as fields of the one that f stands in; nil if f is one field.
func contained(f *types.Var, module string) *types.Struct {
	inner := types.Unalias(f.Type())
	if pointer, is := inner.(*types.Pointer); is && f.Embedded() {
		inner = types.Unalias(pointer.Elem())
	}
	if named, is := inner.(*types.Named); is {
		of := named.Obj().Pkg()
		if !f.Embedded() || of == nil || of.Path() != module && !strings.HasPrefix(of.Path(), module+"/") {
			return nil
		}
	}
	s, _ := inner.Underlying().(*types.Struct)
	return s
}
