package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// scripted is a policy that does what its function says.
type scripted struct {
	name    string
	rules   []Rule
	failure FailurePolicy
	old     bool
	stage   Stage
	again   bool // asks to run again
	do      func(*Attributes, *Report) error
}

func (p *scripted) Name() string                 { return p.name }
func (p *scripted) Rules() []Rule                { return p.rules }
func (p *scripted) FailurePolicy() FailurePolicy { return p.failure }
func (p *scripted) NeedsOld() bool               { return p.old }

func (p *scripted) Stage() Stage { return p.stage }

func (p *scripted) Plan(_ context.Context, _ *Attributes, to []Run, _ *Report) ([]Run, error) {
	return append(to, Run{Reinvocable: p.again}), nil
}

func (p *scripted) Mutate(_ context.Context, a *Attributes, run *Run, _ *Report) error {
	run.Invoked, run.Patched = true, true
	return p.do(a, nil)
}

func (p *scripted) Validate(_ context.Context, a *Attributes, r *Report) error { return p.do(a, r) }

func everything() []Rule { return []Rule{{Group: "*", Resource: "*", Operations: AllOperations}} }

func attributes(t testing.TB, object string) *Attributes {
	t.Helper()
	d, err := document.Parse([]byte(object), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a := &Attributes{
		Info: &resource.Info{Verb: resource.VerbCreate, IsResource: true, Group: "apps", Version: "v1",
			Resource: "deployments", Namespace: "team-a"},
		Operation: Create,
		User:      &identity.User{Name: "jane"},
		Object:    d,
		Frame:     cel.NewFrame(context.Background()),
	}
	t.Cleanup(func() {
		a.Frame.Release()
		d.Release()
	})
	return a
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`

// TestOrder: policies run in the order of their names, and only policies that a rule of theirs
// finds.
func TestOrder(t *testing.T) {
	var ran []string
	policy := func(name string, rules ...Rule) *scripted {
		return &scripted{name: name, rules: rules, do: func(*Attributes, *Report) error {
			ran = append(ran, name)
			return nil
		}}
	}
	all := []*scripted{
		policy("h-any-group", Rule{Group: "*", Resource: "deployments", Operations: Create}),
		policy("a-exact", Rule{Group: "apps", Resource: "deployments", Operations: Create | Update}),
		policy("c-group", Rule{Group: "apps", Resource: "*", Operations: AllOperations}),
		policy("b-everything", Rule{Group: "*", Resource: "*", Operations: Create}),
		policy("d-twice", Rule{Group: "apps", Resource: "deployments", Operations: Delete},
			Rule{Group: "*", Resource: "*", Operations: Create},
			Rule{Group: "apps", Resource: "*", Operations: Create}),
		policy("e-other-operation", Rule{Group: "apps", Resource: "deployments", Operations: Delete}),
		policy("f-other-resource", Rule{Group: "apps", Resource: "statefulsets", Operations: Create}),
		policy("g-other-group", Rule{Group: "batch", Resource: "*", Operations: Create}),
		policy("i-nothing"),
	}
	var mutators []Mutator
	var validators []Validator
	for _, p := range all {
		mutators = append(mutators, p)
		validators = append(validators, p)
	}
	c := NewChain(mutators, validators)
	a := attributes(t, deployment)
	var r Report
	want := []string{"a-exact", "b-everything", "c-group", "d-twice", "h-any-group"}
	if err := c.Mutate(context.Background(), a, &r); err != nil || !reflect.DeepEqual(ran, want) {
		t.Errorf("mutators: %v, %v", ran, err)
	}
	ran = nil
	if c.Validate(context.Background(), a, &r); !reflect.DeepEqual(ran, want) {
		t.Errorf("validators: %v", ran)
	}
	if err := r.Err(a); err != nil {
		t.Errorf("denied: %v", err)
	}
	if !c.Concerns(a.Info, Create) || c.Concerns(&resource.Info{Resource: "pods"}, Update) {
		t.Error("what the chain concerns")
	}
	if new(Chain).Concerns(a.Info, Create) {
		t.Error("an empty chain concerns something")
	}
}

// TestNeedsOld: the stored object is fetched only when a policy that may concern the request reads it.
func TestNeedsOld(t *testing.T) {
	c := NewChain(
		[]Mutator{&scripted{name: "a", rules: []Rule{{Group: "apps", Resource: "deployments", Operations: Update}},
			old: true}},
		[]Validator{&scripted{name: "b", rules: []Rule{{Group: "", Resource: "pods", Operations: Delete}}, old: true},
			&scripted{name: "c", rules: everything()}},
	)
	for _, x := range []struct {
		group, resource string
		operation       Operation
		want            bool
	}{
		{"apps", "deployments", Update, true},
		{"apps", "deployments", Delete, false},
		{"", "pods", Delete, true},
		{"", "pods", Update, false},
		{"batch", "jobs", Update, false},
	} {
		if got := c.NeedsOld(&resource.Info{Group: x.group, Resource: x.resource}, x.operation); got != x.want {
			t.Errorf("%+v: got %v", x, got)
		}
	}
}

// TestFailures: each way in which a policy can fail, with each failure policy (hostile-input.md, fail matrix).
func TestFailures(t *testing.T) {
	conflict := status.Conflict((&resource.Info{Group: "apps", Resource: "deployments"}).GroupResource(), "web",
		"taken")
	ways := map[string]func(*Attributes, *Report) error{
		"error": func(*Attributes, *Report) error { return errors.New("no decision") },
		"panic": func(*Attributes, *Report) error { panic("a secret") },
		"nil pointer": func(*Attributes, *Report) error {
			var a *Attributes
			a.User = nil
			return nil
		},
	}
	sentences := map[string]string{
		"error":       `deployments.apps "web" is forbidden: policy 'p' denied request: no decision`,
		"panic":       `deployments.apps "web" is forbidden: policy 'p' denied request: the policy failed with an internal error`,
		"nil pointer": `deployments.apps "web" is forbidden: policy 'p' denied request: the policy failed with an internal error`,
	}
	for way, do := range ways {
		for _, failure := range []FailurePolicy{Fail, Ignore} {
			for _, kind := range []string{"mutator", "validator"} {
				t.Run(fmt.Sprintf("%s/%v/%s", way, failure, kind), func(t *testing.T) {
					p := &scripted{name: "p", rules: everything(), failure: failure, do: do}
					after := 0
					next := &scripted{name: "q", rules: everything(),
						do: func(*Attributes, *Report) error { after++; return nil }}
					a := attributes(t, deployment)
					var r Report
					var err error
					if kind == "mutator" {
						err = NewChain([]Mutator{p, next}, nil).Mutate(context.Background(), a, &r)
					} else {
						NewChain(nil, []Validator{p, next}).Validate(context.Background(), a, &r)
						if e := r.Err(a); e != nil {
							err = e
						}
					}
					if failure == Ignore {
						if err != nil || len(r.IgnoredFailures()) != 1 || r.IgnoredFailures()[0].Policy != "p" ||
							after != 1 {
							t.Fatalf("err %v, ignored %v, next ran %d times", err, r.IgnoredFailures(), after)
						}
						return
					}
					code, reason, sentence := int32(422), metav1.StatusReasonInvalid, sentences[way]
					if kind == "mutator" {
						code, reason = 403, metav1.StatusReasonForbidden
						_, sentence, _ = strings.Cut(sentence, "is forbidden: ")
					}
					var e *status.Error
					if !errors.As(err, &e) || e.ErrStatus.Code != code || e.ErrStatus.Reason != reason ||
						e.ErrStatus.Message != sentence {
						t.Fatalf("got %+v", err)
					}
					if len(r.Denials()) != 1 || !r.Denials()[0].Failed {
						t.Errorf("denials %+v", r.Denials())
					}
					if after != 1 {
						t.Errorf("next ran %d times", after)
					}
				})
			}
		}
	}
	t.Run("a mutator's own answer", func(t *testing.T) {
		p := &scripted{name: "p", rules: everything(), failure: Ignore,
			do: func(*Attributes, *Report) error { return fmt.Errorf("wrapped: %w", conflict) }}
		var r Report
		if err := NewChain([]Mutator{p}, nil).Mutate(context.Background(), attributes(t, deployment),
			&r); err != error(conflict) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAnswer: the sentence of one denial is Kubernetes', several are joined, and each is a cause (VAL-1).
func TestAnswer(t *testing.T) {
	a := attributes(t, deployment)
	first := status.Denial{Policy: "a", Binding: "x", Reason: metav1.StatusReasonForbidden,
		Cause: metav1.StatusCause{Message: "first", Field: "spec.replicas"}}
	second := status.Denial{Policy: "b", Binding: "y", Cause: metav1.StatusCause{Message: "second"}}
	for _, c := range []struct {
		name    string
		denials []status.Denial
		code    int32
		reason  metav1.StatusReason
		message string
		causes  []metav1.StatusCause
	}{
		{"one", []status.Denial{first}, 403, "Forbidden", `deployments.apps "web" is forbidden: first`,
			[]metav1.StatusCause{{Type: "FieldValueInvalid", Message: "first", Field: "spec.replicas"}}},
		{"without a reason", []status.Denial{second}, 422, "Invalid", `deployments.apps "web" is forbidden: second`,
			[]metav1.StatusCause{{Type: "FieldValueInvalid", Message: "second"}}},
		{"two", []status.Denial{second, first}, 422, "Invalid", `deployments.apps "web" is forbidden: second; first`,
			[]metav1.StatusCause{{Type: "FieldValueInvalid", Message: "second"},
				{Type: "FieldValueInvalid", Message: "first", Field: "spec.replicas"}}},
		{"the same twice", []status.Denial{first, first}, 403, "Forbidden",
			`deployments.apps "web" is forbidden: first`,
			[]metav1.StatusCause{{Type: "FieldValueInvalid", Message: "first", Field: "spec.replicas"}}},
		{"too large",
			[]status.Denial{{Cause: metav1.StatusCause{Message: "m"},
				Reason: metav1.StatusReasonRequestEntityTooLarge}}, 413, "RequestEntityTooLarge",
			`deployments.apps "web" is forbidden: m`, []metav1.StatusCause{{Type: "FieldValueInvalid", Message: "m"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Report
			for _, d := range c.denials {
				r.Deny(d)
			}
			got := status.From(r.Err(a)).ErrStatus
			want := metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: c.code,
				Reason: c.reason, Message: c.message,
				Details: &metav1.StatusDetails{Name: "web", Group: "apps", Kind: "deployments", Causes: c.causes},
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
	t.Run("more than an answer holds", func(t *testing.T) {
		var r Report
		for i := range 150 {
			r.Deny(status.Denial{Cause: metav1.StatusCause{Message: fmt.Sprint("m", i)}})
		}
		causes := status.From(r.Err(a)).ErrStatus.Details.Causes
		if len(causes) != status.MaxCauses+1 || causes[status.MaxCauses].Message != "and 50 more" {
			t.Errorf("%d causes, the last is %q", len(causes), causes[len(causes)-1].Message)
		}
	})
	t.Run("a name that is not made yet", func(t *testing.T) {
		var r Report
		r.Deny(first)
		if got := status.From(
			r.Err(
				attributes(t,
					`{"metadata":{"generateName":"web-"}}`))).ErrStatus.Message; got != `deployments.apps "web-" is forbidden: first` {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a collection", func(t *testing.T) {
		var r Report
		r.Deny(first)
		b := &Attributes{Info: &resource.Info{Resource: "pods"}}
		if got := status.From(r.Err(b)).ErrStatus.Message; got != `pods "Unknown" is forbidden: first` {
			t.Errorf("got %q", got)
		}
	})
}

// TestAudit: what the audit event says, in Kubernetes' forms.
func TestAudit(t *testing.T) {
	var r Report
	r.Annotate("p", "size", "1")
	r.Annotate("p", "size", "1")
	r.Annotate("p", "size", "2")
	r.Annotate("q", "long", strings.Repeat("é", 6000))
	for range 60 {
		r.Audit(AuditedFailure{Message: "m", Policy: "p", Binding: "b", ExpressionIndex: 3,
			ValidationActions: []string{"Audit"}})
	}
	got := r.Annotations()
	if len(got) != 3 || got[0] != (Annotation{"p/size", "1, 2"}) || got[1].Key != "q/long" ||
		len(got[1].Value) != 10<<10 {
		t.Fatalf("got %.200v", got)
	}
	one := `{"message":"m","policy":"p","binding":"b","expressionIndex":3,"validationActions":["Audit"]}`
	want := "[" + strings.TrimSuffix(strings.Repeat(one+",", 50), ",") + "]"
	if got[2].Key != "validation.policy.admission.k8s.io/validation_failure" || got[2].Value != want {
		t.Errorf("got %.300v", got[2])
	}
	r.Warn("w")
	r.Warn("w")
	r.Deny(status.Denial{})
	r.Ignored("p", errors.New("x"))
	if !reflect.DeepEqual(r.Warnings(), []string{"w"}) {
		t.Errorf("warnings %v", r.Warnings())
	}
	r.Reset()
	if len(r.Denials())+len(r.Warnings())+len(r.IgnoredFailures())+len(r.Annotations()) != 0 {
		t.Error("a reset report is not empty")
	}
}

// TestName: the path of an object's name.
func TestName(t *testing.T) {
	bare := &resource.Resource{Names: resource.Names{Kind: "Order"}, Envelope: resource.Bare,
		Fields: resource.Fields{Name: resource.FieldPath{"id"}}}
	for _, c := range []struct {
		info   resource.Info
		res    *resource.Resource
		object string
		want   string
	}{
		{resource.Info{Name: "in-path"}, nil, `{"metadata":{"name":"in-body"}}`, "in-path"},
		{resource.Info{}, nil, `{"metadata":{"name":"in-body"}}`, "in-body"},
		{resource.Info{}, nil, `{"metadata":{"name":1}}`, ""},
		{resource.Info{}, nil, `[]`, ""},
		{resource.Info{}, bare, `{"id":"o-1","metadata":{"name":"x"}}`, "o-1"},
		{resource.Info{}, &resource.Resource{Envelope: resource.Bare}, `{"id":"o-1"}`, ""},
	} {
		a := attributes(t, c.object)
		a.Info, a.Resource = &c.info, c.res
		if got := a.Name(); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
