package apis

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// A generator makes values of schemas, the same ones for the same seed.
type generator struct {
	*rand.Rand
	d        *published
	optional float64 // how likely a member that is not required is there
}

// merged returns the schema with what its references and allOf say, and one alternative of each choice.
func (g *generator) merged(node any, depth int) map[string]any {
	s, at := g.d.follow(node, "")
	if object, ok := node.(map[string]any); ok && object["$ref"] != nil && len(object) > 1 {
		// OpenAPI 3.1: members beside a reference
		result := clone(s)
		for key, value := range object {
			if key != "$ref" {
				g.include(result, key, value)
			}
		}
		s = result
	}
	result := clone(s)
	if depth > 12 {
		return result
	}
	for _, part := range listOf(s["allOf"]) {
		for key, value := range g.merged(part, depth+1) {
			g.include(result, key, value)
		}
	}
	delete(result, "allOf")
	for _, choice := range []string{"oneOf", "anyOf"} {
		all := listOf(s[choice])
		delete(result, choice)
		if len(all) == 0 {
			continue
		}
		chosen := all[g.IntN(len(all))]
		for key, value := range g.merged(chosen, depth+1) {
			g.include(result, key, value)
		}
		g.name(result, s["discriminator"], chosen)
	}
	if s["discriminator"] != nil && s["oneOf"] == nil && s["anyOf"] == nil && at != "" {
		g.name(result, s["discriminator"], map[string]any{"$ref": "#" + at})
	}
	return result
}

// name sets the value that a discriminator has for the chosen schema, unless the schema says it itself.
func (g *generator) name(s map[string]any, discriminator, chosen any) {
	object, _ := discriminator.(map[string]any)
	property, _ := object["propertyName"].(string)
	schema, _ := chosen.(map[string]any)
	ref, _ := schema["$ref"].(string)
	if property == "" || ref == "" {
		return
	}
	value := ref[strings.LastIndexByte(ref, '/')+1:]
	properties, _ := s["properties"].(map[string]any)
	inner := g.merged(properties[property], 10)
	if inner["enum"] != nil || inner["const"] != nil {
		return
	}
	mapping, _ := object["mapping"].(map[string]any)
	for _, key := range sortedKeys(mapping) {
		if target, _ := mapping[key].(string); target == ref || target == value {
			value = key
			break
		}
	}
	properties = clone(properties)
	properties[property] = map[string]any{"const": value}
	s["properties"] = properties
}

// include adds what one more schema says.
func (g *generator) include(s map[string]any, key string, value any) {
	switch key {
	case "properties":
		all := clone(asObject(s[key]))
		for name, p := range asObject(value) {
			if all[name] == nil {
				all[name] = p
			} else {
				all[name] = map[string]any{"allOf": []any{all[name], p}}
			}
		}
		s[key] = all
	case "required":
		s[key] = append(slices.Clone(listOf(s[key])), listOf(value)...)
	case "type":
		both := typeNames(s[key])
		if len(both) == 0 {
			s[key] = value
			return
		}
		var common []any
		for _, t := range typeNames(value) {
			if slices.Contains(both, t) {
				common = append(common, t)
			}
		}
		if len(common) > 0 {
			s[key] = common
		}
	default:
		s[key] = value
	}
}

func typeNames(node any) []string {
	if one, ok := node.(string); ok {
		return []string{one}
	}
	var all []string
	for _, t := range listOf(node) {
		name, _ := t.(string)
		all = append(all, name)
	}
	return all
}

func listOf(node any) []any {
	list, _ := node.([]any)
	return list
}

func asObject(node any) map[string]any {
	object, _ := node.(map[string]any)
	return object
}

