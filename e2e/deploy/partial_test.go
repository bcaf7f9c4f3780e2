package deploy

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// deleting reads what is deleted and what is updated, so that the gateway reads it before.
const deleting = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: reading}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: ["", e2e.example.com], apiVersions: ["*"], operations: [UPDATE, DELETE], resources: [configmaps, widgets]}]
  validations: [{expression: "oldObject.metadata.name != 'never'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: reading}
spec: {policyName: reading, validationActions: [Deny]}
`

// volatile is what no two objects have in common, beside the namespaces of this test.
var volatile = regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time|selfLink|continue)":"[^"]*"`)

// age is how old an object is, in a cell of a Table.
var age = regexp.MustCompile(`"[0-9]+s"`)

// Writes whose answers are asked for as metadata alone, or as tables, are answered as the server itself does, where
// policies compare with the stored object too.
func TestPartialAnswers(t *testing.T) {
	c := commonCluster(t)
	c.define(t, "../testdata/crds.yaml")
	through := c.startBefore(t, deleting)
	for _, namespace := range []string{"direct", "behind"} {
		c.must(t, "", "create", "namespace", namespace)
	}
	const (
		one   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		list  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		table = "application/json;as=Table;g=meta.k8s.io;v=v1"
		proto = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		plain = "application/json"
	)
	resources := map[string]struct{ path, head string }{
		"configmaps": {"/api/v1/namespaces/NS/configmaps", `"apiVersion":"v1","kind":"ConfigMap"`},
		"widgets": {"/apis/e2e.example.com/v1/namespaces/NS/widgets",
			`"apiVersion":"e2e.example.com/v1","kind":"Widget","spec":{"replicas":1}`},
	}
	for name, r := range resources {
		for _, accept := range []string{one, list, table, proto, one + "," + plain, list + "," + plain, plain} {
			for _, request := range []struct{ method, path, contentType, body string }{
				{"PUT", r.path + "/a", plain, `{` + r.head + `,"metadata":{"name":"a","labels":{"x":"y"}}}`},
				{"PUT", r.path + "/a", plain, `{` + r.head + `,"metadata":{"name":"a","resourceVersion":"0"}}`},
				{"PUT", r.path + "/a", plain, `{` + r.head + `,"metadata":{"name":"a","resourceVersion":"1"}}`},
				{"PATCH", r.path + "/a", "application/merge-patch+json", `{"metadata":{"labels":{"x":"z"}}}`},
				{"DELETE", r.path + "/a", "", ""},
				{"DELETE", r.path + "/none", "", ""},
				{"DELETE", r.path, "", ""},
				{"DELETE", r.path, "", ""}, // of nothing
				{"DELETE", r.path + "?labelSelector=a%3D%3D%3Db", "", ""},
			} {
				asked := func(base, namespace string) (int, string, string) {
					if request.method == "DELETE" && request.path == r.path {
						for _, object := range []string{"a", "b"} {
							ask(t, "of-root", "POST", c.url+strings.Replace(r.path, "NS", namespace, 1), plain,
								`{`+r.head+`,"metadata":{"name":"`+object+`"}}`)
						}
					}
					ask(t, "of-root", "POST", c.url+strings.Replace(r.path, "NS", namespace, 1), plain,
						`{`+r.head+`,"metadata":{"name":"a"}}`)
					code, header, body := askFor(t, accept, request.method,
						base+strings.Replace(request.path, "NS", namespace, 1), request.contentType, request.body)
					body = volatile.ReplaceAllString(strings.ReplaceAll(body, `"`+namespace+`"`, `"NS"`), `"$1":""`)
					body = age.ReplaceAllString(body, `"age"`)
					if strings.Contains(header, "protobuf") {
						body = "protobuf"
					}
					var compact bytes.Buffer
					if json.Compact(&compact, []byte(body)) == nil { // some answers of the server are indented
						body = compact.String()
					}
					return code, header, body
				}
				code, header, body := asked(c.url, "direct")
				gotCode, gotHeader, got := asked(through, "behind")
				if code != gotCode || header != gotHeader || body != got {
					t.Errorf("%s: %s %s %s for %q is answered\n%d %s %s\nand by the server itself\n%d %s %s", name,
						request.method, request.path, request.body, accept,
						gotCode, gotHeader, got, code, header, body)
				}
			}
		}
	}
}

// askFor asks as the administrator for an answer in a media type, and returns its code, its own type and its body.
func askFor(t *testing.T, accept, method, url, contentType, body string) (code int, header, text string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer of-root")
	r.Header.Set("Accept", accept)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	//nolint:gosec // a test's own server
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(b)
}
