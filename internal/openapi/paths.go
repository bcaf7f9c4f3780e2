package openapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// pathItem is a path of the document with what is done there.
type pathItem struct {
	path       string
	node       document.Node // in the document
	item       document.Node // what it refers to
	segments   []string
	bases      []string // the paths at the API's servers
	trailing   bool     // a slash at the end
	part       partOf   // of a resource
	patchTypes []string // of its PATCH, besides the usual ones
	only       []string // the methods of which this is the path; nil: all. Some operations have servers of their own
}

// methods are the operations that a path can have in members of their own, in the order of the specification.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", queryMethod}

const (
	// queryMethod is the member for QUERY, which no resource has a verb for.
	queryMethod = "query"
	// moreMethods is the member with operations of all other methods, by their names.
	moreMethods = "additionalOperations"
)

// named are the methods of which the path may have an operation: those with a member of their own, in small letters,
// and the author's, as they are written.
func (p *pathItem) named() []string {
	all := methods
	more, _ := p.item.Get(moreMethods)
	members(more, func(m document.Node) {
		if isOwn(m.Key()) {
			all = append(all[:len(all):len(all)], strings.Clone(m.Key()))
		}
	})
	return all
}

// isOwn reports whether a document may have the method among those without a member of their own: it is a token (RFC
// 9110, 5.6.2) without small letters, and none of the methods with such a member.
func isOwn(name string) bool {
	return name != "" && resource.Documentable(name) && !slices.Contains(methods, strings.ToLower(name)) &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}

// isVerbless reports whether no resource has a verb for the method.
func isVerbless(method string) bool { return method == queryMethod || isOwn(method) }

func (p *pathItem) operation(method string) document.Node {
	if p == nil || p.only != nil && !slices.Contains(p.only, method) {
		return document.Node{}
	}
	in := p.item
	if isOwn(method) {
		in, _ = in.Get(moreMethods)
	}
	n, _ := in.Get(method)
	return n
}

// methods returns the methods of the path's operations; none if the document does not have the path.
func (p *pathItem) methods() resource.MethodSet {
	if p == nil {
		return 0
	}
	var names []string
	for _, method := range methods {
		if p.has(method) {
			names = append(names, strings.ToUpper(method))
		}
	}
	return resource.NewMethodSet(names...)
}

func (p *pathItem) has(method string) bool { return p.operation(method).Valid() }

// writes reports whether the method of the path is there, and no operation with a name of its own.
func (p *pathItem) writes(method string) bool {
	_, isAction := p.operation(method).Get(OperationExtension)
	return p.has(method) && !isAction
}

// slash is the slash at the end of the path, if it has one.
func (p *pathItem) slash() string {
	if p.trailing {
		return "/"
	}
	return ""
}

// shape is the path without the names of its variables.
func (p *pathItem) shape() string { return shapeOf(p.segments) }

// address is the shape of the path at the API's servers. Requests of paths with the same address are the same.
func (p *pathItem) address() string { return strings.Join(p.bases, " ") + p.shape() + p.slash() }

func shapeOf(segments []string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		if isVariable(s) {
			s = "{}"
		}
		b.WriteString(s)
	}
	return b.String()
}

func isVariable(s string) bool {
	return len(s) > 2 && s[0] == '{' && strings.IndexByte(s, '}') == len(s)-1
}

// variable is the name of a variable.
func variable(s string) string { return s[1 : len(s)-1] }

// paths are the paths of the document in its order.
func (d *Document) paths() []*pathItem {
	var all []*pathItem
	bases := d.bases(d.root)
	paths, _ := d.root.Get("paths")
	members(paths, func(n document.Node) {
		path := strings.Clone(n.Key())
		if strings.HasPrefix(path, "x-") {
			return
		}
		item := d.follow(n)
		if !item.Valid() {
			return
		}
		p := &pathItem{path: path, node: n, item: item, bases: bases}
		if _, own := item.Get("servers"); own {
			p.bases = d.bases(item)
		}
		trimmed, trailing := strings.CutSuffix(path, "/")
		p.trailing = trailing
		if err := resource.CheckTemplate(path); err != nil {
			d.report.warn(n, "is left out: %s", err.Error())
			return
		}
		if path != "/" {
			p.segments = strings.Split(trimmed[1:], "/")
		}
		all = append(all, d.byServers(p)...)
	})
	return all
}

