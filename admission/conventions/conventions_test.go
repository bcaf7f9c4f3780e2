package conventions

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

func attributes(t testing.TB, object string) *admission.Attributes {
	t.Helper()
	a := &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbCreate, IsResource: true, Group: "example.com", Version: "v1",
			Resource: "widgets", Namespace: "team-a"},
		Operation: admission.Create,
		User:      &identity.User{Name: "jane"},
		Object:    admissiontest.Parse(object),
		Frame:     cel.NewFrame(context.Background()),
	}
	t.Cleanup(func() {
		a.Frame.Release()
		a.Object.Release()
	})
	return a
}

func policy(t testing.TB, s Spec) *Policy {
	t.Helper()
	p, errs := Compile(&s)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// only is the policy with one check on.
func only(check Check, action Action) Spec {
	s := Spec{Name: "p", AllowedKeyPrefixes: []string{"app.kubernetes.io"}}
	s.Actions[check] = action
	return s
}

// texts are the failures, each in one line, the warnings after 'warning: '.
func texts(r Result) (all []string) {
	for _, err := range r.Errors {
		all = append(all, err.Error())
	}
	if r.More > 0 {
		all = append(all, fmt.Sprintf("and %d more", r.More))
	}
	for _, w := range r.Warnings {
		all = append(all, "warning: "+w)
	}
	return all
}

const (
	dateDetail     = ": must be a date of RFC 3339, such as '2006-01-02T15:04:05Z'"
	reasonDetail   = ": must be in CamelCase, such as 'MinimumReplicasAvailable', and must not be empty"
	typeDetail     = ": must be in PascalCase, such as 'Ready', or have a domain in front of that, such as 'example.com/Ready'"
	requiredDetail = ": Required value: must be set in every condition"
	unsafeDetail   = ": must be greater than -9007199254740992 and less than 9007199254740992, because clients in JavaScript read other integers as another number; it may be a string instead"
	fractionDetail = ": must be an integer, or a quantity in a string: a number with a fraction is not the same to every client"
	keyDetail      = ": Forbidden: may not be set: prefixes under 'kubernetes.io' and 'k8s.io' are reserved for the Kubernetes project"
	topDetail      = ": Forbidden: may not be set: an object with `spec` and `status` has no other fields at its top but `metadata`"
	groupDetail    = ": must be a domain of its owner, such as 'widget.example.com': single words, and what is under 'k8s.io' and 'kubernetes.io', are reserved for the Kubernetes project"
)

// dated is a schema that knows some fields.
func dated(t testing.TB) *schema.Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(`
type: object
x-kubernetes-preserve-unknown-fields: true
properties:
  spec:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    properties:
      since: {type: string, format: date-time}
      leadTime: {type: string, format: duration}
      byName: {type: object, additionalProperties: {type: string, format: date-time}}
      list: {type: array, items: {type: string, format: date-time}}
`), props); err != nil {
		t.Fatal(err)
	}
	s, _, errs := schema.Compile(props, schema.Options{Resource: true})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// TestChecks: each rule with what breaks it and what does not (STAT-4, STAT-5, META-2, VAL-5, VAL-8, RES-9).
