package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/meta"
)

// repeated is an object whose member has so many items, all made by item.
func repeated(n int, begin, end string, item func(i int) string) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String() + end
}

func alike(text string) func(int) string { return func(int) string { return text } }

func counted(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// Metadata that is wrong all over is bounded in what it makes the library find and show, and how much is wrong is known
// all the same (META-2, VAL-1).
func TestWrongMetadataIsBounded(t *testing.T) {
	const n = 20_000
	s := &Schema{root: &Shape{accepts: anyKind}, meta: newMetadata(false), metadata: &meta.Rules{}}
	s.root.summarise()
	s.prepare()
	for _, c := range []struct {
		name, member, end string
		item              func(int) string
		failures          int // of each member; the library takes some of them for one
	}{
		{"keys of labels", `"labels":{`, `}`, counted(`" %d":""`), 1},
		{"values of labels", `"labels":{`, `}`, counted(`"%d":"a b"`), 1},
		{"labels that are no strings", `"labels":{`, `}`, counted(`"%d":1`), 0},
		{"annotations", `"annotations":{`, `}`, counted(`" %d":""`), 1},
		{"finalizers", `"finalizers":[`, `]`, counted(`" %d"`), 1},
		{"owners", `"ownerReferences":[`, `]`, alike(`{}`), 4},
		{"controllers", `"ownerReferences":[`, `]`,
			alike(`{"apiVersion":"v1","kind":"A","name":"a","uid":"u","controller":true}`), 1},
		{"managers", `"managedFields":[`, `]`, alike(`{}`), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := document.Parse([]byte(repeated(n, `{"metadata":{"name":"a",`+c.member, c.end+`}}`, c.item)),
				document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Release()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := s.Validate(nil, d.Root(), document.Node{})
			runtime.ReadMemStats(&after)
			size := uint64(len(d.Root().Raw()))
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 100*size {
				t.Errorf("%d bytes allocated for %d", allocated, size)
			}
			shown := 0
			for _, err := range r.Errors {
				shown += len(err.Error())
			}
			if len(r.Errors) > maxFailures+1 || shown > (maxFailures+1)*3*quote.MaxValue {
				t.Errorf("%d failures of %d bytes", len(r.Errors), shown)
			}
			if found := len(r.Errors) + r.More; c.failures > 0 &&
				(found < n-meta.MaxWrong || found > n+3*meta.MaxWrong) || c.failures == 0 && found != 1 {
				t.Errorf("%d failures and %d more for %d", len(r.Errors), r.More, n)
			}
		})
	}
}

// However many are suspect, one that is wrong is found.
func TestWrongMetadataAmongSuspects(t *testing.T) {
	s := &Schema{root: &Shape{accepts: anyKind}, meta: newMetadata(false), metadata: &meta.Rules{}}
	s.root.summarise()
	s.prepare()
	// The library lowers the case of annotations' keys first, and the lower case of the Kelvin sign is ASCII.
	suspects := counted("\"\u212a%d\":\"\"")
	for wrong, want := range map[string]int{`"b":""`: 0, `"b b":""`: 1} {
		text := repeated(1000, `{"metadata":{"name":"a","annotations":{`, `,`+wrong+`}}}`, suspects)
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Validate(nil, d.Root(), document.Node{}); len(r.Errors) != want || r.More != 0 {
			t.Errorf("%s: got %v and %d more", wrong, r.Errors, r.More)
		}
		d.Release()
	}
}

// What a failure shows of metadata is bounded.
func TestLongMetadata(t *testing.T) {
	s := &Schema{root: &Shape{accepts: anyKind}, meta: newMetadata(false), metadata: &meta.Rules{}}
	s.root.summarise()
	s.prepare()
	long := strings.Repeat("x ", 100_000)
	for _, meta := range []string{
		`"name":"` + long + `"`, `"name":"a","labels":{"` + long + `":"` + long + `"}`, `"name":"a","annotations":{"` +
			long + `":""}`,
		`"name":"a","finalizers":["orphan","foregroundDeletion","` + long + `"]`,
		`"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"A","name":"` + long +
			`","uid":"u","controller":true},{"apiVersion":"v1","kind":"A","name":"` + long +
			`","uid":"u","controller":true}]`,
		`"name":"a","managedFields":[{"operation":"` + long + `"}]`,
	} {
		d, err := document.Parse([]byte(`{"metadata":{`+meta+`}}`), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Validate(nil, d.Root(), document.Node{})
		for _, err := range r.Errors {
			if len(err.Error()) > 3*quote.MaxValue {
				t.Errorf("%.40s…: a failure of %d bytes: %.200s", meta, len(err.Error()), err)
			}
		}
		if len(r.Errors) == 0 {
			t.Errorf("%.40s…: must not be right", meta)
		}
		d.Release()
	}
}

// If many items fail, at any position, their places are found in one walk or two through each list
// (VAL-2).
func TestPlacesOfManyFailures(t *testing.T) {
	const n = 20_000
	inner := &Shape{accepts: anyKind}
	inner.summarise()
	number := newShape(document.Number, "integer")
	number.number = &keyword.Number{Maximum: &keyword.Bound{Value: 5}}
	number.summarise()
	list := func(items *Shape) *Shape {
		s := newShape(document.Array, "array")
		s.list.items = items
		s.summarise()
		return s
	}
	root := newShape(document.Object, "object")
	root.object.properties = []Property{{Name: "l", Shape: list(list(number))}}
	root.link()
	root.summarise()
	s := &Schema{root: root, meta: newMetadata(false)}
	s.prepare()
	good, bad := repeated(n, `{"l":[`, ``, alike(`[]`)), repeated(maxFailures, ``, `]}`, alike(`[1,1,9]`))
	d, err := document.Parse([]byte(good+","+bad), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	w := s.validator(d.Root(), document.Node{})
	defer w.release()
	w.value(root, d.Root(), document.Node{})
	if len(w.failures.list) != maxFailures || w.failures.list[0].err.Field != fmt.Sprintf("l[%d][2]", n) {
		t.Fatalf("%d failures, the first one %v", len(w.failures.list), w.failures.list[0].err)
	}
	if most := 2*(n+maxFailures) + 2*3*maxFailures; w.passed > most {
		t.Errorf("%d items were passed, want at most %d", w.passed, most)
	}
}
