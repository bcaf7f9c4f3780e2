package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const widgetPolicies = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: large}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}
  validations: [{expression: "object.spec.size <= 10 || request.userInfo.username == 'team-a'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: large}
spec: {policyName: large, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: shrinks}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [widgets]}]}
  validations: [{expression: "object.spec.size >= oldObject.spec.size"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: shrinks}
spec: {policyName: shrinks, validationActions: [Deny]}
---
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: RequestResponse}]
`

// TestRecorded: explain and scan say of a recorded request what the gateway has answered it, be the record the client's
// or the gateway's own. The client is not one whose word on who asks counts.
func TestRecorded(t *testing.T) {
	_, backend := startBackend(t)
	dir := testutil.WriteFiles(t, map[string]string{"policies/all.yaml": widgetPolicies, "gateway.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
policies: [policies]
identity: {anonymous: Allow, authenticators: [{requestHeader: {addresses: [192.0.2.1/32]}}]}
telemetry: {audit: {mode: Blocking, log: {path: audit.log}}}
`})
	policies := filepath.Join(dir, "policies")
	p := startServe(t, backend, "--config", filepath.Join(dir, "gateway.yaml"))
	widget := func(name string, size int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"a"},"spec":{"size":%d}}`, name, size)
	}
	again := func(size int) string {
		return strings.Replace(widget("small", size), `"namespace"`, `"resourceVersion":"VERSION","namespace"`, 1)
	}
	version, before := "", "" // of what is stored
	const collection = "/apis/example.com/v1/namespaces/a/widgets"
	const none, both, log = "", "har audit", "audit" // in which records the verdict is known
	for i, tt := range []struct {
		method, path, media, body string
		headers                   map[string]string
		code                      int
		known                     string
	}{
		{"POST", collection, "application/json", widget("small", 5), nil, 201, both},
		{"POST", collection, "application/json", widget("large", 50), nil, 422, both},
		{"POST", collection, "application/json", widget("of-another", 50),
			map[string]string{"X-Remote-User": "team-a", "X-Remote-Group": "system:masters"}, 422, both},
		{"POST", collection, "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"wrong"},"spec":{"size":"5"}}`, nil, 422, both},
		{"PUT", collection + "/small", "application/json", again(6), nil, 200, log},
		{"PUT", collection + "/small", "application/json", again(4), nil, 422, log},
		{"PUT", collection + "/small", "application/json", again(60), nil, 422, log},
		{"PATCH", collection + "/small", "application/merge-patch+json", `{"spec":{"size":7}}`, nil, 200, log},
		{"GET", collection + "/small", "", "", nil, 200, none},
	} {
		name := fmt.Sprintf("%d: %s", i, tt.method)
		tt.body = strings.Replace(tt.body, "VERSION", version, 1)
		r, err := http.NewRequest(tt.method, "http://"+p.listen+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("request-%d", i)
		r.Header.Set("Content-Type", tt.media)
		r.Header.Set("Audit-ID", id)
		for k, v := range tt.headers {
			r.Header.Set(k, v)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != tt.code {
			t.Fatalf("%s: the gateway answers %d %s, %v", name, answer.StatusCode, text, err)
		}
		har := filepath.Join(dir, "one.har")
		testutil.WriteFile(t, har, harEntry(t, r, tt.body, answer.StatusCode))
		event := filepath.Join(dir, "one.log")
		testutil.WriteFile(t, event, eventOf(t, filepath.Join(dir, "audit.log"), id, before))
		anonymous := []string{"--user", "system:anonymous"}
		var stored struct {
			Metadata struct{ ResourceVersion string }
		}
		if json.Unmarshal(text, &stored) == nil && stored.Metadata.ResourceVersion != "" {
			version, before = stored.Metadata.ResourceVersion, string(text)
		}
		for kind, args := range map[string][2][]string{
			"har":   {append(anonymous, "--har", har), append(anonymous, "--har", har)},
			"audit": {{"--audit", event}, {"--audit-log", event}}, // which says who asks
		} {
			if !strings.Contains(tt.known, kind) {
				continue
			}
			refused := tt.code >= 400
			explained := run(append([]string{"explain", policies, "--dialect", "Plain"}, args[0]...)...)
			if (explained.code == 1) != refused || explained.code > 1 {
				t.Errorf("%s: the gateway answers %d; explain of %s exits with %d\n%s%s", name, tt.code, kind,
					explained.code, explained.stdout, explained.stderr)
			}
			var report struct{ Objects, Denied, Unjudged int64 }
			scanned := run(append([]string{"scan", policies, "--dialect", "Plain", "-o", "json"}, args[1]...)...)
			if err := json.Unmarshal([]byte(scanned.stdout), &report); err != nil {
				t.Fatalf("%s: %v: %s%s", name, err, scanned.stdout, scanned.stderr)
			}
			if report.Objects != 1 || (report.Denied == 1) != refused || report.Unjudged != 0 {
				t.Errorf("%s: the gateway answers %d; scan of %s says %s", name, tt.code, kind, scanned.stdout)
			}
		}
	}
}

// harEntry records a request as a browser does.
func harEntry(t *testing.T, r *http.Request, body string, code int) string {
	t.Helper()
	headers := []map[string]string{}
	for name, values := range r.Header {
		headers = append(headers, map[string]string{"name": name, "value": values[0]})
	}
	text, err := json.Marshal(map[string]any{"log": map[string]any{"entries": []any{map[string]any{
		"request": map[string]any{
			"method": r.Method, "url": r.URL.String(), "headers": headers,
			"postData": map[string]string{"mimeType": "text/plain", "encoding": "base64",
				"text": base64.StdEncoding.EncodeToString([]byte(body))},
		},
		"response": map[string]int{"status": code},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventOf returns the event of a request in an audit log, with the object that was stored before, if there was one.
func eventOf(t *testing.T, log, id, old string) (event string) {
	t.Helper()
	testutil.Eventually(t, "the event of "+id, func() bool {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			// The gateway may not have written the end of a line yet.
			if strings.HasSuffix(line, "\n") && strings.Contains(line, `"auditID":"`+id+`"`) &&
				strings.Contains(line, "ResponseComplete") {
				event = line
			}
		}
		return event != ""
	})
	if old == "" {
		return event
	}
	return `{"oldObject":` + strings.TrimSpace(old) + "," + event[1:]
}
