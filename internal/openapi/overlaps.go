package openapi

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// An overlap is an operation of a path that matches the same requests as another one, such as '/files/{id}' and
// '/files/{name}'. OpenAPI does not allow that, and some documents have it. Which of the two a request means only the
// API knows, so that requests are judged by the parameters that both declare alike.
type overlap struct {
	path      *pathItem
	operation document.Node
}

// overlapsIn returns the overlaps of operations, by their nodes.
func overlapsIn(paths []*pathItem) map[uint32][]overlap {
	byShape := map[string][]*pathItem{}
	for _, p := range paths {
		byShape[p.address()] = append(byShape[p.address()], p)
	}
	all := map[uint32][]overlap{}
	for _, alike := range byShape {
		for _, p := range alike {
			for _, other := range alike {
				for _, method := range p.named() {
					if n := p.operation(method); p != other && n.Valid() && other.has(method) {
						all[n.Index()] = append(all[n.Index()], overlap{other, other.operation(method)})
					}
				}
			}
		}
	}
	return all
}

// shared returns the declared parameters of an operation that all that overlap with it declare alike, and names the
// others.
func (d *Document) shared(p *pathItem, operation document.Node, declared []document.Node) (shared []document.Node) {
	for _, n := range declared {
		i := slices.IndexFunc(d.overlaps[operation.Index()], func(t overlap) bool { return !d.declaresToo(t, p, n) })
		if i < 0 {
			shared = append(shared, n)
			continue
		}
		d.report.warn(operation, "the parameter '%.80s' is not enforced: the same requests match '%s', which does not declare it alike",
			text(n, "name"), d.overlaps[operation.Index()][i].path.path)
	}
	return shared
}

// declaresToo reports whether an overlapping operation declares a parameter of an operation of the path: in the same
// place of the path, or by the same name.
func (d *Document) declaresToo(t overlap, p *pathItem, n document.Node) bool {
	return slices.ContainsFunc(d.declared(t.path, t.operation), func(other document.Node) bool {
		if text(n, "in") != text(other, "in") {
			return false
		}
		if text(n, "in") != "path" {
			return text(n, "name") == text(other, "name") && string(n.Raw()) == string(other.Raw())
		}
		ours, _ := n.Get("schema")
		theirs, _ := other.Get("schema")
		return p.variableAt(text(n, "name")) == t.path.variableAt(text(other, "name")) &&
			string(ours.Raw()) == string(theirs.Raw())
	})
}

// variableAt returns which segment of the path has a variable; -1 if none has.
func (p *pathItem) variableAt(name string) int {
	return slices.IndexFunc(p.segments, func(s string) bool { return strings.Contains(s, "{"+name+"}") })
}
