package mutate

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/document"
)

func widgetProps(t testing.TB) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(widgetSchema), props); err != nil {
		t.Fatal(err)
	}
	return props
}

// defaultingPolicies compiles policies for widgets, separated by lines of dashes, whose names are
// p0, p1 and so on.
func defaultingPolicies(t testing.TB, text string) []admission.Mutator {
	t.Helper()
	var mutators []admission.Mutator
	for i, part := range strings.Split(text, "\n---\n") {
		p := &DefaultingPolicy{}
		p.Name = "p" + string(rune('0'+i))
		if !strings.Contains(part, "matchConstraints") {
			part = `matchConstraints: {resourceRules: [{apiGroups: [lab.example.com], apiVersions: [v1], operations: ["*"], resources: [widgets]}]}` + "\n" + part
		}
		if err := yaml.UnmarshalStrict([]byte(part), &p.Spec); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		compiled, errs := Compiler{States: []string{"classes"}}.CompileDefaulting(p)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		mutators = append(mutators, compiled)
	}
	return mutators
}

// TestDefaulting: what policies set, and what happens if they cannot (DEF-4, DEF-5, DEF-6).
func TestDefaulting(t *testing.T) {
	const widget = `{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"team-a"}`
	for name, c := range map[string]struct {
		policies, spec, old, want string
		prepare                   func(*admission.Attributes, *admissiontest.Lookup)
	}{
		"values": {
			policies: "defaults: [{field: spec.color, value: red}, {field: spec.size, value: 3}, {field: 'spec.parts[name=a]', value: {weight: 1}}, {field: 'spec.parts[name=b].kind', value: k}]",
			spec:     `{"size":0}`, want: `{"size":0,"max":100,"color":"red","parts":[{"name":"a","weight":1},{"name":"b","kind":"k","weight":5}]}`,
		},
		"a later default sees what those before it set, and what the schema adds": {
			policies: "defaults: [{field: 'spec.parts[name=a].kind', value: k}, {field: spec.size, valueExpression: 'object.spec.parts[0].weight'}, {field: spec.color, valueExpression: \"string(object.spec.size) + ' of ' + string(self.max)\"}]",
			spec:     `{}`, want: `{"max":100,"parts":[{"name":"a","kind":"k","weight":5}],"size":5,"color":"5 of 100"}`,
		},
		"conditions, and a value for every item": {
			policies: "defaults: [{field: 'spec.parts[*].kind', valueExpression: self.name + '!', when: self.weight > 1}]",
			spec:     `{"parts":[{"name":"a","weight":1},{"name":"b","weight":2},{"name":"c","kind":""},{"name":"d"}]}`,
			want:     `{"parts":[{"name":"a","weight":1},{"name":"b","weight":2,"kind":"b!"},{"kind":"","name":"c","weight":5},{"name":"d","weight":5,"kind":"d!"}],"max":100}`,
		},
		"no value": {
			policies: "defaults: [{field: spec.color, valueExpression: 'object.spec.?nothing'}, {field: spec.nick, valueExpression: 'null'}, {field: spec.labels, value: {}, when: 'false'}]",
			spec:     `{}`, want: `{"max":100}`,
		},
		"what is given": {
			policies: "defaults: [{field: spec.color, value: red}, {field: spec.nick, value: N1}, {field: spec.tags, value: [a]}, {field: spec.labels, value: {a: b}}, {field: spec.any.x.y, value: 1}]",
			spec:     `{"color":"","nick":null,"tags":[],"labels":{},"any":{"x":false}}`,
			want:     `{"any":{"x":false},"color":"","labels":{},"nick":null,"tags":[],"max":100}`,
		},
		"the first policy by name wins": {
			policies: "defaults: [{field: spec.color, value: red}]\n---\ndefaults: [{field: spec.color, value: blue}, {field: spec.nick, valueExpression: object.spec.color}]",
			spec:     `{}`, want: `{"max":100,"color":"red","nick":"red"}`,
		},
		"match conditions": {
			policies: "matchConditions: [{name: big, expression: object.spec.size > 5}]\ndefaults: [{field: spec.color, value: red}]\n---\nmatchConditions: [{name: small, expression: object.spec.size <= 5}]\ndefaults: [{field: spec.nick, value: N1}]",
			spec:     `{"size":7}`, want: `{"size":7,"max":100,"color":"red"}`,
		},
		"other requests": {
			policies: "matchConstraints: {resourceRules: [{apiGroups: [lab.example.com], apiVersions: [v1], operations: [UPDATE], resources: [widgets]}]}\ndefaults: [{field: spec.color, value: red}]",
			spec:     `{}`, want: `{"max":100}`,
		},
		"an update": {
			policies: "defaults: [{field: spec.color, valueExpression: oldObject.spec.color}]",
			spec:     `{}`, old: widget + `,"spec":{"color":"red"}}`, want: `{"max":100,"color":"red"}`,
		},
		"the request and the namespace": {
			policies: "defaults: [{field: spec.color, valueExpression: \"request.userInfo.username + ' ' + namespaceObject.metadata.labels.tier\"}, {field: spec.nick, valueExpression: namespaceObject.metadata.name}]",
			spec:     `{}`, want: `{"max":100,"color":"jane prod","nick":"team-a"}`,
		},
		"a namespace that is not there": {
			policies: "failurePolicy: Ignore\ndefaults: [{field: spec.color, valueExpression: namespaceObject.metadata.name}]",
			spec:     `{}`, want: `404 namespaces "team-b" not found`,
			prepare: func(a *admission.Attributes, _ *admissiontest.Lookup) { a.Info.Namespace = "team-b" },
		},
		"a state": {
			policies: "defaults: [{field: spec.color, valueExpression: 'state.classes.filter(c, c.isDefault)[?0].name'}, {field: spec.nick, valueExpression: 'state.classes.filter(c, c.none)[?0].name'}]",
			spec:     `{}`, want: `{"max":100,"color":"gold"}`,
			prepare: func(_ *admission.Attributes, l *admissiontest.Lookup) {
				l.Known = map[string][]document.Node{"classes": {
					admissiontest.Parse(`{name: tin, isDefault: false, none: false}`).Root(),
					admissiontest.Parse(`{name: gold, isDefault: true, none: false}`).Root(),
				}}
			},
		},
		"a state that is not known": {
			policies: "defaults: [{field: spec.color, valueExpression: 'state.classes[0].name'}, {field: spec.nick, value: N1}]",
			spec:     `{}`,
			want: `403 policy 'p0' denied request: spec.defaults[0].valueExpression: expression 'state.classes[0].name' resulted in error: the state 'classes' is not known` +
				` [p0]`,
		},
		"a state that is to be skipped while it is not known": {
			policies: "defaults: [{field: spec.color, valueExpression: 'state.classes[0].name'}, {field: spec.nick, value: N1}]",
			spec:     `{}`, want: `{"max":100,"nick":"N1"} ignored p0`,
			prepare: func(_ *admission.Attributes, l *admissiontest.Lookup) { l.Skip = true },
		},
		"failures": {
			policies: "defaults: [{field: spec.color, valueExpression: object.spec.x}, {field: spec.nick, value: N1, when: object.spec.y == 1}]\n---\nfailurePolicy: Ignore\ndefaults: [{field: spec.color, valueExpression: object.spec.z}, {field: spec.nick, value: N1}]",
			spec:     `{}`,
			want: `403 policy 'p0' denied request: spec.defaults[0].valueExpression: expression 'object.spec.x' resulted in error: no such key: x; ` +
				`policy 'p0' denied request: spec.defaults[1].when: expression 'object.spec.y == 1' resulted in error: no such key: y [p0 p0] ignored p1`,
		},
		"a value that has no JSON": {
			policies: "defaults: [{field: spec.color, valueExpression: 'type(1)'}]",
			spec:     `{}`, want: `403 policy 'p0' denied request: spec.defaults[0].valueExpression: expression 'type(1)' resulted in error: a value of type type cannot be written as JSON [p0]`,
		},
		"an item that is no object": {
			policies: "defaults: [{field: 'spec.parts[name=a]', valueExpression: 'dyn(5)'}]",
			spec:     `{}`, want: `403 policy 'p0' denied request: spec.defaults[0].valueExpression: the value of an item must be an object, not a number [p0]`,
		},
		"an object that becomes too large": {
			policies: "defaults: [{field: spec.any, valueExpression: '{\"x\": object.spec.steps, \"y\": object.spec.steps}'}]",
			spec:     `{"steps":["` + strings.Repeat("x", document.DefaultBytes/2) + `"]}`,
			want:     `413 the object as policies change it must be at most 3145728 bytes`,
		},
		"a literal for many items": {
			policies: "defaults: [{field: 'spec.parts[*].kind', value: " + strings.Repeat("x", 1000) + "}]",
			spec:     `{"parts":[` + strings.Repeat(`{},`, 9999) + `{}]}`,
			want:     `413 the object as policies change it must be at most 3145728 bytes`,
		},
		"too much work": {
			policies: "defaults: [{field: 'spec.parts[*].kind', valueExpression: 'object.spec.parts.all(a, object.spec.parts.all(b, a != b || a == b)) ? \"x\" : \"y\"'}]",
			spec:     `{"parts":[` + strings.Repeat(`{},`, 4999) + `{}]}`,
			want:     `403 policy 'p0' denied request: spec.defaults[0].valueExpression: expression 'object.spec.parts.all(a, object.spec.parts.all(b, a != b || a == b)) ? "x" : "y"' resulted in error: operation cancelled: actual cost limit exceeded; shorten object.spec.parts, which has 5000 items [p0]`,
		},
		"another version": {
			policies: "matchConstraints: {resourceRules: [{apiGroups: [lab.example.com], apiVersions: [v2], operations: ['*'], resources: [widgets]}]}\ndefaults: [{field: spec.color, valueExpression: object.apiVersion}, {field: spec.nick, valueExpression: object.spec.color}]",
			spec:     `{}`, want: `{"max":100,"color":"lab.example.com/v2","nick":"lab.example.com/v2"}`,
			prepare: func(_ *admission.Attributes, l *admissiontest.Lookup) {
				l.Others = []schema.GroupVersionResource{{Group: "lab.example.com", Version: "v2", Resource: "widgets"}}
			},
		},
		"another version, exactly": {
			policies: "matchConstraints: {matchPolicy: Exact, resourceRules: [{apiGroups: [lab.example.com], apiVersions: [v2], operations: ['*'], resources: [widgets]}]}\ndefaults: [{field: spec.color, value: red}]",
			spec:     `{}`, want: `{"max":100}`,
			prepare: func(_ *admission.Attributes, l *admissiontest.Lookup) {
				l.Others = []schema.GroupVersionResource{{Group: "lab.example.com", Version: "v2", Resource: "widgets"}}
			},
		},
	} {
		lookup := (&admissiontest.Lookup{}).Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}")
		a := request(t, widgetProps(t), widget+`,"spec":`+c.spec+"}", c.old)
		a.Lookup = lookup
		if c.prepare != nil {
			c.prepare(a, lookup)
		}
		chain := admission.NewChain(defaultingPolicies(t, c.policies), nil)
		got := outcome(chain, a)
		if want := c.want; !strings.HasSuffix(got, want) ||
			strings.HasPrefix(want, "4") != strings.HasPrefix(got, "4") {
			t.Errorf("%s\ngot  %.2000s\nwant %s", name, got, want)
			continue
		}
		if strings.HasPrefix(got, "{") {
			if again := outcome(chain, a); again != got { // DEF-6
				t.Errorf("%s\n%s\nbecomes %s", name, got, again)
			}
		}
	}
}

// outcome is the spec of the object as it has become, or the answer, and what was ignored.
func outcome(chain *admission.Chain, a *admission.Attributes) string {
	var r admission.Report
	err := a.Schema.SetDefaults() // as before admission
	if err == nil {
		err = chain.Mutate(context.Background(), a, &r)
	}
	var b strings.Builder
	if err == nil {
		spec, _ := a.Object.Root().Get("spec")
		b.Write(spec.AppendRaw(nil))
	} else {
		b.WriteString(describe(err))
	}
	if ignored := r.IgnoredFailures(); len(ignored) > 0 {
		b.WriteString(" ignored")
		for _, i := range ignored {
			b.WriteString(" " + i.Policy)
		}
	}
	return b.String()
}
