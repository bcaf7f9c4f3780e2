package mutation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

func resources(k apischema.GroupKind) ([]string, bool) {
	if k.Kind == "Pod" && k.Group == "" {
		return []string{"pods"}, true
	}
	return nil, false
}

// compileOne compiles a mutator from its manifest.
func compileOne(t testing.TB, text string) (*Mutator, field.ErrorList) {
	t.Helper()
	var meta struct{ Kind string }
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		t.Fatal(err)
	}
	read := func(into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	c := Compiler{Resources: resources}
	switch meta.Kind {
	case "Assign":
		a := &Assign{}
		read(a)
		return c.Assign(a)
	case "AssignMetadata":
		a := &AssignMetadata{}
		read(a)
		return c.AssignMetadata(a)
	case "ModifySet":
		s := &ModifySet{}
		read(s)
		return c.ModifySet(s)
	}
	a := &AssignImage{}
	read(a)
	return c.AssignImage(a)
}

// attributes are of a request that creates or updates a pod.
func attributes(t testing.TB, object string) *admission.Attributes {
	t.Helper()
	d, err := document.Parse([]byte(object), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a := &admission.Attributes{
		Info: &resource.Info{
			Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1", Resource: "pods",
			Namespace: "team-a",
		},
		Operation: admission.Create,
		Object:    d,
		Lookup:    (&admissiontest.Lookup{}).Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}"),
		Frame:     cel.NewFrame(t.Context()),
	}
	t.Cleanup(a.Frame.Release)
	return a
}

// mutatorSetOf compiles mutators from manifests that lines of dashes separate.
func mutatorSetOf(t testing.TB, text string) *MutatorSet {
	t.Helper()
	var mutators []*Mutator
	for _, one := range strings.Split(text, "\n---\n") {
		m, errs := compileOne(t, one)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		mutators = append(mutators, m)
	}
	return NewMutatorSet(mutators, []match.Wildcard{"kube-*"})
}

func assignOf(name, location, rest string) string {
	return "kind: Assign\nmetadata: {name: " + name + "}\nspec:\n  applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}]\n  location: " + location + "\n" + rest
}