// byServers returns the path once for each of the servers that its operations have, the path's own first.
func (d *Document) byServers(p *pathItem) []*pathItem {
	all := []*pathItem{p}
	var own []string
	for _, method := range p.named() {
		operation := p.operation(method)
		bases := p.bases
		if servers, _ := operation.Get("servers"); servers.Len() > 0 {
			bases = d.bases(operation)
		}
		i := slices.IndexFunc(all, func(one *pathItem) bool { return slices.Equal(one.bases, bases) })
		switch {
		case !operation.Valid():
		case i == 0:
			own = append(own, method)
		case i < 0:
			one := *p
			one.bases, one.only = bases, []string{method}
			all = append(all, &one)
		default:
			all[i].only = append(all[i].only, method)
		}
	}
	switch {
	case len(all) == 1:
		return all
	case len(own) == 0:
		return all[1:]
	}
	p.only = own
	return all
}

// bases are the paths below which servers have the API.
func (d *Document) bases(n document.Node) []string {
	var bases []string
	servers, _ := n.Get("servers")
	members(servers, func(server document.Node) {
		at := text(server, "url")
		variables, _ := server.Get("variables")
		members(variables, func(v document.Node) {
			at = strings.ReplaceAll(at, "{"+v.Key()+"}", text(v, "default"))
		})
		parsed, err := url.Parse(at)
		if err != nil || strings.Contains(at, "{") {
			d.report.warn(server, "must be a URL; the server is left out")
			return
		}
		base := strings.TrimRight(parsed.EscapedPath(), "/")
		if base != "" && base[0] != '/' {
			base = "/" + base
		}
		if !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	})
	if len(bases) == 0 {
		bases = []string{""}
	}
	return bases
}

// partOf returns which part of a resource a path leads to.
type partOf uint8

const (
	noPart partOf = iota
	collectionPart
	objectPart
	kubernetesPart
)

// has reports whether a resource has a verb for the method there.
func (p partOf) has(method string) bool {
	switch p {
	case collectionPart:
		return method != "put" && method != "patch" && !isVerbless(method)
	case objectPart:
		return method != "post" && !isVerbless(method)
	}
	return p == kubernetesPart && !isVerbless(method)
}

// needsNoBody reports whether an operation may be sent no body: it documents none, or one that is not required.
func (d *Document) needsNoBody(operation document.Node) bool {
	body, found := operation.Get("requestBody")
	return !found || !truth(d.follow(body), "required")
}

// requestSchema is the schema of the JSON that an operation is sent; invalid if there is none.
func (d *Document) requestSchema(operation document.Node) document.Node {
	body, found := operation.Get("requestBody")
	if !found {
		return document.Node{}
	}
	content, _ := d.follow(body).Get("content")
	s, _ := d.follow(jsonMedia(content)).Get("schema")
	return s
}

// responseSchema is the schema of the JSON that an operation answers with; invalid if there is
// none.
func (d *Document) responseSchema(operation document.Node) document.Node {
	responses, _ := operation.Get("responses")
	for _, code := range []string{"200", "201", "2XX", "2xx", "default"} {
		if response, found := responses.Get(code); found {
			content, _ := d.follow(response).Get("content")
			s, _ := d.follow(jsonMedia(content)).Get("schema")
			return s
		}
	}
	return document.Node{}
}

// jsonMedia finds JSON among media types.
func jsonMedia(content document.Node) document.Node {
	var found document.Node
	best := 0
	members(content, func(m document.Node) {
		name, _, _ := strings.Cut(strings.ToLower(m.Key()), ";")
		rank := 0
		switch name = strings.TrimSpace(name); {
		case name == "application/json":
			rank = 4
		case strings.HasSuffix(name, "+json") && name != "application/merge-patch+json":
			rank = 3
		case name == "application/*":
			rank = 2
		case name == "*/*":
			rank = 1
		}
		if rank > best {
			best, found = rank, m
		}
	})
	return found
}
