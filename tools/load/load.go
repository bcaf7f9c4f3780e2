// Package load reads the packages of a module, with their types, as the linters need them.
package load

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Package is a package of the module, without its tests.
type Package struct {
	*packages.Package
	Room string // its folder within the module; "." for the root
}

// Module reads all packages of the module in dir.
func Module(dir string) ([]Package, error) { return Packages(dir, "./...") }

// Packages reads the packages of the module in dir that the patterns of the go command name.
func Packages(dir string, patterns ...string) ([]Package, error) {
	found, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile |
			packages.NeedModule,
		Dir: dir,
		Env: append(os.Environ(), "GOWORK=off"),
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("cannot load the packages: %w", err)
	}
	var all []Package
	var faults []error
	for _, p := range found {
		for _, e := range p.Errors {
			faults = append(faults, e)
		}
		if p.Module == nil {
			continue
		}
		room := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/")
		if room == "" {
			room = "."
		}
		all = append(all, Package{p, room})
	}
	return all, errors.Join(faults...)
}
