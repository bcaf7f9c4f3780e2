package playground_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/playground"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":5}}`

// replicas refuses more than three.
const replicas = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations:
  - expression: object.spec.replicas <= 3
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec: {policyName: replicas, validationActions: [Deny]}
`

func roomy() *memory.Budget { return memory.NewBudget(1<<30, 2) }

func ask(ctx context.Context, t *testing.T, p *playground.Playground, q playground.Input) (*explanation.Explanation,
	error) {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return p.Ask(ctx, text)
}

// refusal asks what has to be refused, and returns code and message.
func refusal(t *testing.T, p *playground.Playground, q playground.Input) (int32, string) {
	t.Helper()
	told, err := ask(t.Context(), t, p, q)
	var refused *status.Error
	if !errors.As(err, &refused) {
		t.Fatalf("%+v is answered with %+v, %v", q, told, err)
	}
	return refused.ErrStatus.Code, refused.ErrStatus.Message
}

// TestAsk: the answers are those of explain, with the values of expressions, the lines of the policies and the edits.
func TestAsk(t *testing.T) {
	p := playground.New(playground.Options{Memory: roomy()})
	told, err := ask(t.Context(), t, p, playground.Input{Policies: replicas, Body: deployment})
	if err != nil {
		t.Fatal(err)
	}
	text := &strings.Builder{}
	explanation.WriteText(text, told, false)
	for _, want := range []string{
		"create deployments.apps, v1, CREATE, namespace shop", "Deny  ValidatingAdmissionPolicy replicas by the binding replicas  policies.yaml:1",
		"spec.validations[0].expression (line 8) is false", "^ 5", "Answer: Refused with 422",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	yaml := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 2}\n"
	if told, err = ask(t.Context(), t, p,
		playground.Input{Policies: replicas, Body: yaml, Old: deployment}); err != nil ||
		told.Answer.Decision != explanation.Admitted || told.Request.Method != "PUT" || len(told.Sent) == 0 {
		t.Errorf("the replacement by YAML is answered with %+v, %v", told, err)
	}
	if told, err = ask(t.Context(), t, p, playground.Input{Policies: replicas, Old: deployment}); err != nil ||
		told.Request.Method != "DELETE" {
		t.Errorf("the deletion is answered with %+v, %v", told, err)
	}
}

// TestFindings: what 'gateway check' would warn of is said of the policies of a question, such as that nothing runs
// them.
func TestFindings(t *testing.T) {
	p := playground.New(playground.Options{Memory: roomy()})
	unbound, _, _ := strings.Cut(replicas, "\n---")
	told, err := ask(t.Context(), t, p, playground.Input{Policies: unbound, Body: deployment})
	if err != nil {
		t.Fatal(err)
	}
	const want = "no ValidatingAdmissionPolicyBinding names the policy 'replicas', so that it never runs"
	if told.Answer.Decision != explanation.Admitted || len(told.Findings) != 1 ||
		!strings.HasPrefix(told.Findings[0], "policies.yaml:") || !strings.Contains(told.Findings[0], want) {
		t.Errorf("%v, findings %q, want %q", told.Answer.Decision, told.Findings, want)
	}
	if told, err = ask(t.Context(), t, p, playground.Input{Policies: replicas, Body: deployment}); err != nil ||
		len(told.Findings) > 0 {
		t.Errorf("findings %q, %v", told.Findings, err)
	}
}