func clone(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// value makes a value that is likely to be right.
func (g *generator) value(node any, depth int) any {
	if depth > 30 {
		return nil // a schema that requires itself has no value
	}
	s := g.merged(node, 0)
	if example, ok := s["example"]; ok && g.IntN(4) == 0 {
		return example
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if enum := listOf(s["enum"]); len(enum) > 0 {
		return enum[g.IntN(len(enum))]
	}
	types := slices.DeleteFunc(typeNames(s["type"]), func(t string) bool { return t == "null" && g.IntN(6) > 0 })
	kind := ""
	if len(types) > 0 {
		kind = types[g.IntN(len(types))]
	}
	if kind == "" {
		switch {
		case s["properties"] != nil || s["required"] != nil || s["additionalProperties"] != nil:
			kind = "object"
		case s["items"] != nil || s["prefixItems"] != nil:
			kind = "array"
		case s["minimum"] != nil || s["maximum"] != nil:
			kind = "number"
		case len(typeNames(s["type"])) > 0:
			kind = "null"
		default:
			kind = "string"
		}
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "integer", "number":
		return g.number(s, kind == "integer")
	case "boolean":
		return g.IntN(2) == 0
	case "null":
		return nil
	}
	return g.text(s)
}

func (g *generator) object(s map[string]any, depth int) any {
	result := map[string]any{}
	required := map[string]bool{}
	for _, name := range listOf(s["required"]) {
		text, _ := name.(string)
		required[text] = true
	}
	properties := asObject(s["properties"])
	for _, name := range sortedKeys(properties) {
		inner, _ := g.d.follow(properties[name], "")
		if inner["readOnly"] == true && !required[name] {
			continue
		}
		if required[name] || depth < 5 && g.Float64() < g.optional/float64(1+depth) {
			result[name] = g.value(properties[name], depth+1)
		}
		delete(required, name)
	}
	for _, name := range sortedKeys(required) {
		result[name] = g.value(s["additionalProperties"], depth+1)
	}
	least := whole(s["minProperties"], 0)
	for _, name := range sortedKeys(properties) {
		if _, ok := result[name]; !ok && len(result) < least {
			result[name] = g.value(properties[name], depth+1)
		}
	}
	if more := s["additionalProperties"]; more != nil && more != false &&
		(len(result) < least || depth < 4 && g.Float64() < g.optional) {
		for i := range max(1, least-len(result)) {
			result["key"+strconv.Itoa(i)] = g.value(more, depth+1)
		}
	}
	return result
}

func (g *generator) array(s map[string]any, depth int) any {
	least := whole(s["minItems"], 0)
	count := least
	if depth < 4 && count == 0 && g.Float64() < max(g.optional, 0.3) {
		count = 1 + g.IntN(2)
	}
	count = min(count, whole(s["maxItems"], 50), 50)
	result := []any{}
	first := listOf(s["prefixItems"])
	for i := range count {
		item := s["items"]
		if i < len(first) {
			item = first[i]
		}
		v := g.value(item, depth+1)
		for try := 0; s["uniqueItems"] == true && try < 20 &&
			slices.ContainsFunc(result, func(o any) bool { return fmt.Sprint(o) == fmt.Sprint(v) }); try++ {
			v = g.value(item, depth+1)
		}
		result = append(result, v)
	}
	return result
}

func whole(node any, otherwise int) int {
	if f, ok := numeric(node); ok {
		return int(f)
	}
	return otherwise
}

func (g *generator) number(s map[string]any, isWhole bool) any {
	low, high := math.Inf(-1), math.Inf(1)
	step := 1.0
	for _, key := range []string{"minimum", "exclusiveMinimum"} {
		if f, ok := numeric(s[key]); ok {
			if key[0] == 'e' {
				f += 1
			}
			low = max(low, f)
		}
	}
	for _, key := range []string{"maximum", "exclusiveMaximum"} {
		if f, ok := numeric(s[key]); ok {
			if key[0] == 'e' {
				f -= 1
			}
			high = min(high, f)
		}
	}
	if f, ok := numeric(s["multipleOf"]); ok && f > 0 {
		step = f
	}
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		low, high = 1, 100
	case math.IsInf(low, -1):
		low = high - 100
	case math.IsInf(high, 1):
		high = low + 100
	}
	if low > high {
		low, high = high-1, low+1
		return json.Number(strconv.FormatFloat((low+high)/2, 'f', -1, 64))
	}
	f := math.Ceil(low/step) * step
	if f < high {
		f += step * float64(g.IntN(int(min((high-f)/step, 50))+1))
	}
	if isWhole {
		f = math.Trunc(f)
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}

var formatted = map[string][]string{
	"date": {"2024-02-29"}, "date-time": {"2024-01-15T08:30:00Z"}, "time": {"08:30:00Z"}, "duration": {"P1D"},
	"email": {"ann@example.com"}, "idn-email": {"ann@example.com"},
	"uuid":  {"5f0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f21", "6b0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f22"},
	"uuid4": {"5f0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f21"},
	"uri":   {"https://example.com/a"}, "url": {"https://example.com/a"}, "uri-reference": {"/a"},
	"uri-template": {"/a/{b}"}, "iri": {"https://example.com/a"},
	"ipv4": {"192.0.2.1"}, "ipv6": {"2001:db8::1"}, "ip": {"192.0.2.1"}, "cidr": {"192.0.2.0/24"},
	"hostname": {"example.com"}, "byte": {"YWJj"}, "binary": {"abc"}, "regex": {"^a$"},
	"json-pointer": {"/a"}, "unix-time": {"1700000000"}, "decimal": {"1.5"}, "snowflake": {"123456789"},
	"uint64": {"5"}, "int64": {"5"},
}

func (g *generator) text(s map[string]any) any {
	if pattern, ok := s["pattern"].(string); ok {
		if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			var b strings.Builder
			g.matching(parsed, &b)
			text := b.String()
			for len(text) < whole(s["minLength"], 0) && len(text) < 100 {
				b.Reset()
				g.matching(parsed, &b)
				if b.Len() == 0 || strings.HasPrefix(pattern, "^") {
					break
				}
				text += b.String()
			}
			return text
		}
	}
	format, _ := s["format"].(string)
	if values := formatted[format]; values != nil {
		return values[g.IntN(len(values))]
	}
	least := whole(s["minLength"], 0)
	length := max(least, min(least+1+g.IntN(8), whole(s["maxLength"], 1<<20)))
	var b strings.Builder
	for range length {
		b.WriteByte(byte('a' + g.IntN(26)))
	}
	return b.String()
}

// matching writes a text that the expression matches.
func (g *generator) matching(re *syntax.Regexp, b *strings.Builder) {
	repeat := func(low, high int) {
		if high < 0 || high > low+4 {
			high = low + 4
		}
		for range low + g.IntN(high-low+1) {
			g.matching(re.Sub[0], b)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		for range 20 {
			i := 2 * g.IntN(len(re.Rune)/2)
			low, high := re.Rune[i], min(re.Rune[i+1], re.Rune[i]+40)
			r := low + rune(g.IntN(int(high-low)+1))
			if r > ' ' && r < 127 {
				b.WriteRune(r)
				return
			}
		}
		b.WriteByte('a')
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(byte('a' + g.IntN(26)))
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, re.Max)
	case syntax.OpCapture:
		g.matching(re.Sub[0], b)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			g.matching(sub, b)
		}
	case syntax.OpAlternate:
		g.matching(re.Sub[g.IntN(len(re.Sub))], b)
	}
}

