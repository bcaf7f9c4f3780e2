package admission

import (
	"context"
	"errors"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// governed is a scripted policy with terms.
type governed struct {
	scripted
	stands Standing
	panics bool
	about  bool
	tried  []bool
}

func (p *governed) Terms() Terms { return (*scriptedTerms)(p) }

func (p *governed) IsAbout(context.Context, *Attributes) bool { return p.about }

// scriptedTerms are the terms of a governed policy.
type scriptedTerms governed

func (t *scriptedTerms) Stand(context.Context, *Attributes) Standing {
	if t.panics {
		panic("terms")
	}
	return t.stands
}
func (t *scriptedTerms) NeedsOld() bool          { return t.old }
func (t *scriptedTerms) ReportDryRun(would bool) { t.tried = append(t.tried, would) }
func (t *scriptedTerms) Applicability(_ *Attributes, o resource.Applicability) resource.Applicability {
	return o.Also("by its terms")
}

// verdicts records the calls of an Observer.
type verdicts []Verdict

func (v *verdicts) Decided(_ int, _, _ string, one Verdict, _ int64) { *v = append(*v, one) }

// TestDryRuns: a policy that is tried refuses nothing, whatever its verdict, and one with an
// exception is not evaluated. Terms that fail hold nothing back.
func TestDryRuns(t *testing.T) {
	tried, excepted := Standing{IsDryRun: true}, Standing{Exception: "e", Reason: "legacy"}
	deny := func(a *Attributes, r *Report) error {
		d := status.Denial{Policy: "p", Cause: metav1.StatusCause{Message: "too many"}}
		d.Begin(status.DeniedByPolicy("p"))
		r.Deny(d)
		return nil
	}
	const denied = `deployments.apps "web" is forbidden: policy 'p' denied request: too many`
	type outcome struct {
		err      string
		warnings []string
		verdict  Verdict
		tried    []bool
		noted    []Annotation
	}
	note := func(message string) []Annotation {
		return []Annotation{{triedAnnotation, `[{"message":"policy 'p' denied request: ` + message +
			`","policy":"p"}]`}}
	}
	fails := func(message string) []Annotation {
		return []Annotation{{triedAnnotation, `[{"message":"policy 'p' denied request: ` + message +
			`","policy":"p","failed":true}]`}}
	}
	for _, c := range []struct {
		name   string
		policy governed
		want   outcome
	}{
		{"enforced", governed{about: true, scripted: scripted{do: deny}}, outcome{err: denied, verdict: Denied}},
		{"tried", governed{about: true, stands: tried, scripted: scripted{do: deny}},
			outcome{warnings: []string{"policy 'p': too many" + OnceEnforced}, verdict: WouldDeny, tried: []bool{true},
				noted: note("too many")}},
		{"tried, and allowed", governed{about: true, stands: tried,
			scripted: scripted{do: func(*Attributes, *Report) error { return nil }}},
			outcome{verdict: Allowed, tried: []bool{false}}},
		{"tried, and about something else", governed{stands: tried, scripted: scripted{do: deny}},
			outcome{verdict: Allowed}},
		{"tried, and fails", governed{about: true, stands: tried,
			scripted: scripted{do: func(*Attributes, *Report) error { return errors.New("lost") }}},
			outcome{warnings: []string{"policy 'p': lost" + OnceEnforced}, verdict: Errored, tried: []bool{false},
				noted: fails("lost")}},
		{"tried, and may fail", governed{about: true, stands: tried,
			scripted: scripted{failure: Ignore, do: func(*Attributes, *Report) error { return errors.New("lost") }}},
			outcome{verdict: Passed, tried: []bool{false}}},
		{"tried, and panics", governed{about: true, stands: tried,
			scripted: scripted{do: func(*Attributes, *Report) error { panic("x") }}},
			outcome{warnings: []string{"policy 'p': the policy failed with an internal error" + OnceEnforced},
				verdict: Errored, tried: []bool{false}, noted: fails("the policy failed with an internal error")}},
		{"tried, and has an answer",
			governed{about: true, stands: tried,
				scripted: scripted{do: func(*Attributes, *Report) error { return status.BadRequest("no") }}},
			outcome{warnings: []string{"policy 'p': no" + OnceEnforced}, verdict: Errored, tried: []bool{false},
				noted: fails("no")}},
		{"excepted", governed{about: true, stands: excepted, scripted: scripted{do: deny}},
			outcome{verdict: NotAsked,
				noted: []Annotation{{exceptionAnnotation, `[{"policy":"p","exception":"e","reason":"legacy"}]`}}}},
		{"excepted, and about something else", governed{stands: excepted, scripted: scripted{do: deny}},
			outcome{verdict: Allowed}},
		{"terms that panic", governed{about: true, panics: true, scripted: scripted{do: deny}},
			outcome{err: denied, verdict: Denied}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.policy
			p.name, p.rules = "p", everything()
			var seen verdicts
			r := Report{Observer: &seen}
			a := attributes(t, deployment)
			NewChain(nil, []Validator{&p}).Validate(context.Background(), a, &r)
			got := outcome{warnings: r.Warnings(), noted: r.Annotations()}
			if err := r.Err(a); err != nil {
				got.err = err.Error()
			}
			if len(seen) != 1 {
				t.Fatalf("%d verdicts: %v", len(seen), seen)
			}
			got.verdict = seen[0]
			r.ReportDryRuns()
			r.ReportDryRuns() // which reports it no second time
			if got.tried = p.tried; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, c.want)
			}
			if r.Reset(); !r.IsEmpty() || len(r.Annotations()) > 0 {
				t.Error("the report is not empty once it is reset")
			}
		})
	}
}

