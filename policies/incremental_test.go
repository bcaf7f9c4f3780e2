package policies_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/matching"
	"github.com/admission-gateway/gateway/policies/source"
)

// writers write the objects of the files, one of each kind, by a name, another name that they refer to, and a number,
// which is what edits change.
var writers = []func(name, other string, n int) string{
	func(name, other string, n int) string {
		expression := []string{"object.spec.size <= 5", "object.spec.size <= 6 && object.spec.none == 1",
			"object.spec.size", "!has(state.a)",
			"request.userInfo.username != 'x'", "params.data.most == '3' || object.spec.size < 2", "variables.half < 3",
			"object.spec.size + 'a' == 'b'"}[n%8]
		paramKind := []string{"", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n"}[n%2]
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: " + name + rollout(n) +
			"\nspec:\n" + paramKind + "  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}\n" +
			"  variables: [{name: half, expression: 'object.spec.size / " + fmt.Sprint(2+n/12) +
			"'}]\n  validations:\n  - expression: \"" + expression + "\"\n    message: 'should be " + other + ".'\n"
	},
	func(name, other string, n int) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\nspec:\n  policyName: " +
			[]string{name, other}[n%2] + "\n  validationActions: [" + []string{"Deny", "Warn", "Wrong"}[n%3] + "]\n" +
			[]string{"", "  paramRef: {name: " + name + ", namespace: default, parameterNotFoundAction: Deny}\n",
				"  matchResources: {objectSelector: {matchLabels: {a: b}}}\n"}[n%3]
	},
	func(name, _ string, n int) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n  reinvocationPolicy: Never\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}\n  mutations:\n" +
			"  - patchType: ApplyConfiguration\n    applyConfiguration: {expression: 'Object{spec: Object.spec{" + []string{"size: 3", "none: 3", "label: \"x\""}[n%3] + "}}'}\n"
	},
	func(name, other string, n int) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\nspec: {policyName: " + []string{name, other}[n%2] + "}\n"
	},
	func(_, _ string, n int) string { return definition("example.com", n) },
	func(name, _ string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: " + name + "}\nspec:\n  group: shop\n  version: v1\n  names: {plural: orders" + name +
			", kind: Order}\n  paths: {collection: /orders/" + name + ", item: '/orders/" + name + "/{name}'}\n" +
			[]string{"", "  hosts: [api.example.com]\n", "  upstream: other\n"}[n%3] +
			"  schema: {openAPIV3Schema: {type: object, properties: {amount: {type: integer, minLength: 1, maximum: " + fmt.Sprint(n) + "}, status: {type: string}}}}\n"
	},
	func(name, _ string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\nmetadata: {name: " + name + "}\nspec:\n  checks: {reservedKeys: " + []string{"Deny", "Warn", "Off"}[n%3] + "}\n" +
			[]string{"", "  matchConditions: [{name: a, expression: \"request.operation == 'CREATE'\"}]\n"}[n%2]
	},
	func(name, _ string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: DefaultingPolicy\nmetadata: {name: " + name + "}\nspec:\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}\n  defaults:\n  - {field: spec.label, " +
			[]string{"value: one", "value: 3", "valueExpression: object.spec.size", "valueExpression: \"'two'\""}[n%4] +
			"}\n" +
			[]string{"", "  rollout: {percent: 0}\n"}[n%2]
	},
	func(name, other string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: PolicyException\nmetadata: {name: " + name + "}\nspec:\n  policies: [{kind: " +
			[]string{"ValidatingAdmissionPolicy", "RegoPolicy", "Check", "ConventionPolicy"}[n%4] + ", names: [" +
			other + "]}]\n  reason: because\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}\n" +
			"  matchConditions: [{name: a, expression: \"object.spec.size == " + fmt.Sprint(n) + "\"}]\n" +
			[]string{"", "  expires: '2020-01-01T00:00:00Z'\n"}[n%2]
	},
	func(name, _ string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: " + name + "}\nspec:\n  requests: 5\n  periodSeconds: 60\n" +
			[]string{"  key: User\n", "  keyExpression: request.user.username\n", "  scope: Shared\n", "  match: {resources: [none], apiGroups: [shop], matchConditions: [{name: a, expression: 'request.verb == \"get\"'}]}\n"}[n%4] +
			[]string{"", "  cost: '7'\n", "  exemptions: {clientAddresses: [0.0.0.0/0]}\n"}[n%3]
	},
	func(name, _ string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: " + name + "}\nspec:\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}\n" +
			[]string{"", "  rego: |\n    package p\n    deny contains msg if { input.review.object.spec.size > " + fmt.Sprint(n) + "; msg := \"too large\" }\n",
				"  rego: |\n    package p\n    deny contains msg if { data.state.a[_].x == input.review.userInfo.username; msg := \"no\" }\n", "  rego: 'package p\n\n    deny contains x if { }'\n"}[n%4]
	},
	func(name, _ string, n int) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: " + name + "}\nspec:\n  upstream: " + []string{"main", "none"}[n%2] +
			"\n  resource: {apiVersion: example.com/v1, resource: " + []string{"widgets", "gadgets"}[n%2] + "}\n"
	},
	func(name, _ string, n int) string {
		body := []string{"input.review.object.spec.size > input.parameters.most", "input.parameters.words[_] == \"x\"",
			"data.inventory.cluster[_]", "wrong("}[n%4]
		return "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: check}\nspec:\n  crd: {spec: {names: {kind: Check}, validation: {openAPIV3Schema: {type: object, properties: {most: {type: integer}, words: {type: array, items: {type: string}}}}}}}\n" +
			"  targets:\n  - target: admission.k8s.gatekeeper.sh\n    rego: |\n      package check\n      violation[{\"msg\": msg}] { " + body + "; msg := \"" + name + "\" }\n"
	},
	func(name, _ string, n int) string {
		return "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Check\nmetadata:\n  name: " + name + rollout(n) + "\nspec:\n  enforcementAction: " + []string{"deny", "warn"}[n%2] +
			"\n  match: {kinds: [{apiGroups: ['example.com'], kinds: [" + []string{"Widget", "Gadget", "'*'"}[n%3] +
			"]}]}\n  parameters: {most: " + fmt.Sprint(n) + "}\n"
	},
	func(name, _ string, n int) string {
		return "apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: " + name + "}\nspec: {applyTo: [{groups: [example.com], versions: [v1], kinds: [Widget]}], location: " +
			[]string{"spec.label", "'spec.label[name: x].y'"}[n%2] + ", parameters: {assign: {value: mutated" +
			fmt.Sprint(n) + "}}}\n"
	},
	func(name, _ string, n int) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {most: '" +
			fmt.Sprint(n) + "'}\n"
	},
	func(name, _ string, n int) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-" + name + ", labels: {n: 'n" + fmt.Sprint(n) +
			"'}}\n"
	},
	func(name, _ string, n int) string {
		return "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: " + name +
			", namespace: default}\nspec: {size: " + fmt.Sprint(n) + []string{"", ", unknown: 1"}[n%2] + "}\n"
	},
	func(_, _ string, n int) string {
		return "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: " +
			[]string{"Metadata", "None", "Wrong"}[n%3] + "\n  users: [a]\n"
	},
	func(name, _ string, n int) string {
		return "openapi: 3.0.3\ninfo: {title: " + name + ", version: '1'}\npaths:\n  /items" + name + ":\n    post:\n      requestBody: {content: {application/json: {schema: {type: object, properties: {n: " +
			[]string{"{type: integer, maximum: " + fmt.Sprint(n) + "}", "{$ref: 'part.yaml#/n'}", "{$ref: '../p0/part.yaml#/n'}"}[n%3] + "}}}}}\n      responses: {'200': {description: ok}}\n    get:\n      responses: {'200': {description: ok}}\n"
	},
	func(name, _ string, n int) string {
		return "overlay: 1.0.0\ninfo: {title: " + name + ", version: '1'}\n" +
			[]string{"", "extends: 0.yaml\n", "extends: ../p1/0.yaml\n"}[n%3] + "actions:\n- target: " +
			[]string{"$.paths[*].post", "$.paths[*].none", "$.paths[*].get"}[n%3] + "\n  update: {requestBody: {content: {application/json: {schema: {maxProperties: " + fmt.Sprint(n) +
			", properties: {m: {odd: 1, $ref: 'part.yaml#/n'}}}}}}}\n"
	},
	// as the other definitions, but for the group, which has to be approved if it is Kubernetes'
	func(name, _ string, n int) string {
		return definition(name+[]string{".example.com", ".example.com", ".example.com", ".k8s.io"}[n%4], n)
	},
}

