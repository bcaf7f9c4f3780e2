package openapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A Documented is an operation that is no verb of a resource: of a path that is no part of one, or of a method that the
// resource has no verb for, such as a POST of an object.
type Documented struct {
	Method string
	// Templates are the paths at the API's servers, as the document writes them.
	Templates []string
	Scope     resource.Scope
	Slashes   resource.Slashes
	// Rollouts are what the extension says of how far the description is in force, the most specific last.
	Rollouts []document.Node
	// Said has what the document says of requests. It has no verb.
	Said Operation
	// Place is the location of the operation in the document.
	Place string
}

// IsHeld reports whether the document says anything of requests that can be checked.
func (o *Documented) IsHeld() bool {
	isRead := func(b Body) bool { return b.Schema != nil }
	return len(o.Said.Parameters)+len(o.Said.Security)+len(o.Said.Answers) > 0 ||
		slices.ContainsFunc(o.Said.Bodies, isRead) ||
		len(o.Said.Bodies) > 0 && !takesAnything(o.Said.Bodies)
}

// takesAnything reports whether a body may be of any media type.
func takesAnything(bodies []Body) bool {
	return slices.ContainsFunc(bodies, func(b Body) bool { return b.Media == "*/*" && b.As == contract.AsBytes })
}

// documented returns the operations that are no verbs of the resources.
func (d *Document) documented(paths []*pathItem) (all []*Documented) {
	known, isPart := map[string]*pathItem{}, map[uint32]bool{}
	for _, p := range paths {
		isPart[p.node.Index()] = isPart[p.node.Index()] || p.part != noPart
		for _, method := range p.named() {
			if p.has(method) && p.part.has(method) {
				known[strings.ToUpper(method)+" "+p.address()] = p
			}
		}
	}
	for _, p := range paths {
		settings := d.settings(p)
		if !isPart[p.node.Index()] {
			d.checkSettings(p)
		}
		d.checkMore(p)
		for _, method := range p.named() {
			operation := p.operation(method)
			if _, isAction := operation.Get(OperationExtension); !operation.Valid() || p.part.has(method) || isAction {
				continue
			}
			name := strings.ToUpper(method)
			if !resource.Documentable(name) {
				if name != http.MethodOptions {
					d.report.gap(operation, "is not enforced: the gateway does not read requests of the method %s",
						name)
				}
				continue
			}
			key := name + " " + p.address()
			if first := known[key]; first != nil {
				d.report.warn(operation, "is not enforced: the same requests match '%s', which stands before it",
					first.path)
				continue
			}
			known[key] = p
			all = append(all, d.documentedOf(p, name, operation, settings))
		}
	}
	return all
}

// documentedOf returns an operation.
func (d *Document) documentedOf(p *pathItem, method string, operation document.Node,
	settings []document.Node) *Documented {
	o := &Documented{
		Method: method, Scope: scopeOf(settings), Place: Place(operation),
		Slashes: resource.SlashesNamed(saidIn(settings, "trailingSlash", ""),
			saidIn(settings, "encodedSlash", "Allow")),
	}
	for _, at := range settings {
		if m, found := at.Get("rollout"); found {
			o.Rollouts = append(o.Rollouts, m)
		}
	}
	for _, base := range p.bases {
		o.Templates = append(o.Templates, base+p.path)
	}
	if ignored(settings) {
		return o // nothing is checked, and no resource has it
	}
	o.Said = saidOf(d, resource.VerbCreate, p, operation, saidIn(settings, AnswersKey, "") == AnswersWarned)
	if body, _ := operation.Get("requestBody"); body.Valid() {
		o.Said.Bodies = bodiesOf(d, resource.VerbCreate, operation, translation{of: ofUndefaulted})
	}
	return o
}

// checkMore names the operations of methods that have another place, or that no request of an API has.
func (d *Document) checkMore(p *pathItem) {
	more, _ := p.item.Get(moreMethods)
	members(more, func(m document.Node) {
		if !isOwn(m.Key()) {
			d.report.warn(m, "is not enforced: here stand methods without small letters that have no member of their own, such as 'COPY'")
		}
	})
}

// checkSettings names what the extension says at a path that is no part of a resource, and that has no meaning there.
func (d *Document) checkSettings(p *pathItem) {
	own, _ := p.item.Get(Extension)
	members(own, func(m document.Node) {
		switch key := m.Key(); key {
		case "hosts", "upstream", "route", "ignore", "rollout", AnswersKey:
		case "trailingSlash":
			d.checkValue(m, "Same", "Redirect", "Distinct")
		case "encodedSlash":
			d.checkValue(m, "Allow", "Refuse")
		default:
			d.report.warn(m, "has no effect: the path is no part of a resource")
		}
	})
}

// checkValue refuses another text than the given ones.
func (d *Document) checkValue(m document.Node, values ...string) {
	if !slices.ContainsFunc(values, m.Is) {
		d.report.refuse(m, "must be '%s'", strings.Join(values, "' or '"))
	}
}

// saidIn returns what the extension says in a member of text; otherwise the default.
func saidIn(settings []document.Node, name, otherwise string) string {
	for _, at := range settings {
		if m, found := at.Get(name); found && m.Kind() == document.String {
			otherwise = strings.Clone(m.Str())
		}
	}
	return otherwise
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
		if targets, found := at.Get("targetRefs"); found && targets.Kind() == document.Array {
			s.Targets = nil
			for t := targets.First(); t.Valid(); t = t.Next() {
				member := func(name string) string { m, _ := t.Get(name); return textOf(m) }
				if target, is := resource.TargetOf(member("kind"), member("namespace"), member("name"),
					member("sectionName")); is {
					s.Targets = append(s.Targets, target)
				}
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