func TestChecks(t *testing.T) {
	good := `{type: Ready, status: "True", reason: AllUp, lastTransitionTime: "2024-05-17T09:30:00Z", message: "", observedGeneration: 3, x: 1}`
	namespaces := &resource.Info{Verb: resource.VerbCreate, IsResource: true, Version: "v1", Resource: "namespaces"}
	definitions := &resource.Info{Verb: resource.VerbCreate, IsResource: true, Group: "apiextensions.k8s.io",
		Version: "v1", Resource: "customresourcedefinitions"}
	for _, c := range []struct {
		name   string
		check  Check
		object string
		want   []string
		how    func(*admission.Attributes, *Object)
	}{
		{name: "good conditions", check: Conditions, object: "status: {conditions: [" + good + ", " +
			strings.Replace(good, "Ready", "a.example.com/Ready2", 1) + "]}"},
		{name: "no conditions", check: Conditions, object: "status: {conditions: []}"},
		{name: "null conditions", check: Conditions, object: "status: {conditions: null}"},
		{name: "no status", check: Conditions, object: "{}"},
		{name: "conditions of something else", check: Conditions, object: "spec: {conditions: 1}"},
		{name: "conditions that are no list", check: Conditions, object: "status: {conditions: {}}",
			want: []string{`status.conditions: Invalid value: "object": must be of type array`}},
		{name: "a condition that is no object", check: Conditions, object: "status: {conditions: [Ready]}",
			want: []string{`status.conditions[0]: Invalid value: "string": must be of type object`}},
		{name: "types twice", check: Conditions, object: "status: {conditions: [" + good + "," + good + "]}",
			want: []string{`status.conditions[1]: Duplicate value: {"type":"Ready"}`}},
		{name: "an empty condition", check: Conditions, object: "status: {conditions: [{}]}", want: []string{
			"status.conditions[0].type" + requiredDetail, "status.conditions[0].status" + requiredDetail,
			"status.conditions[0].reason" + requiredDetail,
			"status.conditions[0].lastTransitionTime" + requiredDetail, "status.conditions[0].message" + requiredDetail,
		}},
		{name: "bad members", check: Conditions, object: `status: {conditions: [{type: ready, status: "Yes", reason: "", lastTransitionTime: "2024-05-17 09:30", message: 1}]}`, want: []string{
			`status.conditions[0].type: Invalid value: "ready"` + typeDetail,
			`status.conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"`,
			`status.conditions[0].reason: Invalid value: ""` + reasonDetail,
			`status.conditions[0].lastTransitionTime: Invalid value: "2024-05-17 09:30"` + dateDetail,
			`status.conditions[0].message: Invalid value: "number": must be of type string`,
		}},
		{name: "bad types", check: Conditions, object: "status: {conditions: [" +
			strings.Replace(good, "Ready", "Is-Ready", 1) + "," + strings.Replace(good, "Ready", "A_b/Ready", 1) + "," +
			strings.Replace(good, "Ready", "a.b/c/Ready", 1) + "," + strings.Replace(good, "Ready", "example.com/", 1) +
			"]}", want: []string{
			`status.conditions[0].type: Invalid value: "Is-Ready"` + typeDetail,
			`status.conditions[1].type: Invalid value: "A_b/Ready"` + typeDetail,
			`status.conditions[2].type: Invalid value: "a.b/c/Ready"` + typeDetail,
			`status.conditions[3].type: Invalid value: "example.com/"` + typeDetail,
		}},
		{name: "the status is not written", check: Conditions, object: "status: {conditions: 1}",
			how: func(_ *admission.Attributes, o *Object) { o.Part = WithoutStatus }},
		{name: "the status alone is written", check: Conditions, object: "status: {conditions: 1}",
			how:  func(_ *admission.Attributes, o *Object) { o.Part = StatusAlone },
			want: []string{`status.conditions: Invalid value: "number": must be of type array`}},
		{name: "the status of an ordinary API", check: Conditions, object: "state: {now: {conditions: 1}}",
			how:  func(_ *admission.Attributes, o *Object) { o.Bare, o.Status = true, []string{"state", "now"} },
			want: []string{`state.now.conditions: Invalid value: "number": must be of type array`}},

		{name: "spec and status", check: TopLevelFields,
			object: "{apiVersion: a, kind: b, metadata: {}, spec: {}, status: {}}"},
		{name: "beside spec and status", check: TopLevelFields, object: "{spec: {}, data: {}, more: 1, status: {}}",
			want: []string{"data" + topDetail, "more" + topDetail}},
		{name: "beside a spec", check: TopLevelFields, object: "{spec: {}, data: {}}",
			how: func(_ *admission.Attributes, o *Object) { o.Status = nil }},
		{name: "beside a status", check: TopLevelFields, object: "{status: {}, data: {}}"},
		{name: "beside a status that clients may not write", check: TopLevelFields, object: "{spec: {}, data: {}}",
			how:  func(_ *admission.Attributes, o *Object) { o.Part = WithoutStatus },
			want: []string{"data" + topDetail}},

		{name: "keys", check: ReservedKeys, object: `metadata: {labels: {team: a, example.com/x: "1", app.kubernetes.io/name: n, notk8s.io/x: y, k8s.io: z}, annotations: {a/b: c}}`},
		{name: "reserved keys", check: ReservedKeys, object: `metadata: {labels: {k8s.io/x: y, a.k8s.io/x: y}, annotations: {kubernetes.io/x: y, a.b.kubernetes.io/x: y}}`, want: []string{
			"metadata.labels[a.k8s.io/x]" + keyDetail, "metadata.labels[k8s.io/x]" + keyDetail,
			"metadata.annotations[a.b.kubernetes.io/x]" + keyDetail, "metadata.annotations[kubernetes.io/x]" +
				keyDetail,
		}},
		{name: "keys of the wrong type", check: ReservedKeys,
			object: "metadata: {labels: [k8s.io/x], annotations: null}"},
		{name: "keys of an ordinary API", check: ReservedKeys, object: "metadata: {labels: {k8s.io/x: y}}",
			how: func(_ *admission.Attributes, o *Object) { o.Bare = true }},

		{name: "integers", check: FractionsInSpec, object: `{spec: {a: 1, b: -5, c: 1e3, d: "1.5", e: [2.0, 9007199254740993]}, data: 1.5, status: {a: 1.5}}`},
		{name: "fractions", check: FractionsInSpec, object: `{"spec": {"a": 1.5, "b": [{"c": -0.25}], "d": 1e-3}}`,
			want: []string{
				"spec.a: Invalid value: 1.5" + fractionDetail, "spec.b[0].c: Invalid value: -0.25" + fractionDetail,
				"spec.d: Invalid value: 0.001" + fractionDetail,
			}},
		{name: "fractions of an ordinary API", check: FractionsInSpec, object: "{a: 1.5, state: {now: 2.5}}",
			how:  func(_ *admission.Attributes, o *Object) { o.Bare, o.Status = true, []string{"state"} },
			want: []string{"a: Invalid value: 1.5" + fractionDetail}},

		{name: "safe integers", check: UnsafeIntegers, object: `{"spec": {"a": 9007199254740991, "b": -9007199254740991, "c": 1.5, "d": 0}, "metadata": {"generation": 9007199254740993}}`},
		{name: "unsafe integers", check: UnsafeIntegers, object: `{"spec": {"a": 9007199254740992, "b": -9007199254740992, "c": 1e300, "d": 123456789012345678901234567890}, "data": [-1e16], "status": {"e": 9007199254740993}}`, want: []string{
			"data[0]: Invalid value: -10000000000000000" + unsafeDetail,
			"spec.a: Invalid value: 9007199254740992" + unsafeDetail, "spec.b: Invalid value: -9007199254740992" +
				unsafeDetail,
			"spec.c: Invalid value: 1e+300" + unsafeDetail, "spec.d: Invalid value: 1.2345678901234568e+29" +
				unsafeDetail,
			"status.e: Invalid value: 9007199254740993" + unsafeDetail,
		}},
		{name: "numbers of the status alone", check: UnsafeIntegers,
			object: `{"spec": {"a": 9007199254740992}, "status": {"e": [9007199254740993]}}`,
			how:    func(_ *admission.Attributes, o *Object) { o.Part = StatusAlone },
			want:   []string{"status.e[0]: Invalid value: 9007199254740993" + unsafeDetail}},
		{name: "numbers without the status", check: UnsafeIntegers, object: `{"status": {"e": 9007199254740993}}`,
			how: func(_ *admission.Attributes, o *Object) { o.Part = WithoutStatus }},
		{name: "numbers without the deeper status", check: UnsafeIntegers,
			object: `{"state": {"now": {"e": 9007199254740993}, "f": 9007199254740993}}`,
			how: func(_ *admission.Attributes, o *Object) {
				o.Bare, o.Status, o.Part = true, []string{"state", "now"}, WithoutStatus
			}, want: []string{"state.f: Invalid value: 9007199254740993" + unsafeDetail}},

		{name: "dates", check: Dates, object: `{spec: {startTime: "2024-05-17T09:30:00Z", time: "2024-05-17T09:30:00.123456789+02:00", endTime: null, at: x, since: "2024-05-17T09:30:00Z", leadTime: 3h, runtime: x, upTime: 5},
			metadata: {creationTimestamp: x}}`},
		{name: "bad dates", check: Dates, object: `{"spec": {"aTime": "2024-05-17", "bTimestamp": "", "time": "2024-05-17T09:30:00", "timestamp": "2024-05-17t09:30:00z", "cTime": "2024-02-30T09:30:00Z",
			"since": "x", "byName": {"a": "y"}, "list": ["z"]}}`, want: []string{
			`spec.aTime: Invalid value: "2024-05-17"` + dateDetail, `spec.bTimestamp: Invalid value: ""` + dateDetail,
			`spec.byName[a]: Invalid value: "y"` + dateDetail, `spec.cTime: Invalid value: "2024-02-30T09:30:00Z"` +
				dateDetail,
			`spec.list[0]: Invalid value: "z"` + dateDetail, `spec.since: Invalid value: "x"` + dateDetail,
			`spec.time: Invalid value: "2024-05-17T09:30:00"` + dateDetail,
			`spec.timestamp: Invalid value: "2024-05-17t09:30:00z"` + dateDetail,
		}},
		{name: "a long string", check: Dates, object: `{spec: {aTime: ` + strings.Repeat("x", 200) + "}}",
			want: []string{`spec.aTime: Invalid value: "` + strings.Repeat("x", 128) + `…"` + dateDetail}},
		{name: "a long string of wide characters", check: Dates, object: `{spec: {aTime: x` + strings.Repeat("é", 100) +
			"}}", want: []string{`spec.aTime: Invalid value: "x` + strings.Repeat("é", 63) + `…"` + dateDetail}},

		{name: "a namespace", check: ReservedNames, object: "metadata: {name: team-kube-a}",
			how: func(a *admission.Attributes, _ *Object) { a.Info = namespaces }},
		{name: "a reserved namespace", check: ReservedNames, object: "metadata: {name: kube-a, generateName: kube-}",
			how: func(a *admission.Attributes, _ *Object) { a.Info = namespaces }, want: []string{
				`metadata.name: Invalid value: "kube-a": may not begin with 'kube-', which is reserved for the namespaces of Kubernetes itself`,
				`metadata.generateName: Invalid value: "kube-": may not begin with 'kube-', which is reserved for the namespaces of Kubernetes itself`,
			}},
		{name: "a namespace that is there", check: ReservedNames, object: "metadata: {name: kube-a}",
			how: func(a *admission.Attributes, _ *Object) { a.Info, a.Operation = namespaces, admission.Update }},
		{name: "another kube- name", check: ReservedNames, object: "metadata: {name: kube-a}"},
		{name: "a group", check: ReservedNames, object: "spec: {group: widget.example.com}",
			how: func(a *admission.Attributes, _ *Object) { a.Info = definitions }},
		{name: "a reserved group", check: ReservedNames, object: "spec: {group: x.k8s.io}",
			how:  func(a *admission.Attributes, _ *Object) { a.Info = definitions },
			want: []string{`spec.group: Invalid value: "x.k8s.io"` + groupDetail}},
		{name: "a single word", check: ReservedNames, object: "spec: {group: widgets}",
			how:  func(a *admission.Attributes, _ *Object) { a.Info = definitions },
			want: []string{`spec.group: Invalid value: "widgets"` + groupDetail}},
		{name: "a group that was approved", check: ReservedNames, object: "{metadata: {annotations: {api-approved.kubernetes.io: unapproved}}, spec: {group: x.k8s.io}}",
			how: func(a *admission.Attributes, _ *Object) { a.Info = definitions }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, action := range []Action{Off, Warn, Deny} {
				a := attributes(t, c.object)
				o := Object{Root: a.Object.Root(), Schema: dated(t), Status: []string{"status"}}
				if c.how != nil {
					c.how(a, &o)
				}
				r, err := New([]*Policy{policy(t, only(c.check, action))}).Check(t.Context(), a, o)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, text := range c.want {
					switch action {
					case Warn:
						want = append(want, "warning: "+text)
					case Deny:
						want = append(want, text)
					}
				}
				if got := texts(r); !reflect.DeepEqual(got, want) {
					t.Errorf("action %d:\n got %q\nwant %q", action, got, want)
				}
			}
		})
	}
}

