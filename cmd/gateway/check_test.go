package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
)

// TestCheckConfig: policy files are checked against the configuration that they are for.
func TestCheckConfig(t *testing.T) {
	source := write(t, "classes.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: classes}\nspec: {path: /v2/classes, upstream: strage}\n")
	config := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams:\n- {name: storage, endpoints: ['http://127.0.0.1:9000']}\npolicies: [" + source + "]\n"
	file := write(t, "gateway.yaml", config)
	right := write(t, "gateway.yaml", strings.Replace(config, "name: storage", "name: strage", 1))
	unread := write(t, "gateway.yaml", strings.Replace(config, "upstreams:", "upstream:", 1))
	finding := source + ":4:27: spec.upstream: must be the name of an upstream of the configuration: 'storage'\n"
	for _, c := range []struct {
		args []string
		want result
	}{
		{[]string{source}, result{0, "", ""}},
		{[]string{"--config", right}, result{0, "", ""}},
		{[]string{"--config", file}, result{1, finding, "gateway check: 1 error, 0 warnings\n"}},
		{[]string{"--config", file, filepath.Dir(source)}, result{1, finding, "gateway check: 1 error, 0 warnings\n"}},
	} {
		if got := run(append([]string{"check"}, c.args...)...); got != c.want {
			t.Errorf("check %v: %+v, want\n%+v", c.args, got, c.want)
		}
	}
	if got := run("check", "--config", unread); got.code != 1 ||
		!strings.Contains(got.stdout, unread+":3:1: upstream: ") {
		t.Errorf("a wrong configuration: %+v", got)
	}
}