func setOf(operation, location, values string) string {
	return "kind: ModifySet\nmetadata: {name: s}\nspec:\n  applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}]\n  location: " + location +
		"\n  parameters: {operation: " + operation + ", values: {fromList: " + values + "}}"
}

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"team-a","labels":{"a":"b"}},` +
	`"spec":{"n":1.0,"containers":[{"name":"x","image":"nginx"},{"name":"y","image":"a.b/c:1"}]}}`

// TestMutate: what mutators make of a pod. want is a pod's spec and, if it changes, its labels.
func TestMutate(t *testing.T) {
	for name, c := range map[string]struct{ mutators, want string }{
		"every item": {assignOf("m", "'spec.containers[name: *].imagePullPolicy'", "  parameters: {assign: {value: Always}}"), `"containers":[{"name":"x","image":"nginx","imagePullPolicy":"Always"},{"name":"y","image":"a.b/c:1","imagePullPolicy":"Always"}]`},
		"one item": {assignOf("m", "'spec.containers[name: y].image'", "  parameters: {assign: {value: z}}"),
			`{"name":"x","image":"nginx"},{"name":"y","image":"z"}`},
		"new item": {assignOf("m", "'spec.containers[name: z].a.b'",
			"  parameters: {assign: {value: {size: 1.5}}}"), `,{"name":"z","a":{"b":{"size":1.5}}}]`},
		"whole item": {assignOf("m", "'spec.containers[name: x]'",
			"  parameters: {assign: {value: {name: x, image: q}}}"), `[{"image":"q","name":"x"},{"name":"y"`},
		"new list": {assignOf("m", "'spec.volumes[name: v]'", "  parameters: {assign: {value: {name: v}}}"),
			`"volumes":[{"name":"v"}]`},
		"deep list": {assignOf("m", "'spec.volumes[name: v].items[key: k].path'",
			"  parameters: {assign: {value: p}}"), `"volumes":[{"name":"v","items":[{"key":"k","path":"p"}]}]`},
		"no items":       {assignOf("m", "'spec.none[name: *].a'", "  parameters: {assign: {value: p}}"), `"n":1.0,"containers":[{"name":"x","image":"nginx"},{"name":"y","image":"a.b/c:1"}]}`},
		"equal number":   {assignOf("m", "spec.n", "  parameters: {assign: {value: 1}}"), `"n":1.0,`},
		"must exist":     {assignOf("m", "spec.o.p", "  parameters: {assign: {value: 1}, pathTests: [{subPath: spec.o, condition: MustExist}]}"), `"n":1.0,"containers":[{"name":"x","image":"nginx"},{"name":"y","image":"a.b/c:1"}]}`},
		"must not exist": {assignOf("m", "spec.n", "  parameters: {assign: {value: 2}, pathTests: [{subPath: spec.n, condition: MustNotExist}]}"), `"n":1.0,`},
		"from metadata": {assignOf("m", "spec.o.p", "  parameters: {assign: {fromMetadata: {field: namespace}}}"),
			`"o":{"p":"team-a"}`},
		"namespace selector": {assignOf("m", "spec.o", "  match: {namespaceSelector: {matchLabels: {tier: prod}}}\n  parameters: {assign: {value: yes it is}}"), `"o":"yes it is"`},
		"other operation":    {strings.Replace(assignOf("m", "spec.o", "  parameters: {assign: {value: 1}}"), "kinds: [Pod]", "kinds: [Pod], operations: [UPDATE]", 1), `"n":1.0,"containers":[{"name":"x","image":"nginx"},{"name":"y","image":"a.b/c:1"}]}`},
		"one after the other": {assignOf("a", "spec.p", "  match: {labelSelector: {matchLabels: {new: l}}}\n  parameters: {assign: {value: 1}}") + "\n---\n" +
			"kind: AssignMetadata\nmetadata: {name: m}\nspec: {location: metadata.labels.new, parameters: {assign: {value: l}}}", `"labels":{"a":"b","new":"l"}},"spec":{"n":1.0,"containers":[{"name":"x","image":"nginx"},{"name":"y","image":"a.b/c:1"}],"p":1}`},
		"label that is there": {"kind: AssignMetadata\nmetadata: {name: m}\nspec: {location: metadata.labels.a, parameters: {assign: {value: l}}}", `"labels":{"a":"b"}}`},
		"last of a pass": {assignOf("a", "spec.p", "  parameters: {assign: {value: 1}}") + "\n---\n" +
			assignOf("b", "spec.p", "  parameters: {assign: {value: 2}}"), `"p":2}`},
		"merge": {setOf("merge", "'spec.containers[name: x].args'", "[b, a, b]") + "\n---\n" +
			strings.Replace(setOf("merge", "'spec.containers[name: x].args'", "[c, a]"), "name: s", "name: t", 1),
			`"args":["b","a","b","c"]`},
		"prune": {setOf("prune", "spec.containers", "[{image: nginx, name: x}]"),
			`"containers":[{"name":"y","image":"a.b/c:1"}]`},
		"prune of nothing": {setOf("prune", "spec.o.p", "[a]"), `"o":{}`},
		"image": {"kind: AssignImage\nmetadata: {name: i}\nspec:\n  applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}]\n  location: 'spec.containers[name: *].image'\n" +
			"  parameters: {assignDomain: r.example.com, assignTag: ':2'}", `{"name":"x","image":"r.example.com/nginx:2"},{"name":"y","image":"r.example.com/c:2"}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := attributes(t, pod)
			err := admission.NewChain([]admission.Mutator{mutatorSetOf(t, c.mutators)},
				nil).Mutate(context.Background(), a,
				&admission.Report{})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(a.Object.AppendTo(nil)); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want it to have %s", got, c.want)
			}
		})
	}
}

