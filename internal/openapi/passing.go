package openapi

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// passing returns the operations at paths that are no part of a resource, and at paths that are, if they have no verb for it,
// such as a POST of an object.
func (d *Document) passing(paths []*pathItem) []resource.Passing {
	var all []resource.Passing
	for _, p := range paths {
		var done []string
		for _, method := range methods {
			operation := p.operation(method)
			if _, isAction := operation.Get(OperationExtension); !operation.Valid() || p.part.has(method) || isAction {
				continue
			}
			done = append(done, strings.ToUpper(method))
			if !ignored(d.settings(p)) {
				d.warnPassing(p, operation)
			}
		}
		for _, base := range p.bases {
			if len(done) > 0 {
				all = append(all, resource.Passing{Template: base + p.path, Methods: done, Scope: scopeOf(d.settings(p))})
			}
		}
	}
	return all
}

// warnPassing names the parts of an operation that passes which are not enforced.
func (d *Document) warnPassing(p *pathItem, operation document.Node) {
	if _, found := operation.Get("requestBody"); found {
		d.report.warn(operation, "passes without being validated: the path is neither a collection that is posted to nor an object that is replaced")
		d.requestSchema(operation)
	} else if len(d.declared(p, operation)) > 0 {
		d.report.warn(operation, "passes, and its parameters are not enforced: the path is neither a collection nor an object")
	}
	if security, found := operation.Get("security"); found && security.Len() > 0 {
		d.report.warn(security, "is not enforced: the path is neither a collection nor an object")
	}
}

// scopeOf returns for which routes the extension says that a path is meant.
func scopeOf(settings []document.Node) resource.Scope {
	var s resource.Scope
	for _, at := range settings {
		if hosts, found := at.Get("hosts"); found && hosts.Kind() == document.Array {
			s.Hosts = nil
			for host := hosts.First(); host.Valid(); host = host.Next() {
				s.Hosts = append(s.Hosts, textOf(host))
			}
		}
		for name, said := range map[string]*string{"upstream": &s.Upstream, "route": &s.Route} {
			if m, found := at.Get(name); found {
				*said = textOf(m)
			}
		}
	}
	return s
}

// textOf returns a string of the document; empty for anything else, which is reported of the resources.
func textOf(n document.Node) string {
	if n.Kind() != document.String {
		return ""
	}
	return strings.Clone(n.Str())
}
