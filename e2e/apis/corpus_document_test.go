package apis

import (
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A published is a document that somebody published, as OpenAPI 3. Its schemas are changed in place to what JSON Schema
// calls them, for requests; this reads documents without the gateway's code.
type published struct {
	tree      map[string]any
	isOld     bool // OpenAPI 3.0
	compiler  *jsonschema.Compiler
	compiled  map[string]*jsonschema.Schema
	unread    map[string]string // pointers of schemas that cannot be compiled, with the reason
	operation []*operation
	// hasDiscriminators is set where the value of a discriminator decides which alternative counts, which JSON Schema
	// does not know.
	hasDiscriminators bool
}

// An operation is a path with a method.
type operation struct {
	path, method string
	base         string // of the first server
	parameters   []*parameter
	body         *requestBody
	credentials  []credential
}

func (o *operation) String() string { return o.method + " " + o.path }

type parameter struct {
	name, in, style string
	explode         bool
	required        bool
	schema          string // a pointer; empty if there is none
	isJSON          bool   // has content
}

type requestBody struct {
	required bool
	media    []string          // those that are declared
	schemas  map[string]string // by media type, if it is JSON
}

type credential struct{ in, name, value string }

const documentURL = "http://corpus.example/document"

func readPublished(tree map[string]any, hasDiscriminators bool) *published {
	d := &published{tree: tree, hasDiscriminators: hasDiscriminators, compiled: map[string]*jsonschema.Schema{},
		unread: map[string]string{}, compiler: jsonschema.NewCompiler()}
	version, _ := tree["openapi"].(string)
	d.isOld = strings.HasPrefix(version, "3.0")
	d.adaptAll(tree)
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	d.compiler.UseRegexpEngine(tolerant)
	for name, holds := range moreFormats {
		d.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: holds})
	}
	if err := d.compiler.AddResource(documentURL,
		map[string]any{"components": tree["components"], "paths": tree["paths"]}); err != nil {
		panic(err)
	}
	paths, _ := tree["paths"].(map[string]any)
	for _, path := range sortedKeys(paths) {
		at := pointer("paths", path)
		item, at := d.follow(paths[path], at)
		for _, method := range []string{"get", "put", "post", "delete", "patch"} {
			// A path with a fragment cannot be asked for.
			if _, ok := item[method].(map[string]any); ok && strings.HasPrefix(path, "/") &&
				!strings.ContainsRune(path, '#') {
				d.operation = append(d.operation, d.readOperation(path, method, item, at))
			}
		}
	}
	return d
}

// moreFormats are the formats of OpenAPI, and others that some documents have.
var moreFormats = map[string]func(any) error{
	"int32": wholeNumber(1 << 31),
	"int64": wholeNumber(1 << 63),
	"uuid4": func(v any) error {
		if text, ok := v.(string); ok && !uuid4.MatchString(text) {
			return fmt.Errorf("no UUID of version 4")
		}
		return nil
	},
	"idn-hostname": func(v any) error {
		if text, ok := v.(string); ok && !idnHostname.MatchString(text) {
			return fmt.Errorf("no name")
		}
		return nil
	},
	"idn-email": func(v any) error {
		text, ok := v.(string)
		if address, err := mail.ParseAddress(text); ok && (err != nil || address.Address != text) {
			return fmt.Errorf("no address")
		}
		return nil
	},
}

var idnHostname = regexp.MustCompile(`^[\pL\pM\pN]([\pL\pM\pN-]*[\pL\pM\pN])?(\.[\pL\pM\pN]([\pL\pM\pN-]*[\pL\pM\pN])?)*$`)

