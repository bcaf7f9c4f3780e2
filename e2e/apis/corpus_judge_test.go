package apis

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A sample is a request for an operation, before it is written down.
type sample struct {
	operation *operation
	path      map[string]string // by parameter, not escaped
	query     [][2]string       // names and values, not escaped
	header    [][2]string
	cookie    [][2]string
	mediaType string // empty without a body
	body      []byte // nil without a body
	change    string // what was changed in a right request
	object    any    // what the backend has
}

func (s *sample) target() string {
	path := s.operation.path
	for name, value := range s.path {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	return s.operation.base + path
}

func encodeQuery(pairs [][2]string) string {
	all := make([]string, 0, len(pairs))
	for _, pair := range pairs {
		value := strings.ReplaceAll(url.QueryEscape(pair[1]), "%2C", ",") // a comma stands between items
		all = append(all, url.QueryEscape(pair[0])+"="+value)
	}
	return strings.Join(all, "&")
}

// A judgement says whether a request is right, and what is wrong with it.
type judgement struct {
	isRight bool
	unknown string // why there is no judgement; empty if there is one
	keyword string
	place   string   // of the value
	missing []string // the members that are missing there
	schemas []string // pointers of the schemas from the outermost to the one that fails
}

// judge judges a request by santhosh-tekuri/jsonschema.
func (d *published) judge(s *sample) judgement {
	o := s.operation
	for _, p := range o.parameters {
		if j := d.judgeParameter(p, s); !j.isRight || j.unknown != "" {
			return j
		}
	}
	switch {
	case s.body == nil && o.body != nil && o.body.required:
		return judgement{keyword: "requestBody.required", place: "body"}
	case s.body == nil || o.body == nil:
		return judgement{isRight: true}
	case !slices.Contains(o.body.media, s.mediaType):
		return judgement{keyword: "content", place: "body"}
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(s.body)))
	if err != nil {
		return judgement{keyword: "parse", place: "body"}
	}
	return d.judgeValue(o.body.schemas[s.mediaType], "body", value)
}

func (d *published) judgeValue(at, place string, value any) judgement {
	if at == "" {
		return judgement{isRight: true}
	}
	compiled := d.schema(at)
	if compiled == nil {
		return judgement{unknown: "the schema does not compile: " + d.unread[at]}
	}
	err := compiled.Validate(value)
	if err == nil {
		return judgement{isRight: true}
	}
	failure, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // as the library has it
	if !ok {
		return judgement{unknown: err.Error()}
	}
	j := judgement{}
	for {
		_, fragment, _ := strings.Cut(failure.SchemaURL, "#")
		j.schemas = append(j.schemas, pointer(split(fragment)...))
		_, isChoice := failure.ErrorKind.(*kind.AnyOf)
		_, isOne := failure.ErrorKind.(*kind.OneOf)
		if len(failure.Causes) == 0 || isChoice || isOne {
			break
		}
		failure = failure.Causes[0]
	}
	if required, ok := failure.ErrorKind.(*kind.Required); ok {
		j.missing = required.Missing
	}
	j.keyword = strings.Join(failure.ErrorKind.KeywordPath(), ".")
	if j.keyword == "" {
		j.keyword = "false"
	}
	j.place = place + pointer(failure.InstanceLocation...)
	return j
}

func (d *published) judgeParameter(p *parameter, s *sample) judgement {
	var values []string
	found := false
	place := p.in + "." + p.name
	switch p.in {
	case "path":
		value, ok := s.path[p.name]
		values, found = []string{value}, ok
	case "query", "header", "cookie":
		pairs := map[string][][2]string{"query": s.query, "header": s.header, "cookie": s.cookie}[p.in]
		for _, pair := range pairs {
			if pair[0] == p.name || p.in == "header" && strings.EqualFold(pair[0], p.name) {
				values, found = append(values, pair[1]), true
			}
		}
	}
	if !found {
		if p.required && !d.hasMembers(p) {
			return judgement{keyword: "parameter.required", place: place}
		}
		return judgement{isRight: true}
	}
	if p.schema == "" {
		return judgement{isRight: true}
	}
	if p.isJSON {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(values[0]))
		if err != nil {
			return judgement{keyword: "parse", place: place, schemas: []string{p.schema}}
		}
		return d.judgeValue(p.schema, place, value)
	}
	types := d.types(p.schema, 0)
	if slices.Contains(types, "array") {
		if !p.explode || p.in == "path" || p.in == "header" {
			separator := map[string]string{"spaceDelimited": " ", "pipeDelimited": "|"}[p.style]
			if separator == "" {
				separator = ","
			}
			values = strings.Split(values[0], separator)
		}
		inner, at := d.follow(d.at(p.schema), p.schema)
		list := make([]any, 0, len(values))
		for _, v := range values {
			var itemTypes []string
			if inner["items"] != nil {
				itemTypes = d.types(at+"/items", 0)
			}
			list = append(list, typed(v, itemTypes))
		}
		return d.judgeValue(p.schema, place, list)
	}
	if len(values) > 1 {
		return judgement{unknown: "given twice"}
	}
	return d.judgeValue(p.schema, place, typed(values[0], types))
}

// hasMembers reports whether a parameter is an object whose members are parameters of their own.
func (d *published) hasMembers(p *parameter) bool {
	return p.schema != "" && slices.Contains(d.types(p.schema, 0), "object")
}

// types are the types that the schema allows, as far as it says so at its top.
func (d *published) types(at string, depth int) []string {
	s, at := d.follow(d.at(at), at)
	var all []string
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			name, _ := one.(string)
			all = append(all, name)
		}
		return all
	}
	if depth > 5 {
		return nil
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for i := range list {
			all = append(all, d.types(at+pointer(key, strconv.Itoa(i)), depth+1)...)
		}
	}
	if all == nil && s["items"] != nil {
		return []string{"array"}
	}
	if all == nil && s["properties"] != nil {
		return []string{"object"}
	}
	return all
}

// typed reads a text by the types that a schema allows.
func typed(text string, types []string) any {
	for _, t := range types {
		switch t {
		case "integer", "number":
			var n json.Number
			if json.Unmarshal([]byte(text), &n) == nil && text != "" && text[0] != '"' && text != "null" {
				return n
			}
		case "boolean":
			if text == "true" || text == "false" {
				return text == "true"
			}
		}
	}
	return text
}

func numeric(v any) (float64, bool) {
	switch n := v.(type) {
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case float64:
		return n, true
	}
	return 0, false
}
