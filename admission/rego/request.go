package rego

import (
	"net/url"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// made has the values that were made of a request's attributes. They are made once, when a module
// first reads them, for all modules that judge the request.
type made struct {
	as              schema.GroupVersionResource
	object, old     *document.Document
	edited, editedO uint64 // the revisions of the two

	review, body, http Value
	shared             *Shared
	states             map[string]Value
	meter, stateMeter  meter // of the review, and of the states
}

// madeOf returns what was made of the attributes as they are now, seen as the resource.
func madeOf(a *admission.Attributes, as schema.GroupVersionResource) *made {
	m, ok := a.Made.(*made)
	if ok && m.as == as && m.object == a.Object && m.old == a.Old && m.edited == revision(a.Object) && m.editedO == revision(a.Old) {
		return m
	}
	fresh := &made{as: as, object: a.Object, old: a.Old, edited: revision(a.Object), editedO: revision(a.Old)}
	fresh.meter.memory, fresh.stateMeter.memory = MemoryOf(a), MemoryOf(a)
	if ok {
		fresh.http, fresh.states, fresh.stateMeter = m.http, m.states, m.stateMeter
		m.meter.close()
	}
	a.Made = fresh
	return fresh
}

// MemoryOf returns the budget for the memory of the request; nil if it is not bounded.
func MemoryOf(a *admission.Attributes) Memory {
	if a.Frame == nil {
		return nil
	}
	return a.Frame.Memory()
}

func revision(d *document.Document) uint64 {
	if d == nil {
		return 0
	}
	return d.Revision()
}

// reviewMembers are the members of a review.
var reviewMembers = []string{
	"kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
	"operation", "userInfo", "object", "oldObject", "dryRun", "options",
}

// ReviewOf makes the value that modules see as input.review: the request of an AdmissionReview, as
// kube-apiserver sends it to webhooks. The resource is the one that the policy's rules name; the
// object is converted to its version. The value is made once for all policies.
func ReviewOf(a *admission.Attributes, as schema.GroupVersionResource) (Value, error) {
	m := madeOf(a, as)
	if m.review.Valid() {
		return m.review, nil
	}
	object, old, kind := a.Object, a.Old, a.Kind()
	own := a.Info.GroupVersionResource()
	if as != own {
		name := kind.Kind
		var err error
		if object, name, err = converted(a, object, as, name); err != nil {
			return Value{}, err
		}
		if old, name, err = converted(a, old, as, name); err != nil {
			return Value{}, err
		}
		kind = a.KindAs(as, name)
	}
	objectValue, err := m.valueOf(object)
	if err != nil {
		return Value{}, err
	}
	oldValue, err := m.valueOf(old)
	if err != nil {
		return Value{}, err
	}
	options, err := optionsOf(a)
	if err != nil {
		return Value{}, err
	}
	m.body, m.shared = objectValue, NewShared(a)
	m.review = Object(
		Member{"kind", groupVersion(kind.GroupVersion(), "kind", kind.Kind)},
		Member{"resource", groupVersion(as.GroupVersion(), "resource", as.Resource)},
		Member{"subResource", optional(a.Info.Subresource)},
		Member{"requestKind", groupVersion(a.Kind().GroupVersion(), "kind", a.Kind().Kind)},
		Member{"requestResource", groupVersion(own.GroupVersion(), "resource", own.Resource)},
		Member{"requestSubResource", optional(a.Info.Subresource)},
		Member{"name", optional(a.Name())},
		Member{"namespace", optional(a.RequestNamespace())},
		Member{"operation", Text(a.Operation.String())},
		Member{"userInfo", userOf(a)},
		Member{"object", objectValue},
		Member{"oldObject", oldValue},
		Member{"dryRun", Flag(a.DryRun)},
		Member{"options", options},
	)
	return m.review, nil
}

// converted returns an object as the resource has it; nil if there is none.
func converted(a *admission.Attributes, d *document.Document, as schema.GroupVersionResource, kind string) (*document.Document, string, error) {
	if d == nil || a.Lookup == nil {
		return d, kind, nil
	}
	return a.Lookup.Convert(d, as)
}

func (m *made) valueOf(d *document.Document) (Value, error) {
	if d == nil {
		return Null, nil
	}
	return valueWithin(d.Root(), &m.meter)
}

// optionsOf are the options of the operation; null if there are none.
func optionsOf(a *admission.Attributes) (Value, error) {
	if a.Options == nil {
		return Null, nil
	}
	options, err := a.Options.Options()
	if err != nil || !options.Valid() {
		return Null, err
	}
	return ValueOf(options)
}

// optional is a text that is left out if it is empty.
func optional(s string) Value {
	if s == "" {
		return Value{}
	}
	return Text(strings.Clone(s))
}

func groupVersion(gv schema.GroupVersion, name, of string) Value {
	return Object(Member{"group", Text(strings.Clone(gv.Group))}, Member{"version", Text(strings.Clone(gv.Version))}, Member{name, Text(strings.Clone(of))})
}

// userOf is the user as Kubernetes' UserInfo.
func userOf(a *admission.Attributes) Value {
	if a.User == nil {
		return Object()
	}
	u := a.User
	members := []Member{{"username", optional(u.Name)}, {"uid", optional(u.UID)}}
	if len(u.Groups) > 0 {
		members = append(members, Member{"groups", texts(u.Groups)})
	}
	if len(u.Extra) > 0 {
		var extra []Member
		for name, values := range u.Extra {
			extra = append(extra, Member{strings.Clone(name), texts(values)})
		}
		members = append(members, Member{"extra", Object(extra...)})
	}
	return Object(members...)
}

func texts(all []string) Value {
	items := make([]Value, len(all))
	for i, s := range all {
		items[i] = Text(strings.Clone(s))
	}
	return List(items...)
}

// credentials are the parts of a request that prove who the client is. They are hidden from modules
// that do not ask for them.
type credentials interface {
	Credentials(yield func(name, value string) bool)
}

// line is the first line of a request.
type line interface {
	Method() string
	Host() string
}

// httpRequest has what modules can know of a request beside its object.
type httpRequest struct {
	method, host, path, target, route string
	query, headers, parameters        map[string][]string
}

func httpOf(a *admission.Attributes, withCredentials bool) *httpRequest {
	h := &httpRequest{query: map[string][]string{}, headers: map[string][]string{}, parameters: map[string][]string{}}
	if a.HTTP == nil {
		return h
	}
	h.path, h.route = strings.Clone(a.HTTP.Path()), strings.Clone(a.HTTP.Route())
	h.target = h.path
	if query := a.HTTP.Query(); query != "" {
		h.target += "?" + query
	}
	if l, ok := a.HTTP.(line); ok {
		h.method, h.host = strings.Clone(l.Method()), strings.Clone(l.Host())
	}
	if query, err := url.ParseQuery(strings.Clone(a.HTTP.Query())); err == nil {
		h.query = query
	}
	add := func(name, value string) bool {
		name = strings.ToLower(name)
		h.headers[name] = append(h.headers[name], strings.Clone(value))
		return true
	}
	a.HTTP.Lines(add)
	if c, ok := a.HTTP.(credentials); ok && withCredentials {
		c.Credentials(add)
	}
	a.HTTP.Parameters(func(name, raw string) bool {
		text, err := url.PathUnescape(strings.Clone(raw))
		if err != nil {
			text = strings.Clone(raw)
		}
		h.parameters[strings.Clone(name)] = []string{text}
		return true
	})
	return h
}

// own is input.http: what the variable http of CEL has, with method and host.
func (h *httpRequest) own() Value {
	return Object(
		Member{"method", Text(h.method)}, Member{"host", Text(h.host)}, Member{"path", Text(h.path)}, Member{"route", Text(h.route)},
		Member{"pathParameters", firsts(h.parameters)}, Member{"query", lists(h.query)}, Member{"headers", lists(h.headers)},
	)
}

// envoy are the members of the input that Envoy's OPA plugin gives policies.
func (h *httpRequest) envoy(body Value) []Member {
	var segments []Value
	for _, segment := range strings.Split(strings.Trim(h.path, "/"), "/") {
		segments = append(segments, Text(segment))
	}
	request := Object(
		Member{"method", Text(h.method)}, Member{"path", Text(h.target)}, Member{"host", Text(h.host)},
		Member{"protocol", Text("HTTP/1.1")}, Member{"headers", joined(h.headers)}, Member{"body", textOfBody(body)},
	)
	return []Member{
		{"attributes", Object(Member{"request", Object(Member{"http", request})})},
		{"parsed_path", List(segments...)},
		{"parsed_query", lists(h.query)},
		{"parsed_body", body},
		{"truncated_body", Flag(false)},
	}
}

// kong is the member request of the input that Kong's OPA plugin gives policies.
func (h *httpRequest) kong(body Value) Member {
	return Member{"request", Object(Member{"http", Object(
		Member{"method", Text(h.method)}, Member{"path", Text(h.path)}, Member{"host", Text(h.host)},
		Member{"headers", joined(h.headers)}, Member{"querystring", firsts(h.query)}, Member{"body", textOfBody(body)},
		Member{"parsed_body", body},
	)})}
}

// webhook adds to Kong's member request what an AdmissionReview has there: the input of OPA as a
// webhook of Kubernetes.
func webhook(request Member, review Value) Member {
	both, _ := Merge(request.Value, review) // they are objects
	return Member{request.Name, both}
}

// textOfBody is the object as text.
func textOfBody(body Value) Value {
	text, err := body.AppendJSON(nil)
	if err != nil || !body.Valid() || body == Null {
		return Value{}
	}
	return Text(string(text))
}

func lists(of map[string][]string) Value {
	return mapped(of, texts)
}

func firsts(of map[string][]string) Value {
	return mapped(of, func(all []string) Value { return Text(all[0]) })
}

func joined(of map[string][]string) Value {
	return mapped(of, func(all []string) Value { return Text(strings.Join(all, ",")) })
}

func mapped(of map[string][]string, value func([]string) Value) Value {
	members := make([]Member, 0, len(of))
	for name, all := range of {
		members = append(members, Member{name, value(all)})
	}
	return Object(members...)
}

// statesOf are the collections of the policy set, each made once for all modules.
type statesOf struct {
	attributes *admission.Attributes
	made       *made
	names      []string
}

// Names implements States.
func (s *statesOf) Names() []string { return s.names }

// State implements States.
func (s *statesOf) State(name string) (Value, error) {
	if v, ok := s.made.states[name]; ok {
		return v, nil
	}
	if s.attributes.Lookup == nil || s.attributes.Lookup.States() == nil {
		return Value{}, errUnknownState
	}
	nodes, err := s.attributes.Lookup.States().State(name)
	if err != nil {
		return Value{}, err
	}
	c := converter{meter: &s.made.stateMeter}
	if !c.meter.take(int64(len(nodes)) * itemBytes) {
		return Value{}, ErrNoMemory
	}
	terms := make([]*ast.Term, len(nodes))
	for i, n := range nodes {
		terms[i] = c.term(n)
	}
	if c.err != nil {
		return Value{}, c.err
	}
	v := Value{ast.ArrayTerm(terms...)}
	if s.made.states == nil {
		s.made.states = map[string]Value{}
	}
	s.made.states[name] = v
	return v, nil
}
