package manifest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

// TestDocumentAgain: the document of an object that the collector has freed is parsed again. Those of OpenAPI documents
// and fragments, which may be large, stay.
func TestDocumentAgain(t *testing.T) {
	objects, errs := Read("a.yaml", []byte("apiVersion: v1\nkind: K\nmetadata: {name: n}\na: [1, {b: c}]\n---\nopenapi: 3.0.3\ninfo: {title: t}\n"))
	part, more := ReadFragment("b.yaml", []byte("a: 1\n"), nil)
	if len(errs)+len(more) > 0 || len(objects) != 2 {
		t.Fatal(objects, errs, more)
	}
	o := objects[0]
	for range 10 {
		if runtime.GC(); o.parsed.last.Value() == nil {
			break
		}
	}
	if o.parsed.last.Value() != nil || objects[1].parsed.last.Value() == nil || part.parsed.last.Value() == nil {
		t.Fatal("a document that is not in use stays, or a large one does not")
	}
	if got := o.Document().AppendTo(nil); !bytes.Equal(got, o.JSON) {
		t.Errorf("the document is %s, and was %s", got, o.JSON)
	}
	if n, found := o.At("a[1].b"); !found || n.Kind() != document.String || o.Line("a[1].b") != 4 {
		t.Errorf("a[1].b is found: %v, as %v in line %d", found, n.Kind(), o.Line("a[1].b"))
	}
}