// right makes requests of the operation that are right, as the judge has it.
func (g *generator) right(o *operation) []*sample {
	var all []*sample
	seen := map[string]bool{}
	for try := range 24 {
		g.optional = []float64{0, 0.9, 0.5}[try%3]
		s := g.sample(o, try)
		if s == nil {
			return nil
		}
		key := fmt.Sprint(s.path, s.query, s.header, s.cookie, s.mediaType, string(s.body))
		if j := g.d.judge(s); !j.isRight || j.unknown != "" || seen[key] {
			continue
		}
		seen[key] = true
		if all = append(all, s); len(all) == 4 {
			break
		}
	}
	return all
}

func (g *generator) sample(o *operation, try int) *sample {
	s := &sample{operation: o, path: map[string]string{}}
	for _, p := range o.parameters {
		if !p.required && p.in != "path" && g.Float64() >= g.optional {
			continue
		}
		var v any = "value"
		if p.schema != "" {
			v = g.value(g.d.at(p.schema), 2)
		}
		if _, isObject := v.(map[string]any); isObject && !p.isJSON || v == nil {
			continue
		}
		texts, ok := p.write(v)
		if !ok {
			continue
		}
		if p.in == "path" {
			s.path[p.name] = texts[0]
			continue
		}
		s.set(p, texts)
	}
	if o.body == nil || !o.body.required && g.optional == 0 {
		return s
	}
	media := make([]string, 0, 4)
	for _, m := range o.body.media {
		if _, ok := o.body.schemas[m]; ok {
			media = append(media, m)
		}
	}
	if len(media) == 0 {
		if o.body.required {
			return nil // no JSON
		}
		return s
	}
	s.mediaType = media[try%len(media)]
	var v any = map[string]any{}
	if at := o.body.schemas[s.mediaType]; at != "" {
		v = g.value(g.d.at(at), 0)
	}
	s.body = encoded(v)
	return s
}

