package applicability

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// CanSucceed finds the expressions of an object that have no value, whatever the request, because of the constants in
// them. An expression that makes a message does not count: another message takes its place.
func CanSucceed(o *manifest.Object, programs []*cel.Program) []finding.Finding {
	failing := map[string]string{}
	for _, p := range programs {
		if err := cel.Parse(p.Source()).AlwaysFails(); err != nil {
			failing[strings.TrimSpace(p.Source())] = err.Error()
		}
	}
	var found finding.List
	EachText(o, failing, func(n document.Node, why string) {
		if n.Key() != "messageExpression" {
			found.By(AlwaysFails, o, finding.Error, n.Path(), "%s", why)
		}
	})
	return found.Found
}

// EachText visits the texts of an object that are keys of a map, and reports whether there are some.
func EachText[V any](o *manifest.Object, texts map[string]V, visit func(document.Node, V)) (found bool) {
	if len(texts) == 0 {
		return false
	}
	var in func(document.Node)
	in = func(n document.Node) {
		if n.Kind() == document.String {
			if v, isOne := texts[strings.TrimSpace(n.Str())]; isOne {
				visit(n, v)
				found = true
			}
		}
		for m := n.First(); m.Valid(); m = m.Next() {
			in(m)
		}
	}
	in(o.Document().Root())
	return found
}