// TestRefusals: what cannot be asked is refused with what to do, and the place is free again after each.
func TestRefusals(t *testing.T) {
	p := playground.New(playground.Options{Memory: roomy()})
	for _, c := range []struct {
		asked playground.Input
		code  int32
		says  string
	}{
		{playground.Input{}, 400, "write the object, or the path"},
		{playground.Input{Policies: "kind: [", Body: deployment}, 422, "the policies have errors:\npolicies.yaml:2"},
		{playground.Input{Policies: strings.Replace(replicas, "<= 3", "<=", 1), Body: deployment}, 422,
			"policies.yaml:8"},
		{playground.Input{Body: "a: &a [1]\nb: *a"}, 400, "the object"},
		{playground.Input{Body: deployment, Dialect: "Other"}, 400, "dialect: must be"},
		{playground.Input{Path: "elsewhere", Body: deployment}, 400, "path: must be a path or a URL"},
		{playground.Input{InForce: true, Policies: replicas, Body: deployment}, 400, "policies: must be empty"},
		{playground.Input{Body: `{"kind":"A"}`}, 422, "apiVersion"},
		{playground.Input{Policies: strings.Repeat("[", 100_000), Body: deployment}, 422, "policies.yaml"},
		{playground.Input{Policies: strings.Replace(replicas, "object.spec.replicas <= 3", strings.Repeat("(", 50_000)+
			"1"+strings.Repeat(")", 50_000), 1), Body: deployment}, 422, "policies.yaml:8"},
		{playground.Input{Policies: "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c]\n", Body: deployment}, 422, "policies.yaml"},
	} {
		if code, message := refusal(t, p, c.asked); code != c.code || !strings.Contains(message, c.says) ||
			len(message) > 64<<10 {
			t.Errorf("%.200v is refused with %d %.300s, want %d with %q", c.asked, code, message, c.code, c.says)
		}
	}
	for _, text := range []string{"", "[]", "{", `{"policies":""} {}`, `{"unknown":1}`, `{"policies":5}`} {
		if told, err := p.Ask(t.Context(), []byte(text)); err == nil {
			t.Errorf("%q is answered with %+v", text, told)
		}
	}
	if _, err := ask(t.Context(), t, p, playground.Input{Policies: replicas, Body: deployment}); err != nil {
		t.Error(err)
	}
}

const asking = `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: asking}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  allowedHosts: [127.0.0.1]
  rego: |
    package a
    deny contains "no" if http.send({"method": "GET", "url": "%s", "raise_error": false}).status_code == 200
`

// TestReachesNothing: no policy leads the playground to another server or to a file: not http.send, not a bundle, not a
// StateSource, and not a $ref.
func TestReachesNothing(t *testing.T) {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outside.Close() }()
	came := make(chan string, 8)
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				return
			}
			came <- c.RemoteAddr().String()
			_ = c.Close()
		}
	}()
	url := "http://" + outside.Addr().String()
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte("type: object\ndescription: the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := playground.New(playground.Options{Memory: roomy()})
	if code, message := refusal(t, p,
		playground.Input{Policies: fmt.Sprintf(asking, url), Body: deployment}); code != 422 ||
		!strings.Contains(message, "spec.allowedHosts: must be empty") {
		t.Errorf("http.send is refused with %d %s", code, message)
	}
	bundle := strings.NewReplacer("  allowedHosts: [127.0.0.1]\n", "", "  rego: |\n    package a\n",
		"  bundle: b\n").Replace(asking[:strings.Index(asking, "    deny")])
	if told, err := ask(t.Context(), t, p, playground.Input{Policies: bundle, Body: deployment}); err != nil ||
		!strings.Contains(told.Reason(), "the bundle of the policy is not known") {
		t.Errorf("a bundle is answered with %+v, %v", told, err)
	}
	for _, ref := range []string{secret, filepath.Base(secret), "../" + filepath.Base(secret), "file://" + secret,
		url + "/a.yaml"} {
		document := "openapi: 3.0.3\ninfo: {title: a, version: '1'}\npaths:\n  /as:\n    post:\n      requestBody: {content: {application/json: {schema: {$ref: '" + ref + "'}}}}\n      responses: {'201': {description: made}}\n"
		told, err := ask(t.Context(), t, p, playground.Input{Policies: document, Path: "/as", Body: "{}"})
		if text := fmt.Sprint(told, err); strings.Contains(text, "the secret") {
			t.Errorf("%s was read: %s", ref, text)
		}
	}
	sourced := "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: others}\nspec: {path: /apis/apps/v1/deployments, mode: Poll, periodSeconds: 1}\n---\n" +
		strings.Replace(replicas, "object.spec.replicas <= 3", "size(state.others) == 0", 1)
	told, err := ask(t.Context(), t, p, playground.Input{Policies: sourced, Body: deployment})
	if err != nil || told.Answer.Decision != explanation.Admitted {
		t.Errorf("a StateSource is not empty: %+v, %v", told, err)
	}
	// The policies in force may ask other servers; the playground does not let them.
	set, found := policies.CompileFor(source.Of([]source.File{{Name: "a.yaml", Data: fmt.Appendf(nil, asking, url)}}),
		policies.Gateway{})
	if set == nil {
		t.Fatal(found)
	}
	live := playground.New(playground.Options{Memory: roomy(),
		InForce: func() (*policies.Set, policytest.Service) { return set, policytest.Service{} }})
	if code, message := refusal(t, live, playground.Input{InForce: true, Body: deployment}); code != 422 ||
		!strings.Contains(message, "RegoPolicy 'asking'") {
		t.Errorf("policies in force that ask are refused with %d %s", code, message)
	}
	select {
	case from := <-came:
		t.Errorf("%s came to a server outside", from)
	default:
	}
}

