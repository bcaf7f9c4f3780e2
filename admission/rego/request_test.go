package rego

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

// head is the head of a request.
type head struct{}

func (head) Method() string { return "PUT" }
func (head) Host() string   { return "api.example.com" }
func (head) Path() string   { return "/v2/shops/a%20b/orders/o1" }
func (head) Route() string  { return "/v2/shops/{shop}/orders/{name}" }
func (head) Query() string  { return "label=x&label=y%20z" }

func (head) Parameters(yield func(name, raw string) bool) {
	_ = yield("shop", "a%20b") && yield("name", "o1")
}

func (head) Lines(yield func(name, value string) bool) {
	_ = yield("X-Tenant", "cat") && yield("x-tenant", "dog")
}

func (head) Credentials(yield func(name, value string) bool) { yield("Authorization", "Bearer x") }

func update(t *testing.T) *admission.Attributes {
	t.Helper()
	lookup := &admissiontest.Lookup{
		Known: map[string][]document.Node{"plans": {admissiontest.Parse(`{"id":"p1"}`).Root()}}}
	return &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbUpdate, Group: "shop.example.com", Version: "v1",
			Resource: "orders", Namespace: "team-a", Name: "o1"},
		Operation: admission.Update, HTTP: head{}, Lookup: lookup, DryRun: true,
		User: &identity.User{Name: "kim", UID: "7", Groups: []string{"staff"},
			Extra: map[string][]string{"team": {"a"}}},
		Object: documentOf(t, `{"kind":"Order","total":1.50}`),
		Old:    documentOf(t, `{"kind":"Order","total":9007199254740993}`),
	}
}

