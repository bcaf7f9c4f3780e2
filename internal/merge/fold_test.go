package merge

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

func TestFold(t *testing.T) {
	scalar := &Type{Scalar: Any}
	item := &Type{Object: &Object{}}
	item.Object.SetFields([]Field{{Name: "name", Type: scalar}, {Name: "size", Type: scalar}})
	typ := &Type{Object: &Object{Rest: Deduced()}}
	typ.Object.SetFields([]Field{
		{Name: "parts", Type: &Type{List: &List{Items: item, Relation: Associative,
			Keys: []Key{{Name: document.NewName("name")}}}}},
		{Name: "set", Type: &Type{List: &List{Items: scalar, Relation: Associative}}},
		{Name: "list", Type: &Type{List: &List{Items: scalar}}},
	})
	for _, c := range []struct{ name, configuration, before, after, want string }{
		{"nothing changed", `{ "a" : 1 }`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, `{ "a" : 1 }`},
		{"only what changed is asked for", `{"a":1}`, `{"a":1,"o":{"x":1,"y":2}}`, `{"a":1,"o":{"x":1,"y":3}}`,
			`{"a":1,"o":{"y":3}}`},
		{"what was asked for and changed", `{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2}`},
		{"what was added", `{}`, `{}`, `{"o":{"x":1}}`, `{"o":{"x":1}}`},
		{"what was removed", `{"a":1,"o":{"x":1}}`, `{"a":1,"o":{"x":1,"y":2}}`, `{"o":{}}`, `{"o":{}}`},
		{"a member of another kind", `{"a":1}`, `{"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{
			"items by their keys", `{"parts":[{"name":"b","size":1}]}`,
			`{"parts":[{"name":"a","size":1},{"name":"b","size":1},{"name":"c"}]}`,
			`{"parts":[{"name":"a","size":2},{"name":"b","size":3},{"name":"d","size":4}]}`,
			`{"parts":[{"name":"b","size":3},{"name":"a","size":2},{"name":"d","size":4}]}`,
		},
		{"items that were removed", `{"parts":[{"name":"b"}]}`, `{"parts":[{"name":"a"},{"name":"b"}]}`, `{"parts":[]}`,
			`{"parts":[]}`},
		{"a list that was not asked for", `{}`, `{"parts":[{"name":"a","size":1},{"name":"b"}]}`,
			`{"parts":[{"name":"a","size":2},{"name":"b"}]}`, `{"parts":[{"name":"a","size":2}]}`},
		{"a set", `{"set":["a"]}`, `{"set":["a","b"]}`, `{"set":["b","c"]}`, `{"set":["c"]}`},
		{"a list that is one value", `{}`, `{"list":[1,2]}`, `{"list":[1,3]}`, `{"list":[1,3]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parse := func(s string) *document.Document {
				d, err := document.Parse([]byte(s), document.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(d.Release)
				return d
			}
			configuration := parse(c.configuration)
			typ.Fold(configuration, parse(c.before).Root(), parse(c.after).Root())
			if got := string(configuration.AppendTo(nil)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