// TestMutateFails: mutators that cannot be applied end the request, as Gatekeeper's webhook does.
func TestMutateFails(t *testing.T) {
	const denied = `admission webhook "mutation.gatekeeper.sh" denied the request: `
	for mutators, want := range map[string]string{
		assignOf("m", "spec.n.o", "  parameters: {assign: {value: 1}}"):            "mutator Assign 'm' failed for Pod 'team-a/web': spec.n must be an object, not a number",
		assignOf("m", "'spec.n[name: x].o'", "  parameters: {assign: {value: 1}}"): "mutator Assign 'm' failed for Pod 'team-a/web': spec.n must be a list, not a number",
		setOf("merge", "spec.n", "[1]"):                                            "mutator ModifySet 's' failed for Pod 'team-a/web': spec.n must be a list, not a number",
		// each pass ends as it began
		setOf("merge", "spec.o", "[1]") + "\n---\n" + strings.Replace(setOf("prune", "spec.o", "[1]"), "name: s",
			"name: t", 1): "",
		assignOf("m", "'spec.containers[name: z].name.x'", "  parameters: {assign: {value: 1}}"): "mutator Assign 'm' failed for Pod 'team-a/web': spec.containers[name: z].name must be an object or a list, not the key of an item",
		assignOf("m", "spec.o", "  match: {labelSelector: {matchExpressions: [{key: l, operator: DoesNotExist}]}}\n  parameters: {assign: {value: {m: 1}}}") + "\n---\n" +
			assignOf("n", "spec.o.m", "  parameters: {assign: {value: 2}}") + "\n---\n" +
			assignOf("o", "spec.o.k", "  parameters: {assign: {fromMetadata: {field: name}}}"): "",
	} {
		a := attributes(t, pod)
		err := admission.NewChain([]admission.Mutator{mutatorSetOf(t, mutators)}, nil).Mutate(context.Background(), a,
			&admission.Report{})
		var answer *status.Error
		switch {
		case want == "" && err != nil:
			t.Errorf("%s\ngot %v, want no error", mutators, err)
		case want == "":
		case !errors.As(err, &answer):
			t.Errorf("%s\ngot %v, want an answer", mutators, err)
		case answer.ErrStatus.Message != denied+want || answer.ErrStatus.Code != 500:
			t.Errorf("%s\ngot  %d %s\nwant %s", mutators, answer.ErrStatus.Code, answer.ErrStatus.Message, denied+want)
		}
	}
}

