package constraints_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/gatekeeper/mutation"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/reuse"
	"sigs.k8s.io/yaml"
)

// template is of the kind Check: each word of the parameter is a violation.
const template = `---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: check}
spec:
  crd: {spec: {names: {kind: Check}, validation: {openAPIV3Schema: {type: object, properties: {words: {type: array, items: {type: string}}, most: {type: integer}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package check
      violation[{"msg": msg}] { msg := input.parameters.words[_] }
      violation[{"msg": msg}] { some kind, name; data.inventory.cluster.v1[kind][name]; msg := sprintf("%v %v", [kind, name]) }
`

// expressions is a template of the kind Limit.
const expressions = `---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: limit}
spec:
  crd: {spec: {names: {kind: Limit}}}
  targets:
  - {target: admission.k8s.gatekeeper.sh, code: [{engine: K8sNativeValidation, source: {validations: [{expression: 'false', message: limited}]}}]}
`

func constraint(kind, name, spec string) string {
	return "---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: " + kind + "\nmetadata: {name: " + name +
		"}\nspec: " + spec + "\n"
}

func mutator(kind, name, spec string) string {
	return "---\napiVersion: mutations.gatekeeper.sh/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " +
		spec + "\n"
}

const config = "---\napiVersion: config.gatekeeper.sh/v1alpha1\nkind: Config\nmetadata: {name: config}\nspec: "

const syncSet = "---\napiVersion: syncset.gatekeeper.sh/v1alpha1\nkind: SyncSet\nmetadata: {name: s}\nspec: "

// A world is what stands around Gatekeeper's objects.
type world struct {
	known    constraints.Known
	kept     *reuse.Store
	isMeant  bool
	governed []string
	noted    []string
	inRego   []string
	more     []*state.Source
	files    *constraints.Files
}

// compiled compiles the objects of a file.
func (w *world) compiled(t *testing.T,
	text string) (mutators []admission.Mutator, validators []admission.Validator, found string) {
	t.Helper()
	if w.kept == nil {
		w.kept = reuse.After(nil)
	}
	f := &constraints.Files{
		Texts: map[string][]byte{"a.yaml": []byte(text)}, Kept: w.kept,
		Terms:   func(o *manifest.Object) admission.Terms { w.governed = append(w.governed, o.Name); return nil },
		IsMeant: func(*manifest.Object) bool { return w.isMeant },
	}
	w.files = f
	objects, errs := manifest.Read("a.yaml", []byte(text))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	for _, o := range objects {
		take(t, f, o)
	}
	mutators, validators = f.Compile(func(k apischema.GroupKind) ([]string, bool) {
		plural, found := map[string]string{"Pod": "pods", "Service": "services", "Namespace": "namespaces"}[k.Kind]
		return []string{plural}, found
	}, func(o *manifest.Object, t *gatekeeper.Template, _ rego.RequestReads) {
		w.noted = append(w.noted, t.Kind())
	})
	w.known.Locate = func(s *state.Source, kind apischema.GroupVersionKind, plural string) {
		s.Kind, s.Path = kind, "/"+plural
	}
	w.more = f.TakeInventory(&w.known)
	for o, template := range f.InRego() {
		w.inRego = append(w.inRego, o.Name+" of "+template.Kind())
	}
	var lines []string
	for _, one := range f.Found {
		lines = append(lines, strings.TrimPrefix(one.String(), "a.yaml:"))
	}
	slices.Sort(lines)
	return mutators, validators, strings.Join(lines, "\n")
}

// take gives an object to the method for its kind.
func take(t *testing.T, f *constraints.Files, o *manifest.Object) {
	t.Helper()
	read := func(into any) {
		if err := yaml.Unmarshal(o.JSON, into); err != nil {
			t.Fatal(err)
		}
	}
	group, _ := o.GroupVersion()
	switch {
	case o.Kind == "ConstraintTemplate":
		into := &gatekeeper.ConstraintTemplate{}
		read(into)
		f.Template(o, into)
	case group == constraints.Group:
		f.Constraint(o)
	case o.Kind == "Config":
		into := &gatekeeper.Config{}
		read(into)
		f.Config(o, into)
	case o.Kind == "SyncSet":
		into := &gatekeeper.SyncSet{}
		read(into)
		f.SyncSet(o, into)
	case o.Kind == "Assign":
		into := &mutation.Assign{}
		read(into)
		f.Assign(o, into)
	case o.Kind == "AssignMetadata":
		into := &mutation.AssignMetadata{}
		read(into)
		f.AssignMetadata(o, into)
	case o.Kind == "ModifySet":
		into := &mutation.ModifySet{}
		read(into)
		f.ModifySet(o, into)
	case o.Kind == "AssignImage":
		into := &mutation.AssignImage{}
		read(into)
		f.AssignImage(o, into)
	default:
		t.Fatalf("no method takes %s", o.Kind)
	}
}

