package policies

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestFilesWithinMemory: files that would take more memory than there is are refused one by one, and what was asked for
// is given back.
func TestFilesWithinMemory(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, test := range []struct {
		name string
		file source.File
		want string
	}{
		{"small", source.File{Name: "a.yaml", Data: []byte(head)}, ""},
		{"a flow list", source.File{Name: "a.yaml",
			Data: []byte(head + "data: [" + strings.Repeat("a,", 100_000) + "a]\n")},
			"a.yaml: takes more memory to read, about 39603054 bytes, than is left of `limits.bodiesInFlightBytes`: split it, or give the gateway more memory"},
		{"many small objects", source.File{Name: "a.yaml", Data: []byte(strings.Repeat(head+"---\n", 2000))},
			"takes more memory than is left of `limits.bodiesInFlightBytes`"},
		{"a module", source.File{Name: "a/b.rego", Role: source.Module,
			Data: []byte("package a\nx := [" + strings.Repeat("1,", 10_000) + "1]\n")},
			"a/b.rego: takes more memory to read"},
		{"data", source.File{Name: "a/data.json", Role: source.Data,
			Data: []byte(`{"a": [` + strings.Repeat("1,", 100_000) + "1]}")}, "a/data.json: takes more memory to read"},
	} {
		budget := memory.NewBudget(8<<20, 1)
		_, found := CompileFor(source.Of([]source.File{test.file}), Gateway{Memory: budget})
		refused := ""
		for _, f := range found {
			if f.Severity == Error && (refused == "" || strings.Contains(f.String(), test.want)) {
				refused = f.String()
			}
		}
		if (test.want == "") != (refused == "") || !strings.Contains(refused, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, refused, test.want)
		}
		if budget.InUse() != 0 {
			t.Errorf("%s: %d bytes are not given back", test.name, budget.InUse())
		}
	}
}

// TestDocumentsAreFreed: of an OpenAPI document a set keeps what was compiled, and neither its text nor how it was
// parsed.
func TestDocumentsAreFreed(t *testing.T) {
	text := `{"openapi": "3.1.0", "info": {"title": "Parcels", "version": "v1"},
		"x-admission-gateway-resource": {"upstream": "parcels"},
		"paths": {
			"/parcels": {"post": {
				"parameters": [{"name": "page", "in": "query", "schema": {"enum": [{"a": 1}, 2]}}],
				"requestBody": {"content": {
					"application/json": {"schema": {"$ref": "#/components/schemas/Parcel"}},
					"multipart/form-data": {"schema": {"type": "object", "properties": {"scan": {"type": "string", "format": "binary"}}}}}},
				"responses": {"201": {"description": "made"}}}},
			"/parcels/{id}": {
				"get": {"responses": {"200": {"description": "read", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Parcel"}}}}}},
				"put": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Parcel"}}}}, "responses": {"200": {"description": "written"}}}},
			"/search": {"post": {"requestBody": {"content": {"application/json": {"schema": {"type": "array", "items": {"const": "x"}}}}}, "responses": {"200": {"description": "found"}}}}},
		"components": {"schemas": {"Parcel": {"type": "object", "required": ["weight"], "properties": {
			"id": {"type": "string", "readOnly": true}, "color": {"type": "string", "default": "white"},
			"weight": {"type": "integer", "minimum": 1.5, "x-admission-gateway-immutable": true}}}}}}`
	var alive atomic.Int64
	free := func(n *atomic.Int64) { n.Add(-1) }
	set := func() *Set {
		l := newLoader(&Gateway{})
		set := l.load(source.Of([]source.File{{Name: "a.json", Data: []byte(text)}}))
		for _, f := range l.Found {
			if f.Severity == Error {
				t.Fatal(f)
			}
		}
		for _, o := range l.all {
			alive.Add(3)
			runtime.AddCleanup(o, free, &alive)
			runtime.AddCleanup(o.Document(), free, &alive)
			runtime.AddCleanup(&o.JSON[0], free, &alive)
		}
		return set
	}()
	if alive.Load() == 0 {
		t.Fatal("the loader read no object")
	}
	for range 100 {
		if runtime.GC(); alive.Load() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := alive.Load(); n != 0 {
		t.Errorf("%d of 3 parts of the document are still there", n)
	}
	runtime.KeepAlive(set)
}