func encoded(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// set sets the texts of a parameter.
func (s *sample) set(p *parameter, texts []string) {
	to := map[string]*[][2]string{"query": &s.query, "header": &s.header, "cookie": &s.cookie}[p.in]
	if to == nil {
		return
	}
	*to = slices.DeleteFunc(slices.Clone(*to), func(pair [2]string) bool { return pair[0] == p.name })
	for _, text := range texts {
		*to = append(*to, [2]string{p.name, text})
	}
}

// write returns the texts of a value; it fails if there is no form that all servers share.
func (p *parameter) write(v any) ([]string, bool) {
	if p.isJSON {
		return []string{string(encoded(v))}, true
	}
	list, isList := v.([]any)
	if !isList {
		text := plainText(v)
		return []string{text}, text != "" && isPlain(p, text)
	}
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text := plainText(item)
		if text == "" || strings.ContainsAny(text, ", |") || !isPlain(p, text) {
			return nil, false
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, false
	}
	if p.explode && p.in == "query" {
		return texts, true
	}
	separator := map[string]string{"spaceDelimited": " ", "pipeDelimited": "|"}[p.style]
	if separator == "" {
		separator = ","
	}
	return []string{strings.Join(texts, separator)}, true
}

func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number, bool:
		return fmt.Sprint(v)
	}
	return ""
}