// pod is a request that creates a pod in the namespace team-a.
func pod(t *testing.T) *admission.Attributes {
	t.Helper()
	a := &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1",
			Resource: "pods", Namespace: "team-a"},
		Operation: admission.Create, Frame: cel.NewFrame(t.Context()),
		Object: admissiontest.Parse("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: team-a}, spec: {containers: [{name: c, image: nginx}]}}"),
		Lookup: &admissiontest.Lookup{Known: map[string][]document.Node{
			"live": {admissiontest.Parse("{apiVersion: v1, kind: Service, metadata: {name: live}}").Root()},
		}},
	}
	t.Cleanup(a.Frame.Release)
	a.Bind()
	return a
}

// verdict is the denial of a request by validators, without what begins each.
func verdict(t *testing.T, validators []admission.Validator) string {
	t.Helper()
	a := pod(t)
	var r admission.Report
	for _, v := range validators {
		if err := v.Validate(context.Background(), a, &r); err != nil {
			return err.Error()
		}
	}
	err := r.Err(a)
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(status.From(err).ErrStatus.Message,
		`admission webhook "validation.gatekeeper.sh" denied the request: `)
}

// TestConstraints: constraints judge by their templates, with the terms of each, but for the namespaces that Config
// names.
func TestConstraints(t *testing.T) {
	check := constraint("Check", "c", "{parameters: {words: [a]}}")
	for name, c := range map[string]struct{ text, want string }{
		"both":    {template + expressions + check + constraint("Limit", "l", "{}"), "[c] a\n[l] limited"},
		"nothing": {template, ""},
		"all processes": {template + check + config + "{match: [{processes: ['*'], excludedNamespaces: ['team-*']}]}\n",
			""},
		"the webhook": {template + check + config + "{match: [{processes: [webhook], excludedNamespaces: [team-a]}]}\n",
			""},
		"other processes": {template + check + config + "{match: [{processes: [audit, sync, mutation-webhook], excludedNamespaces: [team-a]}]}\n",
			"[c] a"},
		"another namespace": {template + check + config +
			"{match: [{processes: ['*'], excludedNamespaces: [team-b]}]}\n",
			"[c] a"},
		"two exemptions": {template + check + config + "{match: [{processes: [webhook], excludedNamespaces: [b]}, {processes: [audit, webhook], excludedNamespaces: [team-a]}]}\n",
			""},
	} {
		w := &world{}
		_, validators, _ := w.compiled(t, c.text)
		if got := verdict(t, validators); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if (len(validators) == 0) != (name == "nothing") {
			t.Errorf("%s: %d validators", name, len(validators))
		}
	}
	w := &world{}
	w.compiled(t, template+expressions+check+constraint("Limit", "l", "{}"))
	if got := fmt.Sprint(w.governed, w.noted, w.inRego); got != "[c l] [Check Limit] [c of Check]" {
		t.Errorf("terms, templates and constraints in Rego are of %s", got)
	}
}

// TestMutators: mutators of all kinds change what is in no excluded namespace.
func TestMutators(t *testing.T) {
	const to = "applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], "
	all := mutator("Assign", "a", "{"+to+"location: spec.host, parameters: {assign: {value: h}}}") +
		mutator("AssignMetadata", "m", "{location: metadata.labels.team, parameters: {assign: {value: a}}}") +
		mutator("ModifySet", "s",
			"{"+to+"location: spec.set, parameters: {operation: merge, values: {fromList: [x]}}}") +
		mutator("AssignImage", "i", "{"+to+"location: 'spec.containers[name: *].image', parameters: {assignTag: ':1'}}")
	const changed = `"spec":{"containers":[{"image":"nginx:1","name":"c"}],"host":"h","set":["x"]}`
	for _, c := range []struct {
		text string
		want bool
	}{
		{all, true}, {all + config + "{match: [{processes: ['*'], excludedNamespaces: [team-a]}]}\n", false},
		{all + config + "{match: [{processes: [webhook], excludedNamespaces: [team-a]}]}\n", true},
		{all + config + "{match: [{processes: [mutation-webhook], excludedNamespaces: ['*-a']}]}\n", false},
	} {
		w := &world{}
		mutators, validators, found := w.compiled(t, c.text)
		if len(mutators) != 1 || len(validators) != 0 || found != "" {
			t.Fatalf("%d mutators, %d validators, %s", len(mutators), len(validators), found)
		}
		if got := fmt.Sprint(w.governed); got != "[a m s i]" {
			t.Errorf("terms are of %s", got)
		}
		a := pod(t)
		if err := admission.NewChain(mutators, nil).Mutate(context.Background(), a, &admission.Report{}); err != nil {
			t.Fatal(err)
		}
		if got := string(a.Object.AppendTo(nil)); strings.Contains(got, changed) != c.want ||
			strings.Contains(got, `"team":"a"`) != c.want {
			t.Errorf("%s\nthe object is %s", c.text, got)
		}
	}
	if mutators, _, _ := (&world{}).compiled(t, template); len(mutators) != 0 {
		t.Errorf("%d mutators of nothing", len(mutators))
	}
}