// TestExempt: objects that mutators leave alone.
func TestExempt(t *testing.T) {
	s := mutatorSetOf(t, "kind: AssignMetadata\nmetadata: {name: m}\nspec: {location: metadata.labels.m, parameters: {assign: {value: l}}}")
	for name, c := range map[string]struct {
		namespace, subresource, object string
		exempt                         bool
	}{
		"pod":                {"team-a", "", pod, false},
		"excluded namespace": {"kube-system", "", pod, true},
		"subresource":        {"team-a", "status", pod, true},
		"its own kind":       {"", "", `{"apiVersion":"constraints.gatekeeper.sh/v1beta1","kind":"K","metadata":{"name":"x"}}`, true},
		"namespace itself":   {"", "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-public"}}`, true},
	} {
		a := attributes(t, c.object)
		a.Info.Namespace, a.Info.Subresource = c.namespace, c.subresource
		if err := admission.NewChain([]admission.Mutator{s}, nil).Mutate(context.Background(), a,
			&admission.Report{}); err != nil {
			t.Fatal(err)
		}
		if a.Object.Edited() == c.exempt {
			t.Errorf("%s: edited is %t", name, !c.exempt)
		}
	}
}

// TestRefused: what is wrong with mutators, by field.
func TestRefused(t *testing.T) {
	value := "  parameters: {assign: {value: 1}}"
	for text, want := range map[string]string{
		assignOf("m", "''", value):                                                       "spec.location",
		assignOf("m", "'spec..a'", value):                                                "spec.location",
		assignOf("m", "'spec.a[name x].b'", value):                                       "spec.location",
		assignOf("m", "'spec.a[\"name: x].b'", value):                                    "spec.location",
		assignOf("m", "'spec.a[name: x].b '", value):                                     "",
		assignOf("m", "'spec.1a'", value):                                                "spec.location",
		assignOf("m", "'spec.\"1.a\"[\"n]\": 12].b'", value):                             "",
		assignOf("m", "'spec.a[name: x].name'", value):                                   "spec.location",
		assignOf("m", "metadata.labels.x", value):                                        "spec.location",
		assignOf("m", "'spec.a[name: x]'", value):                                        "spec.parameters.assign.value",
		assignOf("m", "'spec.a[name: *]'", "  parameters: {assign: {value: {name: x}}}"): "spec.location",
		assignOf("m", "'spec.a[name: x]'",
			"  parameters: {assign: {value: {name: y}}}"): "spec.parameters.assign.value",
		assignOf("m", "'spec.a[name: x]'",
			"  parameters: {assign: {fromMetadata: {field: name}}}"): "spec.parameters.assign.fromMetadata",
		assignOf("m", "spec.a",
			"  parameters: {assign: {fromMetadata: {field: uid}}}"): "spec.parameters.assign.fromMetadata.field",
		assignOf("m", "spec.a",
			"  parameters: {assign: {externalData: {provider: p}}}"): "spec.parameters.assign.externalData",
		assignOf("m", "spec.a", "  parameters: {}"): "spec.parameters.assign",
		assignOf("m", "spec.a",
			"  parameters: {assign: {value: 1, fromMetadata: {field: name}}}"): "spec.parameters.assign",
		assignOf("m", "spec.a", "  match: {source: Some}\n"+value): "spec.match.source",
		assignOf("m", "spec.a", "  match: {labelSelector: {matchExpressions: [{key: a, operator: X}]}}\n"+
			value): "spec.match.labelSelector.matchExpressions[0].operator",
		assignOf("m", "spec.a.b", "  parameters: {assign: {value: 1}, pathTests: [{subPath: spec.c, condition: MustExist}]}"):                                               "spec.parameters.pathTests[0].subPath",
		assignOf("m", "spec.a.b", "  parameters: {assign: {value: 1}, pathTests: [{subPath: spec, condition: Must}]}"):                                                      "spec.parameters.pathTests[0].condition",
		assignOf("m", "spec.a.b", "  parameters: {assign: {value: 1}, pathTests: [{subPath: spec, condition: MustExist}, {subPath: spec, condition: MustNotExist}]}"):       "spec.parameters.pathTests[1]",
		assignOf("m", "spec.a.b", "  parameters: {assign: {value: 1}, pathTests: [{subPath: spec.a.b, condition: MustExist}, {subPath: spec.a, condition: MustNotExist}]}"): "spec.parameters.pathTests",
		strings.Replace(assignOf("m", "spec.a", value), "groups: ['']", "groups: []", 1):                                                                                    "spec.applyTo[0].groups",
		strings.Replace(assignOf("m", "spec.a", value), "kinds: [Pod]", "kinds: [Pod], operations: [DELETE]",
			1): "spec.applyTo[0].operations[0]",
		"kind: Assign\nmetadata: {name: m}\nspec: {location: spec.a, parameters: {assign: {value: 1}}}":                    "spec.applyTo",
		"kind: AssignMetadata\nmetadata: {name: m}\nspec: {location: metadata.name, parameters: {assign: {value: a}}}":     "spec.location",
		"kind: AssignMetadata\nmetadata: {name: m}\nspec: {location: metadata.labels.a, parameters: {assign: {value: 1}}}": "spec.parameters.assign.value",
		"kind: AssignMetadata\nmetadata: {name: m}\nspec: {location: metadata.labels.a, parameters: {assign: {}}}":         "spec.parameters.assign",
		setOf("add", "spec.a", "[1]"):              "spec.parameters.operation",
		setOf("merge", "'spec.a[name: x]'", "[1]"): "spec.location",
		setOf("merge", "spec.a", "[1, {a: [b]}]"):  "",
		"kind: AssignImage\nmetadata: {name: m}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.a, parameters: {}}":                     "spec.parameters",
		"kind: AssignImage\nmetadata: {name: m}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.a, parameters: {assignPath: gcr.io/a}}": "spec.parameters.assignDomain",
		"kind: AssignImage\nmetadata: {name: m}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.a, parameters: {assignTag: latest}}":    "spec.parameters.assignTag",
		"kind: AssignImage\nmetadata: {name: m}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.a, parameters: {assignDomain: a/b}}":    "spec.parameters.assignDomain",
		"kind: AssignImage\nmetadata: {name: m}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.a, parameters: {assignPath: A}}":        "spec.parameters.assignPath",
	} {
		_, errs := compileOne(t, text)
		got := ""
		if len(errs) > 0 {
			got = errs[0].Field
		}
		if got != want || len(errs) > 1 {
			t.Errorf("%s\ngot %v, want one about %q", text, errs, want)
		}
	}
}

// TestConflicts: mutators that take one field for different things.
func TestConflicts(t *testing.T) {
	value := "  parameters: {assign: {value: {name: x, key: x}}}"
	for _, c := range []struct{ a, b, want string }{
		{assignOf("a", "spec.c.d", value), assignOf("b", "'spec.c[name: x].d'", value), "Assign 'a' Assign 'b'"},
		{assignOf("a", "'spec.c[key: x].d'", value), assignOf("b", "'spec.c[name: x].d'", value),
			"Assign 'a' Assign 'b'"},
		{assignOf("a", "'spec.c[name: y].d'", value), assignOf("b", "'spec.c[name: x].d'", value), ""},
		{assignOf("a", "spec.c", value), assignOf("b", "'spec.c[name: x].d'", value), ""},
		{assignOf("a", "spec.c.d", value), setOf("merge", "spec.c", "[a]"), "Assign 'a' ModifySet 's'"},
		{assignOf("a", "'spec.c[name: x].d'", value), setOf("merge", "spec.c", "[a]"), "Assign 'a' ModifySet 's'"},
		{strings.Replace(assignOf("a", "spec.c.d", value), "kinds: [Pod]", "kinds: [Pod], operations: [CREATE]", 1),
			strings.Replace(assignOf("b", "'spec.c[name: x].d'", value), "kinds: [Pod]",
				"kinds: [Pod], operations: [UPDATE]", 1), ""},
		{"kind: AssignImage\nmetadata: {name: i}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.c, parameters: {assignTag: ':1'}}",
			assignOf("a", "spec.c.d", value), "Assign 'a' AssignImage 'i'"},
	} {
		x, _ := compileOne(t, c.a)
		y, _ := compileOne(t, c.b)
		mutators := []*Mutator{x, y}
		found := Conflicts(mutators)
		var names []string
		for _, m := range mutators {
			if found[m] != "" {
				names = append(names, m.String())
			}
		}
		if len(names) == 2 && names[0] > names[1] {
			names[0], names[1] = names[1], names[0]
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s\n%s\ngot conflicts of %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// FuzzPath: a location that can be read is written so that it is read as the same.
func FuzzPath(f *testing.F) {
	for _, text := range []string{"spec.containers[name: *].image", `a."b.c"["k]": 12].'d"e'`, "a[b: c]", "..", `a["x`,
		"a[b: 99999999999999999999]", "ä.b", `"\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := parsePath(text)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		written := textOf(path)
		again, err := parsePath(written)
		if err != nil || !slices.EqualFunc(path, again, func(a, b step) bool { return a.same(&b) }) {
			t.Errorf("%q is written as %q, which is read as %q (%v)", text, written, textOf(again), err)
		}
	})
}
