package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// A described API is what requests are made of.
type described struct {
	root          map[string]any
	title, origin string
	isSwagger     bool
	operations    []operation
	recorded      map[string][]request // by method and path
}

// An operation is one method at one path.
type operation struct {
	method, path string // with the path of the server
	item, said   map[string]any
}

// methods are the methods for which requests are made. The ones with bodies check most, and come first.
var methods = []string{"POST", "PUT", "PATCH", "GET", "DELETE"}

// read reads a document that has no errors.
func read(text []byte) (*described, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	d := &described{}
	if err := decoder.Decode(&d.root); err != nil {
		return nil, fmt.Errorf("must be an OpenAPI document: %w", err)
	}
	_, d.isSwagger = d.root["swagger"]
	d.title = cmp.Or(textAt(object(d.root["info"]), "title"), "the API")
	base := d.server(d.root)
	if d.isSwagger {
		base = strings.TrimRight(textAt(d.root, "basePath"), "/")
		if host := textAt(d.root, "host"); host != "" {
			scheme := "https"
			if all := list(d.root["schemes"]); len(all) > 0 && !slices.Contains(all, any("https")) {
				scheme = "http"
			}
			d.origin = origin(scheme + "://" + host)
		}
	}
	paths := object(d.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.follow(paths[path])
		at := base
		if _, isOwn := item["servers"]; isOwn {
			at = d.server(item)
		}
		for _, method := range methods {
			if said := object(item[strings.ToLower(method)]); said != nil && strings.HasPrefix(path, "/") {
				d.operations = append(d.operations, operation{method, at + path, item, said})
			}
		}
	}
	slices.SortStableFunc(d.operations,
		func(a, b operation) int { return slices.Index(methods, a.method) - slices.Index(methods, b.method) })
	return d, nil
}

// server returns the path of the first server of the document or of a path, and notes the document's address.
func (d *described) server(of map[string]any) string {
	servers := list(of["servers"])
	if len(servers) == 0 {
		return ""
	}
	first := object(servers[0])
	at := textAt(first, "url")
	for name, v := range object(first["variables"]) {
		at = strings.ReplaceAll(at, "{"+name+"}", textAt(object(v), "default"))
	}
	parsed, err := url.Parse(at)
	if err != nil || strings.Contains(at, "{") {
		return ""
	}
	d.origin = cmp.Or(d.origin, origin(at))
	base := strings.TrimRight(parsed.EscapedPath(), "/")
	if base != "" && base[0] != '/' {
		base = "/" + base
	}
	return base
}

// origin returns the scheme and the host of a URL; "" if it has none.
func origin(of string) string {
	parsed, err := url.Parse(of)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return ""
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String()
}

// follow returns an object itself, or what it refers to; nil if that is not there.
func (d *described) follow(v any) map[string]any {
	for range 16 {
		o := object(v)
		ref, isRef := o["$ref"].(string)
		if !isRef {
			return o
		}
		v = d.at(ref)
	}
	return nil
}

// at returns the value at a reference within the document; nil if there is none.
func (d *described) at(ref string) any {
	pointer, isLocal := strings.CutPrefix(ref, "#/")
	if !isLocal {
		return nil
	}
	var at any = d.root
	for part := range strings.SplitSeq(pointer, "/") {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		at = object(at)[part]
	}
	return at
}

// parameters returns the parameters of an operation: its own, and the path's that it does not declare again.
func (d *described) parameters(o *operation) (all []map[string]any) {
	for _, of := range []map[string]any{o.said, o.item} {
		for _, v := range list(of["parameters"]) {
			p := d.follow(v)
			if p != nil && !slices.ContainsFunc(all, func(other map[string]any) bool {
				return textAt(other, "name") == textAt(p, "name") && textAt(other, "in") == textAt(p, "in")
			}) {
				all = append(all, p)
			}
		}
	}
	return all
}

// schemaOf returns the schema of a parameter.
func (d *described) schemaOf(p map[string]any) map[string]any {
	if s, has := p["schema"]; has {
		return d.follow(s)
	}
	if d.isSwagger {
		return p
	}
	return nil
}

// jsonBody returns the media type of JSON that an operation takes and what is said of it; "" if there is none.
func (d *described) jsonBody(o *operation) (media string, said map[string]any) {
	if d.isSwagger {
		for _, p := range d.parameters(o) {
			if textAt(p, "in") == "body" {
				return "application/json", p
			}
		}
		return "", nil
	}
	content := object(d.follow(o.said["requestBody"])["content"])
	for _, media := range slices.Sorted(maps.Keys(content)) {
		if kind, _, _ := strings.Cut(media, ";"); kind == "application/json" || strings.HasSuffix(kind, "+json") {
			return media, object(content[media])
		}
	}
	return "", nil
}

// needsBody reports whether an operation must be sent a body.
func (d *described) needsBody(o *operation) bool {
	if d.isSwagger {
		return slices.ContainsFunc(d.parameters(o), func(p map[string]any) bool {
			return p["required"] == true && (textAt(p, "in") == "body" || textAt(p, "in") == "formData")
		})
	}
	return d.follow(o.said["requestBody"])["required"] == true
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func textAt(o map[string]any, key string) string {
	s, _ := o[key].(string)
	return s
}
