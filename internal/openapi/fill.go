package openapi

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Members of [Extension] that may stand at an operation too.
const (
	// DefaultsKey says whether the defaults of schemas are filled in.
	DefaultsKey = "defaults"
	// ReadDefaultsKey says whether they are filled in in answers too.
	ReadDefaultsKey = "readDefaults"
	// NullsKey says whether a default takes the place of null.
	NullsKey = "nulls"
)

// The values of DefaultsKey and NullsKey.
const (
	defaultsFilled = "Fill"
	defaultsLeft   = "Off"
	nullsKept      = "Keep"
	nullsDefaulted = "Default"
)

// filling says what becomes of the defaults of an operation's schemas.
type filling struct {
	// unfilled is set if they are left to the API.
	unfilled bool
	// overNull is set if they take the place of null.
	overNull bool
}

// fillingOf returns what an operation says of its defaults, else its path, else the document.
func (d *Document) fillingOf(operation document.Node) filling {
	return filling{d.saidOf(operation, DefaultsKey).Is(defaultsLeft), d.saidOf(operation, NullsKey).Is(nullsDefaulted)}
}

// saidOf returns what the extension says at an operation, else at its path, else at the document.
func (d *Document) saidOf(operation document.Node, key string) document.Node {
	places := []document.Node{d.root}
	if operation.Valid() {
		places = []document.Node{operation, operation.Parent(), d.root}
	}
	for _, n := range places {
		extension, _ := n.Get(Extension)
		if said, found := extension.Get(key); found {
			return said
		}
	}
	return document.Node{}
}

// readDefaultsOf returns what an operation says of the defaults in answers, else its path, else the document.
func (d *Document) readDefaultsOf(operation document.Node) resource.ReadDefaults {
	return resource.ReadDefaultsNamed(d.saidOf(operation, ReadDefaultsKey).Str())
}

// fillsReads reports whether defaults are filled in in what is read of a resource.
func fillsReads(r *Resource) bool {
	return r.Unshown == "" && (&resource.Resource{Envelope: r.Envelope, ReadDefaults: r.ReadDefaults}).FillsReads()
}

// FillsReads reports whether defaults are filled in in answers too. It is known once Resources has found the resources.
func (d *Document) FillsReads() bool { return d.fillsReads }

// Filled returns how many defaults of the document's schemas are filled in. It is known once Resources has found the
// resources.
func (d *Document) Filled() int { return len(d.filled) }

// checkDefaults names what may not be said of defaults, and what an operation may not say.
func (d *Document) checkDefaults() {
	check := func(n document.Node) document.Node {
		extension, _ := n.Get(Extension)
		filled, saysDefaults := extension.Get(DefaultsKey)
		if saysDefaults {
			d.checkValue(filled, defaultsFilled, defaultsLeft)
		}
		read, saysRead := extension.Get(ReadDefaultsKey)
		if saysRead {
			d.checkValue(read, defaultsFilled, defaultsLeft)
		}
		if read.Is(defaultsFilled) && filled.Is(defaultsLeft) {
			d.report.warn(read, "has no effect on literal defaults beside `%s: %s`", DefaultsKey, defaultsLeft)
		}
		nulls, saysNulls := extension.Get(NullsKey)
		if saysNulls {
			d.checkValue(nulls, nullsDefaulted, nullsKept)
		}
		if nulls.Is(nullsDefaulted) && filled.Is(defaultsLeft) {
			d.report.warn(nulls, "has no effect beside `%s: %s`: no default takes the place of null", DefaultsKey,
				defaultsLeft)
		}
		return extension
	}
	check(d.root)
	for _, p := range d.paths() {
		check(p.item)
		for _, method := range p.named() {
			extension := check(p.operation(method))
			members(extension, func(m document.Node) {
				if key := m.Key(); key != DefaultsKey && key != ReadDefaultsKey && key != NullsKey {
					d.report.refuse(m, "must be '%s', '%s' or '%s', which are all that an operation may say: set it at the path", DefaultsKey, ReadDefaultsKey, NullsKey)
				}
			})
		}
	}
}
