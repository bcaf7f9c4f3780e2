package scaffold

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/recorded"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// schemaOf returns the schema of JSON texts as JSON.
func schemaOf(texts ...string) string {
	var s surveyor
	var all shape
	for _, text := range texts {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			return err.Error()
		}
		s.add(&all, d.Root())
		d.Release()
	}
	return inJSON(all.schema(false))
}

// TestShape makes schemas of values.
func TestShape(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   string
	}{
		{[]string{`null`}, `{}`},
		{[]string{`null`, `true`}, `{"type":["boolean","null"]}`},
		{[]string{`1`, `2`}, `{"type":"integer"}`},
		{[]string{`1`, `2.5`}, `{"type":"number"}`},
		{[]string{`1`, `"a"`}, `{"type":["string","integer"]}`},
		{[]string{`[]`}, `{"type":"array"}`},
		{[]string{`[1]`, `["a"]`}, `{"items":{"type":["string","integer"]},"type":"array"}`},
		{[]string{`{}`}, `{"type":"object"}`},
		{[]string{`{"a":1}`, `{"a":2,"b":null}`}, `{"properties":{"a":{"type":"integer"},"b":{}},"required":["a"],"type":"object"}`},
		{[]string{`{"a":1}`, `{}`}, `{"properties":{"a":{"type":"integer"}},"type":"object"}`},
		{[]string{`{"a":1}`, `3`}, `{"properties":{"a":{"type":"integer"}},"required":["a"],"type":["object","integer"]}`},
		{[]string{`{"2026-01-14":1,"2026-01-15":2}`}, `{"additionalProperties":{"type":"integer"},"type":"object"}`},
		{[]string{`{"17":1,"total":"x"}`}, `{"properties":{"total":{"type":"string"}},"required":["total"],"type":"object"}`},
		{[]string{`[{"a":1},{"b":1}]`}, `{"items":{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"type":"object"},"type":"array"}`},
	} {
		if got := schemaOf(tt.values...); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.values, got, tt.want)
		}
	}
}

// TestShapeIsBounded: an object with many members, and many objects, are named in part and allowed whole.
func TestShapeIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range maxMembers + 1 {
		fmt.Fprintf(&b, `,"m%c%c":{"a":1}`, 'a'+i/26, 'a'+i%26)
	}
	wide := `{"first":1` + b.String() + `}`
	var s surveyor
	var all shape
	d, err := document.Parse([]byte(wide), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s.add(&all, d.Root())
	if len(all.members) != maxMembers || !all.isOpen {
		t.Errorf("%d members are named, open %v", len(all.members), all.isOpen)
	}
	s.shapes = maxShapes
	var other shape
	s.add(&other, d.Root())
	if got := inJSON(other.schema(false)); got != `{"type":"object"}` {
		t.Errorf("without room: %s", got)
	}
}

