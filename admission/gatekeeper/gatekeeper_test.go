package gatekeeper_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// template is a ConstraintTemplate of the kind Check: what a pod's annotation 'say' has is a violation, and so is each
// word of the parameter.
const checkTemplate = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: check}
spec:
  crd:
    spec:
      names: {kind: Check}
      validation:
        openAPIV3Schema:
          type: object
          properties:
            words: {type: array, items: {type: string}}
            most: {type: integer, default: 3}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package check
      import data.lib.words.said

      violation[{"msg": msg}] { msg := said(input.review.object) }
      violation[{"msg": msg}] { msg := sprintf("%v of %v", [input.parameters.words[_], input.parameters.most]) }
    libs:
    - |
      package lib.words
      said(object) = object.metadata.annotations.say
`

const celTemplate = `apiVersion: templates.gatekeeper.sh/v1beta1
kind: ConstraintTemplate
metadata: {name: limit}
spec:
  crd: {spec: {names: {kind: Limit}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    operations: [CREATE, UPDATE, DELETE]
    code:
    - engine: K8sNativeValidation
      source:
        variables:
        - {name: most, expression: 'has(variables.params.most) ? variables.params.most : 1'}
        validations:
        - {expression: 'size(variables.anyObject.metadata.name) <= variables.most', messageExpression: "'at most ' + string(variables.most)"}
        - {expression: ' has(variables.anyObject.spec) '}
`

// conditionalTemplate has a match condition that reads variables. One of them is another value in validations, which
// see the namespace.
const conditionalTemplate = `apiVersion: templates.gatekeeper.sh/v1beta1
kind: ConstraintTemplate
metadata: {name: conditional}
spec:
  crd: {spec: {names: {kind: Conditional}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    code:
    - engine: K8sNativeValidation
      source:
        variables:
        - {name: named, expression: namespaceObject != null}
        matchCondition:
        - {name: long, expression: size(variables.anyObject.metadata.name) > variables.params.most && !variables.named}
        validations:
        - {expression: '!variables.named', messageExpression: "'at most ' + string(variables.params.most)"}
`

// constraint is the object of a constraint.
type constraint struct{ kind, name, spec string }

// pods says which resource serves pods.
func pods(k apischema.GroupKind) ([]string, bool) {
	switch k.Kind {
	case "Pod":
		return []string{"pods"}, true
	case "Service":
		return []string{"services"}, true
	case "Namespace":
		return []string{"namespaces"}, true
	}
	return nil, false
}

// read compiles a template in YAML, in whose file each value is at the line 7.
func read(t testing.TB, text string) (*gatekeeper.Template, field.ErrorList, []gatekeeper.Problem) {
	t.Helper()
	var template gatekeeper.ConstraintTemplate
	if err := yaml.Unmarshal([]byte(text), &template); err != nil {
		t.Fatal(err)
	}
	return gatekeeper.CompileTemplate(&template, func(string) (string, int) { return "a.yaml", 7 })
}

// constraintOf compiles a constraint.
func constraintOf(t testing.TB, of *gatekeeper.Template, name, spec string) *gatekeeper.Constraint {
	t.Helper()
	one, errs := gatekeeper.CompileConstraint(of, name,
		admissiontest.Parse("{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: "+
			of.Kind()+", metadata: {name: "+name+"}, spec: "+spec+"}"), pods)
	if one == nil {
		t.Fatal(errs)
	}
	return one
}

// constraintSet compiles templates and constraints.
func constraintSet(t testing.TB, templates []string, constraints []constraint, excluded []match.Wildcard,
	inventory *gatekeeper.Inventory) *gatekeeper.ConstraintSet {
	t.Helper()
	kinds := map[string]*gatekeeper.Template{}
	for _, text := range templates {
		template, errs, problems := read(t, text)
		if template == nil {
			t.Fatal(errs, problems)
		}
		kinds[template.Kind()] = template
	}
	var all []*gatekeeper.Constraint
	for _, c := range constraints {
		one := constraintOf(t, kinds[c.kind], c.name, c.spec)
		all = append(all, one)
	}
	return gatekeeper.NewConstraintSet(all, excluded, inventory)
}

// review is a request about a pod in the namespace team-a, or about a namespace.
func review(t *testing.T, operation admission.Operation, object, old string) *admission.Attributes {
	t.Helper()
	a := &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1",
			Resource: "pods", Namespace: "team-a"},
		Operation: operation,
		Lookup: (&admissiontest.Lookup{Known: map[string][]document.Node{}}).
			Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}"),
		Frame: cel.NewFrame(t.Context()),
	}
	t.Cleanup(a.Frame.Release)
	if object != "" {
		a.Object = admissiontest.Parse(object)
	}
	if old != "" {
		a.Old = admissiontest.Parse(old)
	}
	if strings.Contains(object+old, "kind: Namespace") {
		a.Info.Resource = "namespaces"
	}
	return a
}

// verdict returns the messages of a set for a request: the denial, warnings, and notes.
func verdict(s *gatekeeper.ConstraintSet, a *admission.Attributes) string {
	a.Bind()
	var r admission.Report
	if err := s.Validate(context.Background(), a, &r); err != nil {
		return "error: " + err.Error()
	}
	var said []string
	if err := r.Err(a); err != nil {
		said = append(said, status.From(err).ErrStatus.Message)
	}
	for _, w := range r.Warnings() {
		said = append(said, "warning: "+w)
	}
	for _, f := range r.AuditedFailures() {
		said = append(said, "noted: "+f.Message)
	}
	return strings.Join(said, "\n")
}

const said = `admission webhook "validation.gatekeeper.sh" denied the request: `

// TestConstraints: what constraints say of requests, worded and ordered as Gatekeeper does.
func TestConstraints(t *testing.T) {
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {a: b}, annotations: {say: hello}}}"
	quiet := "{apiVersion: v1, kind: Pod, metadata: {name: web}}"
	for name, c := range map[string]struct {
		constraints []constraint
		object, old string
		operation   admission.Operation
		want        string
	}{
		"denied":  {[]constraint{{"Check", "b", "{}"}}, pod, "", admission.Create, said + "[b] hello"},
		"nothing": {[]constraint{{"Check", "b", "{}"}}, quiet, "", admission.Create, ""},
		"order": {[]constraint{{"Check", "b", "{parameters: {words: [z, a]}}"},
			{"Check", "a", "{parameters: {words: [m], most: 5}}"}}, pod, "", admission.Create,
			said + "[b] a of 3\n[a] hello\n[b] hello\n[a] m of 5\n[b] z of 3"},
		"warn": {[]constraint{{"Check", "b", "{enforcementAction: warn}"}}, pod, "", admission.Create,
			"warning: [b] hello"},
		"dryrun": {[]constraint{{"Check", "b", "{enforcementAction: dryrun}"}}, pod, "", admission.Create,
			"noted: hello"},
		"scoped": {[]constraint{{"Check", "b",
			"{enforcementAction: scoped, scopedEnforcementActions: [{action: warn, enforcementPoints: [{name: '*'}]}, {action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}]}]}"}},
			pod, "", admission.Create,
			"warning: [b] hello"},
		"audit alone": {[]constraint{{"Check", "b",
			"{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}]}]}"}},
			pod, "", admission.Create, ""},
		"kind": {[]constraint{{"Check", "b", "{match: {kinds: [{apiGroups: [''], kinds: [Pod]}]}}"}}, pod, "",
			admission.Create, said + "[b] hello"},
		"any group": {[]constraint{{"Check", "b", "{match: {kinds: [{apiGroups: ['*'], kinds: [Pod]}]}}"}}, pod,
			"", admission.Create, said + "[b] hello"},
		"other kind": {[]constraint{{"Check", "b", "{match: {kinds: [{apiGroups: [''], kinds: [Service]}]}}"}}, pod,
			"", admission.Create, ""},
		"other group": {[]constraint{{"Check", "b", "{match: {kinds: [{apiGroups: [apps], kinds: ['*']}]}}"}}, pod,
			"", admission.Create, ""},
		"scope": {[]constraint{{"Check", "b", "{match: {scope: Cluster}}"}}, pod, "", admission.Create, ""},
		"namespaces": {[]constraint{{"Check", "b", "{match: {namespaces: ['team-*']}}"}}, pod, "", admission.Create,
			said + "[b] hello"},
		"other namespaces": {[]constraint{{"Check", "b", "{match: {namespaces: [team]}}"}}, pod, "", admission.Create,
			""},
		"excluded": {[]constraint{{"Check", "b", "{match: {excludedNamespaces: ['*-a']}}"}}, pod, "",
			admission.Create, ""},
		"namespace selector": {
			[]constraint{{"Check", "b", "{match: {namespaceSelector: {matchLabels: {tier: prod}}}}"}},
			pod, "", admission.Create, said + "[b] hello"},
		"selected by labels": {[]constraint{{"Check", "b", "{match: {namespaceSelector: {matchLabels: {tier: dev}}}}"}},
			pod, "", admission.Create, ""},
		"labels": {[]constraint{{"Check", "b", "{match: {labelSelector: {matchLabels: {a: b}}}}"}}, pod, "",
			admission.Create, said + "[b] hello"},
		"labels of old": {[]constraint{{"Check", "b", "{match: {labelSelector: {matchLabels: {c: d}}}}"}}, pod,
			"{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {c: d}}}", admission.Update, said + "[b] hello"},
		"name": {[]constraint{{"Check", "b", "{match: {name: 'w*'}}"}}, pod, "", admission.Create,
			said + "[b] hello"},
		"generated": {[]constraint{{"Check", "b", "{match: {source: Generated}}"}}, pod, "", admission.Create, ""},
		"namespace itself": {[]constraint{{"Check", "b", "{match: {namespaces: [team-b], scope: Cluster}}"}},
			"{apiVersion: v1, kind: Namespace, metadata: {name: team-b, annotations: {say: hi}}}", "", admission.Create,
			said + "[b] hi"},
		"deletion": {[]constraint{{"Check", "b", "{}"}}, "", pod, admission.Delete, ""},
		"expressions": {[]constraint{{"Limit", "l", "{parameters: {most: 2}}"}}, quiet, "", admission.Create,
			said + "[l] at most 2\n[l] failed expression: has(variables.anyObject.spec)"},
		"asked deletion": {[]constraint{{"Limit", "l", "{parameters: {most: 3}}"}}, "", quiet, admission.Delete,
			said + "[l] failed expression: has(variables.anyObject.spec)"},
		"variables in conditions": {[]constraint{{"Conditional", "c", "{parameters: {most: 2}}"}}, quiet, "",
			admission.Create, said + "[c] at most 2"},
		"conditions do not hold": {[]constraint{{"Conditional", "c", "{parameters: {most: 3}}"}}, quiet, "",
			admission.Create, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := constraintSet(t, []string{checkTemplate, celTemplate, conditionalTemplate}, c.constraints, nil, nil)
			if got := verdict(s, review(t, c.operation, c.object, c.old)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestWhatIsReviewed: requests in excluded namespaces, and for subresources that Gatekeeper's webhook is not asked
// about, pass.
func TestWhatIsReviewed(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {say: hello}}}"
	for _, c := range []struct {
		excluded              []match.Wildcard
		resource, subresource string
		want                  bool
	}{
		{nil, "pods", "", true}, {[]match.Wildcard{"team-*"}, "pods", "", false},
		{[]match.Wildcard{"other", "*-b"}, "pods", "", true}, {nil, "pods", "status", false},
		{nil, "pods", "exec", true}, {nil, "services", "status", true}, {nil, "services", "scale", false},
		{nil, "deployments", "scale", true},
	} {
		s := constraintSet(t, []string{checkTemplate}, []constraint{{"Check", "b", "{}"}}, c.excluded, nil)
		a := review(t, admission.Create, pod, "")
		a.Info.Resource, a.Info.Subresource = c.resource, c.subresource
		if got := verdict(s, a); got != map[bool]string{true: said + "[b] hello"}[c.want] {
			t.Errorf("%+v: got %q", c, got)
		}
		if s.Excludes(a.Info, a.Operation) == c.want {
			t.Errorf("%+v: is excluded: %v", c, !c.want)
		}
		reasons := s.Reasons(t.Context(), a)
		if c.resource == "services" && c.subresource == "scale" &&
			reasons[0].Because != "Gatekeeper's webhook is not asked about the subresource 'scale'" {
			t.Errorf("%+v: the reasons are %+v", c, reasons)
		}
		if (len(reasons) == 0) != c.want {
			t.Errorf("%+v: the reasons are %+v", c, reasons)
		}
		applicabilities := s.Applicabilities(a)
		if len(applicabilities) != 1 || applicabilities[0].Kind != "Check" || applicabilities[0].Name != "b" {
			t.Errorf("%+v: the applicabilities are %+v", c, applicabilities)
		}
	}
	if got := verdict(constraintSet(t, []string{checkTemplate}, []constraint{{"Check", "b", "{}"}}, nil, nil),
		review(t, admission.Delete, "", "")); got != "" {
		t.Errorf("a request without objects: %q", got)
	}
}

// TestNeeds: a set of constraints says of each resource what its constraints read for it.
func TestNeeds(t *testing.T) {
	const kinds = "kinds: [{apiGroups: [''], kinds: [Pod]}]"
	namespaced := strings.Replace(checkTemplate, "said(input.review.object)",
		"input.review.namespaceObject.metadata.name", 1)
	stored := strings.Replace(checkTemplate, "said(input.review.object)", "input.review.oldObject.a", 1)
	for _, c := range []struct {
		template, spec          string
		old, deleted, namespace bool
	}{
		{checkTemplate, "{match: {" + kinds + "}}", false, false, false},
		{checkTemplate, "{match: {" + kinds + ", labelSelector: {matchLabels: {a: b}}}}", true, false, false},
		{checkTemplate, "{match: {" + kinds + ", namespaceSelector: {matchLabels: {tier: prod}}}}", false, false, true},
		{namespaced, "{match: {" + kinds + "}}", false, false, true},
		{stored, "{match: {" + kinds + "}}", true, false, false},
		{celTemplate, "{match: {" + kinds + "}}", false, true, false},
		{strings.Replace(celTemplate, "has(variables.anyObject.spec)", "oldObject == null", 1), "{match: {" + kinds +
			"}}",
			true, true, false},
		{conditionalTemplate, "{match: {" + kinds + "}, parameters: {most: 1}}", false, false, true},
	} {
		name := strings.TrimSuffix(strings.SplitAfter(strings.SplitAfter(c.template, "names: {kind: ")[1], "}")[0], "}")
		s := constraintSet(t, []string{c.template}, []constraint{{name, "b", c.spec}}, nil, nil)
		needs := func(o admission.Operation) (concerned, old bool) {
			for _, r := range s.Rules() {
				if r.Operations&o != 0 && r.Resource == "pods" {
					concerned, old = true, old || r.NeedsOld
				}
			}
			return concerned, old
		}
		concerned, old := needs(admission.Update)
		onDelete, oldOnDelete := needs(admission.Delete)
		if !concerned || old != c.old || onDelete != c.deleted || oldOnDelete != c.deleted ||
			s.References().Namespaces != c.namespace {
			t.Errorf("%s %s: concerned %v, old %v, deletions %v %v, namespaces %v", name, c.spec, concerned, old,
				onDelete,
				oldOnDelete, s.References().Namespaces)
		}
	}
}

// TestInventory: modules read the objects of the files and of StateSources as data.inventory, of some kinds or of all.
func TestInventory(t *testing.T) {
	template := strings.Replace(checkTemplate, "msg := said(input.review.object) }",
		"some version, name; data.inventory.namespace[\"team-a\"][version].Service[name]; msg := sprintf(\"%v %v\", [version, name]) }\n"+
			"      violation[{\"msg\": msg}] { data.inventory.cluster[\"v1\"].Namespace[msg] }", 1)
	objects := []document.Node{}
	for _, text := range []string{
		"{apiVersion: v1, kind: Service, metadata: {name: s, namespace: team-a}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: ns}}",
		"{apiVersion: v1, kind: Namespace, metadata: {}}", "{apiVersion: v1, metadata: {name: x}}",
		"{kind: Namespace, metadata: {name: x}}",
	} {
		objects = append(objects, admissiontest.Parse(text).Root())
	}
	live := []document.Node{
		admissiontest.Parse("{apiVersion: v1, kind: Service, metadata: {name: live, namespace: team-a}}").Root()}
	service := apischema.GroupVersionKind{Version: "v1", Kind: "Service"}
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}}"
	for name, c := range map[string]struct {
		inventory *gatekeeper.Inventory
		want      string
	}{
		"nothing": {&gatekeeper.Inventory{}, ""}, "files": {&gatekeeper.Inventory{Objects: objects},
			said + "[c] ns\n[c] v1 s"},
		"source": {&gatekeeper.Inventory{Sources: []string{"services"}}, said + "[c] v1 live"},
		"both": {&gatekeeper.Inventory{Objects: objects, Sources: []string{"services"}},
			said + "[c] ns\n[c] v1 live\n[c] v1 s"},
		"kinds": {&gatekeeper.Inventory{Objects: objects, Sources: []string{"services"},
			Kinds: []apischema.GroupVersionKind{service}}, said + "[c] v1 live\n[c] v1 s"},
		"other": {&gatekeeper.Inventory{Objects: objects, Kinds: []apischema.GroupVersionKind{{Version: "v2",
			Kind: "Service"}}}, ""},
	} {
		s := constraintSet(t, []string{template}, []constraint{{"Check", "c", "{}"}}, nil, c.inventory)
		for range 2 {
			a := review(t, admission.Create, pod, "")
			a.Lookup.(*admissiontest.Lookup).Known["services"] = live
			if got := verdict(s, a); got != c.want {
				t.Errorf("%s: got %s, want %s", name, got, c.want)
			}
		}
	}
	// A collection that has changed is read anew.
	s := constraintSet(t, []string{template}, []constraint{{"Check", "c", "{}"}}, nil,
		&gatekeeper.Inventory{Sources: []string{"services"}})
	for _, want := range []string{"live", "later", "last"} {
		a := review(t, admission.Create, pod, "")
		a.Lookup.(*admissiontest.Lookup).Known["services"] = []document.Node{
			admissiontest.Parse("{apiVersion: v1, kind: Service, metadata: {name: " + want +
				", namespace: team-a}}").Root()}
		if got := verdict(s, a); got != said+"[c] v1 "+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	a := review(t, admission.Create, pod, "")
	a.Lookup = nil
	if got := verdict(s, a); !strings.Contains(got, "the objects of data.inventory are not known") {
		t.Errorf("without a lookup: got %s", got)
	}
	for text, want := range map[string]bool{template: true, checkTemplate: false, celTemplate: false} {
		if template, errs, _ := read(t, text); template == nil || template.ReadsInventory() != want {
			t.Errorf("%.80s reads data.inventory: %v, %v", text, !want, errs)
		}
	}
}

// TestNamespaceObject: a review has the namespace; without one it is an empty object, as in Gatekeeper.
func TestNamespaceObject(t *testing.T) {
	template := strings.Replace(checkTemplate, "msg := said(input.review.object)",
		`msg := sprintf("%v of %v", [object.get(input.review.namespaceObject, ["metadata", "name"], "none"), type_name(input.review.namespaceObject)])`,
		1)
	s := constraintSet(t, []string{template, checkTemplate2}, []constraint{{"Check", "c", "{}"},
		{"Other", "o", "{}"}}, nil, nil)
	for namespace, want := range map[string]string{"team-a": "team-a of object", "": "none of object"} {
		a := review(t, admission.Create, "{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {say: hi}}}",
			"")
		a.Info.Namespace = namespace
		if got := verdict(s, a); !strings.Contains(got, "[c] "+want) || !strings.Contains(got, "[o] hi") {
			t.Errorf("%q: got %q, want %q", namespace, got, want)
		}
	}
	a := review(t, admission.Create, "{apiVersion: v1, kind: Pod, metadata: {name: web}}", "")
	a.Info.Namespace = "unknown"
	if got := verdict(s, a); !strings.Contains(got, "unknown") {
		t.Errorf("a namespace that is not there: %q", got)
	}
}

// checkTemplate2 is another kind of constraint.
var checkTemplate2 = strings.NewReplacer("kind: Check", "kind: Other", "name: check",
	"name: other").Replace(checkTemplate)

// TestErrors: a violation names the rule's field, and what fails is a violation, unless errors of functions are let
// pass.
func TestErrors(t *testing.T) {
	failing := strings.Replace(checkTemplate, "msg := said(input.review.object)",
		`msg := "a"; to_number(input.review.object.kind) > 1`, 1)
	lenient := strings.Replace(failing, "{name: check}",
		"{name: check, annotations: {admission-gateway.io/builtin-errors: Undefined}}", 1)
	strict := strings.Replace(failing, "{name: check}",
		"{name: check, annotations: {admission-gateway.io/builtin-errors: Error}}", 1)
	otherwise := strings.ReplaceAll(strings.Replace(checkTemplate, "msg := said(input.review.object)",
		`false; msg := "a"`, 1), "violation[{\"msg\": msg}] { msg := sprintf", "other[{\"msg\": msg}] { msg := sprintf")
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}}"
	for _, c := range []struct {
		template, want string
		lenient        bool
	}{{failing, "to_number", false}, {strict, "to_number", false}, {lenient, "", true}, {otherwise, "", false}} {
		template, errs, problems := read(t, c.template)
		if template == nil {
			t.Fatal(errs, problems)
		}
		if template.IsLenient() != c.lenient {
			t.Errorf("is lenient: %v", !c.lenient)
		}
		got := verdict(constraintSet(t, []string{c.template}, []constraint{{"Check", "c", "{}"}}, nil, nil), review(t,
			admission.Create, pod, ""))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
		a := review(t, admission.Create, pod, "")
		a.Bind()
		var r admission.Report
		if err := constraintSet(t, []string{c.template}, []constraint{{"Check", "c", "{}"}}, nil,
			nil).Validate(context.Background(), a, &r); err != nil {
			t.Fatal(err)
		}
		if relaxed := r.RelaxedErrors(); (len(relaxed) == 1) != c.lenient || c.lenient && relaxed[0].Policy != "Check" {
			t.Errorf("the errors that counted as undefined are %v", relaxed)
		}
	}
}

// TestTemplates: what is wrong with a template or a constraint, all of it.
func TestTemplates(t *testing.T) {
	both := strings.Replace(celTemplate, "    code:\n",
		"    rego: |\n      package x\n      violation[{\"msg\": \"rego\"}] { true }\n    code:\n", 1)
	annotated := func(text, key, value string) string {
		return strings.Replace(text, "{name: limit}", "{name: limit, annotations: {"+key+": "+value+"}}", 1)
	}
	const supported = `spec.targets[0].`
	for name, c := range map[string]struct {
		template string
		want     string
	}{
		"right": {checkTemplate, ""}, "expressions": {celTemplate, ""}, "both": {both, ""}, "engine": {annotated(both,
			gatekeeper.EngineAnnotation, "K8sNativeValidation"), ""},
		"other engine": {annotated(both, gatekeeper.EngineAnnotation, "Rego"), ""}, "unknown engine": {annotated(both,
			gatekeeper.EngineAnnotation, "None"),
			"metadata.annotations[admission-gateway.io/engine]: Unsupported value"},
		"builtin errors": {strings.Replace(checkTemplate, "{name: check}",
			"{name: check, annotations: {admission-gateway.io/builtin-errors: Never}}", 1),
			"metadata.annotations[admission-gateway.io/builtin-errors]: Unsupported value"},
		"no kind": {strings.Replace(checkTemplate, "kind: Check", "kind: ''", 1),
			"spec.crd.spec.names.kind: Required value: must be the kind of the constraints"},
		"name": {strings.Replace(checkTemplate, "name: check", "name: other", 1),
			`metadata.name: Invalid value: "other": must be 'check', the kind of the constraints in lower case`},
		"name in capitals": {strings.Replace(checkTemplate, "name: check", "name: Check", 1), ""},
		"no target": {"metadata: {name: a}\nspec: {crd: {spec: {names: {kind: A}}}}",
			"spec.targets: Required value: must have one target"},
		"two targets": {"metadata: {name: a}\nspec: {crd: {spec: {names: {kind: A}}}, targets: [{}, {}]}",
			"spec.targets: Required value: must have one target"},
		"target": {strings.Replace(checkTemplate, "target: admission.k8s.gatekeeper.sh", "target: x", 1),
			supported + `target: Unsupported value: "x": supported values: "admission.k8s.gatekeeper.sh"`},
		"no code": {"metadata: {name: a}\nspec: {crd: {spec: {names: {kind: A}}}, targets: [{target: admission.k8s.gatekeeper.sh}]}",
			supported + "code: Required value: must have code for the engine Rego or K8sNativeValidation"},
		"twice": {strings.Replace(celTemplate, "    code:\n",
			"    code:\n    - {engine: K8sNativeValidation, source: {validations: [{expression: 'true'}]}}\n", 1),
			supported + `code[1].engine: Duplicate value: "K8sNativeValidation"`},
		"no source": {strings.Replace(celTemplate, "    code:\n", "    code:\n    - {engine: Rego}\n", 1),
			supported + "code[0].source: Required value: must be the source for the engine"},
		"no module": {strings.Replace(celTemplate, "    code:\n", "    code:\n    - {engine: Rego, source: {}}\n",
			1), supported + "code[0].source.rego: Required value: must be a module"},
		"source": {strings.Replace(celTemplate, "    code:\n", "    code:\n    - {engine: Rego, source: [1]}\n",
			1), supported + "code[0].source: Invalid value: "},
		"source of Rego": {strings.Replace(celTemplate, "    code:\n",
			"    code:\n    - {engine: Rego, source: {version: v1, rego: \"package x\\nviolation contains {'msg': 'a'} if true\"}}\n",
			1), "a.yaml:9 spec.targets[0].code[0].source.rego rego_parse_error: illegal token"},
		"operations": {strings.Replace(celTemplate, "[CREATE, UPDATE, DELETE]", "[CREATE, CONNECT, MOVE, '*']", 1),
			supported + `operations[2]: Unsupported value: "MOVE": supported values: "*", "CREATE", "UPDATE", "DELETE", "CONNECT"; ` + supported + `operations: Invalid value: ["CREATE","CONNECT","MOVE","*"]: must not name other operations beside '*'`},
		"all operations": {strings.Replace(celTemplate, "[CREATE, UPDATE, DELETE]", "['*']", 1), ""},
		"schema": {strings.Replace(checkTemplate, "type: array", "type: list", 1),
			`spec.crd.spec.validation.openAPIV3Schema.properties[words].type: Unsupported value: "list"`},
		"syntax": {strings.Replace(checkTemplate, `"msg": msg}] { msg := said`, `"msg": msg}] { msg := := said`,
			1), "a.yaml:11 spec.targets[0].rego rego_parse_error"},
		"no rule": {strings.ReplaceAll(checkTemplate, "violation[", "deny["),
			supported + "rego: Invalid value: invalid rego: invalid module: missing required rules: [violation]"},
		"library": {strings.Replace(checkTemplate, "object.metadata.annotations.say", "object.(", 1),
			"a.yaml:9 spec.targets[0].rego rego_parse_error"},
		"expression": {strings.Replace(celTemplate, "string(variables.most)", "variables.less", 1),
			supported + "code[0].source.validations[0].messageExpression: Invalid value"},
		"variable": {strings.Replace(celTemplate, "? variables.params.most : 1", "? nothing : 1", 1),
			supported + "code[0].source.variables[0].expression: Invalid value"},
		"condition": {strings.Replace(conditionalTemplate, "&& !variables.named", "&& nothing", 1),
			supported + "code[0].source.matchCondition[0].expression: Invalid value"},
		"reserved": {strings.Replace(celTemplate, "name: most", "name: params", 1),
			supported + `code[0].source.variables[0].name: Invalid value: "params": must not be a name that Gatekeeper keeps for itself`},
		"reserved too": {strings.Replace(conditionalTemplate, "name: long", "name: gatekeeper_internal_a", 1),
			supported + `code[0].source.matchCondition[0].name: Invalid value: "gatekeeper_internal_a": must not be a name that Gatekeeper keeps for itself`},
		"params": {strings.Replace(celTemplate, "' has(variables.anyObject.spec) '", "has(params.spec)", 1),
			supported + "code[0].source.validations[1].expression: Invalid value: \"has(params.spec)\": must not read `params`, which only variables see: `variables.params` has the parameters"},
		"items": {strings.Replace(celTemplate, "{kind: Limit}",
			"{kind: Limit}, validation: {openAPIV3Schema: {type: object, properties: {a: {type: array, items: [{type: string}]}}}}",
			1), "spec.crd.spec.validation.openAPIV3Schema: Invalid value: must not have several schemas for the items of a list"},
	} {
		template, errs, problems := read(t, c.template)
		var all []string
		for _, err := range errs {
			all = append(all, err.Error())
		}
		for _, p := range problems {
			all = append(all, fmt.Sprintf("%s:%d %s %s", p.File, p.Line, p.Path, p.Message))
		}
		if got := strings.Join(all, "; "); (template == nil) != (len(all) > 0) || (c.want == "") != (got == "") ||
			!strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got  %s\nwant %s", name, got, c.want)
		}
	}
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}}"
	for text, want := range map[string]string{both: said + "[l] rego", annotated(both, gatekeeper.EngineAnnotation,
		"K8sNativeValidation"): said + "[l] at most 2\n[l] failed expression: has(variables.anyObject.spec)"} {
		if got := verdict(constraintSet(t, []string{text}, []constraint{{"Limit", "l", "{parameters: {most: 2}}"}}, nil,
			nil),
			review(t, admission.Create, pod, "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestConstraintsThatAreWrong: a constraint has the fields that its template knows, with values that mean something.
func TestConstraintsThatAreWrong(t *testing.T) {
	kinds := map[string]*gatekeeper.Template{}
	for _, text := range []string{checkTemplate, celTemplate} {
		template, errs, problems := read(t, text)
		if template == nil {
			t.Fatal(errs, problems)
		}
		kinds[template.Kind()] = template
	}
	const actions = `Unsupported value: "block": supported values: "deny", "dryrun", `
	for _, c := range []struct {
		kind, spec, want string
		idle             bool
	}{
		{"Check", "{}", "", false}, {"Check", "{parameters: {words: x}}",
			`spec.parameters.words: Invalid value: "string": must be of type array`, false},
		{"Check", "{parameters: {word: x}}",
			"spec.parameters.word: Invalid value: must not be set: constraints of the kind 'Check' have no such field", false},
		{"Limit", "{parameters: {word: x}}", "", false}, {"Check", "{match: {kind: [Pod]}}",
			"spec.match.kind: Invalid value: must not be set: constraints of the kind 'Check' have no such field", false},
		{"Check", "{enforcementAction: block}", "spec.enforcementAction: " + actions + `"scoped", "warn"`, false},
		{"Check", "{enforcementAction: scoped}",
			"spec.scopedEnforcementActions: Required value: must be set for the enforcementAction scoped", false},
		{"Check", "{enforcementAction: scoped, scopedEnforcementActions: [{action: block, enforcementPoints: []}]}",
			"spec.scopedEnforcementActions[0].action: " + actions + `"warn"; spec.scopedEnforcementActions[0].enforcementPoints: Required value: must name an enforcement point`,
			false},
		{"Check", "{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: here}]}]}",
			"spec.scopedEnforcementActions[0].enforcementPoints[0].name: Unsupported value", false},
		{"Check", "{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: vap.k8s.io}]}]}",
			"", true},
		{"Limit", "{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: vap.k8s.io}]}]}",
			"", false},
		{"Check", "{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: gator.gatekeeper.sh}, {name: '*'}]}]}",
			"", false},
		{"Check", "{match: {labelSelector: {matchExpressions: [{key: a, operator: Is}]}}}", "spec.match.labelSelector",
			false},
	} {
		one, errs := gatekeeper.CompileConstraint(kinds[c.kind], "c",
			admissiontest.Parse("{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: "+c.kind+
				", metadata: {name: c}, spec: "+c.spec+"}"),
			pods)
		var all []string
		for _, err := range errs {
			all = append(all, err.Error())
		}
		if got := strings.Join(all, "; "); (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) ||
			(one == nil) != (got != "") {
			t.Errorf("%s: got  %s\nwant %s", c.spec, got, c.want)
		}
		if one != nil && (one.IsIdle() != c.idle || (len(one.Rules()) == 0) != c.idle || one.Name() != c.kind+"/c" ||
			one.FailurePolicy() != admission.Fail) {
			t.Errorf("%s: is idle: %v, %d rules", c.spec, one.IsIdle(), len(one.Rules()))
		}
	}
}

// TestParameters: a template names its parameters; those of versions before v1 may be others too.
func TestParameters(t *testing.T) {
	for _, c := range []struct {
		version, validation string
		names               []string
		isClosed            bool
	}{
		{"templates.gatekeeper.sh/v1",
			"{openAPIV3Schema: {type: object, properties: {b: {type: string}, a: {type: string}}}}", []string{"a", "b"}, true},
		{"templates.gatekeeper.sh/v1",
			"{legacySchema: true, openAPIV3Schema: {type: object, properties: {b: {type: string}}}}", []string{"b"}, false},
		{"templates.gatekeeper.sh/v1beta1", "{openAPIV3Schema: {properties: {b: {type: string}}}}", []string{"b"},
			false},
		{"templates.gatekeeper.sh/v1beta1",
			"{legacySchema: false, openAPIV3Schema: {type: object, properties: {b: {type: string}}}}", []string{"b"}, true},
		{"templates.gatekeeper.sh/v1",
			"{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}}",
			[]string{"b"}, false},
		{"templates.gatekeeper.sh/v1", "{openAPIV3Schema: {type: object}}", nil, false},
		{"templates.gatekeeper.sh/v1", "{}", nil, false}, {"templates.gatekeeper.sh/v1beta1", "{}", nil, false},
	} {
		var template gatekeeper.ConstraintTemplate
		if err := yaml.Unmarshal([]byte("apiVersion: "+c.version+"\nspec: {crd: {spec: {validation: "+c.validation+
			"}}}"), &template); err != nil {
			t.Fatal(err)
		}
		if names, isClosed := gatekeeper.Parameters(&template); !slices.Equal(names, c.names) ||
			isClosed != c.isClosed {
			t.Errorf("%s %s: %v, closed %v", c.version, c.validation, names, isClosed)
		}
	}
}