// TestCheckList: --list names each operation of the files, and its checks.
func TestCheckList(t *testing.T) {
	source := write(t, "api.yaml", `
openapi: 3.0.3
info: {title: Items, version: '1'}
paths:
  /: {get: {}}
  /items:
    get: {parameters: [{name: limit, in: query, schema: {type: integer}}, {name: q, in: query, schema: {type: string}}]}
    post: {requestBody: {content: {application/json: {schema: {type: object, properties: {size: {type: integer, default: 1}}}}, text/csv: {}}}}
  /items/{id}: {get: {}}
  /items/{id}/buy: {post: {security: [{key: []}, {id: [], key: []}]}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}, id: {type: http, scheme: bearer}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gizmos, kind: Gizmo}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	config := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams:\n- {name: shop, dialect: Plain, endpoints: ['http://127.0.0.1:9000']}\n"+
		"routes:\n- {name: shop, pathPrefix: /, upstream: shop}\n")
	const want = `METHOD  PATH                                               RESOURCE            ROUTES        HOLDS
GET     /                                                  -                   shop to shop  -
*       /apis/example.com/v1/namespaces/{namespace}/gizmos  gizmos.example.com  shop to shop  no other writes
GET     /items                                             items               shop to shop  2 parameters; no other writes
POST    /items                                             items               shop to shop  bodies application/json, text/csv; a schema; defaults; no other writes
GET     /items/{id}                                        items               shop to shop  preconditions Auto: the gateway, unless the backend is proved to compare them; no other writes
POST    /items/{id}/buy                                    -                   shop to shop  credentials X-Key or Bearer+X-Key
`
	got := run("check", "--list", "--config", config, source)
	if got.code != 0 || spaces.ReplaceAllString(got.stdout, " ") != spaces.ReplaceAllString(want, " ") ||
		!strings.Contains(got.stderr, source+":") {
		t.Errorf("got %+v, want\n%s", got, want)
	}
	several := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nreplicas: 2\n"+
		"upstreams:\n- {name: shop, dialect: Plain, endpoints: ['http://127.0.0.1:9000']}\nroutes:\n- {name: shop, pathPrefix: /, upstream: shop}\n")
	if got := run("check", "--list", "--config", several, source); !strings.Contains(got.stdout,
		"preconditions Auto: the backend, because each gateway locks for itself alone") {
		t.Errorf("of several gateways: got %+v", got)
	}
}

var spaces = regexp.MustCompile(" +")

// TestCheckGaps: what a document rightly asks for and the gateway cannot enforce is a note, which --strict makes a
// warning. What an overlay asks for, which was written for the gateway, is a warning.
func TestCheckGaps(t *testing.T) {
	const at = "paths[/a].post.requestBody.content[application/json].schema.properties."
	api := write(t, "api.yaml", `openapi: 3.1.0
info: {title: Items, version: '1'}
paths:
  /a:
    post:
      requestBody:
        content:
          application/json:
            schema:
              properties:
                card: {type: string, format: iban}
                code: {type: string, pattern: '(?=a)b'}
                next: {type: string, format: iban}
`)
	overlay := write(t, "overlay.yaml", "overlay: 1.0.0\ninfo: {title: Ours, version: '1'}\nactions:\n"+
		"- target: $.paths['/a'].post.requestBody.content['application/json'].schema.properties.card\n  update: {pattern: '(?!x)'}\n")
	lines := func(severity string) string {
		return api + ":11:38: " + at + "card.format: " + severity + ": the format 'iban' is not enforced"
	}
	const once = "; the same is true of 1 more place, which 'gateway check -v' lists\n"
	expression := func(severity string) string {
		return api + ":12:38: " + at + "code.pattern: " + severity + ": is not enforced, because the expression is not one of RE2: invalid or unsupported Perl syntax: `(?=`\n"
	}
	overlaid := overlay + ":5:12: " + at + "card.pattern: warning: is not enforced, because the expression is not one of RE2: invalid or unsupported Perl syntax: `(?!`\n"
	notes := lines("note") + once + expression("note")
	warnings := lines("warning") + "\n" + expression("warning") + api + ":13:38: " + at +
		"next.format: warning: the format 'iban' is not enforced\n"
	for _, c := range []struct {
		args []string
		want result
	}{
		{[]string{api}, result{0, notes, ""}},
		{[]string{"--strict=false", api}, result{0, notes, ""}},
		{[]string{"--strict", api}, result{1, warnings, "gateway check: 0 errors, 3 warnings\n"}},
		{[]string{api, overlay}, result{1, overlaid + notes, "gateway check: 0 errors, 1 warning\n"}},
	} {
		got := run(append([]string{"check"}, c.args...)...)
		got.stdout = regexp.MustCompile("(?m)^.*nearly every document.*\n").ReplaceAllString(got.stdout, "")
		if got != c.want {
			t.Errorf("check %v: got\n%+v\nwant\n%+v", c.args, got, c.want)
		}
	}
}

// TestBareBeforeKubernetes: objects that are not of Kubernetes' form are refused for an upstream of
// that dialect when files are checked and when the gateway starts; --dialect Plain is the way out.
func TestBareBeforeKubernetes(t *testing.T) {
	source := write(t, "orders.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: orders}\nspec:\n"+
		"  group: shop.example.com\n  version: v2\n  names: {plural: orders, kind: Order}\n  paths: {collection: /v2/orders, item: '/v2/orders/{name}'}\n  envelope: Bare\n")
	config := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams:\n- {name: shop, dialect: Kubernetes, endpoints: ['http://127.0.0.1:9000']}\n"
	file := write(t, "gateway.yaml", config)
	plain := write(t, "gateway.yaml", strings.Replace(config, "Kubernetes,", "Plain,", 1))
	const why = ": spec.envelope: objects that are not of Kubernetes' form must be served by an upstream of the dialect Plain, not by 'shop': " +
		"set `dialect: Plain` (--dialect Plain) if it is an ordinary API, else add a route that leads '/v2/orders' to one [wrong-dialect]\n"
	for _, c := range []struct {
		args []string
		want result
	}{
		{[]string{source}, result{0, "", ""}},
		{[]string{"--config", plain, source}, result{0, "", ""}},
		{[]string{"--config", file, source}, result{1, source + ":9:3" + why, "gateway check: 1 error, 0 warnings\n"}},
	} {
		if got := run(append([]string{"check"}, c.args...)...); got != c.want {
			t.Errorf("check %v: %+v, want\n%+v", c.args, got, c.want)
		}
	}
	got := run("serve", "--config", file, "--policies", source, "--admin", "127.0.0.1:0", "--listen", "127.0.0.1:0")
	if got.code != 2 || !strings.Contains(got.stderr, source+":9:3"+why) {
		t.Errorf("serve: %+v", got)
	}
}

// Warnings fail the check. Advice about wording does not, and is shown if --advice or -v asks for it; the log of
// 'serve' has none.
func TestCheckWording(t *testing.T) {
	const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}
  validations:
  - {expression: "object.spec.size < 5", message: should be < 5}
  - {expression: "object.spec.size > 0", message: MESSAGE}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: POLICY, validationActions: [Deny]}
`
	a := write(t, "a.yaml", strings.NewReplacer("NAME", "a", "MESSAGE", "cannot be changed", "POLICY",
		"a").Replace(policy))
	b := write(t, "b.yaml", strings.NewReplacer("NAME", "b", "MESSAGE", "must be greater than 0", "POLICY",
		"none").Replace(policy))
	unbound := b + ":3:12: metadata.name: warning: no ValidatingAdmissionPolicyBinding names the policy 'b', so that it never runs\n" +
		b + ":13:8: spec.policyName: warning: no ValidatingAdmissionPolicy in the policy files has the name 'none', so that the binding does nothing\n"
	const why = "gateway check: 0 errors, 2 warnings\n"
	if got, want := run("check", a, b), (result{1, unbound, why}); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if got, want := run("check", "--strict=false", a, b), (result{0, unbound, ""}); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if got, want := run("check", a), (result{0, "", ""}); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	less := "; an inequality must be worded with 'greater than' or 'less than', 'or equal to' included, not 'be < 5'; better: must be less than 5\n"
	all := a + ":7:42: spec.validations[0].message: warning: a requirement must be worded with 'must', not 'should be'" + less +
		a + ":8:42: spec.validations[1].message: warning: what is not possible must be worded with 'may not' for behaviour, not 'cannot be changed'; better: may not be changed\n" +
		b + ":7:42: spec.validations[0].message: warning: a requirement must be worded with 'must', not 'should be'" + less
	for _, flag := range []string{"-v", "--advice"} {
		if got, want := run("check", flag, a, b), (result{1, unbound + all, why}); got != want {
			t.Errorf("%s: %+v, want\n%+v", flag, got, want)
		}
	}
	_, addr := startBackend(t)
	p := startServe(t, addr, "--policies", a, "--policies", b)
	if log := p.log.String(); strings.Contains(log, "worded") {
		t.Errorf("the log says\n%s", log)
	}
}

// TestCheckStdin: an editor gives each version of a file that is not saved, and gets what is wrong with it alone.
func TestCheckStdin(t *testing.T) {
	saved := write(t, "limit.yaml", strings.Replace(limitPolicy, "requests: 50", "requests: -1", 1))
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.AddCommand(newCheck())
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetIn(strings.NewReader(limitPolicy + "\x00" + strings.Replace(limitPolicy, "requests: 50", "request: 50", 1) +
		"\x00"))
	code := execute(root, []string{"check", "--stdin", "--stdin-name", saved, "--watch", filepath.Dir(saved)})
	want := `{"findings":[]}` + "\n" + `{"findings":[{"file":"` + saved + `","line":7,"column":3,"field":"spec.request","severity":"error","message":"unknown field; did you mean ` + "`requests`" + `?"}]}` + "\n"
	if code != 0 || stdout.String() != want || stderr.Len() > 0 {
		t.Errorf("%d %s%s, want\n%s", code, &stdout, &stderr, want)
	}
}

// TestInitAsks: without flags the command asks, and the first letter of an answer will do.
func TestInitAsks(t *testing.T) {
	for answers, want := range map[string]string{
		"k\nwarn\n": "Is the backend a Kubernetes API server, or an ordinary (plain) API? [Kubernetes/Plain] Shall the policies warn at first, or deny? [Warn/Deny] 94 files written",
		"Plain\n":   "Is the backend a Kubernetes API server, or an ordinary (plain) API? [Kubernetes/Plain] 18 files written",
		"":          "--backend must be given if nobody is there to ask: 'Kubernetes' or 'Plain'",
		"x\n":       "--backend: must be 'Kubernetes' or 'Plain', not 'x'",
	} {
		var out bytes.Buffer
		root := newRoot()
		root.AddCommand(newInit())
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetIn(strings.NewReader(answers))
		if execute(root, []string{"init", filepath.Join(t.TempDir(), "new")}); !strings.Contains(out.String(), want) {
			t.Errorf("%q: %s, want\n%s", answers, &out, want)
		}
	}
}

// TestCheckTimes: with --times each stage has a line with its time, and the kinds that took time stand below, also if
// the files have errors.
func TestCheckTimes(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": policyWith("a", "object.spec.replicas == 'x'"),
		"b.yaml": "kind: None\n"})
	var out bytes.Buffer
	root := newRoot()
	root.AddCommand(newCheck())
	root.SetOut(&out)
	root.SetErr(&out)
	code := execute(root, []string{"check", "--times", dir})
	line := regexp.MustCompile(`(?m)^(?:read|take|compile|register|  ValidatingAdmissionPolicy) +[0-9.]+(?:µs|ms|s)$`)
	if n := len(line.FindAllString(out.String(), -1)); code != 1 || n < 5 ||
		strings.Index(out.String(), "read ") > strings.Index(out.String(), "take ") {
		t.Errorf("exit code %d, %d lines of times:\n%s", code, n, &out)
	}
}

// TestStdinFindsTheSame: of a file that comes from the standard input the same is found as of the
// saved file beside all others, although advice about the others is left out.
func TestStdinFindsTheSame(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": policyWith("a", "object.spec.replicas == 'x'"),
		"b.yaml": policyWith("b", "object.spec.replica == 1")})
	whole, _ := check([]string{dir}, "", nil)
	for _, name := range []string{"a.yaml", "b.yaml"} {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want []finding.Finding
		for _, f := range whole {
			if f.File == file {
				want = append(want, f)
			}
		}
		s := stdinFlags{name: file}
		if got := s.examine(data, []string{dir}, nil); len(want) < 2 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s has the findings %v, want %v", name, got, want)
		}
	}
}

// policyWith returns a policy for Deployments, which no binding names.
func policyWith(name, expression string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
  validations: [{expression: "` + expression + `", message: must be right}]
`
}