func documentOf(t *testing.T, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func jsonOf(t *testing.T, v Value) string {
	t.Helper()
	text, err := v.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReview: modules see the request of an AdmissionReview, numbers as they came, made once until the object changes.
func TestReview(t *testing.T) {
	a := update(t)
	own := a.Info.GroupVersionResource()
	review, err := ReviewOf(a, own)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"dryRun":true,"kind":{"group":"shop.example.com","kind":"Order","version":"v1"},"name":"o1","namespace":"team-a",` +
		`"object":{"kind":"Order","total":1.50},"oldObject":{"kind":"Order","total":9007199254740993},"operation":"UPDATE","options":null,` +
		`"requestKind":{"group":"shop.example.com","kind":"Order","version":"v1"},"requestResource":{"group":"shop.example.com","resource":"orders","version":"v1"},` +
		`"resource":{"group":"shop.example.com","resource":"orders","version":"v1"},` +
		`"userInfo":{"extra":{"team":["a"]},"groups":["staff"],"uid":"7","username":"kim"}}`
	if got := jsonOf(t, review); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again, err := ReviewOf(a, own); err != nil || again != review {
		t.Errorf("the value is made again: %v", err)
	}
	a.Object.Set(a.Object.Root(), "paid", []byte("true"))
	changed, err := ReviewOf(a, own)
	if err != nil {
		t.Fatal(err)
	}
	q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"paid\" if input.review.object.paid\n")
	if found, err := q.Violations(context.Background(), &Input{Review: changed}); err != nil || len(found) != 1 {
		t.Errorf("a change is not seen: %v, %v", found, err)
	}
}

// TestMembersOfReview: each member has the value by itself that it has in the whole review, also where
// one is added or replaced.
func TestMembersOfReview(t *testing.T) {
	for _, more := range [][]Member{nil,
		{{"object", Text("x")}, {"namespaceObject", Flag(true)}, {"object", Text("y")}}} {
		one, err := ReviewOf(update(t), schema.GroupVersionResource{Group: "shop.example.com", Version: "v1",
			Resource: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		all := one
		for _, m := range more {
			if one, err = one.With(m); err != nil {
				t.Fatal(err)
			}
			if all, err = Merge(all, Object(m)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range append([]string{"namespaceObject", "other"}, reviewMembers[:]...) {
			if got, want := jsonOf(t, one.Get(name)), jsonOf(t, all.Get(name)); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if got, want := jsonOf(t, one), jsonOf(t, all); got != want {
			t.Errorf("the whole is %s, want %s", got, want)
		}
	}
}

// TestForget: a request whose attributes have the room of another one's sees none of its values.
func TestForget(t *testing.T) {
	q := query(t, Options{}, "data.p.seen", "package p\n\nseen := [[k, x] | some k, x in input.review.object.list] if true\n")
	big := `{"list":[` + strings.Repeat(`{"list":[[1],[2]],"text":"a"},`, 500) + `{}]}`
	var room any
	for _, text := range []string{`{"list":[{"a":1},{"b":[2]}]}`, `{"list":[{"b":3}]}`, big,
		`{"list":{"a":0,"c":{"d":4}}}`, `{"list":[]}`, `{"list":[[],{}]}`} {
		a := update(t)
		a.Object, a.Made = documentOf(t, text), room
		review, err := ReviewOf(a, a.Info.GroupVersionResource())
		if err != nil {
			t.Fatal(err)
		}
		want := valueOf(t, q, &Input{Review: Object(Member{"object", parsed(t, []byte(text))})})
		if got := valueOf(t, q, &Input{Review: review}); got != want {
			t.Errorf("rules see %s, want %s", got, want)
		}
		if got := jsonOf(t, review.Get("object")); got != text {
			t.Errorf("the object is %s, want %s", got, text)
		}
		a.Object.Release()
		if room = a.Forget(); room == nil {
			t.Fatal("no room is kept")
		}
		for _, r := range room.(*made).readings {
			if len(r.pages) > maxPages || r.document != nil {
				t.Errorf("%d pages are kept, and a document: %v", len(r.pages), r.document)
			}
			for _, n := range r.nodes {
				if n.made != nil || n.of != nil {
					t.Errorf("a node is kept: %v", n.made)
				}
			}
		}
	}
}

// TestForms: the head of a request has the forms that Envoy's and Kong's plugins give it, and ours.
func TestForms(t *testing.T) {
	h, body := httpOf(update(t), false), Object(Member{"total", Text("x")})
	if got, want := jsonOf(t, h.own()), `{"headers":{"x-tenant":["cat","dog"]},"host":"api.example.com","method":"PUT","path":"/v2/shops/a%20b/orders/o1",`+
		`"pathParameters":{"name":"o1","shop":"a b"},"query":{"label":["x","y z"]},"route":"/v2/shops/{shop}/orders/{name}"}`; got != want {
		t.Errorf("http: got  %s\nwant %s", got, want)
	}
	if got, want := jsonOf(t, Object(h.envoy(body)...)), `{"attributes":{"request":{"http":{"body":"{\"total\":\"x\"}","headers":{"x-tenant":"cat,dog"},"host":"api.example.com",`+
		`"method":"PUT","path":"/v2/shops/a%20b/orders/o1?label=x&label=y%20z","protocol":"HTTP/1.1"}}},"parsed_body":{"total":"x"},`+
		`"parsed_path":["v2","shops","a%20b","orders","o1"],"parsed_query":{"label":["x","y z"]},"truncated_body":false}`; got != want {
		t.Errorf("Envoy: got  %s\nwant %s", got, want)
	}
	if got, want := jsonOf(t, Object(h.kong(body))), `{"request":{"http":{"body":"{\"total\":\"x\"}","headers":{"x-tenant":"cat,dog"},"host":"api.example.com",`+
		`"method":"PUT","parsed_body":{"total":"x"},"path":"/v2/shops/a%20b/orders/o1","querystring":{"label":"x"}}}}`; got != want {
		t.Errorf("Kong: got  %s\nwant %s", got, want)
	}
	if got, want := jsonOf(t,
		Object(webhook(Member{"request", Object(Member{"http", Text("x")})}, Object(Member{"object", body})))),
		`{"request":{"http":"x","object":{"total":"x"}}}`; got != want {
		t.Errorf("a webhook: got  %s\nwant %s", got, want)
	}
	if _, hidden := h.headers["authorization"]; hidden {
		t.Error("credentials are shown")
	}
	if got := httpOf(update(t), true).headers["authorization"]; len(got) != 1 || got[0] != "Bearer x" {
		t.Errorf("credentials that are asked for: %q", got)
	}
}

// TestReadBy: what modules read of the head is made, and decision logs say what they leave out of it.
func TestReadBy(t *testing.T) {
	for module, want := range map[string]struct{ input, lines string }{
		`deny contains "a" if input.review.name`: {`{}`, ""},
		`deny contains "a" if input.request.http.path`: {
			`{"request":{"http":{"headers":{},"host":"","method":"","path":"","querystring":{}}}}`,
			"/input/request/http/headers /input/request/http/querystring"},
		`deny contains "a" if input.request.object`: {
			`{"request":{"http":{"headers":{},"host":"","method":"","path":"","querystring":{}},"object":"x"}}`,
			"/input/request/http/headers /input/request/http/querystring"},
		`deny contains "a" if input.http.path`: {`{}`, "/input/http/headers /input/http/query"},
	} {
		p, err := Compile(Options{}, Module{File: "p.rego", Source: []byte("package p\n\n" + module + "\n")})
		if err != nil {
			t.Fatal(err)
		}
		r := readBy(p)
		in := &Input{Review: Object(Member{"object", Text("x")})}
		for _, add := range r.head {
			add(in, &httpRequest{}, Value{})
		}
		if got, lines := jsonOf(t, Object(in.More...)), strings.Join(r.lines, " "); got != want.input ||
			lines != want.lines {
			t.Errorf("%s\ngot  %s, %s\nwant %s, %s", module, got, lines, want.input, want.lines)
		}
	}
}

// TestStates: modules read collections as data.state. One that is not known is a failure.
func TestStates(t *testing.T) {
	a := update(t)
	in := Input{State: &statesOf{attributes: a, made: madeOf(a, a.Info.GroupVersionResource()),
		names: []string{"plans"}}}
	for text, want := range map[string]int{
		`some p in data.state.plans; p.id == "p1"`: 1,
		`some p in data.state.plans; p.id == "p2"`: 0,
		`data.state[name][_].id == "p1"`:           1,
		`count(data.state.plans) == 1`:             1,
	} {
		q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if {\n\t"+text+"\n}\n")
		if found, err := q.Violations(context.Background(), &in); err != nil || len(found) != want {
			t.Errorf("%s: got %v, %v", text, found, err)
		}
	}
	q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if count(data.state.others) == 0")
	if found, err := q.Violations(context.Background(), &in); err == nil {
		t.Errorf("a state that is not known: got %v", found)
	}
}