// definition is a CustomResourceDefinition.
func definition(group string, n int) string {
	plural, kind := "widgets", "Widget"
	if n%5 == 4 {
		plural, kind = "gadgets", "Gadget"
	}
	field := []string{"size: {type: integer, default: 1, maximum: 8}", "size: {type: string}",
		"size: {type: integer, x-kubernetes-validations: [{rule: 'self < 7'}]}"}[n%3]
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\nspec:\n  group: " + group + "\n  names: {plural: " + plural +
		", kind: " + kind + "}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" + []string{"", "    deprecated: true\n"}[n/15] +
		"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + field + ", label: {type: string}}}}}}\n"
}

// rollout is an annotation of an object's metadata, for some numbers.
func rollout(n int) string {
	if n%4 != 3 {
		return ""
	}
	return "\n  annotations: {admission-gateway.io/rollout: '{\"percent\": " + fmt.Sprint(n) + "}'}"
}

// edited is an object of the files.
type edited struct {
	writer, name, number int
	remark               bool // a line more, within the object
}

func (e *edited) text() string {
	names := []string{"a", "b", "c"}
	text := writers[e.writer](names[e.name%3], names[(e.name+1)%3], e.number)
	if e.remark {
		text = strings.Replace(text, "\n", "\n# a remark\n", 1)
	}
	return text
}

