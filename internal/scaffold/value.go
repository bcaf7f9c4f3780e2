package scaffold

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxDepth bounds how deep values are made, maxParts how many parts a value has.
	maxDepth = 10
	maxParts = 500
)

// A maker makes values that schemas describe. What it cannot know, such as a text for a pattern, it guesses: who asks
// has to try the value.
type maker struct {
	*described
	// examples says that the examples of the document are taken.
	examples bool
	parts    int
}

// value makes a value.
func (m *maker) value(v any, depth int) any {
	s := m.follow(v)
	if m.parts++; depth > maxDepth || m.parts > maxParts || s == nil {
		return "x"
	}
	if m.examples {
		if e, has := s["example"]; has && e != nil {
			return e
		}
		if all := list(s["examples"]); len(all) > 0 {
			return all[0]
		}
	}
	if c, has := s["const"]; has {
		return c
	}
	if all := list(s["enum"]); len(all) > 0 {
		return all[0]
	}
	if d, has := s["default"]; has && d != nil && object(d) == nil {
		return d
	}
	if all := list(s["allOf"]); len(all) > 0 {
		return m.whole(s, all, depth)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, one := range list(s[key]) {
			if textAt(m.follow(one), "type") == "null" {
				continue
			}
			return m.whole(s, []any{one}, depth)
		}
	}
	switch m.typeOf(s) {
	case "object":
		return m.object(s, depth)
	case "array":
		items := []any{}
		for range min(max(1, whole(s["minItems"])), 5) {
			if s["maxItems"] != json.Number("0") {
				items = append(items, m.value(s["items"], depth+1))
			}
		}
		return items
	case "integer", "number":
		return number(s)
	case "boolean":
		return true
	}
	return text(s)
}

// whole makes a value of a schema and of others that must hold too.
func (m *maker) whole(s map[string]any, parts []any, depth int) any {
	rest := maps.Clone(s)
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		delete(rest, key)
	}
	properties := object(s["properties"])
	rest["required"] = slices.DeleteFunc(slices.Clone(list(s["required"])), func(name any) bool {
		key, _ := name.(string)
		_, isHere := properties[key]
		return !isHere // the parts describe it
	})
	made := map[string]any{}
	if m.typeOf(s) == "object" {
		made = m.object(rest, depth+1)
	}
	for _, part := range parts {
		v := m.value(part, depth+1)
		o := object(v)
		if o == nil {
			return v
		}
		maps.Copy(made, o)
	}
	// What the schema itself asks for may be described by the others.
	for _, name := range list(s["required"]) {
		key, _ := name.(string)
		if _, has := made[key]; has {
			continue
		}
		for _, part := range parts {
			if p, has := object(m.follow(part)["properties"])[key]; has {
				made[key] = m.value(p, depth+1)
			}
		}
	}
	return made
}

// object makes an object with the members that must be there.
func (m *maker) object(s map[string]any, depth int) map[string]any {
	made, properties := map[string]any{}, object(s["properties"])
	for _, name := range list(s["required"]) {
		key, _ := name.(string)
		if p, has := properties[key]; has && m.follow(p)["readOnly"] != true {
			made[key] = m.value(p, depth+1)
		} else if !has {
			made[key] = "x"
		}
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if len(made) >= max(1, whole(s["minProperties"])) {
			break
		}
		if _, has := made[key]; !has && m.follow(properties[key])["readOnly"] != true && depth < 3 {
			made[key] = m.value(properties[key], depth+1)
		}
	}
	return made
}

// typeOf returns the type of the values of a schema.
func (m *maker) typeOf(s map[string]any) string {
	for _, one := range append([]any{s["type"]}, list(s["type"])...) {
		if name, is := one.(string); is && name != "null" {
			return name
		}
	}
	switch {
	case s["properties"] != nil || s["additionalProperties"] != nil || s["required"] != nil &&
		list(s["required"]) != nil:
		return "object"
	case s["items"] != nil:
		return "array"
	}
	return "string"
}

// whole is a bound that is a whole number; 0 if there is none.
func whole(v any) int {
	n, _ := v.(json.Number)
	i, err := strconv.Atoi(n.String())
	if err != nil {
		return 0
	}
	return i
}

// number makes a number within its bounds.
func number(s map[string]any) json.Number {
	least, most := math.Inf(-1), math.Inf(1)
	at := func(key string) (float64, bool) {
		n, is := s[key].(json.Number)
		f, err := n.Float64()
		return f, is && err == nil
	}
	if f, has := at("minimum"); has {
		if least = f; s["exclusiveMinimum"] == true {
			least++
		}
	}
	if f, has := at("exclusiveMinimum"); has {
		least = f + 1
	}
	if f, has := at("maximum"); has {
		if most = f; s["exclusiveMaximum"] == true {
			most--
		}
	}
	if f, has := at("exclusiveMaximum"); has {
		most = f - 1
	}
	n := min(max(1, math.Ceil(least)), math.Floor(most))
	if f, has := at("multipleOf"); has && f > 0 {
		n = math.Ceil(n/f) * f
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
}

// formats has a text for each format.
var formats = map[string]string{
	"date": "2026-01-15", "date-time": "2026-01-15T09:30:00Z", "time": "09:30:00Z", "duration": "P1D",
	"email": "jane@example.com",
	"uuid":  "3f2b8c1e-7d4a-4e6b-9c55-0a1b2c3d4e5f", "uri": "https://example.com/x", "url": "https://example.com/x",
	"hostname": "example.com",
	"ipv4":     "192.0.2.1", "ipv6": "2001:db8::1", "byte": "eA==", "ip": "192.0.2.1",
}

// text makes a text.
func text(s map[string]any) string {
	made := "example"
	if of, has := formats[textAt(s, "format")]; has {
		made = of
	}
	if pattern := textAt(s, "pattern"); pattern != "" {
		for _, guess := range guesses {
			if matches(pattern, guess) {
				made = guess
				break
			}
		}
	}
	if least := whole(s["minLength"]); len(made) < least && least <= 1000 {
		made += strings.Repeat("x", least-len(made))
	}
	if most := whole(s["maxLength"]); most > 0 && len(made) > most {
		made = made[:most]
	}
	return made
}

// guesses are texts that patterns often ask for.
var guesses = []string{"example", "EXAMPLE", "EUR", "DE", "1", "1234", "12345678", "1.00", "a1", "2026-01-15",
	"+4912345678", "3f2b8c1e-7d4a-4e6b-9c55-0a1b2c3d4e5f", "https://example.com/x", "#00ff00", "09:30"}

func matches(pattern, s string) bool {
	by, err := regexp.Compile(pattern)
	return err == nil && by.MatchString(s)
}
