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
	isOf            bool // attributes: it is not only room for values
	as              schema.GroupVersionResource
	object, old     *document.Document
	edited, editedO uint64 // the revisions of the two

	body, http        Value
	review            review
	shared            Shared
	states            map[string]Value
	meter, stateMeter meter // of the review, and of the states
	input             Input // of the policy that judges now
	source            statesOf

	readings [2]reading // of the object and the stored one
}

// Forget implements admission.Forgetting.
func (m *made) Forget() {
	for i := range m.readings {
		m.readings[i].forget()
	}
	m.shared.Begin(nil)
	readings, shared := m.readings, m.shared
	*m = made{readings: readings, shared: shared}
}

// madeOf returns what was made of the attributes as they are now, seen as the resource.
func madeOf(a *admission.Attributes, as schema.GroupVersionResource) *made {
	m, ok := a.Made.(*made)
	if ok && m.isOf && m.as == as && m.object == a.Object && m.old == a.Old && m.edited == revision(a.Object) &&
		m.editedO == revision(a.Old) {
		return m
	}
	fresh := m
	if !ok || m.isOf {
		fresh = new(made) // some may still read what was made before
	}
	fresh.isOf, fresh.as, fresh.object, fresh.old, fresh.edited, fresh.editedO = true, as, a.Object, a.Old,
		revision(a.Object), revision(a.Old)
	fresh.meter.memory, fresh.stateMeter.memory = MemoryOf(a), MemoryOf(a)
	if ok && fresh != m {
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
		Member{"method", Text(h.method)}, Member{"host", Text(h.host)}, Member{"path", Text(h.path)},
		Member{"route", Text(h.route)},
		Member{"pathParameters", firsts(h.parameters)}, Member{"query", lists(h.query)},
		Member{"headers", lists(h.headers)},
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
	v := Value{term: ast.ArrayTerm(terms...)}
	if s.made.states == nil {
		s.made.states = map[string]Value{}
	}
	s.made.states[name] = v
	return v, nil
}