// TestInventory: data.inventory has the objects of the kinds that Config and SyncSets name, or all that is known.
func TestInventory(t *testing.T) {
	objects := []document.Node{admissiontest.Parse("{apiVersion: v1, kind: Node, metadata: {name: one}}").Root(),
		admissiontest.Parse("{apiVersion: v1, kind: Namespace, metadata: {name: ns}}").Root()}
	service := apischema.GroupVersionKind{Version: "v1", Kind: "Service"}
	source := &state.Source{Name: "live", Kind: service, Path: "/services"}
	const noState = "12: spec.gvks[0]: warning: no StateSource has the objects of the kind 'Node', so that data.inventory has only what the policy files have"
	check := constraint("Check", "c", "{}")
	for _, c := range []struct {
		name, text  string
		states      []*state.Source
		want, found string
		more        string
	}{
		{"all", template + check, []*state.Source{source}, "[c] Namespace ns\n[c] Node one\n[c] Service live", "", ""},
		{"a kind of a source", template + check + syncSet + "{gvks: [{version: v1, kind: Service}]}\n",
			[]*state.Source{source}, "[c] Service live", "", ""},
		{"a kind of the files", template + check + syncSet + "{gvks: [{version: v1, kind: Node}]}\n",
			[]*state.Source{source}, "[c] Node one", noState, ""},
		{"a kind twice",
			template + check + config + "{sync: {syncOnly: [{version: v1, kind: Service}]}}\n" + syncSet +
				"{gvks: [{version: v1, kind: Service}]}\n",
			[]*state.Source{source}, "[c] Service live", "", ""},
		{"a kind that is served", template + check + syncSet + "{gvks: [{version: v1, kind: Pod}]}\n", nil,
			"the objects of data.inventory are not known", "", "data.inventory of v1 Pod"},
		{"a source of some objects", template + check + syncSet + "{gvks: [{version: v1, kind: Service}]}\n",
			[]*state.Source{{Name: "live", Kind: service, Path: "/services", Query: "a=b"}}, "", "",
			"data.inventory of v1 Service"},
		{"an unknown kind", template + check + syncSet +
			"{gvks: [{group: shop.example.com, version: v1, kind: Order}]}\n",
			nil, "",
			": spec.gvks[0]: must be a kind whose resource is known: add a StateSource with the resource, the apiVersion 'shop.example.com/v1' and the kind 'Order'",
			""},
		{"no kind", template + check + syncSet + "{gvks: [{version: v1}, {kind: Pod}]}\n", nil,
			"[c] Namespace ns\n[c] Node one", ": spec.gvks[0]: must name a version and a kind", ""},
		{"no template that reads it", expressions + constraint("Limit", "l",
			"{}") + syncSet + "{gvks: [{version: v1, kind: Pod}]}\n", nil, "[l] limited", "", ""},
	} {
		w := &world{known: constraints.Known{Objects: objects, States: c.states}}
		_, validators, found := w.compiled(t, c.text)
		got := verdict(t, validators)
		if c.want != "" && !strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) && c.more == "" ||
			(c.found == "") != (found == "") ||
			!strings.Contains(found, c.found[strings.Index(c.found, ":")+1:]) {
			t.Errorf("%s: got %q, found %s, want %q, %s", c.name, got, found, c.want, c.found)
		}
		more := ""
		for _, s := range w.more {
			more += s.Name
			if s.MaxObjects != 10_000 || s.MaxBytes != 64<<20 || s.MaxStaleness.Minutes() != 5 || s.Path == "" {
				t.Errorf("%s: %+v is kept", c.name, s)
			}
		}
		if more != c.more || len(w.known.States) != len(c.states)+len(w.more) {
			t.Errorf("%s: %s is kept besides, want %s", c.name, more, c.more)
		}
	}
}

