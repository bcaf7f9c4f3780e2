package plain

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// heap is memory without a limit.
type heap struct{}

func (heap) Take(class int) []byte { return make([]byte, 1<<class) }
func (heap) Give([]byte, int)      {}

// widgets are the resources that the data plane's own tests use.
const widgets, widgetsPath = "../../../proxy/testdata/policies/widgets.yaml",
	"/apis/example.com/v1/namespaces/team-a/widgets"

const (
	bareWidget  = `{"spec":{"size":1}}`
	wholeWidget = `{ "kind":"Widget", "apiVersion" :"example.com/v1","spec":{"size":1,"max":2,"mode":"Locked"}}`
)

// readOf prepares for a GET of a target at an API that policy files describe.
func readOf(t testing.TB, files, target string) (*completer, *storage.Request) {
	t.Helper()
	set := policiestest.LoadFiles(t, files)
	limits := &storage.Limits{Body: 3 << 20}
	r := &storage.Request{Exchanges: storage.Exchanges{Limits: limits, Memory: &memory.Reservation{}}}
	info, described, err := set.Registry().Resolve("GET", []byte(target))
	if err != nil {
		t.Fatal(err)
	}
	r.SetSubject(&info, described)
	s := New(Options{
		Backend: &storage.Backend{}, Limits: limits, Policies: set.Admission().For(&resource.Info{}),
		Resource: r.Resource, Memory: heap{},
		Schemas: storage.Schemas{Update: set.Schema(r.Resource), Patch: set.Schema(r.Resource),
			Read: set.SchemaFor(r.Resource, resource.VerbGet)},
	}, "")
	return &s.(*Store).access.completer, r
}

// completed returns the answer that a client gets for a body of the backend.
func completed(c *completer, r *storage.Request, body []byte) ([]byte, error) {
	r.Response.StartJSON(http.StatusOK, nil, body)
	err := c.completeWhole(r, nil, nil)
	return r.Response.Body(), err
}

// TestDefaultsBounded: defaults do not make an object many times as large as it is.
func TestDefaultsBounded(t *testing.T) {
	dir := policiestest.Write(t, `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  version: v2
  names: {plural: orders, kind: Order}
  paths: {collection: /v2/orders, item: "/v2/orders/{name}"}
  readDefaults: Fill
  schema:
    openAPIV3Schema:
      type: object
      properties:
        lines: {type: array, items: {type: object, properties: {unit: {type: string, default: piece}}}}
`)
	for _, target := range []string{"/v2/orders/o1", "/v2/orders"} {
		s, r := readOf(t, dir, target)
		body := `{"lines":[` + strings.Repeat("{},", 800_000) + `{}]}`
		if target == "/v2/orders" {
			body = "[" + body + "]"
		}
		_, err := completed(s, r, []byte(body))
		want := "the stored object with the defaults of what it leaves unset must be at most 6291456 bytes"
		if got := status.From(err); got == nil || got.ErrStatus.Code != 502 || got.ErrStatus.Message != want {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// completedReference completes a list the slow way: each item as a document of its own.
func completedReference(t *testing.T, c *completer, text []byte) ([]byte, bool) {
	d, err := document.Parse(text, document.Limits{Depth: 66})
	if err != nil || d.Root().Kind() != document.Object {
		return nil, false
	}
	defer d.Release()
	root := d.Root()
	list, _ := root.Get("items")
	if list.Kind() == document.Array {
		for n := list.First(); n.Valid(); n = n.Next() {
			if n.Kind() != document.Object {
				continue
			}
			item, err := document.Parse(bytes.Clone(n.Raw()), document.Limits{})
			if err != nil {
				return nil, false
			}
			for _, m := range [][2]string{{"kind", "Widget"}, {"apiVersion", "example.com/v1"}} {
				if at, found := item.Root().Get(m[0]); !found || at.Kind() == document.Null || at.Is("") {
					item.SetString(item.Root(), m[0], m[1])
				}
			}
			defaults.Apply(item, c.Schemas.Update)
			if item.Edited() {
				d.Replace(n, item.AppendTo(nil))
			}
			item.Release()
		}
	}
	out := d.AppendTo(nil)
	end := bytes.LastIndexByte(out, '}')
	rest := string(out[end:])
	out = out[:end]
	for _, m := range [][2]string{{"kind", `"WidgetList"`}, {"apiVersion", `"example.com/v1"`}} {
		if _, found := root.Get(m[0]); found {
			continue
		}
		if b := bytes.TrimRight(out, " \t\r\n"); b[len(b)-1] != '{' {
			out = append(out, ',')
		}
		out = append(out, `"`+m[0]+`":`+m[1]...)
	}
	return append(out, rest...), true
}

// FuzzDefaulter compares the list that comes in pieces with its items, each completed as its own
// document.
func FuzzDefaulter(f *testing.F) {
	for _, text := range []string{
		`{"items":[` + bareWidget + "," + wholeWidget + `]}`, `{ "kind":"WidgetList", "items" : [ {"spec":{"mode":null}} , 1, {"kind":"","spec":1}, {} ] }`,
		`{"items":[{"spec":{"size":"\ud83d\ude00","max":1e2}}],"metadata":{"items":[{}]}}`, `{}`, `{"items":{"spec":{}}}`, `{"items":[{"kind":null}]}`,
	} {
		f.Add([]byte(text), uint64(len(text)))
	}
	s, request := readOf(f, widgets, widgetsPath)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		want, ok := completedReference(t, s, text)
		if !ok {
			return
		}
		r := rand.New(rand.NewPCG(seed, 2))
		e := s.newReadDefaulter(&request.Info, request.Memory, nil, nil)
		defer e.Release()
		var got []byte
		var err error
		for rest := text; len(rest) > 0; {
			piece := bytes.Clone(rest[:min(len(rest), 1+r.IntN(30))])
			var used int
			if got, used, err = e.stream.Append(got, piece, len(got)+1+r.IntN(50)); err != nil {
				break
			}
			rest = rest[used:]
		}
		if err == nil {
			got, err = e.stream.Close(got)
		}
		if bad, is := err.(*document.Error); is && bad.Code == document.TooDeep {
			return
		}
		if err != nil || string(got) != string(want) {
			t.Fatalf("%q: %v\n got %q\nwant %q", text, err, got, want)
		}
	})
}

// BenchmarkDefaulter measures the cost of completing: an object that is complete, one that is not, and a list of a
// hundred.
func BenchmarkDefaulter(b *testing.B) {
	padding := strings.Repeat(`{"name":"x","value":"0123456789"},`, 30) + "{}"
	complete := `{"kind":"Widget","apiVersion":"example.com/v1","env":[` + padding +
		`],"spec":{"size":1,"max":2,"mode":"Locked"}}`
	lacking := `{"env":[` + padding + `],"spec":{"size":1}}`
	for _, c := range []struct{ name, target, body string }{
		{"complete", widgetsPath + "/w", complete},
		{"lacking", widgetsPath + "/w", lacking},
		{"list", widgetsPath, `{"items":[` + strings.Repeat(lacking+",", 99) + lacking + `]}`},
	} {
		s, r := readOf(b, widgets, c.target)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := completed(s, r, []byte(c.body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
