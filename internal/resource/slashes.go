package resource

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/status"
)

// Slashes says how a described path of an ordinary API may be spelled.
type Slashes struct {
	Trailing TrailingSlash
	// AreEncoded lets the values of variables have encoded slashes, and other characters that need no encoding.
	AreEncoded bool
}

// TrailingSlash says what a described path is that has a slash at the end and is described without one, and the other
// way around.
type TrailingSlash uint8

// The values.
const (
	// SameSlash is the described path.
	SameSlash TrailingSlash = iota
	// RedirectSlash is answered with the described path.
	RedirectSlash
	// DistinctSlash is another path.
	DistinctSlash
)

// The names in policy files.
var trailingSlashes = [...]string{"Same", "Redirect", "Distinct"}

// String returns the name in policy files.
func (t TrailingSlash) String() string { return trailingSlashes[t] }

// SlashesNamed returns what policy files write so.
func SlashesNamed(trailing, encoded string) (s Slashes) {
	for i, name := range trailingSlashes {
		if name == trailing {
			s.Trailing = TrailingSlash(i)
		}
	}
	s.AreEncoded = encoded == "Allow"
	return s
}

// slashed is the node behind a slash at the end.
func (n *node) slashed() *node {
	if n.slash == nil {
		n.slash = &node{}
	}
	return n.slash
}

// finish ends at a node, or at the one behind a slash at the end. A path that is described as the request spells it
// goes before one that differs by the slash.
func (n *node) finish(p *path, m *match) bool {
	as, other := n, n.slash
	if p.trailing {
		as, other = n.slash, n
	}
	if end := as.ending(m); end != nil {
		m.end, m.subresource, m.isOtherSlash = end, "", false
		return true
	}
	m.note(as.others())
	end := other.ending(m)
	switch {
	case end == nil:
		m.note(other.others())
		return false
	case end.slashes.Trailing == DistinctSlash:
		m.isDistinct = true
		return false
	}
	m.end, m.subresource, m.isOtherSlash = end, "", true
	return true
}

// note keeps the end of a path that is there for other methods.
func (m *match) note(end *endpoint) {
	if m.elsewise == nil {
		m.elsewise = end
	}
}

// others returns an operation that ends here, whatever its method; nil if there is none.
func (n *node) others() *endpoint {
	switch {
	case n == nil:
		return nil
	case len(n.operations) > 0:
		return n.operations[0]
	case len(n.documented) > 0:
		return n.documented[0]
	}
	return nil
}

// spelled checks how the path is spelled that matches a template of an ordinary API.
func (e *endpoint) spelled(p *path) error {
	p.isMatrix = p.matrix&^e.matrix == 0
	switch {
	case p.disguised == "" && !p.hasSlash:
		return nil
	case e.slashes.AreEncoded:
		return p.checkValues()
	}
	return p.spelled()
}

// checkValues refuses values of variables that a server could read as more than a value: with segments that mean
// another path, and what is encoded twice. Only segments that variables match are encoded.
func (p *path) checkValues() error {
	for _, s := range p.segments[:min(p.n, maxSegments)] {
		if strings.IndexByte(s, '%') < 0 {
			continue
		}
		value := decode(s)
		for i := range value {
			if value[i] != '%' {
				continue
			}
			if _, ok := unhex(value, i); ok {
				return status.BadRequest("the request path must not be encoded twice: '%s' would be decoded again",
					short(s))
			}
		}
		if !hasSafeSegments(value) {
			return status.BadRequest("the value '%s' in the request path must not contain '.', '..' or nothing between slashes", short(s))
		}
	}
	return nil
}

// hasSafeSegments reports whether a decoded value has no segment that servers resolve or drop. The value '/' alone is a
// name that some APIs use.
func hasSafeSegments(value string) bool {
	if value == "/" || strings.IndexByte(value, '/') < 0 {
		return true
	}
	for segment := range strings.SplitSeq(value, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
