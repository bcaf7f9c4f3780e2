package apis

import (
	"bytes"
	"maps"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The rules by which the gateway refuses, on purpose, what JSON Schema has for right. Each is a row of
// docs/differences.md.
const (
	byDiscriminator = "the value of a discriminator"
	byResult        = "the result of a patch"
)

// ruleFor returns the rule by which a right request is refused; empty if there is none.
func (c *corpusRun) ruleFor(d *published, s *sample) string {
	switch {
	case !c.strict().judge(s).isRight:
		return byDiscriminator
	case s.operation.method == "patch" && d.isWrongResult(s):
		return byResult
	}
	return ""
}

// resultSchema returns the schema of what a patch makes: of the PUT of the same path, else of the POST to the
// collection.
func (d *published) resultSchema(o *operation) string {
	for _, of := range []string{"put " + o.path, "post " + o.path[:strings.LastIndexByte(o.path, '/')]} {
		for _, other := range d.operation {
			if other.String() != of || other.body == nil {
				continue
			}
			for _, media := range append([]string{"application/json"}, other.body.media...) {
				if at := other.body.schemas[media]; at != "" {
					return at
				}
			}
		}
	}
	return ""
}

// stored returns what the backend has when it is asked for an object: for a patch one that is right, with as many
// members as can be made.
func (c *corpusRun) stored(g *generator, o *operation) any {
	if o.method != "patch" {
		return map[string]any{}
	}
	if made, found := c.objects[o.path]; found {
		return made
	}
	var best any = map[string]any{}
	if at := g.d.resultSchema(o); at != "" {
		for try := range 40 {
			g.optional = 1 - float64(try)/40
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded(g.value(g.d.at(at), 0))))
			if object, isObject := v.(map[string]any); err != nil || !isObject || len(object) <= len(asObject(best)) {
				continue
			}
			if g.d.judgeValue(at, "body", v).isRight && c.strict().judgeValue(at, "body", v).isRight {
				best = v
			}
		}
	}
	c.objects[o.path] = best
	return best
}

// shown returns how an answer to GET shows an object: within the one member that the document declares to have its
// members.
func (d *published) shown(o *operation, object any) any {
	own := d.bodyMembers(o)
	item, _ := d.follow(d.at(pointer("paths", o.path)), "")
	get, _ := d.follow(item["get"], "")
	responses, _ := get["responses"].(map[string]any)
	answer, _ := d.follow(responses["200"], "")
	contents, _ := answer["content"].(map[string]any)
	content, _ := contents["application/json"].(map[string]any)
	outer := d.members(content["schema"], 0)
	found := ""
	for name, inner := range outer {
		if _, isOwn := own[name]; isOwn {
			return object
		}
		has := d.members(inner, 0)
		shared := 0
		for member := range own {
			if _, is := has[member]; is {
				shared++
			}
		}
		if shared > 0 && 2*shared >= len(own) {
			if found != "" {
				return object
			}
			found = name
		}
	}
	if found == "" {
		return object
	}
	return map[string]any{found: object}
}

// bodyMembers returns the members that an object has by the first body that says some: of PUT, of PATCH, or of the POST
// to the collection.
func (d *published) bodyMembers(o *operation) map[string]any {
	collection := o.path[:strings.LastIndexByte(o.path, '/')]
	for _, of := range []string{"put " + o.path, "patch " + o.path, "post " + collection} {
		for _, other := range d.operation {
			if other.String() != of || other.body == nil {
				continue
			}
			for _, media := range append([]string{"application/json"}, other.body.media...) {
				if all := d.members(d.at(other.body.schemas[media]), 0); len(all) > 0 {
					return all
				}
			}
		}
	}
	return nil
}

// members returns the properties of a schema, of all that it consists of and of its alternatives.
func (d *published) members(schema any, depth int) map[string]any {
	all := map[string]any{}
	s, _ := d.follow(schema, "")
	if s == nil || depth > 8 {
		return all
	}
	properties, _ := s["properties"].(map[string]any)
	maps.Copy(all, properties)
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := s[key].([]any)
		for _, part := range parts {
			maps.Copy(all, d.members(part, depth+1))
		}
	}
	return all
}

// isWrongResult reports whether what a patch makes of the object that the backend has is wrong. In patches that are not
// called merge patches null may be a value, or remove a member.
func (d *published) isWrongResult(s *sample) bool {
	at := d.resultSchema(s.operation)
	patch, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.body))
	if _, isObject := patch.(map[string]any); at == "" || err != nil || !isObject {
		return false
	}
	isRight := func(nullRemoves bool) bool {
		return d.judgeValue(at, "body", merged(s.object, patch, nullRemoves)).isRight
	}
	return !isRight(true) && (s.mediaType == "application/merge-patch+json" || !isRight(false))
}

// merged returns what a merge patch makes of a value.
func merged(v, patch any, nullRemoves bool) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	result := clone(asObject(v))
	for key, change := range changes {
		if change == nil && nullRemoves {
			delete(result, key)
		} else {
			result[key] = merged(result[key], change, nullRemoves)
		}
	}
	return result
}

// isMended reports whether a wrong request reached the backend as a right one: with the default of a member that it
// left out, or without a member that is readOnly.
func (d *published) isMended(s *sample, wrong judgement, got []byte) bool {
	if s.body == nil || !strings.HasPrefix(wrong.place, "body") {
		return false
	}
	forwarded := *s
	forwarded.body = got
	if j := d.judge(&forwarded); j.isRight && j.unknown == "" {
		return true
	}
	names, place := wrong.missing, split(strings.TrimPrefix(wrong.place, "body"))
	if names == nil && len(place) > 0 {
		names, place = place[len(place)-1:], place[:len(place)-1]
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(got))
	for _, part := range place {
		switch around := v.(type) {
		case map[string]any:
			v = around[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(around) {
				v = around[i]
			}
		}
	}
	left, isObject := v.(map[string]any)
	readOnly := d.readOnly(s.operation.body.schemas[s.mediaType], place, 0)
	for _, name := range names {
		if _, isThere := left[name]; isThere || !readOnly[name] {
			return false
		}
	}
	return err == nil && isObject && len(names) > 0
}

// readOnly returns the members of the object at a place that any of its schemas calls readOnly.
func (d *published) readOnly(at string, place []string, depth int) map[string]bool {
	names := map[string]bool{}
	s, at := d.follow(d.at(at), at)
	if s == nil || depth > 20 {
		return names
	}
	within := func(below string, place []string) {
		for name := range d.readOnly(at+below, place, depth+1) {
			names[name] = true
		}
	}
	properties := asObject(s["properties"])
	switch {
	case len(place) == 0:
		for name, property := range properties {
			if inner, _ := d.follow(property, ""); inner["readOnly"] == true {
				names[name] = true
			}
		}
	case properties[place[0]] != nil:
		within(pointer("properties", place[0]), place[1:])
	case s["items"] != nil:
		within("/items", place[1:])
	}
	for _, key := range listedSchemas {
		for i := range listOf(s[key]) {
			within(pointer(key, strconv.Itoa(i)), place)
		}
	}
	return names
}