var uuid4 = regexp.MustCompile(`^(?i)[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func wholeNumber(limit float64) func(any) error {
	return func(v any) error {
		if f, ok := numeric(v); ok && (f < -limit || f >= limit) {
			return fmt.Errorf("beyond %g", limit)
		}
		return nil
	}
}

// A tolerant pattern that Go cannot compile matches everything; then the two validators differ, which does not count.
func tolerant(text string) (jsonschema.Regexp, error) {
	compiled, err := regexp.Compile(text)
	if err != nil {
		return anything(text), nil
	}
	return compiled, nil
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// pointer makes a JSON pointer.
func pointer(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return b.String()
}

// split returns the parts of a pointer or of the fragment of a reference.
func split(at string) []string {
	if at == "" {
		return nil
	}
	parts := strings.Split(at[1:], "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

func (d *published) at(place string) any {
	var node any = d.tree
	for _, part := range split(place) {
		switch n := node.(type) {
		case map[string]any:
			node = n[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}

// follow follows references, and returns the object with the pointer to it.
func (d *published) follow(node any, at string) (map[string]any, string) {
	for range 20 {
		object, _ := node.(map[string]any)
		ref, _ := object["$ref"].(string)
		if !strings.HasPrefix(ref, "#/") {
			return object, at
		}
		at = pointer(split(ref[1:])...)
		node = d.at(at)
	}
	return nil, at
}

func (d *published) readOperation(path, method string, item map[string]any, at string) *operation {
	o := &operation{path: path, method: method}
	declared, _ := item[method].(map[string]any)
	here := at + pointer(method)
	for _, holder := range []map[string]any{declared, item, d.tree} {
		servers, _ := holder["servers"].([]any)
		if len(servers) > 0 {
			o.base = basePath(servers[0])
			break
		}
	}
	byName := map[string]*parameter{}
	var order []string
	for _, from := range []struct {
		list any
		at   string
	}{{item["parameters"], at + "/parameters"}, {declared["parameters"], here + "/parameters"}} {
		list, _ := from.list.([]any)
		for i, node := range list {
			p := d.readParameter(node, from.at+pointer(strconv.Itoa(i)))
			if p == nil {
				continue
			}
			key := p.in + " " + p.name
			if byName[key] == nil {
				order = append(order, key)
			}
			byName[key] = p
		}
	}
	for _, key := range order {
		o.parameters = append(o.parameters, byName[key])
	}
	if body, where := d.follow(declared["requestBody"], here+"/requestBody"); body != nil {
		o.body = &requestBody{schemas: map[string]string{}}
		o.body.required, _ = body["required"].(bool)
		content, _ := body["content"].(map[string]any)
		o.body.media = sortedKeys(content)
		for _, media := range o.body.media {
			kind, _, _ := strings.Cut(media, ";")
			if kind != "application/json" && !strings.HasSuffix(kind, "+json") {
				continue
			}
			place := ""
			if object, _ := content[media].(map[string]any); object["schema"] != nil {
				place = where + pointer("content", media, "schema")
			}
			o.body.schemas[media] = place
		}
	}
	o.credentials = d.credentials(declared)
	return o
}

// ofHTTP are headers that mean the same for every API, preconditions among them, whatever their schemas say.
var ofHTTP = regexp.MustCompile(`^(?i)(accept|content-type|authorization|if-.*|range)$`)

func basePath(server any) string {
	object, _ := server.(map[string]any)
	text, _ := object["url"].(string)
	variables, _ := object["variables"].(map[string]any)
	for name, v := range variables {
		variable, _ := v.(map[string]any)
		value := fmt.Sprint(variable["default"])
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	base := strings.TrimRight(parsed.EscapedPath(), "/")
	if base != "" && base[0] != '/' {
		base = "/" + base
	}
	return base
}

func (d *published) readParameter(node any, at string) *parameter {
	object, at := d.follow(node, at)
	p := &parameter{}
	p.name, _ = object["name"].(string)
	p.in, _ = object["in"].(string)
	p.required, _ = object["required"].(bool)
	p.style, _ = object["style"].(string)
	if p.style == "" {
		p.style = map[string]string{"query": "form", "cookie": "form"}[p.in]
		if p.style == "" {
			p.style = "simple"
		}
	}
	p.explode = p.style == "form"
	if explode, ok := object["explode"].(bool); ok {
		p.explode = explode
	}
	switch {
	case p.name == "" || p.in == "header" && ofHTTP.MatchString(p.name):
		return nil
	case object["schema"] != nil:
		p.schema = at + "/schema"
	case object["content"] != nil:
		content, _ := object["content"].(map[string]any)
		for media := range content {
			if inner, _ := content[media].(map[string]any); inner["schema"] != nil {
				p.schema, p.isJSON = at+pointer("content", media, "schema"), true
			}
		}
	}
	return p
}

// credentials are from the first alternative that the operation takes.
func (d *published) credentials(declared map[string]any) []credential {
	security, ok := declared["security"].([]any)
	if !ok {
		security, _ = d.tree["security"].([]any)
	}
	if len(security) == 0 {
		return nil
	}
	first, _ := security[0].(map[string]any)
	var all []credential
	for _, name := range sortedKeys(first) {
		scheme, _ := d.follow(d.at(pointer("components", "securitySchemes", name)), "")
		kind, _ := scheme["type"].(string)
		in, _ := scheme["in"].(string)
		key, _ := scheme["name"].(string)
		how, _ := scheme["scheme"].(string)
		switch {
		case kind == "apiKey":
			all = append(all, credential{in, key, "key123"})
		case kind == "http" && strings.EqualFold(how, "basic"):
			all = append(all, credential{"header", "Authorization", "Basic dTpw"})
		case kind != "":
			all = append(all, credential{"header", "Authorization", "Bearer token123"})
		}
	}
	return all
}

// adaptAll adapts the schemas below a node that is none itself.
func (d *published) adaptAll(node any) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			d.adaptAll(item)
		}
	case map[string]any:
		for key, value := range n {
			switch key {
			case "schema":
				d.adapt(value)
			case "schemas":
				schemas, _ := value.(map[string]any)
				for _, s := range schemas {
					d.adapt(s)
				}
			case "example", "examples":
			default:
				d.adaptAll(value)
			}
		}
	}
}

// Members of a schema that have schemas: by name, in a list, or alone.
var (
	namedSchemas  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	listedSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	singleSchemas = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties"}
)

// adapt makes JSON Schema 2020-12 of a schema of OpenAPI, in place, as it is for requests.
func (d *published) adapt(node any) {
	s, ok := node.(map[string]any)
	if !ok {
		return
	}
	if _, ok := s["$ref"].(string); ok && d.isOld {
		for key := range s {
			if key != "$ref" {
				delete(s, key)
			}
		}
		return
	}
	for _, key := range namedSchemas {
		members, _ := s[key].(map[string]any)
		for _, m := range members {
			d.adapt(m)
		}
	}
	for _, key := range listedSchemas {
		list, _ := s[key].([]any)
		for _, m := range list {
			d.adapt(m)
		}
	}
	for _, key := range singleSchemas {
		d.adapt(s[key])
	}
	if d.hasDiscriminators {
		d.discriminate(s)
	}
	delete(s, "id")
	delete(s, "$id")
	delete(s, "$schema")
	if d.isOld {
		for bound, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
			if is, ok := s[exclusive].(bool); ok {
				delete(s, exclusive)
				if is && s[bound] != nil {
					s[exclusive] = s[bound]
					delete(s, bound)
				}
			}
		}
		if kind, ok := s["type"].(string); ok && s["nullable"] == true {
			s["type"] = []any{kind, "null"}
		}
	}
	if s["type"] == "file" {
		delete(s, "type")
	}
	required, ok := s["required"].([]any)
	if !ok {
		delete(s, "required")
		return
	}
	properties, _ := s["properties"].(map[string]any)
	s["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		key, _ := name.(string)
		p, _ := d.follow(properties[key], "")
		return p["readOnly"] == true
	})
}

// discriminate makes the value of a discriminator choose the alternative.
func (d *published) discriminate(s map[string]any) {
	discriminator := asObject(s["discriminator"])
	property, _ := discriminator["propertyName"].(string)
	mapping := asObject(discriminator["mapping"])
	var known []any
	for _, key := range sortedKeys(mapping) {
		target, _ := mapping[key].(string)
		known = append(known, key, target[strings.LastIndexByte(target, '/')+1:])
	}
	for _, alternative := range append(slices.Clone(listOf(s["oneOf"])), listOf(s["anyOf"])...) {
		ref, _ := asObject(alternative)["$ref"].(string)
		if property == "" || ref == "" {
			continue
		}
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		var values []any
		for _, key := range sortedKeys(mapping) {
			if mapping[key] == ref || mapping[key] == name {
				values = append(values, key)
			}
		}
		if len(values) == 0 {
			values = []any{name}
		}
		known = append(known, values...)
		s["allOf"] = append(slices.Clone(listOf(s["allOf"])), map[string]any{
			"if": map[string]any{"required": []any{property},
				"properties": map[string]any{property: map[string]any{"enum": values}}},
			"then": map[string]any{"$ref": ref},
		})
	}
	if len(mapping) > 0 && property != "" {
		s["allOf"] = append(slices.Clone(listOf(s["allOf"])),
			map[string]any{"properties": map[string]any{property: map[string]any{"enum": known}}})
	}
}

// schema compiles the schema at the pointer; nil if that cannot be.
func (d *published) schema(at string) *jsonschema.Schema {
	if s, ok := d.compiled[at]; ok {
		return s
	}
	escaped := make([]string, 0, 8)
	for _, part := range strings.Split(at, "/") {
		escaped = append(escaped, url.PathEscape(part))
	}
	s, err := d.compiler.Compile(documentURL + "#" + strings.Join(escaped, "/"))
	if err != nil {
		d.unread[at] = err.Error()
	}
	d.compiled[at] = s
	return s
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