// folders are files with objects, and modules, that edits change.
type folders struct {
	objects [3][]edited
	names   [3]int
	above   [3]int // lines before the objects
	module  int
	part    int // of documents
}

func (f *folders) clone() folders {
	c := *f
	for i := range c.objects {
		c.objects[i] = slices.Clone(c.objects[i])
	}
	return c
}

// edit changes something, as numbers below 256 say.
func (f *folders) edit(op, at, which, number int) {
	file := at % len(f.objects)
	objects := f.objects[file]
	one := edited{writer: which % len(writers), name: number / 16, number: number % 16}
	i := 0
	if len(objects) > 0 {
		i = which % len(objects)
	}
	switch {
	case op%10 < 3 || len(objects) == 0:
		f.objects[file] = slices.Insert(objects, i, one)
	case op%10 == 3:
		f.objects[file] = slices.Delete(objects, i, i+1)
	case op%10 == 4:
		objects[i].number = number % 16
	case op%10 == 5:
		objects[i].name = number
	case op%10 == 6:
		j := number % len(objects)
		objects[i], objects[j] = objects[j], objects[i]
	case op%10 == 7:
		to := number % len(f.objects)
		moved := objects[i]
		f.objects[file] = slices.Delete(objects, i, i+1)
		f.objects[to] = append(f.objects[to], moved)
	case op%10 == 8:
		objects[i].remark = !objects[i].remark
		f.above[file] = number % 3
	default:
		f.module, f.part = number%4, number/4%4
		f.names[file] = number % 2
	}
}

// source returns the files as they are now.
func (f *folders) source() *source.Source {
	var files []source.File
	for i, objects := range f.objects {
		var text strings.Builder
		text.WriteString(strings.Repeat("# above\n", f.above[i]))
		for _, one := range objects {
			text.WriteString(one.text() + "---\n")
		}
		files = append(files, source.File{Name: fmt.Sprintf("p%d/%d.yaml", i, f.names[i]), Data: []byte(text.String())})
		if strings.Contains(text.String(), "part.yaml") {
			files = append(files, source.File{Name: fmt.Sprintf("p%d/part.yaml", i), Data: []byte(
				[]string{"n: {type: integer, maximum: 3}\n", "# a remark\nn: {type: string, odder: 1}\n", "m: 1\n",
					"n: [\n"}[f.part])})
		}
	}
	module := []string{"", "package q\nimport data.limits\ndeny contains \"of a module\" if { input.review.object.spec.size > limits.most }\n",
		"package q\ndeny contains \"of another module\" if { input.review.namespaceObject.metadata.labels.n == \"n1\" }\n", "package q\nwrong\n"}[f.module]
	if module != "" {
		files = append(files, source.File{Name: "p0/q.rego", Data: []byte(module), Role: source.Module},
			source.File{Name: "p0/data.json", Data: fmt.Appendf(nil, `{"limits": {"most": %d}}`, f.names[0]),
				Role: source.Data})
	}
	return source.Of(files)
}