// FuzzShape: the schema of values allows each of them, by the judgement of a library, and the order of the values does
// not matter.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{`[1, 2.5, "a"]`, `[{"a": 1}, {"a": null, "b": [1, {"c": 2}]}]`,
		`[{"17": 1, "18": "x"}, {"17": [], "b": 1}]`, `[[], [[]], [[1]]]`, `[null, true, 1e400, -0]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkShape)
}

// TestShapeOfAnything is FuzzShape for values that are made by chance.
func TestShapeOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch random.IntN(8 - 2*min(depth/2, 1)) {
		case 0:
			return nil
		case 1:
			return random.IntN(3)
		case 2:
			return 0.5
		case 3, 4:
			return []any{"a", true, ""}[random.IntN(3)]
		case 5:
			return json.Number("1.0")
		case 6:
			items := []any{}
			for range random.IntN(3) {
				items = append(items, value(depth+1))
			}
			return items
		}
		o := map[string]any{}
		for range random.IntN(4) {
			o[[]string{"a", "b", "c", "17", "18", "o-1"}[random.IntN(6)]] = value(depth + 1)
		}
		return o
	}
	for range 3000 {
		var values []any
		for range 1 + random.IntN(4) {
			values = append(values, value(0))
		}
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		checkShape(t, text)
	}
}

// checkShape makes a schema of the values of a list.
func checkShape(t *testing.T, text []byte) {
	d, err := document.Parse(text, document.Limits{})
	if err != nil || d.Root().Kind() != document.Array || len(text) > 4096 {
		return
	}
	var values []string
	for n := d.Root().First(); n.Valid(); n = n.Next() {
		values = append(values, string(n.AppendRaw(nil)))
	}
	d.Release()
	made := schemaOf(values...)
	slices.Reverse(values)
	if other := schemaOf(values...); other != made {
		t.Fatalf("%s: %s, in the other order %s", text, made, other)
	}
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(made))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("seen.json", schema); err != nil {
		t.Fatal(err)
	}
	judge, err := compiler.Compile("seen.json")
	if err != nil {
		t.Fatalf("%s: %v", made, err)
	}
	for _, v := range values {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(v))
		if err != nil {
			continue // a number that the library cannot hold
		}
		if err := judge.Validate(value); err != nil {
			t.Fatalf("%s is not allowed by %s: %v", v, made, err)
		}
	}
}

// TestTemplates finds the variables of paths.
func TestTemplates(t *testing.T) {
	names := map[string]bool{"/users/alice": true}
	for _, tt := range []struct {
		target, path string
		values       map[string]string
	}{
		{"/v2/orders/17?a=b", "/v2/orders/{orderId}", map[string]string{"orderId": "17"}},
		{"/users/alice", "/users/{userId}", map[string]string{"userId": "alice"}},
		{"/users/me", "/users/me", map[string]string{}},
		{"/v1beta1/x/sha256", "/v1beta1/x/sha256", map[string]string{}},
		{"/17/18", "/{id}/{id2}", map[string]string{"id": "17", "id2": "18"}},
		{"/categories/3f2b8c1e-7d4a-4e6b-9c55-0a1b2c3d4e5f/items/o-17", "/categories/{categoryId}/items/{itemId}",
			map[string]string{"categoryId": "3f2b8c1e-7d4a-4e6b-9c55-0a1b2c3d4e5f", "itemId": "o-17"}},
		{"/line-items/507f1f77bcf86cd799439011", "/line-items/{lineItemId}",
			map[string]string{"lineItemId": "507f1f77bcf86cd799439011"}},
		{"/charges/ch_3MqLiJLkdIwHu7ix", "/charges/{chargeId}", map[string]string{"chargeId": "ch_3MqLiJLkdIwHu7ix"}},
		{"/files/a%20b", "/files/{fileId}", map[string]string{"fileId": "a b"}},
		{"/tokens/12345678", "/tokens/{tokenId}", map[string]string{"tokenId": "example"}},
		{"/mail/jane@example.com", "/mail/{mailId}", map[string]string{"mailId": "jane@example.com"}},
		{"/address/1", "/address/{addressId}", map[string]string{"addressId": "1"}},
		{"/", "/", map[string]string{}},
	} {
		path, values := templateOf(tt.target, names)
		if path != tt.path || !reflect.DeepEqual(values, tt.values) {
			t.Errorf("%s: %s, %v, want %s, %v", tt.target, path, values, tt.path, tt.values)
		}
	}
}

// A call is an entry of an archive.
type call struct {
	method, path, body, answer string
	code                       int
}

func (c *call) media() string {
	if c.method == "PATCH" {
		return "application/merge-patch+json"
	}
	return "application/json"
}

func archiveOf(t *testing.T, calls []call) []byte {
	t.Helper()
	var entries []any
	for _, c := range calls {
		request := map[string]any{"method": c.method, "url": "http://shop.example.com" + c.path}
		if c.body != "" {
			request["postData"] = map[string]any{"mimeType": c.media(), "text": c.body}
		}
		entries = append(entries, map[string]any{"request": request, "response": map[string]any{
			"status": c.code, "content": map[string]any{"mimeType": "application/json", "text": c.answer},
		}})
	}
	text, err := json.Marshal(map[string]any{"log": map[string]any{"entries": entries}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRecordedIsAdmitted: what is made of an archive admits every call of it that the API carried out, also patches of
// members that no object was created with, and its own test passes.
func TestRecordedIsAdmitted(t *testing.T) {
	calls := []call{
		{"POST", "/users", `{"name":"alice","age":30}`, `{"id":"u-1","name":"alice"}`, 201},
		{"POST", "/users", `{"name":"bob","age":null,"tags":["a"]}`, `{"id":"u-2","name":"bob"}`, 201},
		{"PUT", "/users/alice", `{"name":"alice","age":31,"more":{"a":1}}`, `{"name":"alice"}`, 200},
		{"PATCH", "/users/alice", `{"age":"unknown","note":"x","more":{"b":2}}`, `{"name":"alice"}`, 200},
		{"PATCH", "/users/bob", `{"age":null,"tags":[1]}`, `{"name":"bob"}`, 200},
		{"GET", "/users/bob?expand=a,b&page[size]=3", "", `{"name":"bob"}`, 200},
		{"GET", "/users/me", "", `{"name":"bob"}`, 200},
		{"POST", "/users/bob/activate", "", "", 204},
		{"POST", "/users/alice/activate", `[1,2]`, "", 204},
		{"POST", "/search", `"tea"`, `[]`, 200},
		{"DELETE", "/users/bob", "", "", 204},
		{"POST", "/users", `{"name":5}`, "", 422},
	}
	dir := t.TempDir()
	made, err := ForArchive("calls.har", dir, archiveOf(t, calls))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range made.Files {
		testutil.WriteFile(t, filepath.Join(dir, file), string(text))
	}
	summary, err := policytest.Run(context.Background(), policytest.Options{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range summary.Results {
		if len(r.Problems) > 0 {
			t.Errorf("%s: %s", r.ID, r.Problems)
		}
	}
	if made.Cases < 6 || summary.Passed != made.Cases {
		t.Errorf("%d of %d cases pass", summary.Passed, made.Cases)
	}
	compiled := policies.CompileWithPlans(
		source.Of([]source.File{{Name: "calls.yaml", Data: made.Files["calls.yaml"]}}))
	if compiled.Set == nil {
		t.Fatal(compiled.Found)
	}
	trial, err := policytest.NewTrial(compiled.Set)
	if err != nil {
		t.Fatal(err)
	}
	defer trial.Close()
	for _, c := range calls {
		request := &testcase.Request{Method: c.method, Path: c.path}
		if c.body != "" {
			request.Body, request.ContentType = json.RawMessage(c.body), c.media()
		}
		one := &testcase.Case{Name: c.method + " " + c.path, Request: request}
		if strings.HasPrefix(c.path, "/users/") && c.method != "POST" {
			name, _, _ := strings.Cut(strings.TrimPrefix(c.path, "/users/"), "?")
			one.Existing = fmt.Appendf(nil, `{"name":%q}`, name)
		}
		answer, err := trial.Play(one)
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			continue
		}
		if isRefused := answer.Code == 422; isRefused != (c.code == 422) { // the API in memory may refuse it otherwise
			t.Errorf("%s %s: %d, %s", one.Name, c.body, answer.Code, answer.Message)
		}
	}
	if want := []string{
		"1 that the API did not carry out (400 and above) says nothing of what it takes.",
		"The test has bodies and paths as they were recorded, but for what looks like a secret by its name: read it before you share it.",
	}; !reflect.DeepEqual(made.Remarks, want) {
		t.Errorf("remarks %q, want %q", made.Remarks, want)
	}
}

// TestMasked: no secret of an archive is written down.
func TestMasked(t *testing.T) {
	calls := []call{{"POST", "/login?api_key=S3CRET", `{"user":"a","password":"S3CRET","deep":[{"clientSecret":"S3CRET","pin":"S3CRET"}]}`, `{"access_token":"S3CRET"}`, 200}}
	made, err := ForArchive("calls.har", t.TempDir(), archiveOf(t, calls))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range made.Files {
		if bytes.Contains(text, []byte("S3CRET")) {
			t.Errorf("%s has a secret:\n%s", name, text)
		}
	}
}

// FuzzArchive: any archive is an error, or files that load and a test that passes.
func FuzzArchive(f *testing.F) {
	f.Add([]byte(`{"log":{"entries":[{"request":{"method":"POST","url":"http://a/b/1?x=%zz","postData":{"mimeType":"application/json","text":"{\"a\":1}"}},"response":{"status":200}}]}}`))
	f.Add([]byte(`{"log":{"entries":[{"request":{"method":"PATCH","url":"/a b/{c}/..","postData":{"mimeType":"a/b","text":"x"}},"response":{"status":200}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := recorded.Archive(data); err != nil || len(data) > 1<<14 {
			return
		}
		made, err := ForArchive("calls.har", "/policies", data)
		if err == nil && len(made.Files) < 3 {
			t.Errorf("%d files", len(made.Files))
		}
		if _, isRefused := err.(Refusal); isRefused {
			t.Errorf("what is made does not load: %v", err)
		}
	})
}
