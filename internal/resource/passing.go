package resource

import (
	"errors"
	"fmt"
	"strings"
)

// A Passing is a path that an API documents and that is no resource, such as an
// action on an object. Requests to it pass as those to any path that no policy
// file describes do, though a resource's template may match the path too.
type Passing struct {
	// Template is the path. '{…}' matches any text within a segment; a slash at the end may be left
	// out of requests.
	Template string
	// Methods are the methods that pass, except methods that the path of a resource has a verb for.
	// Other methods belong to the resource whose template matches the path, lest it could be
	// written past its policies.
	Methods []string
	// Scope says which requests the document describes.
	Scope Scope
}

// partial is an edge for segments with variables inside.
type partial struct {
	literals []string // the texts around the variables: one more than there are variables
	to       *node
}

// matches reports whether a segment has the literals in their order and something between them.
func (e *partial) matches(s string) bool {
	first, last := e.literals[0], e.literals[len(e.literals)-1]
	rest, ok := strings.CutPrefix(s, first)
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, last); !ok || rest == "" {
		return false
	}
	for _, literal := range e.literals[1 : len(e.literals)-1] {
		at := strings.Index(rest[1:], literal)
		if at < 0 || at+1+len(literal) == len(rest) {
			return false
		}
		rest = rest[at+1+len(literal):]
	}
	return true
}

// pass puts a path into the trie that resources are in already.
func (n *node) pass(p Passing) error {
	template, trailing := strings.CutSuffix(p.Template, "/")
	var scanned path
	plain := strings.NewReplacer("{", "(", "}", ")").Replace(template)
	if err := scanned.scan(plain); err != nil || scanned.disguised != "" || scanned.matrix != 0 || scanned.n == 0 || scanned.n > maxSegments-2 {
		return fmt.Errorf("path '%s' must be between 1 and %d segments, each after a '/'", p.Template, maxSegments-2)
	}
	end := &endpoint{template: p.Template, route: p.Template, name: -1, namespace: -1, trailing: trailing}
	for _, m := range p.Methods {
		end.methods |= 1 << methodOf(m)
	}
	if end.methods&(1<<methodGet) != 0 {
		end.methods |= 1 << methodHead
	}
	for _, s := range strings.Split(template[1:], "/") {
		next, err := n.step(s)
		if err != nil {
			return fmt.Errorf("path '%s' %w", p.Template, err)
		}
		n = next
	}
	if n.passing != nil {
		n.passing.methods |= end.methods
		n.passing.trailing = n.passing.trailing || trailing
		return nil
	}
	n.passing = end
	return nil
}

// step is the node behind a segment of a passing path.
func (n *node) step(s string) (*node, error) {
	literals, err := cutVariables(s)
	switch {
	case err != nil:
		return nil, err
	case len(literals) == 1:
		return n.plain(s), nil
	case len(literals) == 2 && literals[0] == "" && literals[1] == "":
		if n.variable == nil {
			n.variable = &node{}
		}
		return n.variable, nil
	}
	for i := range n.partials {
		if strings.Join(n.partials[i].literals, "{}") == strings.Join(literals, "{}") {
			return n.partials[i].to, nil
		}
	}
	n.partials = append(n.partials, partial{literals, &node{}})
	return n.partials[len(n.partials)-1].to, nil
}

// cutVariables cuts a segment at its variables.
func cutVariables(s string) (literals []string, err error) {
	for {
		before, rest, found := strings.Cut(s, "{")
		if strings.Contains(before, "}") {
			return nil, errBraces
		}
		literals = append(literals, before)
		if !found {
			return literals, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || name == "" || strings.Contains(name, "{") {
			return nil, errBraces
		}
		s = after
	}
}

var errBraces = errors.New("must have a name in each pair of braces")

// has reports whether there is a verb for the method on what ends here.
func (e *endpoint) has(m method) bool {
	if e == nil || !m.ofResources() {
		return e != nil
	}
	if e.isItem {
		return m.verbs().object != VerbOther
	}
	return m.verbs().collection != VerbOther
}

// takes reports whether requests of the method pass here, or are the operation.
func (e *endpoint) takes(m method) bool { return e != nil && e.methods&(1<<m) != 0 }