// TestUnchanged: what an update leaves as it was is only warned of; conditions are known by their type.
func TestUnchanged(t *testing.T) {
	var everything Spec
	for i := range everything.Actions {
		everything.Actions[i] = Deny
	}
	a := attributes(t, `{"metadata":{"labels":{"k8s.io/x":"1","k8s.io/y":"2"}},"spec":{"a":1.50,"b":2.5,"list":[0.5,1.5]},"data":{"n":1},
		"status":{"conditions":[{"type":"New","status":"?","reason":"R","message":"","lastTransitionTime":"2024-05-17T09:30:00Z"},{"type":"old"}]}}`)
	a.Operation = admission.Update
	a.Old = admissiontest.Parse(`{"metadata":{"labels":{"k8s.io/x":"1","k8s.io/y":"1"}},"spec":{"a":1.5,"list":[0.5,2.5]},"data":{"n":1.0},"status":{"conditions":[{"type":"old"}]}}`)
	defer a.Old.Release()
	r, err := New([]*Policy{policy(t, everything)}).Check(t.Context(), a,
		Object{Root: a.Object.Root(), Old: a.Old.Root(), Status: []string{"status"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"metadata.labels[k8s.io/y]" + keyDetail,
		`status.conditions[0].status: Unsupported value: "?": supported values: "False", "True", "Unknown"`,
		"spec.b: Invalid value: 2.5" + fractionDetail,
		"spec.list[1]: Invalid value: 1.5" + fractionDetail,
		"warning: data" + topDetail,
		"warning: metadata.labels[k8s.io/x]" + keyDetail,
		`warning: status.conditions[1].type: Invalid value: "old"` + typeDetail,
		"warning: status.conditions[1].status" + requiredDetail, "warning: status.conditions[1].reason" +
			requiredDetail,
		"warning: status.conditions[1].lastTransitionTime" + requiredDetail, "warning: status.conditions[1].message" +
			requiredDetail,
		"warning: spec.a: Invalid value: 1.5" + fractionDetail,
		"warning: spec.list[0]: Invalid value: 0.5" + fractionDetail,
	}
	if got := texts(r); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// TestStrictest: of several policies each rule's strictest action counts; a reserved key is free if
// every policy allows it.
func TestStrictest(t *testing.T) {
	object := `{"metadata":{"labels":{"a.k8s.io/x":"1","b.k8s.io/x":"1","c.k8s.io/x":"1"}},"spec":{"a":1.5}}`
	one, two := only(ReservedKeys, Warn), only(ReservedKeys, Deny)
	one.Name, one.AllowedKeyPrefixes, one.Actions[FractionsInSpec] = "one", []string{"a.k8s.io", "c.k8s.io"}, Deny
	two.Name, two.AllowedKeyPrefixes, two.Actions[FractionsInSpec] = "two", []string{"b.k8s.io", "c.k8s.io"}, Warn
	other := only(UnsafeIntegers, Deny)
	other.MatchConstraints = &admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"*"},
			Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
				Resources: []string{"gadgets"}},
		}}}}
	a := attributes(t, object)
	for _, order := range [][]*Policy{{policy(t, one), policy(t, two), policy(t, other)},
		{policy(t, two), policy(t, other), policy(t, one)}} {
		r, err := New(order).Check(t.Context(), a, Object{Root: a.Object.Root()})
		want := []string{"metadata.labels[a.k8s.io/x]" + keyDetail, "spec.a: Invalid value: 1.5" + fractionDetail,
			"warning: metadata.labels[b.k8s.io/x]" + keyDetail}
		if got := texts(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\n got %q\nwant %q", err, got, want)
		}
	}
}