// configured is what the configuration has.
var configured = policies.Gateway{
	Upstreams: []string{"main"}, SharedLimits: true, LocalLocks: true, AuditSinks: []string{"file"},
	Routes: []policies.Route{{Name: "all", PathPrefix: "/", Upstream: "main"}},
}

// strict is what a configuration has that says little.
var strict = policies.Gateway{Upstreams: []string{"main"}, NoIdentity: true, AuditSinks: []string{},
	Routes: configured.Routes}

// closed lets nothing but the files be read.
type closed struct{}

func (closed) MayRead() error { return errors.New("nothing may be read") }

// described is all that a set says of itself and of some requests.
func described(t testing.TB, set *policies.Set) string {
	var b bytes.Buffer
	note := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	note([]any{set.Hash(), set.Files(), set.MatchedResources(), set.Admission().Names(), set.States(),
		set.Audit() != nil})
	for _, r := range set.Registry().Resources() {
		note(r)
		note([]any{set.Deprecation(r), set.Schema(r) != nil, set.StrategicType(r) != nil})
	}
	for _, p := range set.Terms().Rollouts {
		note([]any{p.Policy(), p.In(time.Unix(0, 0))})
	}
	for _, e := range set.Terms().Exceptions {
		note([]any{e.Name(), e.Reason(), e.Expires(), e.Policies()})
	}
	for _, name := range []string{"a", "b", "c"} {
		for _, id := range [][3]string{{"", "ConfigMap", "default"}, {"", "Namespace", ""},
			{"example.com", "Widget", "default"}} {
			if o, ok := set.Object(id[0], id[1], id[2], name); ok {
				b.Write(append(o.Document.AppendTo(nil), '\n'))
			}
		}
	}
	for _, request := range []struct{ method, path, body string }{
		{"POST", "/apis/example.com/v1/namespaces/team-a/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"a":"b","kubernetes.io/x":"y"}},"spec":{"size":7}}`},
		{"POST", "/apis/example.com/v1/namespaces/team-b/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"v"},"spec":{"size":2,"label":"one"}}`},
		{"POST", "/apis/example.com/v1/namespaces/team-a/gadgets", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"size":5}}`},
		{"POST", "/orders/a", `{"amount":9}`},
		{"POST", "/itemsb", `{"n":9}`},
		{"GET", "/orders/b/1", ""},
	} {
		b.WriteString(answer(t, set, request.method, request.path, request.body) + "\n")
	}
	return b.String()
}

// answer is what a set says of a request.
func answer(t testing.TB, set *policies.Set, method, path, body string) string {
	info, r, err := set.Registry().Resolve(method, []byte(path))
	if err != nil {
		return err.Error()
	}
	said, err := json.Marshal(matching.Of(set, &info, r, &resource.RouteRef{Upstream: "main", Route: "all"}))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		return string(said)
	}
	d, err := document.Parse([]byte(body), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	var errs []error
	if s := set.SchemaFor(r, info.Verb); s != nil {
		for _, err := range s.Validate(frame, d.Root(), document.Node{}).Errors {
			errs = append(errs, err)
		}
	}
	var referred policies.Referred
	referred.Begin(context.Background(), set, nil, nil, &info, closed{}, time.Time{})
	defer referred.Reset()
	a := &admission.Attributes{Info: &info, Resource: r, Operation: admission.Create, Object: d, Frame: frame,
		Lookup: &referred}
	var report admission.Report
	errs = append(errs, set.Admission().Mutate(context.Background(), a, &report))
	set.Admission().Validate(context.Background(), a, &report)
	return fmt.Sprintf("%s\n%v\n%s\n%v %v %v", said, errs, d.AppendTo(nil), report.Err(a), report.Warnings(),
		report.AuditedFailures())
}

// equal compares a set that shares with the previous ones with one from scratch, after each of some
// edits. A set that is in use is asked while the next one is made, and says the same when that was
// made.
func equal(t testing.TB, edits []byte) (shared int) {
	var f folders
	var before *policies.Set
	var said string
	for len(edits) >= 4 {
		last, undoes := f.clone(), edits[3]%8 != 0
		f.edit(int(edits[0]), int(edits[1]), int(edits[2]), int(edits[3]))
		edits = edits[4:]
		s := f.source()
		asked := make(chan string)
		go func(set *policies.Set) {
			text := ""
			if set != nil {
				text = described(t, set)
			}
			asked <- text
		}(before)
		set, found := policies.CompileAfter(before, s, configured)
		if again := <-asked; again != said {
			t.Fatalf("a set changes while the next one is made\nbefore %s\nthen   %s", said, again)
		}
		if before != nil {
			if again := described(t, before); again != said {
				t.Fatalf("a set changes because of the next one\nbefore %s\nthen   %s", said, again)
			}
		}
		scratch, want := policies.CompileFor(s, configured)
		if !slices.Equal(found, want) {
			t.Fatalf("the findings differ\ngot  %v\nwant %v\n%s", found, want, texts(s))
		}
		apart, want := policies.CompileApart(s, configured)
		if !slices.Equal(found, want) {
			t.Fatalf("the findings differ where policies share nothing\ngot  %v\nwant %v\n%s", found, want, texts(s))
		}
		_, found = policies.CompileAfter(before, s, strict)
		if _, want := policies.CompileFor(s, strict); !slices.Equal(found, want) {
			t.Fatalf("the findings for another gateway differ\ngot  %v\nwant %v\n%s", found, want, texts(s))
		}
		if (set == nil) != (scratch == nil) {
			t.Fatalf("got a set: %v, want one: %v\n%s", set != nil, scratch != nil, texts(s))
		}
		if set == nil {
			if undoes { // or all that comes after has the error too
				f = last
			}
			continue
		}
		got := described(t, set)
		if want := described(t, scratch); got != want {
			t.Fatalf("the sets differ\ngot  %s\nwant %s\n%s", got, want, texts(s))
		}
		if want := described(t, apart); got != want {
			t.Fatalf("the sets differ where policies share nothing\ngot  %s\nwant %s\n%s", got, want, texts(s))
		}
		if before != nil {
			shared++
		}
		before, said = set, got
	}
	return shared
}

func texts(s *source.Source) string {
	var b strings.Builder
	for _, f := range s.Files {
		b.WriteString("== " + f.Name + "\n" + string(f.Data))
	}
	return b.String()
}

// TestIncremental: a set that shares what did not change is the set that is compiled from scratch.
func TestIncremental(t *testing.T) {
	shared := 0
	for seed := range uint64(testutil.Amount(12, 3)) {
		random := rand.New(rand.NewPCG(seed, 24))
		edits := make([]byte, 4*60)
		for i := range edits {
			edits[i] = byte(random.UintN(256))
		}
		shared += equal(t, edits)
	}
	if shared < testutil.Amount(50, 12) {
		t.Errorf("only %d sets came after another one", shared)
	}
}

// FuzzIncremental is TestIncremental for any edits.
func FuzzIncremental(f *testing.F) {
	const add, remove, change = 0, 3, 4
	const policy, binding, definition, exception, state, template, constraint, custom, document = 0, 1, 4, 8, 11, 12,
		13, 17, 19
	for _, edits := range [][]byte{
		// a schema that expressions are checked against
		{add, 0, policy, 0, add, 0, binding, 0, add, 1, definition, 0, change, 1, 0, 1},
		{add, 0, state, 0, add, 1, policy, 3, remove, 0, 0, 0}, // a collection that an expression reads
		// a resource of a kind that a constraint names
		{add, 0, template, 0, add, 1, constraint, 0, add, 2, definition, 0},
		{add, 0, custom, 1, add, 1, definition, 0, change, 1, 0, 2},  // a schema of an object
		{add, 0, policy, 32, add, 1, exception, 16, remove, 1, 0, 0}, // an exception to a policy
		{add, 0, document, 16, add, 1, document, 0},                  // a resource that another one moves in the registry
	} {
		f.Add(edits)
	}
	f.Fuzz(func(t *testing.T, edits []byte) { equal(t, edits[:min(len(edits), 4*40)]) })
}
