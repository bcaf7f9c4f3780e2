package rego

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The parts of data that modules of Gatekeeper's templates may read, and the path of their
// libraries.
var (
	libRef       = ast.MustParseRef("data.lib")
	inventoryRef = ast.MustParseRef("data." + inventoryName)
)

// notOfTemplates returns what Gatekeeper does not take in the modules of a template. The first is
// the template's own, and the others are its libraries. The sentences are Gatekeeper's. It finds a
// library out of place first, then an import, and then a reference.
func (p *Program) notOfTemplates(modules map[string]*ast.Module) Errors {
	var packages, imports, references Errors
	found := func(to *Errors, at *ast.Location, format string, args ...any) {
		e := Error{Message: fmt.Sprintf(format, args...)}
		e.locate(p.sources, at)
		*to = append(*to, e)
	}
	for i, name := range p.sources.names() {
		m := modules[name]
		if path := m.Package.Path; i > 0 && (!path.HasPrefix(libRef) || len(path) == len(libRef)) {
			found(&packages, m.Package.Location, "invalid lib prefix: path %s not found in lib prefixes", path)
		}
		for _, one := range m.Imports {
			path, ok := one.Path.Value.(ast.Ref)
			switch {
			case !ok:
				found(&imports, one.Location, "invalid import: got reference of type %T, want %T", one.Path.Value,
					ast.Ref{})
			case path.HasPrefix(ast.InputRootRef):
				found(&imports, one.Location, "invalid import: cannot import input: %q", path)
			case !path.HasPrefix(libRef) && !path[0].Equal(ast.FutureRootDocument):
				found(&imports, one.Location, "invalid import: bad import: %q", path)
			}
		}
		for _, r := range m.Rules {
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				if ref[0].Equal(ast.DefaultRootDocument) && !ref.HasPrefix(libRef) && !ref.HasPrefix(inventoryRef) {
					found(&references, ref[0].Location, "invalid data references: disallowed ref %s", ref)
				}
				return true
			})
		}
	}
	for _, errs := range []Errors{packages, imports, references} {
		if len(errs) > 0 {
			return errs
		}
	}
	return nil
}
