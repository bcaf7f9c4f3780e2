package resource

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/rollout"
)

// A Documented is an operation that an API's document describes and that is no verb of a resource, such as
// an action on an object. It is one method at one path. Policies that match resources do not see it: the
// document validates its requests.
type Documented struct {
	// ID is its index among all of its Registry, set by NewRegistry.
	ID     int
	Method string
	// Template is the path. '{…}' matches any text within a segment.
	Template string
	// Scope says which requests the document describes.
	Scope Scope
	// Matrix has the variables of the template whose segments begin with a semicolon: ";id=5".
	Matrix []string
	// Slashes says how the path may be spelled.
	Slashes Slashes
	// IsHeld reports whether the document says anything of the requests that the gateway checks. All others
	// pass as undescribed ones do.
	IsHeld bool
	// Rollout says how far the description is in force; nil: for all requests.
	Rollout *rollout.Plan
}

// CheckTemplate returns what is wrong with the template of a documented path; nil if it is one that requests
// can have.
func CheckTemplate(template string) error {
	_, err := cutTemplate(template)
	return err
}

// cutTemplate cuts a documented path into its segments. The path '/' has none.
func cutTemplate(template string) ([]string, error) {
	fail := func(format string, args ...any) ([]string, error) {
		return nil, fmt.Errorf("path '%s' %s", template, fmt.Sprintf(format, args...))
	}
	switch {
	case template == "/":
		return nil, nil
	case !strings.HasPrefix(template, "/"):
		return fail("must begin with '/'")
	case strings.Contains(template, "#"):
		return fail("must not contain '#': what follows it is a fragment, and clients send none")
	case strings.Contains(template, "?"):
		return fail("must not contain '?': what follows it is the query, whose parameters are in `parameters`")
	}
	var p path
	trimmed := strings.TrimSuffix(template, "/")
	err := p.scan(withoutBraces(trimmed))
	switch {
	case err != nil:
		return fail("must be one that a request can have: %s", err.Error())
	case p.disguised != "" || p.hasSlash || p.matrix != 0:
		return fail("must be written without percent-encoding, and without ';' before a segment")
	case p.n > maxSegments-2:
		return fail("must have at most %d segments", maxSegments-2)
	}
	segments := strings.Split(trimmed[1:], "/")
	for _, s := range segments {
		if _, err := CutVariables(s); err != nil {
			return fail("%s", err.Error())
		}
	}
	return segments, nil
}

// partial is an edge for segments with variables inside.
type partial struct {
	literals []string // the texts around the variables: one more than there are variables
	to       *node
}

// matches reports whether a segment has the literals in their order and something between them.
func (e *partial) matches(s string) bool {
	_, ok := VariableIn(e.literals, s, 0)
	return ok
}

// VariableIn returns the text of one of the variables of a segment with variables inside, counted from 0; false if
// the segment does not have the literals in their order and something between them. The literals are
// the texts around the variables, one more than there are variables.
func VariableIn(literals []string, s string, variable int) (text string, ok bool) {
	last := len(literals) - 1
	rest, ok := strings.CutPrefix(s, literals[0])
	if !ok {
		return "", false
	}
	if rest, ok = strings.CutSuffix(rest, literals[last]); !ok || rest == "" {
		return "", false
	}
	for n, literal := range literals[1:last] {
		at := strings.Index(rest[1:], literal)
		if at < 0 || at+1+len(literal) == len(rest) {
			return "", false
		}
		if n == variable {
			text = rest[:at+1]
		}
		rest = rest[at+1+len(literal):]
	}
	if variable == last-1 {
		text = rest
	}
	return text, true
}

// addDocumented puts an operation into the trie that resources are in already. Of two at the same path the first
// counts.
func (n *node) addDocumented(d *Documented) error {
	segments, err := cutTemplate(d.Template)
	if err != nil {
		return err
	}
	for _, s := range segments {
		n = n.step(s)
	}
	if strings.HasSuffix(d.Template, "/") && len(segments) > 0 {
		n = n.slashed()
	}
	m := methodOf(d.Method) // methodOther is any that no verb has: the operation knows which one it is of
	end := &endpoint{template: d.Template, route: d.Template, name: -1, namespace: -1, documented: d, methods: 1 << m,
		slashes: d.Slashes}
	end.trailing, end.matrix = strings.HasSuffix(d.Template, "/"), matrixOf(segments, d.Matrix)
	if m == methodGet {
		end.methods |= 1 << methodHead
	}
	for _, other := range n.documented {
		switch {
		case other.documented.Method == d.Method:
			return nil
		case other.documented.Method == http.MethodHead:
			end.methods &^= 1 << methodHead
		case m == methodHead:
			other.methods &^= 1 << methodHead
		}
	}
	n.documented = append(n.documented, end)
	return nil
}

// step is the node behind a segment of a documented path.
func (n *node) step(s string) *node {
	literals, _ := CutVariables(s)
	switch {
	case len(literals) == 1:
		return n.plain(s)
	case len(literals) == 2 && literals[0] == "" && literals[1] == "":
		if n.variable == nil {
			n.variable = &node{}
		}
		return n.variable
	}
	for i := range n.partials {
		if strings.Join(n.partials[i].literals, "{}") == strings.Join(literals, "{}") {
			return n.partials[i].to
		}
	}
	n.partials = append(n.partials, partial{literals, &node{}})
	return n.partials[len(n.partials)-1].to
}

// CutVariables cuts a segment of a documented path at its variables, into the texts around them.
func CutVariables(s string) (literals []string, err error) {
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

// Documentable reports whether a document can validate requests of a method. It cannot for OPTIONS, by which browsers
// ask before they send another request, nor for CONNECT and TRACE, which are no requests of an API.
func Documentable(name string) bool {
	return name != http.MethodOptions && name != http.MethodConnect && name != http.MethodTrace
}

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

// takes reports whether the operation has the method that is looked for.
func (e *endpoint) takes(m *match) bool {
	return e != nil && e.methods&(1<<m.method) != 0 &&
		(m.method != methodOther || e.documented != nil && e.documented.Method == m.name)
}
