package resource

import (
	"fmt"
	"strings"
)

// A node of the trie of path templates, one level per segment.
type node struct {
	static []edge
	// variable is what {name} and {namespace} lead to; which of them it is
	// says the endpoint.
	variable *node
	// partials lead on by segments that have variables inside; only passing
	// paths have any.
	partials []partial
	end      *endpoint // of a resource
	passing  *endpoint
}

type edge struct {
	segment string
	to      *node
}

// endpoint is where a template ends.
type endpoint struct {
	template string
	resource *Resource
	// name and namespace are the segments that hold them, or -1.
	name, namespace int
	// methods are those that pass, a set of bits, and trailing lets a slash
	// stand at the end; only where there is no resource.
	methods  uint16
	trailing bool
}

func (n *node) child(segment string) *node {
	for i := range n.static {
		if n.static[i].segment == segment {
			return n.static[i].to
		}
	}
	return nil
}

// plain is the node behind a plain segment, which is made where there is none.
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
	if n.end != nil {
		return fmt.Errorf("path '%s' of '%s' must not match the same requests as path '%s' of '%s'",
			template, r.GroupResource(), n.end.template, n.end.resource.GroupResource())
	}
	n.end = end
	return nil
}

// parseTemplate cuts a template into segments and finds its variables.
func parseTemplate(template string, r *Resource) ([]string, *endpoint, error) {
	var p path
	// The braces are not allowed in a path; everything else is held to the
	// same form as the requests that it is to match.
	if err := p.scan(strings.NewReplacer("{", "(", "}", ")").Replace(template)); err != nil || p.trailing || p.disguised != "" || strings.Contains(template, "%") {
		return nil, nil, fmt.Errorf("path '%s' must be plain segments or variables such as '{namespace}' and '{name}', each after a '/'", template)
	}
	if p.n == 0 || p.n > maxSegments-2 {
		return nil, nil, fmt.Errorf("path '%s' must have between 1 and %d segments", template, maxSegments-2)
	}
	end := &endpoint{template: template, resource: r, name: -1, namespace: -1}
	segments := strings.Split(template[1:], "/")
	for i, s := range segments {
		at := &end.name
		switch {
		case s == "{name}":
		case s == "{namespace}":
			at = &end.namespace
		case isVariable(s):
			if i == 0 {
				return nil, nil, fmt.Errorf("path '%s' must start with a plain segment", template)
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
	if end.name == 0 || end.namespace == 0 {
		return nil, nil, fmt.Errorf("path '%s' must start with a plain segment", template)
	}
	switch {
	case end.namespace >= 0 && !r.Namespaced:
		return nil, nil, fmt.Errorf("path '%s' must not contain '{namespace}': the resource is not namespaced", template)
	case end.namespace < 0 && end.name >= 0 && r.Namespaced:
		return nil, nil, fmt.Errorf("path '%s' must contain '{namespace}': the resource is namespaced", template)
	}
	return segments, end, nil
}

// isVariable tells whether a segment stands for any other.
func isVariable(s string) bool {
	return len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' && !strings.ContainsAny(s[1:len(s)-1], "{}")
}

// match is what the trie says of a path.
type match struct {
	method method
	end    *endpoint
	// subresource is the segment after an item, where the resource has it.
	subresource string
	// below is a template that the path goes beyond, to nothing that its
	// resource has.
	below *endpoint
	// folded is a segment of the path that is a template's but for its case.
	folded string
}

// find looks for the template of a path from its segment i on. A plain segment
// goes before a variable, a template before a subresource of another.
func (n *node) find(p *path, i int, m *match) bool {
	if i == p.n {
		end := n.end
		if n.passing.takes(m.method) && !end.has(m.method) {
			end = n.passing
		}
		if end == nil {
			return false
		}
		m.end, m.subresource = end, ""
		return true
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
	if n.end != nil {
		if n.end.name >= 0 && i == p.n-1 && m.end == nil && n.end.resource.HasSubresource(s) {
			m.end, m.subresource = n.end, s
		}
		m.below = n.end
	}
	return false
}
