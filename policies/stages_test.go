package policies

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestChecksChangeNothing: a check returns what it finds, and leaves the set, and what the load knows beside it, as
// they are.
func TestChecksChangeNothing(t *testing.T) {
	text, err := os.ReadFile("testdata/odd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": string(text), "b.yaml": reviewedDefinition,
		"c.yaml": ruleOf("a"), "d.yaml": bareOrders})
	l := newLoader(&Gateway{Routes: []Route{{Upstream: "shop", PathPrefix: "/v2"}}})
	l.source = source.Read([]string{dir}, &source.Progress{})
	for _, one := range stages {
		one.run(l)
	}
	set, found, findings := *l.set, slices.Clone(l.Found), 0
	for _, one := range checks {
		findings += len(one.run(l))
		if !reflect.DeepEqual(*l.set, set) || !slices.Equal(l.Found, found) {
			t.Errorf("the check '%s' has changed the set, or what was found before", one.name)
		}
	}
	if findings == 0 {
		t.Error("the checks find nothing in files with mistakes")
	}
}

// TestStagesAreTimed: every stage has its time, also if the files are refused, and the stages that go through kinds
// have one of each kind that there is.
func TestStagesAreTimed(t *testing.T) {
	for _, text := range []string{ruleOf("a"), "kind: Nothing\n"} {
		var got []StageTime
		CompileFor(source.Of([]source.File{{Name: "a.yaml", Data: []byte(text)}}),
			Gateway{Timed: func(all []StageTime) { got = all }})
		var names []string
		var total time.Duration
		for _, s := range got {
			if s.Kind == "" {
				names, total = append(names, s.Stage), total+s.Took
			}
		}
		var want []string
		for _, s := range stages {
			want = append(want, s.name)
		}
		for _, c := range checks {
			want = append(want, c.name)
		}
		if !slices.Equal(names, want) || total <= 0 {
			t.Errorf("%q: the times are of %q, and %s in all; want %q", text, names, total, want)
		}
		of := func(stage, kind string) bool {
			return slices.ContainsFunc(got,
				func(s StageTime) bool { return s.Stage == stage && s.Kind == kind && s.Took > 0 })
		}
		if taken := of("take", "ValidatingAdmissionPolicy"); taken != (text == ruleOf("a")) {
			t.Errorf("%q: policies were taken: %v", text, taken)
		}
		if !of("compile", "MutatingAdmissionPolicy") || of("compile", "MutatingAdmissionPolicyBinding") {
			t.Errorf("%q: a policy and its bindings are not compiled in one", text)
		}
	}
}

// TestStagesAreLogged: a manager logs how long each stage took, and reports it if that is wanted,
// at the start and again.
func TestStagesAreLogged(t *testing.T) {
	var log bytes.Buffer
	told := 0
	m, found := NewManager([]string{testutil.WriteFiles(t, map[string]string{"a.yaml": ruleOf("a")})}, Options{
		Log:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Gateway: Gateway{Timed: func([]StageTime) { told++ }},
	})
	if m == nil {
		t.Fatal(found)
	}
	m.Reload()
	lines := regexp.MustCompile(`level=DEBUG msg="the policy files went through all stages" read=[^ ]+s assemble=[^ ]+s take=[^ ]+s compile=`).FindAllString(log.String(), -1)
	if len(lines) != 2 || told != 2 {
		t.Errorf("%d lines, told %d times:\n%s", len(lines), told, &log)
	}
}

// ruleOf is a ValidatingAdmissionPolicy.
func ruleOf(name string) string {
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n" +
		"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n" +
		"  validations: [{expression: 'object.metadata.name != \"x\"'}]\n"
}