// TestFindings: what is said of Gatekeeper's objects, with the line that is meant.
func TestFindings(t *testing.T) {
	check := constraint("Check", "c", "{}")
	annotated := func(value string) string {
		return strings.Replace(template, "{name: check}",
			"{name: check, annotations: {metadata.gatekeeper.sh/requires-sync-data: '"+value+"'}}", 1)
	}
	const annotation = "4: metadata.annotations[metadata.gatekeeper.sh/requires-sync-data]: warning: "
	const needs = `"[[{"groups": ["", "x"], "versions": ["v1"], "kinds": ["Service", "Endpoints"]}]]"`
	const missing = annotation + "data.inventory has no objects of the kind 'Service', 'Endpoints': add a SyncSet that names it, or a StateSource that has its objects"
	const to = "applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], "
	for name, c := range map[string]struct{ text, want string }{
		"nothing": {template + check, ""},
		"unknown template": {constraint("Nothing", "x", "{}"),
			"3: kind: no ConstraintTemplate in the policy files defines the kind 'Nothing'"},
		"wrong template": {strings.Replace(template, "type: array", "type: list", 1) + check,
			`6: spec.crd.spec.validation.openAPIV3Schema.properties[words].type: Unsupported value: "list"`},
		"parameters": {template + constraint("Check", "c", "{parameters: {words: x}}"),
			`17: spec.parameters.words: Invalid value: "string": must be of type array`},
		"unread": {template + constraint("Check", "c", "{parameters: {most: 1}}"),
			"17: spec.parameters.most: warning: "},
		"version": {template + strings.Replace(check, "v1beta1", "v1", 1),
			"14: apiVersion: must be 'constraints.gatekeeper.sh/v1beta1', not 'constraints.gatekeeper.sh/v1'"},
		"old version": {template + strings.Replace(check, "v1beta1", "v1alpha1", 1), ""},
		"no name": {template + strings.Replace(check, "{name: c}", "{}", 1),
			"metadata.name: Required value: must have a name"},
		"idle": {template + constraint("Check", "c",
			"{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: vap.k8s.io}]}]}"),
			"17: spec.scopedEnforcementActions: warning: no action is for the enforcement point validation.gatekeeper.sh, so that the constraint does nothing"},
		"unused": {template + expressions + check,
			"18: spec.crd.spec.names.kind: warning: no constraint in the policy files is of the kind 'Limit', so that the template does nothing"},
		"module": {strings.Replace(template, "msg := input", "msg := := input", 1) + check,
			"11: spec.targets[0].rego: rego_parse_error"},
		"constants": {strings.Replace(template, "msg := input.parameters.words[_]", `msg := "a"; to_number("x") > 1`,
			1) + check, "11: always fails, since it depends on no object: eval_builtin_error: to_number"},
		"dangling": {strings.Replace(template, "input.parameters.words[_]", "input.parameters.word[_]", 1) + check,
			"11: "},
		"config": {strings.Replace(config, "name: config", "name: c", 1) + "{}\n",
			"4: metadata.name: must be 'config', the only name that Gatekeeper reads, not 'c'"},
		"process": {config + "{match: [{processes: [audit, web]}]}\n",
			"5: spec.match[0].processes[1]: must be '*', 'audit', 'mutation-webhook', 'sync', 'webhook', not 'web'"},
		"traces": {config + "{validation: {traces: [{user: a}]}}\n",
			"5: spec.validation.traces: warning: has no effect: the gateway takes no traces of constraints"},
		"kinds of config": {config + "{sync: {syncOnly: [{kind: A}]}}\n",
			"5: spec.sync.syncOnly[0]: must name a version and a kind"},
		"needs sync":    {annotated(needs) + check, missing},
		"needs nothing": {annotated("[[]]") + check, ""},
		"needs a list": {annotated("{}") + check,
			annotation + "must be a list of lists of groups, versions and kinds: "},
		"mutators": {mutator("Assign", "a",
			"{"+to+"location: spec.a.b, parameters: {assign: {value: 1}}}") + mutator("Assign", "b",
			"{"+to+"location: 'spec.a[name: x].b', parameters: {assign: {value: 1}}}"),
			"10: spec.location: must not take the fields of objects for others than these do: Assign 'a'"},
		"mutator": {mutator("Assign", "a", "{"+to+"location: 'spec..b', parameters: {assign: {value: 1}}}"),
			"5: spec.location: "},
	} {
		w := &world{}
		_, _, found := w.compiled(t, c.text)
		if !strings.Contains("\n"+found, "\n"+c.want) &&
			!(c.want == "metadata.name: Required value: must have a name" && strings.Contains(found, c.want)) ||
			(c.want == "") != (found == "") {
			t.Errorf("%s: got\n%s\nwant\n%s", name, found, c.want)
		}
	}
	for name, w := range map[string]*world{
		"objects": {known: constraints.Known{
			Objects: []document.Node{admissiontest.Parse("{apiVersion: v1, kind: Endpoints}").Root()}}},
		"states": {known: constraints.Known{States: []*state.Source{{Name: "live",
			Kind: apischema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Service"}}}}},
	} {
		if _, _, found := w.compiled(t, annotated(needs)+check); found != "" {
			t.Errorf("%s: %s", name, found)
		}
	}
	// Kinds that are named are all that there is.
	w := &world{known: constraints.Known{
		Objects: []document.Node{admissiontest.Parse("{apiVersion: v1, kind: Endpoints}").Root()}}}
	if _, _, found := w.compiled(t, annotated(needs)+check+syncSet+
		"{gvks: [{version: v1, kind: Pod}]}\n"); !strings.Contains(found, missing) {
		t.Errorf("another kind: %s", found)
	}
	if _, _, found := (&world{}).compiled(t, annotated(needs)+check+syncSet+
		"{gvks: [{version: v1, kind: Service}]}\n"); found != "" {
		t.Errorf("the kind: %s", found)
	}
	// What is meant is not said.
	meant := &world{isMeant: true}
	if _, _, found := meant.compiled(t,
		strings.Replace(template, "input.parameters.words[_]", "input.parameters.word[_]", 1)+
			constraint("Check", "c", "{parameters: {most: 1}}")); found != "" {
		t.Errorf("of what is meant: %s", found)
	}
}

// TestRefused: kinds of Gatekeeper that the gateway does not serve are refused, with the reason.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		group, kind string
		refused     bool
		why         string
	}{
		{"expansion.gatekeeper.sh", "ExpansionTemplate", true, "the gateway expands no objects"},
		{"expansion.gatekeeper.sh", "Other", false, "the gateway expands no objects"},
		{"externaldata.gatekeeper.sh", "Provider", true, "the gateway asks no providers"},
		{"externaldata.gatekeeper.sh", "Connection", true, "the gateway asks no providers"},
		{"externaldata.gatekeeper.sh", "Other", false, "the gateway asks no providers"},
		{"config.gatekeeper.sh", "Config", false, ""}, {"", "Provider", false, ""},
	} {
		if got := constraints.IsRefused(apischema.GroupKind{Group: c.group, Kind: c.kind}); got != c.refused {
			t.Errorf("%+v is refused: %v", c, got)
		}
		if got := constraints.Refused(c.group); !strings.HasPrefix(got, c.why) || (got == "") != (c.why == "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestReuse: a set shares with the one before it the templates and constraints that are as they were.
func TestReuse(t *testing.T) {
	text := template + constraint("Check", "c", "{parameters: {words: [a]}}") + constraint("Check", "d",
		"{parameters: {words: [b]}, match: {kinds: [{apiGroups: [''], kinds: [Pod]}]}}")
	templates := func(w *world) (all []*gatekeeper.Template) {
		for _, t := range w.files.InRego() {
			all = append(all, t)
		}
		return all
	}
	first := &world{}
	_, _, foundFirst := first.compiled(t, text)
	second := &world{kept: reuse.After(first.kept)}
	_, validators, found := second.compiled(t, text)
	if a, b := templates(first), templates(second); len(a) != 2 || !slices.Equal(a, b) || found != foundFirst {
		t.Errorf("templates %v and %v, found %q and %q", a, b, foundFirst, found)
	}
	if got := verdict(t, validators); got != "[c] a\n[d] b" {
		t.Errorf("the verdict is %q", got)
	}
	// In another place a template is compiled anew: its findings have lines.
	third := &world{kept: reuse.After(second.kept)}
	if third.compiled(t, "---\n# a comment\n"+text); templates(third)[0] == templates(first)[0] {
		t.Error("a template that moved is shared")
	}
}