// TestDryRunMutators: what a mutator does that is tried is undone, once, and nothing runs again for it.
func TestDryRunMutators(t *testing.T) {
	ran := 0
	change := func(a *Attributes, _ *Report) error {
		ran++
		a.Object.SetString(a.Object.Root(), "changed", "yes")
		a.Changed()
		return a.Schema.SetDefaults()
	}
	for _, c := range []struct {
		name, object string
		stands       Standing
		stage        Stage
		do           func(*Attributes, *Report) error
		ran          int
		verdicts     verdicts
		warnings     []string
		tried        []bool
	}{
		{"enforced", `{"changed":"yes","defaults":"set"}`, Standing{}, StagePolicies, change, 2,
			verdicts{Changed, Changed}, nil, nil},
		{"tried", `{}`, Standing{IsDryRun: true}, StagePolicies, change, 1, verdicts{WouldMutate},
			[]string{"policy 'p': the object will be changed once it is enforced"}, []bool{true}},
		{"tried defaults", `{}`, Standing{IsDryRun: true}, StageDefaults, change, 1, verdicts{WouldMutate},
			[]string{"policy 'p': the object will be changed once it is enforced"}, []bool{true}},
		{"tried, and fails", `{}`, Standing{IsDryRun: true}, StageEngines,
			func(*Attributes, *Report) error { ran++; return errors.New("lost") }, 1, verdicts{Errored},
			[]string{"policy 'p': lost" + OnceEnforced}, []bool{false}},
		{"tried, and panics", `{}`, Standing{IsDryRun: true}, StageEngines,
			func(*Attributes, *Report) error { ran++; panic("x") }, 1, verdicts{Errored},
			[]string{"policy 'p': the policy failed with an internal error" + OnceEnforced}, []bool{false}},
		{"excepted", `{}`, Standing{Exception: "e"}, StagePolicies, change, 0, verdicts{NotAsked}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran = 0
			p := &governed{about: true, stands: c.stands,
				scripted: scripted{name: "p", rules: everything(), stage: c.stage, again: true, do: c.do}}
			var seen verdicts
			r := Report{Observer: &seen}
			a := attributes(t, `{}`)
			a.Schema = defaulting{a: a}
			object := a.Object
			if err := NewChain([]Mutator{p}, nil).Mutate(context.Background(), a, &r); err != nil {
				t.Fatal(err)
			}
			r.ReportDryRuns()
			if a.Object != object {
				t.Error("the object is another one")
			}
			if got := string(a.Object.AppendTo(nil)); got != c.object {
				t.Errorf("the object is %s, want %s", got, c.object)
			}
			if ran != c.ran || !reflect.DeepEqual(seen, c.verdicts) || !reflect.DeepEqual(r.Warnings(), c.warnings) ||
				!reflect.DeepEqual(p.tried, c.tried) {
				t.Errorf("ran %d times, %v, warnings %q, tried %v", ran, seen, r.Warnings(), p.tried)
			}
		})
	}
}

// defaulting sets a default in the object.
type defaulting struct {
	Schema
	a *Attributes
}

func (d defaulting) SetDefaults() error {
	d.a.Object.SetString(d.a.Object.Root(), "defaults", "set")
	return nil
}
