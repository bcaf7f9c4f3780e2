package proxy

import (
	"strings"
	"testing"
)

// TestNulls: null for a field with a default is a value, unless the document, a path or an operation lets the default
// take its place. Then the client learns of each one.
func TestNulls(t *testing.T) {
	const text = `
openapi: 3.0.3
info: {title: Users, version: v1}
ROOT
paths:
  /users:
    post: {responses: {}, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}}
  /users/{id}:
    PATH
    get: {responses: {'200': {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}}}
    put: {PUT responses: {}, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}}
    patch: {responses: {}}
components:
  schemas:
    User:
      type: object
      properties:
        kind: {type: string, default: person}
        size: {type: integer, nullable: true, default: 3}
        none: {type: string, nullable: true, default: null}
        name: {type: string}
        tags: {type: array, items: {type: object, properties: {n: {type: integer, default: 1}}}}
        more: {type: object, additionalProperties: {type: string, default: x}}
`
	const requests = `
		POST /users application/json {"kind":null}
		POST /users application/json {"size":null,"none":null,"kind":"a"}
		POST /users application/json {"tags":[{"n":null},{"n":2}],"more":{"a":null}}
		POST /users application/json {"name":null}
		PUT /users/1 application/json {"size":null}
		PATCH /users/1 application/json {"size":null}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		GET /users/1
`
	for name, c := range map[string]struct{ root, path, put, want string }{
		"kept": {want: `
		POST /users application/json {"kind":null}
		  422 User is invalid: kind: Invalid value: "null": must be of type string
		POST /users application/json {"size":null,"none":null,"kind":"a"}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"size":null,"none":null,"kind":"a"}
		POST /users application/json {"tags":[{"n":null},{"n":2}],"more":{"a":null}}
		  422 User is invalid: [tags[0].n: Invalid value: "null": must be of type integer, more[a]: Invalid value: "null": must be of type string]
		POST /users application/json {"name":null}
		  422 User is invalid: name: Invalid value: "null": must be of type string
		PUT /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PUT /users/1 application/json {"size":null,"kind":"person"}
		PATCH /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json {"size":3}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		GET /users/1
		  200 {"id":"1","size":null,"kind":"a"}
`},
		"for all": {root: "x-admission-gateway-resource: {nulls: Default, readDefaults: Fill}", want: `
		POST /users application/json {"kind":null}
		  warning: 299 - "field \"kind\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"kind":"person","size":3}
		POST /users application/json {"size":null,"none":null,"kind":"a"}
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"size":3,"none":null,"kind":"a"}
		POST /users application/json {"tags":[{"n":null},{"n":2}],"more":{"a":null}}
		  warning: 299 - "field \"tags[0].n\" is null: its default takes the place of null"
		  warning: 299 - "field \"more.a\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"tags":[{"n":1},{"n":2}],"more":{"a":"x"},"kind":"person","size":3}
		POST /users application/json {"name":null}
		  422 User is invalid: name: Invalid value: "null": must be of type string
		PUT /users/1 application/json {"size":null}
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PUT /users/1 application/json {"size":3,"kind":"person"}
		PATCH /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json {"size":3}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		GET /users/1
		  200 {"id":"1","size":3,"kind":"a"}
`},
		"for a path": {path: "x-admission-gateway-resource: {nulls: Default, readDefaults: Fill}", want: `
		POST /users application/json {"kind":null}
		  422 User is invalid: kind: Invalid value: "null": must be of type string
		POST /users application/json {"size":null,"none":null,"kind":"a"}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"size":null,"none":null,"kind":"a"}
		POST /users application/json {"tags":[{"n":null},{"n":2}],"more":{"a":null}}
		  422 User is invalid: [tags[0].n: Invalid value: "null": must be of type integer, more[a]: Invalid value: "null": must be of type string]
		POST /users application/json {"name":null}
		  422 User is invalid: name: Invalid value: "null": must be of type string
		PUT /users/1 application/json {"size":null}
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PUT /users/1 application/json {"size":3,"kind":"person"}
		PATCH /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json {"size":3}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		GET /users/1
		  200 {"id":"1","size":3,"kind":"a"}
`},
		"but for an operation": {root: "x-admission-gateway-resource: {nulls: Default, readDefaults: Fill}", put: "x-admission-gateway-resource: {nulls: Keep},", want: `
		POST /users application/json {"kind":null}
		  warning: 299 - "field \"kind\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"kind":"person","size":3}
		POST /users application/json {"size":null,"none":null,"kind":"a"}
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"size":3,"none":null,"kind":"a"}
		POST /users application/json {"tags":[{"n":null},{"n":2}],"more":{"a":null}}
		  warning: 299 - "field \"tags[0].n\" is null: its default takes the place of null"
		  warning: 299 - "field \"more.a\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"tags":[{"n":1},{"n":2}],"more":{"a":"x"},"kind":"person","size":3}
		POST /users application/json {"name":null}
		  422 User is invalid: name: Invalid value: "null": must be of type string
		PUT /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PUT /users/1 application/json {"size":null,"kind":"person"}
		PATCH /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json {"size":3}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		  warning: 299 - "field \"size\" is null: its default takes the place of null"
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		GET /users/1
		  200 {"id":"1","size":3,"kind":"a"}
`},
		"without any defaulting": {root: "x-admission-gateway-resource: {nulls: Default, defaults: Off}", want: `
		POST /users application/json {"kind":null}
		  422 User is invalid: kind: Invalid value: "null": must be of type string
		POST /users application/json {"size":null,"none":null,"kind":"a"}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: POST /users application/json {"size":null,"none":null,"kind":"a"}
		POST /users application/json {"tags":[{"n":null},{"n":2}],"more":{"a":null}}
		  422 User is invalid: [tags[0].n: Invalid value: "null": must be of type integer, more[a]: Invalid value: "null": must be of type string]
		POST /users application/json {"name":null}
		  422 User is invalid: name: Invalid value: "null": must be of type string
		PUT /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PUT /users/1 application/json {"size":null}
		PATCH /users/1 application/json {"size":null}
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json {"size":null}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		  200 {"id":"1","size":null,"kind":"a"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/size","value":null}]
		GET /users/1
		  200 {"id":"1","size":null,"kind":"a"}
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{object: `{"id":"1","size":null,"kind":"a"}`}
			document := strings.NewReplacer("ROOT", c.root, "PATH", c.path, "PUT", c.put).Replace(text)
			compareLines(t, s.play(t, document, requests), c.want)
		})
	}
}
