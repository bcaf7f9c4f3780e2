package manifest

import (
	"testing"
)

// OpenAPI documents are objects among others, read as YAML 1.2: their words are words, and their codes keys.
func TestOpenAPI(t *testing.T) {
	objects, errs := Read("a.yaml", []byte(`
openapi: 3.1.0
info: {title: Pets, version: "1"}
paths:
  /pets:
    post:
      responses: {200: {description: ok}, 4XX: {description: refused}, default: {}}
components:
  schemas:
    Switch: {type: string, enum: [on, off, yes, y], default: no}
    Truth: {type: boolean, default: true, nullable: False}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {openapi: no}
---
openapi: 3
kind: Odd
apiVersion: v1
metadata: {name: b}
`))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	if len(objects) != 3 {
		t.Fatalf("got %d objects", len(objects))
	}
	o := objects[0]
	const want = `{"openapi":"3.1.0","info":{"title":"Pets","version":"1"},"paths":{"/pets":{"post":{"responses":{"200":{"description":"ok"},` +
		`"4XX":{"description":"refused"},"default":{}}}}},"components":{"schemas":{"Switch":{"type":"string","enum":["on","off","yes","y"],` +
		`"default":"no"},"Truth":{"type":"boolean","default":true,"nullable":false}}}}`
	if string(o.JSON) != want || !o.OpenAPI || o.Kind != "OpenAPI" || o.APIVersion != "3.1.0" || o.Name != "Pets" {
		t.Errorf("got %+v", o)
	}
	if got := o.Line("paths[/pets].post.responses[4XX]"); got != 7 {
		t.Errorf("got line %d", got)
	}
	if got := string(objects[1].JSON); got != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"openapi":false}}` || objects[1].OpenAPI {
		t.Errorf("got %s", got)
	}
	if objects[2].OpenAPI || objects[2].Kind != "Odd" {
		t.Errorf("got %+v", objects[2])
	}
	objects, errs = Read("a.json", []byte(`{"openapi": "3.0.3", "info": {"title": "A"}, "paths": {}}`))
	if len(errs) > 0 || len(objects) != 1 || !objects[0].OpenAPI || objects[0].Name != "A" {
		t.Errorf("got %v, %v", objects, errs)
	}
}

func TestOpenAPIRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"swagger: []\n":                         "a.yaml:1: swagger: must be the version of the specification that the document follows, such as '3.0.3'",
		"openapi: {}\n":                         "a.yaml:1: openapi: must be the version of the specification that the document follows, such as '3.0.3'",
		"openapi: 3.0.0\npaths: {a: 1, a: 2}\n": "a.yaml:2: paths.a: must not be set twice; it is set on line 2 already",
		"a: 1\n":                                "a.yaml:1: apiVersion: Required value",
	} {
		_, errs := Read("a.yaml", []byte(text))
		if len(errs) == 0 || errs[0].Error() != want {
			t.Errorf("%q: got %v, want %s", text, errs, want)
		}
	}
}
