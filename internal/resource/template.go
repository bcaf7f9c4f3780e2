package resource

import (
	"fmt"
	"slices"
	"strings"
)

// A node of the trie of path templates, one level per segment.
type node struct {
	static []edge
	// variable is the node behind a variable; the endpoint says which of them it is.
	variable *node
	// partials lead on by segments that have variables inside; only documented
	// paths have any.
	partials []partial
	slash    *node     // behind a slash at the end; nil if nothing is described there
	end      *endpoint // of the objects or the collection of a resource
	// operations end here too; they go before what their methods would do to the resource.
	operations []*endpoint
	// documented are operations that are no verbs of a resource; the verbs of one go before them.
	documented []*endpoint
}

type edge struct {
	segment string
	to      *node
}

// endpoint is the end of a template.
type endpoint struct {
	template string
	// route is the template as its author wrote it.
	route    string
	resource *Resource
	// name and namespace are the segments that hold them, or -1.
	name, namespace int
	// documented is set in place of the resource for an operation that is no verb of one.
	documented *Documented
	// isItem reports whether an object is there.
	isItem bool
	// methods is the set of methods of an operation, as bits. It is not set for objects and collections.
	methods uint16
	// matrix is the set of segments that may begin with a semicolon, as bits.
	matrix uint16
	// trailing reports whether the template ends in a slash. At an API server the paths have to, too.
	trailing bool
	slashes  Slashes
}

func (n *node) child(segment string) *node {
	for i := range n.static {
		if n.static[i].segment == segment {
			return n.static[i].to
		}
	}
	return nil
}

// plain is the node behind a plain segment, which is made if it is missing.
func (n *node) plain(segment string) *node {
	next := n.child(segment)
	if next == nil {
		next = &node{}
		n.static = append(n.static, edge{segment, next})
	}
	return next
}

// add puts a template into the trie.
func (n *node) add(template string, r *Resource) error {
	segments, end, err := parseTemplate(template, r)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if s[0] == '{' {
			if n.variable == nil {
				n.variable = &node{}
			}
			n = n.variable
			continue
		}
		n = n.plain(s)
	}
	if end.trailing {
		n = n.slashed()
	}
	if r.Operation != nil {
		return n.addOperation(end)
	}
	if n.end != nil {
		return &TwinError{Template: template, Resource: r, of: n.end}
	}
	n.end = end
	return nil
}

// addOperation adds the end of an operation's path.
func (n *node) addOperation(end *endpoint) error {
	for _, other := range n.operations {
		if other.methods&end.methods != 0 {
			return &TwinError{Template: end.template, Resource: end.resource, of: other}
		}
	}
	n.operations = append(n.operations, end)
	return nil
}

// ending returns what ends here for the method; nil if only operations of other methods do.
func (n *node) ending(m *match) *endpoint {
	if n == nil {
		return nil
	}
	for _, end := range n.operations {
		if end.takes(m) {
			return end
		}
	}
	if m.method == methodOther || !n.end.has(m.method) {
		for _, end := range n.documented {
			if end.takes(m) {
				return end
			}
		}
	}
	return n.end
}

// A TwinError names a path that matches the same requests as one of another resource.
type TwinError struct {
	Template string
	Resource *Resource
	of       *endpoint
}

// Error implements error.
func (e *TwinError) Error() string {
	if o := e.Resource.Operation; o != nil {
		return fmt.Sprintf("%s '%s' of '%s' must not match the same requests as '%s' of '%s'",
			o.Method, e.Template, e.Resource.GroupResource(), e.of.template, e.of.resource.GroupResource())
	}
	return fmt.Sprintf("path '%s' of '%s' must not match the same requests as path '%s' of '%s'",
		e.Template, e.Resource.GroupResource(), e.of.template, e.of.resource.GroupResource())
}

// withoutBraces returns a template in the characters of paths, which have no braces.
func withoutBraces(template string) string {
	return strings.ReplaceAll(strings.ReplaceAll(template, "{", "("), "}", ")")
}

