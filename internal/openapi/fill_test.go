package openapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/openapi"
)

// TestDefaultsOff: the document, a path or an operation says whether the defaults of its schemas are filled in. What
// the gateway's own keywords say stays.
func TestDefaultsOff(t *testing.T) {
	const text = `{"openapi":"3.0.3","info":{"title":"Tasks","version":"v1"},ROOT"paths":{
 "/tasks":{COLLECTION"get":{"responses":{"200":{"description":"ok"}}},
  "post":{POST"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Task"}}}},"responses":{"201":{"description":"ok"}}}},
 "/tasks/{id}":{OBJECT"get":{GET"responses":{"200":{"description":"ok","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Task"}}}}}},
  "put":{PUT"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Task"}}}},"responses":{"200":{"description":"ok"}}}}},
 "components":{"schemas":{"Task":{"type":"object","properties":{"id":{"type":"string"},"size":{"type":"integer","default":3},
  "note":{"type":"string","x-admission-gateway-default":{"expression":"self.id"}}}}}}}`
	read := map[string]string{"GET": `"x-admission-gateway-resource":{"readDefaults":"Fill"},`}
	said := func(value string) string { return `"x-admission-gateway-resource":{"defaults":"` + value + `"},` }
	for _, c := range []struct {
		at   map[string]string
		want string // whether objects that are created, that replace others and that are read get them
	}{
		{nil, "true true false 1"},
		{read, "true true true 1"},
		{map[string]string{"ROOT": `"x-admission-gateway-resource":{"readDefaults":"Fill"},`}, "true true true 1"},
		{map[string]string{"ROOT": `"x-admission-gateway-resource":{"readDefaults":"Fill"},`,
			"OBJECT": `"x-admission-gateway-resource":{"readDefaults":"Off"},`}, "true true false 1"},
		{map[string]string{"ROOT": `"x-admission-gateway-resource":{"readDefaults":"On"},`},
			"x-admission-gateway-resource.readDefaults: must be 'Fill' or 'Off'"},
		{map[string]string{"ROOT": `"x-admission-gateway-resource":{"readDefaults":"Fill","defaults":"Off"},`},
			"false false false 0"},
		{map[string]string{"ROOT": said("Off")}, "false false false 0"},
		{map[string]string{"ROOT": said("Fill"), "GET": read["GET"]}, "true true true 1"},
		{map[string]string{"OBJECT": said("Off")}, "true false false 1"},
		{map[string]string{"COLLECTION": said("Off"), "GET": read["GET"]}, "false true true 1"},
		{map[string]string{"POST": said("Off"), "GET": read["GET"]}, "false true true 1"},
		{map[string]string{"PUT": said("Off"), "GET": read["GET"]}, "true false true 1"},
		{map[string]string{"ROOT": said("Off"), "POST": said("Fill")}, "true false false 1"},
		{map[string]string{"OBJECT": said("Off"), "PUT": said("Fill")}, "true true false 1"},
		{map[string]string{"ROOT": said("No")}, "x-admission-gateway-resource.defaults: must be 'Fill' or 'Off'"},
		{map[string]string{"ROOT": `"x-admission-gateway-resource":{"nulls":"Off"},`},
			"x-admission-gateway-resource.nulls: must be 'Default' or 'Keep'"},
		{map[string]string{"POST": `"x-admission-gateway-resource":{"nulls":"Default"},`, "GET": read["GET"]},
			"true true true 1"},
		{map[string]string{"POST": `"x-admission-gateway-resource":{"group":"a"},`},
			"paths[/tasks].post.x-admission-gateway-resource.group: must be 'defaults', 'readDefaults' or 'nulls', which are all that an operation may say: set it at the path"},
	} {
		one := text
		for _, name := range []string{"ROOT", "COLLECTION", "OBJECT", "GET", "POST", "PUT"} {
			one = strings.Replace(one, name, c.at[name], 1)
		}
		parsed, err := document.Parse([]byte(one), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := openapi.New(parsed)
		if err != nil {
			t.Fatal(err)
		}
		resources, _, found := d.Resources(nil)
		fills := func(s *openapi.Schema) bool {
			return s != nil && compiled(t, s).Root().Property("size").Shape.Default() != nil
		}
		got := fmt.Sprint(fills(resources[0].Create), fills(resources[0].Update), fills(resources[0].Read), d.Filled())
		if i := slices.IndexFunc(found, func(f openapi.Finding) bool { return f.Error }); i >= 0 {
			got = found[i].Path + ": " + found[i].Message
		} else if len(compiled(t, resources[0].Create).Derived()) != 1 {
			t.Errorf("%v: the gateway's own default is gone", c.at)
		}
		if got != c.want {
			t.Errorf("%v: got %s, want %s", c.at, got, c.want)
		}
	}
}
