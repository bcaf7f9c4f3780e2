package openapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/openapi"
)

// TestShown: the schemas say where the answer to a GET has the object, or that nobody knows.
func TestShown(t *testing.T) {
	const text = `{"openapi":"3.0.3","info":{"title":"Tasks","version":"v1"},"paths":{"/tasks/{id}":{SETTING
 "get":{"responses":{"200":{"description":"ok"ANSWER}}},CHANGES}},
 "components":{"schemas":{
 "Task":{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"owner":{"type":"string"},"secret":{"type":"string","writeOnly":true}}},
 "Change":{"type":"object","properties":{"title":{"type":"string"},"secret":{"type":"string","writeOnly":true}}},
 "Other":{"type":"object","properties":{"name":{"type":"string"}}},
 "Either":{"oneOf":[{"$ref":"#/components/schemas/Task"},{"$ref":"#/components/schemas/Other"}]},
 "Free":{"type":"object"}}}}`
	ref := func(name string) string { return `{"$ref":"#/components/schemas/` + name + `"}` }
	json := func(schema string) string { return `,"content":{"application/json":{"schema":` + schema + `}}` }
	change := func(method, schema string) string {
		return `"` + method + `":{"requestBody":{"description":"b"` + json(schema) +
			`},"responses":{"200":{"description":"ok"}}}`
	}
	object := func(members string) string { return json(`{"type":"object","properties":{` + members + `}}`) }
	for name, c := range map[string]struct{ setting, answer, changes, want string }{
		"the same schema":        {"", json(ref("Task")), change("put", ref("Task")), `"" ""`},
		"more than the body has": {"", json(ref("Task")), change("patch", ref("Change")), `"" ""`},
		"what is writeOnly is not shown": {"", object(`"title":{"type":"string"}`), change("put", ref("Change")),
			`"" ""`},
		"an alternative": {"", json(ref("Either")), change("put", ref("Other")), `"" ""`},
		"within a member": {"", object(`"data":` + ref("Task") + `,"meta":{"type":"object"}`),
			change("put", ref("Task")), `"data" ""`},
		"within a member, of a patch": {"", object(`"key":` + ref("Task")), change("patch", ref("Change")), `"key" ""`},
		"within two members": {"", object(`"a":` + ref("Task") + `,"b":` + ref("Task")),
			change("put", ref("Change")), `"" "several of its own have all of them"`},
		"within a list": {"", object(`"data":{"type":"array","items":` + ref("Task") + `}`),
			change("put", ref("Change")), `"" "none of its own has all of them"`},
		"less than the body has": {"", object(`"id":{"type":"string"}`), change("put", ref("Task")),
			`"" "none of its own has all of them"`},
		"another object":                  {"", json(ref("Other")), change("put", ref("Task")), `"" "none of its own has all of them"`},
		"no schema":                       {"", "", change("put", ref("Task")), `"" "GET declares no schema of its answer"`},
		"a body of which nothing is said": {"", "", change("put", ref("Free")), `"" ""`},
		"no change":                       {"", json(ref("Other")), `"head":{"responses":{"200":{"description":"ok"}}}`, `"" ""`},
		"the file says where": {`"x-admission-gateway-resource":{"fields":{"answer":""}},`,
			json(ref("Other")), change("put", ref("Task")), `"" ""`},
		"the file says that nothing is known": {`"x-admission-gateway-resource":{"storedObject":"Unknown"},`,
			json(ref("Task")), change("put", ref("Task")), `"" ""`},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := document.Parse(
				[]byte(strings.NewReplacer("SETTING", c.setting, "ANSWER", c.answer, "CHANGES",
					c.changes).Replace(text)), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := openapi.New(parsed)
			if err != nil {
				t.Fatal(err)
			}
			resources, _, _ := d.Resources(nil)
			why := resources[0].Unshown
			if i := strings.LastIndex(why, ", and "); i >= 0 {
				why = why[i+len(", and "):]
			}
			if got := fmt.Sprintf("%q %q", resources[0].Answer, why); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