// parseTemplate cuts a template into segments and finds its variables.
func parseTemplate(template string, r *Resource) ([]string, *endpoint, error) {
	var p path
	// The braces are not allowed in a path; everything else must have the same form as the requests
	// that it is to match.
	if err := p.scan(withoutBraces(template)); err != nil || p.disguised != "" || p.hasSlash || p.matrix != 0 ||
		strings.Contains(template, "%") {
		return nil, nil, fmt.Errorf("path '%s' must be plain segments or variables such as '{namespace}' and '{name}', each after a '/'", template)
	}
	if p.n == 0 || p.n > maxSegments-2 {
		return nil, nil, fmt.Errorf("path '%s' must have between 1 and %d segments", template, maxSegments-2)
	}
	end := &endpoint{
		template: template, route: r.RouteOf(template), resource: r, name: -1, namespace: -1,
		isItem: r.hasItem(template), trailing: p.trailing,
		slashes: r.Slashes,
	}
	if r.Operation != nil {
		end.methods = 1 << methodOf(r.Operation.Method)
	}
	end.matrix = matrixOf(strings.Split(strings.Trim(end.route, "/"), "/"), r.Written.Matrix)
	segments := strings.Split(strings.TrimSuffix(template[1:], "/"), "/")
	for i, s := range segments {
		at := &end.name
		switch {
		case s == "{name}":
		case s == "{namespace}":
			at = &end.namespace
		case isVariable(s):
			if slices.Contains(segments[:i], s) {
				return nil, nil, fmt.Errorf("path '%s' must not contain '%s' more than once", template, s)
			}
			continue
		case strings.ContainsAny(s, "{}"):
			return nil, nil, fmt.Errorf("path '%s' must not contain '%s': a variable is a whole segment", template, s)
		default:
			continue
		}
		if *at >= 0 {
			return nil, nil, fmt.Errorf("path '%s' must not contain '%s' more than once", template, s)
		}
		*at = i
	}
	switch {
	case end.namespace >= 0 && !r.Namespaced:
		return nil, nil, fmt.Errorf("path '%s' must not contain '{namespace}': the resource is not namespaced",
			template)
	case end.namespace < 0 && end.isItem && r.Namespaced:
		return nil, nil, fmt.Errorf("path '%s' must contain '{namespace}': the resource is namespaced", template)
	}
	return segments, end, nil
}

// matrixOf returns the set of segments that are the named variables.
func matrixOf(segments, names []string) (set uint16) {
	for i, s := range segments {
		if isVariable(s) && slices.Contains(names, s[1:len(s)-1]) {
			set |= 1 << i
		}
	}
	return set
}

// isVariable reports whether a segment matches any other.
func isVariable(s string) bool {
	return len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' && !strings.ContainsAny(s[1:len(s)-1], "{}")
}

// match is the answer of the trie about a path.
type match struct {
	method method
	name   string // of the method
	end    *endpoint
	// elsewise is an operation at the path whose method is another; nil if there is none.
	elsewise *endpoint
	// subresource is the segment after an item, if the resource has it.
	subresource string
	// below is a template that the path goes beyond, to nothing that its
	// resource has.
	below *endpoint
	// folded is a segment of the path that is a template's but for its case.
	folded string
	// isOtherSlash says that the path has a slash at the end and end has none, or the other way around, isDistinct
	// that only such a path is described, which the path is not.
	isOtherSlash, isDistinct bool
}

// find looks for the template of a path from its segment i on. A plain segment
// goes before a variable, a template before a subresource of another.
func (n *node) find(p *path, i int, m *match) bool {
	if i == p.n {
		return n.finish(p, m)
	}
	if i >= maxSegments {
		return false
	}
	s := p.segments[i]
	for k := range n.static {
		e := &n.static[k]
		switch {
		case e.segment == s:
			if e.to.find(p, i+1, m) {
				return true
			}
		case len(e.segment) == len(s) && strings.EqualFold(e.segment, s):
			m.folded = s
		}
	}
	for k := range n.partials {
		if e := &n.partials[k]; e.matches(s) && e.to.find(p, i+1, m) {
			return true
		}
	}
	if n.variable != nil && n.variable.find(p, i+1, m) {
		return true
	}
	if end := n.objects(); end != nil {
		if end.isItem && i == p.n-1 && m.end == nil && end.resource.Subresources.Has(s) {
			m.end, m.subresource = end, s
		}
		m.below = end
	}
	return false
}

// objects returns the end of the path of a resource, with or without a slash at the end; nil if there is none.
func (n *node) objects() *endpoint {
	if n.end != nil || n.slash == nil {
		return n.end
	}
	return n.slash.end
}
