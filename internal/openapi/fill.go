package openapi

import "github.com/admission-gateway/gateway/internal/document"

// DefaultsKey is the member of [Extension] that says whether the defaults of schemas are filled in. It may stand at an
// operation too.
const DefaultsKey = "defaults"

// The values of DefaultsKey.
const (
	defaultsFilled = "Fill"
	defaultsLeft   = "Off"
)

// leavesDefaults reports whether the defaults of an operation's schemas are left to the API: as the operation says it,
// else its path, else the document.
func (d *Document) leavesDefaults(operation document.Node) bool {
	if !operation.Valid() {
		return d.leavesDefaultsOf(d.root)
	}
	return d.leavesDefaultsOf(operation, operation.Parent(), d.root)
}

// leavesDefaultsOf returns what the first of some objects says that says anything.
func (d *Document) leavesDefaultsOf(all ...document.Node) bool {
	for _, n := range all {
		extension, _ := n.Get(Extension)
		if said, found := extension.Get(DefaultsKey); found {
			return said.Is(defaultsLeft)
		}
	}
	return false
}

// Filled returns how many defaults of the document's schemas are filled in. It is known once Resources has found the
// resources.
func (d *Document) Filled() int { return len(d.filled) }

// checkDefaults names what may not be said of defaults, and what an operation may not say.
func (d *Document) checkDefaults() {
	check := func(n document.Node) document.Node {
		extension, _ := n.Get(Extension)
		if said, found := extension.Get(DefaultsKey); found && !said.Is(defaultsFilled) && !said.Is(defaultsLeft) {
			d.report.refuse(said, "must be '%s' or '%s'", defaultsFilled, defaultsLeft)
		}
		return extension
	}
	check(d.root)
	for _, p := range d.paths() {
		check(p.item)
		for _, method := range methods {
			extension := check(p.operation(method))
			members(extension, func(m document.Node) {
				if m.Key() != DefaultsKey {
					d.report.refuse(m, "must be '%s', which is all that an operation may say: set it at the path", DefaultsKey)
				}
			})
		}
	}
}