// TestInForce: the policies in force judge a request without being compiled anew.
func TestInForce(t *testing.T) {
	set, found := policies.Compile(source.Of([]source.File{{Name: "a.yaml", Data: []byte(replicas)}}))
	if set == nil {
		t.Fatal(found)
	}
	current := set
	p := playground.New(playground.Options{Memory: roomy(),
		InForce: func() (*policies.Set, policytest.Service) { return current, policytest.Service{} }})
	told, err := ask(t.Context(), t, p,
		playground.Input{InForce: true, Path: "/apis/apps/v1/namespaces/shop/deployments", Body: deployment})
	if err != nil || told.Answer.Code != 422 || !strings.Contains(told.Reason(), "spec.replicas") {
		t.Errorf("the policies in force answer %+v, %v", told, err)
	}
	current = nil
	if code, message := refusal(t, p, playground.Input{InForce: true, Body: deployment}); code != 503 {
		t.Errorf("before there are policies it answers %d %s", code, message)
	}
}

// many are validations that take seconds to compile.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s\n---\n", strings.NewReplacer("name: replicas", fmt.Sprintf("name: r%d", i),
			"policyName: replicas", fmt.Sprintf("policyName: r%d", i),
			"<= 3", fmt.Sprintf("<= %d%s", i+9, strings.Repeat(" && object.spec.l.all(a, a.all(b, b.c == 1))",
				40))).Replace(replicas))
	}
	return b.String()
}

// TestOneAtATime: while a question is judged others are refused, and one whose client has gone ends before it is done.
func TestOneAtATime(t *testing.T) {
	budget := roomy()
	p := playground.New(playground.Options{Memory: budget})
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := ask(ctx, t, p, playground.Input{Policies: many(150), Body: deployment})
		first <- err
	}()
	waitFor(t, func() bool { return budget.InUse() > 0 })
	for range 20 {
		if code, message := refusal(t, p, playground.Input{Body: deployment}); code != 429 ||
			!strings.Contains(message, "one question at a time") {
			t.Fatalf("a second question is answered with %d %s", code, message)
		}
	}
	leave()
	var refused *status.Error
	if err := <-first; !errors.As(err, &refused) || refused.ErrStatus.Code != 504 {
		t.Errorf("the question whose client had gone was judged to its end: %v", err)
	}
	waitFor(t, func() bool { return budget.InUse() == 0 })
	waitFor(t, func() bool {
		_, err := ask(t.Context(), t, p, playground.Input{Body: deployment})
		return err == nil
	})
}

// waitFor waits until something is so.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not become so")
		}
	}
}

