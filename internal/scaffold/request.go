package scaffold

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/policies/testcase"
)

// A request is one that can be sent, and can be changed until it is wrong.
type request struct {
	method, path, media string
	values              map[string]map[string]string // of parameters, by place and name
	body                any
	hasBody             bool
}

// requests returns requests of an operation that should be right, the likeliest first.
func (d *described) requests(o *operation) (all []request) {
	media, said := d.jsonBody(o)
	if media == "" && d.needsBody(o) {
		return nil
	}
	for _, examples := range []bool{true, false} {
		m := &maker{described: d, examples: examples}
		one := request{method: o.method, path: o.path, media: media, values: map[string]map[string]string{}}
		for _, p := range d.parameters(o) {
			if in, name := textAt(p, "in"), textAt(p, "name"); in == "path" || p["required"] == true && in != "body" &&
				in != "formData" {
				one.set(in, name, m.parameter(p))
			}
		}
		d.identify(o, &one)
		if media == "" {
			all = append(all, one)
			continue
		}
		for _, body := range m.bodies(said) {
			with := one
			with.body, with.hasBody = body, true
			all = append(all, with)
		}
	}
	return all
}

func (r *request) set(place, name, value string) {
	if r.values[place] == nil {
		r.values[place] = map[string]string{}
	}
	r.values[place][name] = value
}

// bodies returns bodies for a media type: its examples, and one that is made.
func (m *maker) bodies(said map[string]any) (all []any) {
	if m.examples {
		if e, has := said["example"]; has {
			all = append(all, e)
		}
		named := object(said["examples"])
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if v, has := m.follow(named[name])["value"]; has {
				all = append(all, v)
			}
		}
	}
	if schema, has := said["schema"]; has {
		m.parts = 0
		all = append(all, m.value(schema, 0))
	}
	return all
}

// parameter returns a text for a parameter.
func (m *maker) parameter(p map[string]any) string {
	var v any
	if e, has := p["example"]; has && m.examples {
		v = e
	} else if schema := m.schemaOf(p); schema != nil {
		m.parts = 0
		v = m.value(schema, 0)
	}
	if items := list(v); len(items) > 0 {
		v = items[0]
	}
	switch v := v.(type) {
	case nil:
		return "x"
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// identify adds the credentials that the first requirement of an operation asks for.
func (d *described) identify(o *operation, r *request) {
	required, isOwn := o.said["security"]
	if !isOwn {
		required = d.root["security"]
	}
	all := list(required)
	if len(all) == 0 {
		return
	}
	schemes := object(object(d.root["components"])["securitySchemes"])
	if d.isSwagger {
		schemes = object(d.root["securityDefinitions"])
	}
	for name := range object(all[0]) {
		scheme := d.follow(schemes[name])
		switch kind := textAt(scheme, "type"); {
		case kind == "apiKey":
			r.set(textAt(scheme, "in"), textAt(scheme, "name"), "example")
		case kind == "basic" || strings.EqualFold(textAt(scheme, "scheme"), "basic"):
			r.set("header", "Authorization", "Basic ZXhhbXBsZTpleGFtcGxl")
		case kind != "":
			r.set("header", "Authorization", "Bearer example")
		}
	}
}

// testcase returns the case that sends the request; nil if a test cannot hold it.
func (r *request) testcase(name string) *testcase.Case {
	path := r.path
	for name, value := range r.values["path"] {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	if strings.ContainsAny(path, "{}") {
		return nil
	}
	query := url.Values{}
	for name, value := range r.values["query"] {
		query.Set(name, value)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	headers := map[string]string{}
	for name, value := range r.values["header"] {
		if !slices.ContainsFunc(ownHeaders, func(own string) bool { return strings.EqualFold(own, name) }) {
			headers[name] = value
		}
	}
	var cookies []string
	for _, name := range slices.Sorted(maps.Keys(r.values["cookie"])) {
		cookies = append(cookies, name+"="+url.QueryEscape(r.values["cookie"][name]))
	}
	if len(cookies) > 0 {
		headers["Cookie"] = strings.Join(cookies, "; ")
	}
	made := &testcase.Case{Name: name, Request: &testcase.Request{Method: r.method, Path: path, Headers: headers}}
	if r.hasBody {
		body, err := json.Marshal(r.body)
		if err != nil || len(body) > maxBody || !isPlain(body) {
			return nil
		}
		made.Request.Body, made.Request.ContentType = body, r.media
	}
	if r.method == "GET" || r.method == "PUT" || r.method == "PATCH" || r.method == "DELETE" {
		made.Existing = json.RawMessage("{}")
	}
	return made
}

// ownHeaders are set by what sends the request.
var ownHeaders = []string{"Accept", "Content-Type", "Content-Length", "Host", "Accept-Encoding"}

// maxBody bounds the body of a case, in bytes.
const maxBody = 8 << 10

// isPlain reports whether a body of JSON is the same in YAML, which reads some numbers otherwise.
func isPlain(body []byte) bool {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return true
		}
		if n, is := token.(json.Number); is && strings.ContainsAny(n.String(), "eE") {
			return false
		}
	}
}

// A spoiled request is one that should be refused.
type spoiled struct {
	request
	what string
}

// spoil returns requests that differ from one that is right in one place, and that the document should refuse.
func (d *described) spoil(o *operation, right *request) (all []spoiled) {
	if fields := object(right.body); right.hasBody && fields != nil {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			one := *right
			without := maps.Clone(fields)
			delete(without, name)
			one.body = without
			all = append(all, spoiled{one, fmt.Sprintf("refuses a body without `%s`", name)})
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			one := *right
			other := maps.Clone(fields)
			if _, isObject := other[name].(map[string]any); isObject {
				other[name] = "other"
			} else {
				other[name] = map[string]any{"other": true}
			}
			one.body = other
			all = append(all, spoiled{one, fmt.Sprintf("refuses `%s` of another type", name)})
		}
	}
	if right.hasBody {
		one := *right
		if one.body = any([]any{"other"}); list(right.body) != nil {
			one.body = "other"
		}
		all = append(all, spoiled{one, "refuses a body of another type"})
	}
	if len(right.values["header"]["Authorization"]) > 0 {
		one := right.clone()
		delete(one.values["header"], "Authorization")
		all = append(all, spoiled{one, "refuses a request without credentials"})
	}
	for _, p := range d.parameters(o) {
		in, name := textAt(p, "in"), textAt(p, "name")
		if in != "query" && in != "header" && in != "path" {
			continue
		}
		if p["required"] == true && in != "path" {
			one := right.clone()
			delete(one.values[in], name)
			all = append(all, spoiled{one, fmt.Sprintf("refuses a request without the %s parameter `%s`", in, name)})
		}
		one := right.clone()
		one.set(in, name, "~other~")
		all = append(all, spoiled{one, fmt.Sprintf("refuses another value of the %s parameter `%s`", in, name)})
	}
	return all
}

// clone returns a request with parameters of its own.
func (r *request) clone() request {
	c := *r
	c.values = map[string]map[string]string{}
	for place, values := range r.values {
		c.values[place] = maps.Clone(values)
	}
	return c
}
