package defaults_test

import (
	"testing"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

func parsed(t testing.TB, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// withheld fills in the defaults of an object that a backend has shown otherwise, and takes back what Withhold does.
func withheld(t testing.TB, s *schema.Schema, c defaults.Change, before, shown string) string {
	t.Helper()
	filled, was, seen := parsed(t, before), parsed(t, before), parsed(t, shown)
	defer filled.Release()
	defer was.Release()
	defer seen.Release()
	defaults.Apply(filled, s)
	c.Withhold(filled.Root(), was.Root(), seen.Root())
	return string(filled.AppendTo(nil))
}

// TestWithhold: what a backend has shown, and nothing has changed since, gets no default.
func TestWithhold(t *testing.T) {
	s := compiled(t, `{type: object, properties: {
		a: {type: integer, default: 1},
		n: {type: integer, default: 2},
		o: {type: object, properties: {x: {type: integer, default: 3}, y: {type: integer}}},
		d: {type: object, default: {}, properties: {x: {type: integer, default: 4}}},
		l: {type: array, items: {type: object, properties: {x: {type: integer, default: 5}, y: {type: integer}}}}}}`, schema.Options{})
	own, whole, merged := defaults.Change{}, defaults.Change{HasWholeLists: true}, defaults.Change{HasWholeLists: true,
		IsMerged: true}
	for _, c := range []struct {
		name                string
		change              defaults.Change
		shown, before, want string
	}{
		{"nothing changed", own, `{"o":{},"l":[{}],"n":null}`, `{"o":{},"l":[{}],"n":null}`,
			`{"o":{},"l":[{}],"n":null}`},
		{"another member", own, `{}`, `{"z":1}`, `{"z":1}`},
		{"a member that is gone", own, `{"a":7}`, `{}`, `{"a":1}`},
		{"an object that is gone", own, `{"d":{"x":7}}`, `{}`, `{"d":{"x":4}}`},
		{"a new object", own, `{}`, `{"o":{"y":1}}`, `{"o":{"y":1,"x":3}}`},
		{"a new object that may be there", merged, `{}`, `{"o":{"y":1}}`, `{"o":{"y":1}}`},
		{"an object in the place of another value", merged, `{"o":null}`, `{"o":{"y":1}}`, `{"o":{"y":1,"x":3}}`},
		{"a changed object", own, `{"o":{"y":1}}`, `{"o":{"y":2}}`, `{"o":{"y":2}}`},
		{"a new item in front", own, `{"l":[{"y":1},{"y":2}]}`, `{"l":[{},{"y":1},{"y":2}]}`,
			`{"l":[{"x":5},{"y":1},{"y":2}]}`},
		{"a new item behind", own, `{"l":[{"y":1}]}`, `{"l":[{"y":1},{"y":3}]}`, `{"l":[{"y":1},{"y":3,"x":5}]}`},
		{"a changed item", own, `{"l":[{"y":1},{"y":2}]}`, `{"l":[{"y":1},{"y":3}]}`, `{"l":[{"y":1},{"y":3}]}`},
		{"items that cannot be told apart", own, `{"l":[{"y":1}]}`, `{"l":[{"y":3},{"y":4}]}`,
			`{"l":[{"y":3},{"y":4}]}`},
		{"a list that is sent whole", whole, `{"l":[{"y":1}]}`, `{"l":[{"y":1},{"y":3}]}`,
			`{"l":[{"y":1,"x":5},{"y":3,"x":5}]}`},
		{"a new list of a merge patch", merged, `{}`, `{"l":[{"y":1}]}`, `{"l":[{"y":1,"x":5}]}`},
	} {
		if got := withheld(t, s, c.change, c.before, c.shown); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestWithholdAll: of random schemas, an object that is as it was shown stays so, and one of which nothing was shown
// gets all.
func TestWithholdAll(t *testing.T) {
	for seed := range uint64(500) {
		g := schematest.New(seed)
		props := g.Schema()
		s, _, errs := schema.Compile(props, schema.Options{Resource: true})
		if len(errs) > 0 {
			continue
		}
		for range 3 {
			text := string(g.Object(props, 10))
			if parsed(t, text).Root().Kind() != document.Object {
				continue
			}
			for _, c := range []defaults.Change{{}, {HasWholeLists: true}, {IsMerged: true}} {
				got, want := parsed(t, withheld(t, s, c, text, text)), parsed(t, text)
				if !document.EqualNodes(got.Root(), want.Root()) {
					t.Errorf("seed %d, %v: %s became %s", seed, c, text, got.AppendTo(nil))
				}
			}
			if got, want := withheld(t, s, defaults.Change{}, text, `[]`), applied(t, s, text); got != want {
				t.Errorf("seed %d: got %s, want %s", seed, got, want)
			}
		}
	}
}
