package defaults_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/schema"
)

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"spec.replicas":                           "",
		"metadata.labels[example.com/tier]":       "",
		"metadata.labels['a]b\\'c'].x":            "",
		"spec.containers[*].imagePullPolicy":      "",
		"spec.matrix[*][*].a":                     "",
		"spec.ports[name=http,protocol=TCP].port": "",
		"spec.ports[name='a,b']":                  "",
		"['a.b'].c":                               "",
		"":                                        "must have the name of a field at its end",
		".spec":                                   "must have the name of a field at character 1, at '.spec'",
		"spec.":                                   "must have the name of a field at its end",
		"spec..a":                                 "must have the name of a field at character 6, at '.a'",
		"spec.a b":                                "must have the name of a field at character 6, at 'a b'",
		"spec.*.a":                                "must have the name of a field at character 6, at '*.a'",
		"spec.a]":                                 "must have the name of a field at character 6, at 'a]'",
		"spec.a[b]c":                              "must have '.' or '[' at character 10, at 'c'",
		"spec.a[b":                                "must have ']' at its end",
		"spec.ä[]":                                "must have '*', the key of a map or the key of an item at character 8, at ']'",
		"spec.a[0].b":                             "must not have the index '[0]': which item it is of can change; the key of a map stands in quotes",
		"spec.a['0'].b":                           "",
		"spec.a['b":                               "must have a closing quote at character 8, at ''b'",
		"spec.a['b'c]":                            "must have ']' at character 11, at 'c]'",
		"spec.a[*]":                               "must name a field of the items after '[*]'",
		"[*].a":                                   "must have the name of a field at character 1, at '[*].a'",
		"spec.a[x=1,x=2]":                         "must have every key once at character 13, at '=2]'",
		"spec.a[x=1,y]":                           "must have a key with its value, such as name=http at character 13, at ']'",
		"spec.a[=1]":                              "must have a key with its value, such as name=http at character 8, at '=1]'",
		"spec" + strings.Repeat(".a", document.DefaultDepth): "must be a path of at most 64 steps",
	} {
		p, err := defaults.ParsePath(text)
		got := ""
		if err != nil {
			got = err.Error()
		} else if p.String() != text {
			t.Errorf("%s: is written as %s", text, p)
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

const placesSchema = `
type: object
properties:
  metadata: {type: object}
  spec:
    type: object
    properties:
      color: {type: string}
      nick: {type: string, nullable: true}
      tls: {type: object, properties: {mode: {type: string}, ca: {type: object, properties: {name: {type: string}}}}}
      labels: {type: object, additionalProperties: {type: string}}
      pools: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}
      steps: {type: array, items: {type: object, properties: {name: {type: string}, run: {type: string}}}}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [port, protocol]
        items:
          type: object
          required: [port]
          properties: {port: {type: integer}, protocol: {type: string, default: TCP}, name: {type: string}, tls: {type: object, properties: {mode: {type: string}}}}
      any: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestSetUnset: which fields are set, and with which objects expressions see as self (DEF-5).
func TestSetUnset(t *testing.T) {
	typ := compiled(t, placesSchema, schema.Options{Resource: true}).MergeType()
	for _, c := range []struct{ object, field, value, want, selves string }{
		{`{"spec":{}}`, "spec.color", `"red"`, `{"spec":{"color":"red"}}`, `{}`},
		{`{"spec":{"nick":"n"}}`, "spec.tls.ca.name", `"x"`, `{"spec":{"nick":"n","tls":{"ca":{"name":"x"}}}}`, `{}`},
		{`{"metadata":{"name":"w"}}`, "metadata.labels[example.com/tier]", `"gold"`,
			`{"metadata":{"name":"w","labels":{"example.com/tier":"gold"}}}`, `{}`},
		{`{"metadata":{"labels":{"a":"b"}}}`, "metadata.labels[example.com/tier]", `"gold"`,
			`{"metadata":{"labels":{"a":"b","example.com/tier":"gold"}}}`, `{"a":"b"}`},
		{`{"spec":{"steps":[{"name":"a"},{"name":"b","run":""},{"run":null},5,null,[]]}}`, "spec.steps[*].run", `"x"`, `{"spec":{"steps":[{"name":"a","run":"x"},{"name":"b","run":""},{"run":"x"},5,null,[]]}}`, `{"name":"a"} {"run":null}`},
		{`{"spec":{"pools":{"a":{},"b":{"size":0}}}}`, "spec.pools[*].size", `3`,
			`{"spec":{"pools":{"a":{"size":3},"b":{"size":0}}}}`, `{}`},
		{`{"spec":{}}`, "spec.steps[*].run", `"x"`, `{"spec":{}}`, ``},

		// Whatever was given counts as given.
		{`{"spec":{"color":""}}`, "spec.color", `"red"`, `{"spec":{"color":""}}`, ``},
		{`{"spec":{"labels":{}}}`, "spec.labels", `{"a":"b"}`, `{"spec":{"labels":{}}}`, ``},
		{`{"spec":{"steps":[]}}`, "spec.steps", `[{}]`, `{"spec":{"steps":[]}}`, ``},
		{`{"spec":{"pools":{"a":{"size":false}}}}`, "spec.pools[a].size", `3`,
			`{"spec":{"pools":{"a":{"size":false}}}}`, ``},
		{`{"spec":{"nick":null}}`, "spec.nick", `"x"`, `{"spec":{"nick":null}}`, ``},
		{`{"spec":{"color":null}}`, "spec.color", `"red"`, `{"spec":{"color":"red"}}`, `{"color":null}`},
		{`{"spec":{"tls":null}}`, "spec.tls.mode", `"x"`, `{"spec":{"tls":{"mode":"x"}}}`, `{}`},
		{`{"spec":{"any":{"x":null}}}`, "spec.any.x", `1`, `{"spec":{"any":{"x":null}}}`, ``},
		{`{"spec":{"any":{"x":null}}}`, "spec.any.x.y", `1`, `{"spec":{"any":{"x":null}}}`, ``},
		{`{"spec":"text"}`, "spec.color", `"red"`, `{"spec":"text"}`, ``},
		{`{"spec":{"tls":[]}}`, "spec.tls.mode", `"x"`, `{"spec":{"tls":[]}}`, ``},
		{`{"spec":{"ports":{}}}`, "spec.ports[port=1].name", `"x"`, `{"spec":{"ports":{}}}`, ``},

		// Items by their keys; protocol has a default.
		{`{"spec":{}}`, "spec.ports[port=80].name", `"http"`, `{"spec":{"ports":[{"port":80,"name":"http"}]}}`,
			`{"port":80}`},
		{`{"spec":{"ports":[]}}`, "spec.ports[port=80,protocol=UDP].tls.mode", `"off"`,
			`{"spec":{"ports":[{"port":80,"protocol":"UDP","tls":{"mode":"off"}}]}}`, `{}`},
		{`{"spec":{"ports":[{"port":80}]}}`, "spec.ports[port=80,protocol=TCP].name", `"x"`,
			`{"spec":{"ports":[{"port":80,"name":"x"}]}}`, `{"port":80}`},
		{`{"spec":{"ports":[{"port":80,"protocol":"UDP"}]}}`, "spec.ports[port=80,protocol=TCP].name", `"x"`, `{"spec":{"ports":[{"port":80,"protocol":"UDP"},{"port":80,"protocol":"TCP","name":"x"}]}}`, `{"port":80,"protocol":"TCP"}`},
		{`{"spec":{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}}`, "spec.ports[port=80].name", `"x"`, `{"spec":{"ports":[{"port":80,"name":"x"},{"port":80,"protocol":"UDP","name":"x"}]}}`, `{"port":80} {"port":80,"protocol":"UDP"}`},
		{`{"spec":{"ports":[{"port":1}]}}`, "spec.ports[port=80]", `{"name":"http","port":7}`,
			`{"spec":{"ports":[{"port":1},{"port":80,"name":"http"}]}}`, `{"ports":[{"port":1}]}`},
		{`{"spec":{}}`, "spec.ports[port=80]", `{}`, `{"spec":{"ports":[{"port":80}]}}`, `{}`},
		{`{"spec":{"ports":[{"port":80}]}}`, "spec.ports[port=80]", `{"name":"http"}`,
			`{"spec":{"ports":[{"port":80}]}}`, ``},
		{`{"spec":{"ports":[{"port":"80"}]}}`, "spec.ports[port=80].name", `"x"`,
			`{"spec":{"ports":[{"port":"80","name":"x"}]}}`, `{"port":"80"}`},
		// Nothing is added to a list whose items the keys do not identify.
		{`{"spec":{"steps":[{"name":"a"}]}}`, "spec.steps[name=b].run", `"x"`, `{"spec":{"steps":[{"name":"a"}]}}`, ``},
		{`{"spec":{"steps":[{"name":"a"}]}}`, "spec.steps[name=a].run", `"x"`,
			`{"spec":{"steps":[{"name":"a","run":"x"}]}}`, `{"name":"a"}`},
		{`{"spec":{}}`, "spec.ports[protocol=TCP].name", `"x"`, `{"spec":{}}`, ``},
		{`{"spec":{}}`, "spec.ports[port=80,name=a].tls", `{}`, `{"spec":{}}`, ``},
		{`{"spec":{}}`, "spec.ports[port=http].tls", `{}`, `{"spec":{}}`, ``},
		{`{"spec":{"any":{"l":[]}}}`, "spec.any.l[a=b].c", `1`, `{"spec":{"any":{"l":[]}}}`, ``},
	} {
		got, selves := set(t, typ, c.object, c.field, c.value)
		if got != c.want || selves != c.selves {
			t.Errorf("%s in %s\ngot  %s with self %s\nwant %s with self %s", c.field, c.object, got, selves, c.want,
				c.selves)
		}
		if again, _ := set(t, typ, got, c.field, `"other"`); again != got { // DEF-6
			t.Errorf("%s in %s: a second time makes it %s", c.field, got, again)
		}
	}
}

func set(t testing.TB, typ *merge.Type, object, text, value string) (changed, selves string) {
	t.Helper()
	d, err := document.Parse([]byte(object), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := defaults.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	places := p.Unset(nil, d.Root(), typ)
	var seen []string
	for i := range places {
		seen = append(seen, string(places[i].Self().Raw()))
	}
	for i := range places {
		places[i].Set(d, []byte(value))
	}
	return string(d.AppendTo(nil)), strings.Join(seen, " ")
}

func TestPathIn(t *testing.T) {
	typ := compiled(t, placesSchema, schema.Options{Resource: true}).MergeType()
	for text, want := range map[string]string{
		"spec.color":                   "",
		"metadata.labels[x]":           "",
		"spec.pools[*].size":           "",
		"spec.pools[a].size":           "",
		"spec.ports[*].tls.mode":       "",
		"spec.ports[port=1].tls":       "",
		"spec.any.thing[name=x].y":     "",
		"spec.colour":                  "must not name the field `spec.colour`, which there is not",
		"metadata.colour":              "must not name the field `metadata.colour`, which there is not",
		"spec.color.x":                 "must not lead into `spec.color`, which is no object",
		"spec.color[*].x":              "must not lead into `spec.color`, which is no list or map",
		"spec.tls[mode=x].y":           "must not lead into `spec.tls`, which is no list",
		"spec.tls[*].mode":             "must not lead into every member of `spec.tls`, which is no map",
		"spec.ports.name":              "must not lead into `spec.ports`, which is no object",
		"spec.ports[*].nome":           "must not name the field `spec.ports[*].nome`, which there is not",
		"spec.pools['a.b'].sise":       "must not name the field `spec.pools[a.b].sise`, which there is not",
		"spec.steps[name=a].run":       "must not tell the items of `spec.steps` apart by 'name': its schema gives no keys by which they are (x-kubernetes-list-type: map)",
		"spec.ports[name=a].tls":       "must not tell the items of `spec.ports` apart by 'name': they are by 'port', 'protocol'",
		"spec.ports[port=a].tls":       "must give the key 'port' of `spec.ports` as a number, not 'a'",
		"spec.ports[port='1'].tls":     "must give the key 'port' of `spec.ports` as a number, not '1'",
		"spec.ports[port=1].tls.modes": "must not name the field `spec.ports[port=1].tls.modes`, which there is not",
	} {
		p, err := defaults.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := p.In(typ); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// FuzzSetUnset: whatever the object, all that it gives is in the result, and a second time changes nothing (DEF-5,
// DEF-6).
func FuzzSetUnset(f *testing.F) {
	typ := compiled(f, placesSchema, schema.Options{Resource: true}).MergeType()
	for seed := range uint64(200) {
		f.Add(seed)
	}
	paths := []string{
		"spec.color", "spec.nick", "spec.tls.ca.name", "spec.labels[a]", "spec.labels", "spec.pools[*].size",
		"spec.pools[a].size", "spec.steps[*].run",
		"spec.ports[port=1].name", "spec.ports[port=1]", "spec.ports[port=1,protocol=UDP].tls.mode",
		"spec.ports[*].tls.mode", "spec.any.a.b", "spec.any.a[*].b", "spec.any.a[b=1].c", "metadata.labels[a]",
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		object, err := json.Marshal(map[string]any{"metadata": randomValue(r, 3), "spec": randomValue(r, 5)})
		if err != nil {
			t.Fatal(err)
		}
		text := paths[r.IntN(len(paths))]
		got, _ := set(t, typ, string(object), text, `{"set":1}`)
		var before, after any
		if err := json.Unmarshal(object, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Fatal(err)
		}
		if !kept(before, after) {
			t.Errorf("%s: %s became %s", text, object, got)
		}
		if again, _ := set(t, typ, got, text, `{"other":1}`); again != got {
			t.Errorf("%s: %s became %s, and then %s", text, object, got, again)
		}
	})
}

func randomValue(r *rand.Rand, depth int) any {
	n := r.IntN(10)
	switch {
	case depth == 0 || n < 3:
		return []any{nil, "", "UDP", 0, 1, false, true, map[string]any{}, []any{}}[r.IntN(9)]
	case n < 5:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	m := map[string]any{}
	for range r.IntN(5) {
		m[[]string{"color", "nick", "tls", "ca", "name", "labels", "pools", "a", "size", "steps", "run", "ports", "port", "protocol", "any", "b", "mode"}[r.IntN(17)]] = randomValue(r, depth-1)
	}
	return m
}

// kept reports whether all that was given is still there: only a null may have become a value, and a list may have
// grown.
func kept(before, after any) bool {
	switch before := before.(type) {
	case map[string]any:
		now, ok := after.(map[string]any)
		for name, v := range before {
			w, there := now[name]
			ok = ok && there && kept(v, w)
		}
		return ok
	case []any:
		now, ok := after.([]any)
		ok = ok && len(now) >= len(before)
		for i := 0; ok && i < len(before); i++ {
			ok = kept(before[i], now[i])
		}
		return ok
	case nil:
		return true
	}
	return reflect.DeepEqual(before, after)
}