// TestMemory: a question is refused if the budget has no room for it, whatever its policies are; and it leaves nothing
// behind.
func TestMemory(t *testing.T) {
	small := memory.NewBudget(8<<20, 2)
	p := playground.New(playground.Options{Memory: small})
	if code, message := refusal(t, p, playground.Input{Policies: replicas, Body: deployment}); code != 503 ||
		!strings.Contains(message, "limits.bodiesInFlightBytes") {
		t.Errorf("without room it answers %d %s", code, message)
	}
	if small.InUse() != 0 {
		t.Errorf("%d bytes are still taken", small.InUse())
	}
	budget := roomy()
	p = playground.New(playground.Options{Memory: budget})
	before := 0
	for i := range 12 {
		if _, err := ask(t.Context(), t, p, playground.Input{Policies: replicas, Body: deployment}); err != nil {
			t.Fatal(err)
		}
		if i == 2 { // what is made once is there
			before = runtime.NumGoroutine()
		}
	}
	waitFor(t, func() bool { return runtime.NumGoroutine() <= before+2 })
	if budget.InUse() != 0 || budget.Peak() < 8<<20 {
		t.Errorf("%d bytes are still taken, %d were at most", budget.InUse(), budget.Peak())
	}
}

// TestWeight: what a question takes of the heap at once is no more than what it asks the budget for, whatever its
// policies are.
func TestWeight(t *testing.T) {
	var objects, rules, patterns strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d, namespace: b}\n", i)
		fmt.Fprintf(&rules, "    deny contains \"a%d\" if input.request.object.x%d == 1\n", i, i)
		fmt.Fprintf(&patterns, "              a%d: {type: string, pattern: '^(a|b){1,9}$'}\n", i)
	}
	rego := strings.Replace(asking[:strings.Index(asking, "    deny")], "  allowedHosts: [127.0.0.1]\n", "", 1) +
		rules.String()
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.example}\nspec:\n  group: b.example\n  scope: Namespaced\n  names: {kind: A, plural: as}\n" +
		"  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n" + patterns.String()
	// as the process has it: the heap has as much garbage as it has objects
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for name, text := range map[string]string{"objects": objects.String(), "rules in Rego": rego,
		"patterns": definition, "expressions": many(40)} {
		budget := roomy()
		p := playground.New(playground.Options{Memory: budget})
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		before, stop, peak := m.HeapAlloc, make(chan bool), make(chan uint64)
		go func() {
			highest := uint64(0)
			for {
				select {
				case <-stop:
					peak <- highest
					return
				case <-time.After(5 * time.Millisecond):
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					highest = max(highest, m.HeapAlloc)
				}
			}
		}()
		if _, err := ask(t.Context(), t, p, playground.Input{Policies: text, Body: deployment}); err != nil &&
			!strings.Contains(err.Error(), "takes more than") {
			t.Errorf("%s: %.500v", name, err)
		}
		close(stop)
		if took, counted := int64(<-peak)-int64(before), budget.Peak(); took > 2*counted {
			t.Errorf("%s of %d bytes take %d bytes, and the budget counts %d", name, len(text), took, counted)
		} else {
			t.Logf("%s of %d bytes take %d bytes, and the budget counts %d", name, len(text), took, counted)
		}
	}
}

// TestExamples: each example has a request that its policies judge; those of tests that expect a refusal are refused.
func TestExamples(t *testing.T) {
	all, err := playground.Examples()
	if err != nil || len(all) < 40 {
		t.Fatalf("there are %d examples, %v", len(all), err)
	}
	p := playground.New(playground.Options{Memory: roomy()})
	refused := 0
	for _, e := range all {
		told, err := ask(t.Context(), t, p, e.Question)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if told.Answer.Decision == explanation.Refused {
			refused++
		}
		if e.About == "" {
			t.Errorf("%s says nothing about itself", e.Name)
		}
	}
	if refused < len(all)/2 {
		t.Errorf("%d of %d examples are refused", refused, len(all))
	}
}