// isPlain reports whether all servers read the text alike at the place of the parameter.
func isPlain(p *parameter, text string) bool {
	for _, r := range text {
		if r < ' ' || r > '~' || p.in == "path" &&
			!strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@", r) ||
			p.in == "cookie" && strings.ContainsRune(`;," \`, r) {
			return false
		}
	}
	return p.in != "path" || strings.Trim(text, ".") != ""
}

// changes are requests with one thing changed in a right one, so many of all that there are.
func (g *generator) changes(base *sample, most int) []*sample {
	all := g.allChanges(base)
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	changed := make([]*sample, 0, most)
	for _, c := range all[:min(most, len(all))] {
		s := *base
		s.path = maps.Clone(base.path)
		s.change = c.what
		c.make(&s)
		changed = append(changed, &s)
	}
	return changed
}

// A change is one thing that can be changed in a request.
type change struct {
	what string
	make func(s *sample)
}

func (g *generator) allChanges(base *sample) []change {
	var all []change
	add := func(what string, edit func(s *sample)) { all = append(all, change{what, edit}) }
	for _, p := range base.operation.parameters {
		texts := base.get(p)
		if len(texts) == 0 {
			continue
		}
		if p.in != "path" {
			add("without "+p.in+"."+p.name, func(s *sample) { s.set(p, nil) })
		}
		types := g.d.types(p.schema, 0)
		wrong := []string{"zz~9", strings.Repeat("y", 300), "99999999999", "-7", "true"}
		if !slices.Contains(types, "integer") && !slices.Contains(types, "number") {
			wrong = append(wrong, "1.5", texts[0]+"~x")
		}
		for _, text := range wrong {
			if p.in == "path" {
				add(p.in+"."+p.name+"="+text, func(s *sample) { s.path[p.name] = text })
			} else {
				add(p.in+"."+p.name+"="+text, func(s *sample) { s.set(p, []string{text}) })
			}
		}
	}
	body := base.operation.body
	if body == nil || base.body == nil {
		return all
	}
	add("without a body", func(s *sample) { s.body, s.mediaType = nil, "" })
	if !slices.ContainsFunc(body.media, func(m string) bool { return strings.ContainsRune(m, '*') }) &&
		!slices.Contains(body.media, "text/csv") {
		add("text/csv", func(s *sample) { s.mediaType = "text/csv" })
	}
	d := json.NewDecoder(strings.NewReader(string(base.body)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	for _, e := range edits(v, "body") {
		add(e.what, func(s *sample) { s.body = encoded(e.value) })
	}
	return all
}

func (s *sample) get(p *parameter) []string {
	if p.in == "path" {
		return []string{s.path[p.name]}
	}
	var all []string
	for _, pair := range map[string][][2]string{"query": s.query, "header": s.header, "cookie": s.cookie}[p.in] {
		if pair[0] == p.name {
			all = append(all, pair[1])
		}
	}
	return all
}

// An edited is a value with one thing changed in it.
type edited struct {
	what  string
	value any
}

func edits(v any, at string) []edited {
	var all []edited
	add := func(how string, value any) { all = append(all, edited{at + " " + how, value}) }
	within := func(key string, inner any, put func(value any) any) {
		for _, e := range edits(inner, at+"."+key) {
			all = append(all, edited{e.what, put(e.value)})
		}
	}
	if v != nil {
		add("is null", nil)
	}
	switch v := v.(type) {
	case map[string]any:
		add("is a text", "text")
		add("is a list", []any{})
		add("has another member", with(v, "zzUnknown", "x"))
		add("is empty", map[string]any{})
		for _, key := range sortedKeys(v) {
			less := clone(v)
			delete(less, key)
			all = append(all, edited{at + "." + key + " is left out", less})
			within(key, v[key], func(value any) any { return with(v, key, value) })
		}
	case []any:
		add("is a text", "text")
		add("is an object", map[string]any{"zzUnknown": 1})
		add("is empty", []any{})
		if len(v) > 0 {
			add("has an item twice", append(slices.Clone(v), v[0]))
			many := slices.Clone(v)
			for range 120 {
				many = append(many, v[0])
			}
			add("has many items", many)
			within("0", v[0], func(value any) any {
				list := slices.Clone(v)
				list[0] = value
				return list
			})
		}
	case string:
		add("is a number", json.Number("12345"))
		add("is a list", []any{v})
		add("is an object", map[string]any{"zzUnknown": 1})
		add("is empty", "")
		add("is another text", v+"~x")
		add("is long", strings.Repeat("y", 5000))
	case json.Number:
		add("is a text", "x"+v.String())
		add("is a boolean", true)
		add("has a fraction", json.Number("0.5"))
		add("is large", json.Number("99999999999"))
		add("is small", json.Number("-99999999999"))
	case bool:
		add("is a text", "yes")
		add("is a number", json.Number("1"))
	}
	return all
}

func with(m map[string]any, key string, value any) map[string]any {
	result := clone(m)
	result[key] = value
	return result
}