// TestMatching: which requests a policy matches.
func TestMatching(t *testing.T) {
	rules := func(resources ...string) *admissionv1.MatchResources {
		return &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"*"},
					Resources: resources},
			}}}}
	}
	for _, c := range []struct {
		name       string
		match      *admissionv1.MatchResources
		conditions []string
		selector   map[string]string
		want       bool
	}{
		{name: "everything", want: true},
		{name: "the resource", match: rules("widgets"), want: true},
		{name: "another resource", match: rules("gadgets")},
		{name: "its status", match: rules("widgets/status")},
		{name: "conditions", conditions: []string{"request.userInfo.username == 'jane'", "object.spec.a > 1.0"},
			want: true},
		{name: "a condition that is false", conditions: []string{"true", "request.userInfo.username == 'joe'"}},
		{name: "a condition that fails", conditions: []string{"object.spec.missing == 1"}, want: true},
		{name: "labels", selector: map[string]string{"a": "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := only(FractionsInSpec, Deny)
			s.MatchConstraints = c.match
			if c.selector != nil {
				s.MatchConstraints = &admissionv1.MatchResources{
					ObjectSelector: &metav1.LabelSelector{MatchLabels: c.selector}}
			}
			for i, expression := range c.conditions {
				s.MatchConditions = append(s.MatchConditions,
					admissionv1.MatchCondition{Name: fmt.Sprint("c", i), Expression: expression})
			}
			a := attributes(t, "{spec: {a: 1.5}}")
			r, err := New([]*Policy{policy(t, s)}).Check(t.Context(), a, Object{Root: a.Object.Root()})
			if err != nil || (len(r.Errors) > 0) != c.want {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// TestConcern: requests that no policy matches are not looked at.
func TestConcern(t *testing.T) {
	p := New([]*Policy{policy(t, only(Dates, Warn))})
	for _, c := range []struct {
		subresource string
		operation   admission.Operation
		policies    *Policies
		want        bool
	}{
		{"", admission.Create, p, true},
		{"status", admission.Update, p, true},
		{"scale", admission.Update, p, false},
		{"", admission.Delete, p, false},
		{"", admission.Create, New(nil), false},
	} {
		if got := c.policies.Concern(&resource.Info{Resource: "widgets", Subresource: c.subresource},
			c.operation); got != c.want {
			t.Errorf("%q, %v: %v", c.subresource, c.operation, got)
		}
	}
}

// TestMany: of many failures a hundred are described, and the rest counted.
func TestMany(t *testing.T) {
	object := `{"spec":[` + strings.Repeat("1.5,", 150) + `1.5]}`
	for action, want := range map[Action]string{Warn: "warning: and 51 more", Deny: "and 51 more"} {
		a := attributes(t, object)
		r, err := New([]*Policy{policy(t, only(FractionsInSpec, action))}).Check(t.Context(), a,
			Object{Root: a.Object.Root()})
		if got := texts(r); err != nil || len(got) != 101 || got[100] != want {
			t.Errorf("%d texts, the last is %q, %v", len(got), got[len(got)-1], err)
		}
	}
}

// TestCompileFinds: what is wrong with a policy.
func TestCompileFinds(t *testing.T) {
	s := only(Dates, Warn)
	s.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{}}}
	s.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "1"}, {Name: "b"}}
	_, errs := Compile(&s)
	want := []string{
		"spec.matchConstraints.resourceRules[0].operations", "spec.matchConstraints.resourceRules[0].apiGroups",
		"spec.matchConstraints.resourceRules[0].apiVersions",
		"spec.matchConstraints.resourceRules[0].resources", "spec.matchConditions[1].expression",
		"spec.matchConditions[0].expression",
	}
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// BenchmarkCheck measures the cost of the rules for an object of about 2 KB.
func BenchmarkCheck(b *testing.B) {
	var everything Spec
	for i := range everything.Actions {
		everything.Actions[i] = Deny
	}
	d, err := document.Parse([]byte(`{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"list":[`+
		strings.Repeat(`{"name":"x","value":"0123456789","n":1},`, 40)+`{}]}}`), document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	a := attributes(b, "{}")
	a.Object = d
	p := New([]*Policy{policy(b, everything)})
	b.ReportAllocs()
	for b.Loop() {
		if r, err := p.Check(b.Context(), a, Object{Root: d.Root()}); err != nil || len(r.Errors) > 0 {
			b.Fatal(r, err)
		}
	}
}
