package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

// TestIndex: a policy decides as kube-apiserver's evaluator of the whole policy.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		compareIndex(t, r)
	}
}

// FuzzIndex does the same.
func FuzzIndex(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) { compareIndex(t, rand.New(rand.NewPCG(one, other))) })
}

func compareIndex(t *testing.T, r *rand.Rand) {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(from ...string) (some []string) {
		for _, s := range from {
			if r.IntN(3) == 0 {
				some = append(some, s)
			}
		}
		return some
	}
	stages := func() (all []auditv1.Stage) {
		for _, s := range some("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic") {
			all = append(all, auditv1.Stage(s))
		}
		return all
	}
	p := &auditv1.Policy{OmitStages: stages(), OmitManagedFields: r.IntN(2) == 0}
	for range 1 + r.IntN(8) {
		rule := auditv1.PolicyRule{
			Level: auditv1.Level(pick("None", "Metadata", "Request", "RequestResponse")), Users: some("jane"),
			UserGroups: some("people"),
			Verbs:      some("get", "create", "list"), OmitStages: stages(),
		}
		if r.IntN(3) == 0 {
			rule.OmitManagedFields = new(r.IntN(2) == 0)
		}
		switch r.IntN(4) {
		case 0:
			rule.NonResourceURLs = some("/healthz*", "/version", "*")
		case 1:
			rule.Namespaces = some("", "team-a")
			fallthrough
		case 2:
			for range r.IntN(3) {
				rule.Resources = append(rule.Resources, auditv1.GroupResources{
					Group: pick("", "apps", "*"), Resources: some("pods", "pods/exec", "*/exec", "pods/*", "*", "jobs"),
				})
				if last := &rule.Resources[len(rule.Resources)-1]; len(last.Resources) > 0 {
					last.ResourceNames = some("web")
				}
			}
		}
		p.Rules = append(p.Rules, rule)
	}
	compiled, errs := Compile(p)
	if len(errs) > 0 {
		return // such as of rules for both kinds of paths
	}
	var in auditinternal.Policy
	if err := auditv1.Convert_v1_Policy_To_audit_Policy(p.DeepCopy(), &in, nil); err != nil {
		t.Fatal(err)
	}
	judge := policy.NewPolicyRuleEvaluator(&in)
	for range 30 {
		i := &resource.Info{
			IsResource: true, Verb: resource.VerbNamed(pick("get", "create", "list", "delete")),
			Group: pick("", "apps", "other"), Version: "v1", Resource: pick("pods", "jobs", "others"),
			Subresource: pick("", "", "exec", "log"), Namespace: pick("", "team-a", "team-b"),
			Name: pick("web", "db", ""), Path: "/x",
		}
		if r.IntN(4) == 0 {
			*i = resource.Info{Verb: resource.VerbNamed(pick("get", "post")),
				Path: pick("/healthz/a", "/version", "/x")}
		}
		u := &identity.User{Name: pick("jane", "joe"), Groups: some("people", "others")}
		want := judge.EvaluatePolicyRule(&authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: u.Name, Groups: u.Groups}, Verb: i.VerbName(), Namespace: i.Namespace,
			APIGroup: i.Group, APIVersion: i.Version,
			Resource: i.Resource, Subresource: i.Subresource, Name: i.Name, ResourceRequest: i.IsResource, Path: i.Path,
		})
		got := compiled.Decide(i, u)
		stages := true
		for s := RequestReceived; s <= Panic; s++ {
			stages = stages && (got.omitted&(1<<s) != 0) == slices.Contains(want.OmitStages,
				auditinternal.Stage(s.String()))
		}
		if got.Level.String() != string(want.Level) || got.OmitManagedFields != want.OmitManagedFields || !stages {
			t.Fatalf("%+v by %+v: %+v, want %+v of %+v", i, u, got, want, p)
		}
	}
}

// BenchmarkThousandOthers measures what 1,000 rules that do not match cost a request.
func BenchmarkThousandOthers(b *testing.B) {
	p := &auditv1.Policy{}
	for i := range 1000 {
		p.Rules = append(p.Rules,
			auditv1.PolicyRule{Level: "Metadata",
				Resources: []auditv1.GroupResources{{Group: "apps", Resources: []string{fmt.Sprint("things-", i)}}}})
	}
	compiled, _ := Compile(p)
	i, u := info("create", "apps", "deployments", "", "team-a"), &identity.User{Name: "jane"}
	b.ReportAllocs()
	for b.Loop() {
		compiled.Decide(i, u)
	}
}
