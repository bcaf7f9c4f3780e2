package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// A keeper is an API that keeps one object, which PUT replaces and PATCH patches, and shows it in a way of its own.
type keeper struct {
	sync.Mutex
	stored string
	// shows returns the answer to a GET.
	shows func(stored string) string
	told  []string
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	k.Lock()
	defer k.Unlock()
	k.told = append(k.told,
		strings.TrimSpace(fmt.Sprintln("backend:", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"),
			string(body))))
	w.Header().Set("Content-Type", "application/json")
	switch r.Method {
	case http.MethodPut:
		k.stored = string(body)
	case http.MethodPatch:
		if !k.patch(body, r.Header.Get("Content-Type")) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"cannot be patched so"}`)
			return
		}
	case http.MethodDelete:
		k.stored = ""
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Method != http.MethodGet {
		_, _ = io.WriteString(w, `{"code":"done"}`)
		return
	}
	_, _ = io.WriteString(w, k.shows(k.stored))
}

// patch changes what is stored by a patch.
func (k *keeper) patch(body []byte, contentType string) bool {
	d, err := document.Parse([]byte(k.stored), document.Limits{})
	if err != nil {
		return false
	}
	defer d.Release()
	p, err := document.Parse(body, document.Limits{})
	if err != nil {
		return false
	}
	defer p.Release()
	if contentType == "application/json-patch+json" {
		if d.ApplyJSONPatch(p.Root(), document.Limits{}) != nil {
			return false
		}
	} else {
		d.MergePatch(p.Root())
	}
	k.stored = string(d.AppendTo(nil))
	return true
}

// play sends requests in lines such as 'PUT /tasks/1 application/json {}' by a gateway with the files, each to an API
// that stores the same, and tells all that the API gets, what it stores then if that is not the same, and the answers.
// Words between the type and the body such as '[Accept: text/html]' are headers.
func (k *keeper) play(t *testing.T, files, requests string) string {
	t.Helper()
	backend := httptest.NewServer(k)
	t.Cleanup(backend.Close)
	dir := policiestest.Write(t, files)
	url := "http://" + startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
	var told strings.Builder
	for line := range strings.Lines(requests) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		before := k.stored
		_, _ = fmt.Fprintln(&told, line)
		_, _ = fmt.Fprintln(&told, " ", k.send(t, url, line))
		k.Lock()
		for _, one := range k.told {
			_, _ = fmt.Fprintln(&told, " ", one)
		}
		if k.stored != before {
			_, _ = fmt.Fprintln(&told, "  stored:", k.stored)
		}
		k.stored, k.told = before, nil
		k.Unlock()
	}
	return told.String()
}

// send sends one request and returns the answer.
func (k *keeper) send(t *testing.T, url, line string) string {
	t.Helper()
	words := strings.SplitN(line+"   ", " ", 4)
	header, body, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(words[3])+" ", "["), "] ")
	if !found || !strings.HasPrefix(words[3], "[") || !strings.Contains(header, ": ") {
		header, body = "", words[3]
	}
	r, err := http.NewRequest(words[0], url+words[1], strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		t.Fatal(err)
	}
	if words[2] != "" && words[2] != "-" {
		r.Header.Set("Content-Type", words[2])
	}
	if name, value, found := strings.Cut(header, ": "); found {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var refusal metav1.Status
	if resp.StatusCode >= 400 && json.Unmarshal(answer, &refusal) == nil && refusal.Message != "" {
		answer = []byte(strings.ReplaceAll(refusal.Message, "`", "´")) // which a text in Go can have
	}
	said := fmt.Sprintf("%d %s", resp.StatusCode, answer)
	for _, warning := range resp.Header.Values("Warning") {
		said += "\n  warning: " + warning
	}
	return said
}

func asStored(stored string) string { return stored }

func wrapped(stored string) string { return `{"data":` + stored + `,"meta":{"took":1}}` }

// without returns how an API shows objects that does not show some of the members.
func without(names ...string) func(string) string {
	return func(stored string) string {
		d, err := document.Parse([]byte(stored), document.Limits{})
		if err != nil {
			return stored
		}
		defer d.Release()
		for _, name := range names {
			if m, found := d.Root().Get(name); found {
				d.Remove(m)
			}
		}
		return string(d.AppendTo(nil))
	}
}

// TestPatchDefaults: the defaults that are sent with a patch are those of what the patch itself brings. A member that
// the answer to a GET does not show may be stored.
func TestPatchDefaults(t *testing.T) {
	const resource = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: tasks}
spec:
  version: v1
  names: {plural: tasks, kind: Task}
  paths: {item: "/tasks/{name}"}
  concurrency: BestEffort
  fields: {status: state}
  backend: {patch: PATCH}
  readDefaults: 'READ'
  schema:
    openAPIV3Schema:
      type: object
      properties:
        title: {type: string}
        priority: {type: string, default: mid}
        half: {type: string, x-admission-gateway-default: {expression: "self.priority + '/2'"}}
        state: {type: object, default: {phase: New}, properties: {phase: {type: string}, turns: {type: integer, default: 0}}}
        opts: {type: object, properties: {level: {type: integer, default: 3}, name: {type: string}}}
        lines: {type: array, items: {type: object, properties: {sku: {type: string}, note: {type: string}, count: {type: integer, default: 1}}}}
        note: {type: string}
`
	const stored = `{"title":"t","priority":"high","half":"h","state":{"phase":"Run","turns":5},"opts":{"level":9,"name":"o"},"lines":[{"sku":"a","count":7}]}`
	shows := without("priority", "half", "state", "opts", "lines")
	for name, c := range map[string]struct {
		patch, read, requests string
		shows                 func(string) string
	}{
		"defaults-of-patches": {"Validated", "Off", `
			PATCH /tasks/1 application/merge-patch+json {"title":"n"}
			PATCH /tasks/1 application/merge-patch+json {"opts":{}}
			PATCH /tasks/1 application/merge-patch+json {"opts":{"name":"p"},"lines":[{"sku":"a"},{"sku":"b"}]}
			PATCH /tasks/1 application/merge-patch+json {"priority":null}
			PATCH /tasks/1 application/merge-patch+json {"title":null}
			PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/title","value":"n"}]
			PATCH /tasks/1 application/json-patch+json [{"op":"add","path":"/opts","value":{"name":"p"}},{"op":"add","path":"/lines","value":[{}]}]
			PATCH /tasks/1 application/json-patch+json [{"op":"add","path":"/opts","value":{}},{"op":"test","path":"/opts","value":{}}]
			PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/priority","value":"low"}]
		`, shows},
		"defaults-of-removed-members": {"Validated", "Off", `
			PATCH /tasks/1 application/merge-patch+json {"priority":null}
			PATCH /tasks/1 application/merge-patch+json {"half":null}
			PATCH /tasks/1 application/merge-patch+json {"opts":{"level":null}}
			PATCH /tasks/1 application/json-patch+json [{"op":"remove","path":"/priority"},{"op":"remove","path":"/opts/level"}]
		`, asStored},
		"defaults-of-items": {"Validated", "Off", `
			PATCH /tasks/1 application/json-patch+json [{"op":"add","path":"/lines/0","value":{"sku":"c"}}]
			PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/lines/0/sku","value":"c"}]
			PATCH /tasks/1 application/json-patch+json [{"op":"remove","path":"/lines/0"},{"op":"add","path":"/lines/-","value":{"sku":"c"}}]
			PATCH /tasks/1 application/json-patch+json [{"op":"remove","path":"/lines/0"}]
			PATCH /tasks/1 application/merge-patch+json {"lines":[{"sku":"a"},{"sku":"c"}]}
			PATCH /tasks/1 application/merge-patch+json {"title":"n"}
		`, func(string) string {
			return `{"title":"t","priority":"high","half":"h","lines":[{"sku":"a"},{"sku":"b"}]}`
		}},
		"defaults-of-reads": {"Validated", "Fill", `
			GET /tasks/1
			GET /tasks/1?fields=title
			GET /tasks/1 - [Accept: application/json, text/plain, */*]
			GET /tasks/1 - [Accept: application/vnd.tasks.short+json]
			GET /tasks/1 - [Accept: application/json;view=short]
			GET /tasks/1 - [Prefer: return=minimal]
			PATCH /tasks/1 application/merge-patch+json {"title":"n"}
			PATCH /tasks/1 application/merge-patch+json {"priority":"mid"}
			PATCH /tasks/1 application/merge-patch+json {"opts":{}}
			PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/title","value":"n"}]
			PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/priority","value":"low"}]
			PATCH /tasks/1 application/json-patch+json [{"op":"test","path":"/priority","value":"mid"}]
			PATCH /tasks/1 application/json-patch+json [{"op":"add","path":"/lines","value":[{"sku":"b"}]}]
		`, shows},
		"defaults-not-read": {"Validated", "Off", `
			GET /tasks/1
			GET /tasks/1?fields=title
		`, shows},
		"defaults-of-emulated-patches": {"Emulated", "Off", `
			PATCH /tasks/1 application/merge-patch+json {"title":"n"}
			PATCH /tasks/1 application/json-patch+json [{"op":"add","path":"/lines","value":[{"sku":"b"}]}]
		`, shows},
		"defaults-of-the-status": {"Validated", "Off", `
			PUT /tasks/1 application/json {"title":"n"}
			PUT /tasks/1/status application/json {"state":{"phase":"End"}}
			PATCH /tasks/1/status application/merge-patch+json {"state":{"phase":"End"}}
		`, shows},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeper{stored: stored, shows: c.shows}
			compareFile(t, name, k.play(t, strings.NewReplacer("PATCH", c.patch, "READ", c.read).Replace(resource),
				c.requests))
		})
	}
}

// compareFile compares with a file of testdata/stored.
func compareFile(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "stored", name+".txt")
	if *isUpdate {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestStoredShapes: whatever depends on the stored object takes it from the place in the answer to a GET where the file
// or the schemas say that it is. If none says so, nothing is made of the answer: what needs the object is refused, and
// the rest passes as it was sent.
func TestStoredShapes(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Tasks, version: v1}
x-admission-gateway-resource: {group: example.com, concurrency: BestEffort}
paths:
  /tasks/{id}:
    SETTING
    get: {responses: {'200': {description: ok, content: {application/json: {schema: ANSWER}}}}}
    put:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Task'}}}}
      responses: {'200': {description: ok}}
    patch:
      requestBody: {required: true, content: {application/json: {schema: {type: object, properties: {title: {type: string}, owner: {type: string}, rev: {type: integer}}}}}}
      responses: {'200': {description: ok}}
    delete: {responses: {'204': {description: gone}}}
components:
  schemas:
    Task:
      type: object
      properties:
        title: {type: string}
        priority: {type: string, default: mid}
        owner: {type: stringOWNER}
        rev: {type: integer}
        state: {type: object}
        made: {type: string, readOnly: true}
RULE
`
	const policy = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: tasks}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [UPDATE, DELETE], resources: [tasks]}]}
  validations: [{expression: "oldObject.owner != 'root'", message: root's}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: tasks}
spec: {policyName: tasks, validationActions: [Deny]}
`
	const task = "{$ref: '#/components/schemas/Task'}"
	shapes := map[string]struct {
		answer string
		shows  func(string) string
	}{
		"bare":    {task, asStored},
		"wrapped": {"{type: object, properties: {data: " + task + ", meta: {type: object}}}", wrapped},
		"sparse":  {task, without("priority", "rev", "state")},
		"differing": {"{type: object, properties: {id: {type: string}, attributes: {type: object}}}",
			func(string) string { return `{"id":"1","attributes":{"owner":"root"}}` }},
	}
	const writes = `
		PATCH /tasks/1 application/json {"title":"n"}
		PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/title","value":"n"}]
		PUT /tasks/1 application/json {"title":"n","priority":"low"}
		DELETE /tasks/1
		GET /tasks/1
	`
	const policies = writes + `
		PATCH /tasks/1 application/json {"title":7}
	`
	dependants := map[string]struct{ setting, owner, rule, more, requests string }{
		"nothing":        {requests: writes},
		"emulated-patch": {setting: "backend: {patch: Emulated}", requests: writes},
		"status": {setting: "fields: {status: state}", requests: writes +
			`PUT /tasks/1 application/json {"title":"n","state":{"phase":"End"}}`},
		"version": {setting: "fields: {version: rev}, backend: {versions: Field}, concurrency: Optimistic",
			requests: writes + `PUT /tasks/1 application/json {"title":"n","rev":3}
				PUT /tasks/1 application/json {"title":"n","rev":2}`},
		"name": {setting: "fields: {name: owner}", requests: writes + `PATCH /tasks/1 application/json {"owner":"else"}
				PATCH /tasks/1 application/json {"owner":"1"}
				PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/owner","value":"else"}]`},
		"immutable": {owner: ", x-admission-gateway-immutable: true", requests: writes + `PATCH /tasks/1 application/json {"owner":"else"}
				PUT /tasks/1 application/json {"owner":"else"}`},
		"rule":          {rule: `      x-kubernetes-validations: [{rule: "!has(self.title) || self.title != 'n' || self.priority != 'high'", message: no}]`, requests: writes},
		"policy":        {more: policy, requests: policies},
		"read-only":     {requests: `PUT /tasks/1 application/json {"title":"n","made":"now"}`},
		"read-defaults": {setting: "readDefaults: Fill", requests: writes},
		"refused":       {setting: "unknownObject: Refuse", requests: writes},
		"passed":        {setting: "unknownObject: Pass", more: policy, requests: policies},
	}
	for name, of := range dependants {
		for shape, shown := range shapes {
			t.Run(name+"/"+shape, func(t *testing.T) {
				setting := ""
				if of.setting != "" {
					setting = "x-admission-gateway-resource: {" + of.setting + "}"
				}
				files := strings.NewReplacer("SETTING", setting, "ANSWER", shown.answer, "OWNER", of.owner, "RULE",
					of.rule).Replace(document) + of.more
				k := &keeper{stored: `{"title":"t","priority":"high","owner":"ann","rev":3,"state":{"phase":"Run"},"made":"then"}`, shows: shown.shows}
				compareFile(t, "shapes-"+name+"-"+shape, k.play(t, files, of.requests))
			})
		}
	}
}

// TestStoredPlaces: the file says where bodies and answers have the object.
func TestStoredPlaces(t *testing.T) {
	const resource = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: tasks}
spec:
  version: v1
  names: {plural: tasks, kind: Task}
  paths: {item: "/tasks/{name}"}
  concurrency: BestEffort
  FIELDS
  backend: {patch: Emulated, dryRun: Emulated}
  readDefaults: Fill
  schema:
    openAPIV3Schema: SCHEMA
`
	const task = `{type: object, properties: {title: {type: string}, priority: {type: string, default: mid}, lines: {type: array, items: {type: object, properties: {sku: {type: string}}}}}}`
	const bodyOf = `{type: object, properties: {data: ` + task + `}}`
	const patches = `
		GET /tasks/1
		PATCH /tasks/1 application/json {"title":"n"}
		PATCH /tasks/1?dryRun=All application/json {"title":"n"}
		PATCH /tasks/1 application/json-patch+json [{"op":"add","path":"/lines/0","value":{"sku":"b"}}]
		PATCH /tasks/1 application/json-patch+json [{"op":"replace","path":"/lines/0/sku","value":"b"}]
		PATCH /tasks/1 application/json-patch+json [{"op":"remove","path":"/lines/0"},{"op":"add","path":"/lines/0","value":{"sku":"b"}},{"op":"add","path":"/lines/0","value":{"sku":"c"}}]
		PATCH /tasks/1 application/json {"lines":[]}
	`
	inData := func(stored string) string { return `{"data":` + stored + `}` }
	const flat = `{"title":"t","lines":[{"sku":"a","secret":1}],"secret":2}`
	for name, c := range map[string]struct {
		fields, schema, stored, requests string
		shows                            func(string) string
	}{
		"bare":               {"", task, flat, patches, asStored},
		"answer":             {"fields: {answer: data}", task, flat, patches, wrapped},
		"answer-without-it":  {"fields: {answer: result.item}", task, flat, patches, wrapped},
		"no-member-is-known": {"", task, flat, patches, wrapped},
		"object-and-answer": {"fields: {object: data, answer: data}", bodyOf, `{"data":` + flat + `}`,
			"GET /tasks/1\n" + `PATCH /tasks/1 application/json {"data":{"title":"n"}}`, asStored},
		"object-alone": {"fields: {object: data}", bodyOf, flat, "GET /tasks/1\n" +
			`PATCH /tasks/1 application/json {"data":{"title":"n"}}`, asStored},
		"answer-within-answer": {"fields: {answer: data.data}", task, flat, patches,
			func(stored string) string { return inData(inData(stored)) }},
		"unknown": {"storedObject: Unknown", task, flat, patches, asStored},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeper{stored: c.stored, shows: c.shows}
			compareFile(t, "places-"+name,
				k.play(t, strings.NewReplacer("FIELDS", c.fields, "SCHEMA", c.schema).Replace(resource), c.requests))
		})
	}
}
