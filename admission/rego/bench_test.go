package rego

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission/rego/plan"
	"github.com/admission-gateway/gateway/internal/document"
)

// benchPod is a Pod of 1.3 KB that the three constraints admit.
const benchPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"payments-7d9f8b6c5d-x2x9k","namespace":"team-a","labels":{"app":"payments","team":"a","tier":"backend","version":"1.4.2"},"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"9090"}},"spec":{"serviceAccountName":"payments","containers":[{"name":"server","image":"registry.example.com/payments/server:1.4.2","args":["--listen","0.0.0.0:8080","--log","info"],"ports":[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"REGION","value":"eu-west-1"}],"resources":{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"250m","memory":"256Mi"}},"securityContext":{"privileged":false,"runAsNonRoot":true,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},"volumeMounts":[{"name":"config","mountPath":"/etc/payments"}]},{"name":"proxy","image":"registry.example.com/mesh/proxy:2.1.0","resources":{"limits":{"cpu":"100m","memory":"128Mi"}},"securityContext":{"privileged":false,"runAsNonRoot":true,"capabilities":{"drop":["ALL"]}}}],"volumes":[{"name":"config","configMap":{"name":"payments"}}],"tolerations":[{"key":"dedicated","operator":"Equal","value":"backend","effect":"NoSchedule"}]}}`

// benchConstraints are three constraints of Gatekeeper's library, with their parameters.
var benchConstraints = []struct{ template, parameters string }{
	{"general/allowedrepos", `{"repos":["registry.example.com/"]}`},
	{"general/requiredlabels", `{"labels":[{"key":"team","allowedRegex":"^[a-z]+$"},{"key":"app"}]}`},
	{"pod-security-policy/privileged-containers", `{"exemptImages":["registry.example.com/system/*"]}`},
}

func reviewText(object string) string {
	return `{"uid":"a","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"payments","namespace":"team-a","operation":"CREATE","userInfo":{"username":"kim","groups":["system:authenticated"]},"object":` + object + `,"oldObject":null,"dryRun":false,"options":null}`
}

func benchQueries(tb testing.TB) []*Query {
	var queries []*Query
	for _, c := range benchConstraints {
		whole := templateQuery(tb, "data/gatekeeper-library/library/"+c.template+"/template.yaml")
		queries = append(queries, whole.With(parsed(tb, []byte(c.parameters))))
	}
	return queries
}

// BenchmarkConstraints judges a POST of 1.3 KB by three constraints: the values are made of the parsed body once.
func BenchmarkConstraints(b *testing.B) {
	queries := benchQueries(b)
	d, err := document.Parse([]byte(reviewText(benchPod)), document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Release()
	b.ReportAllocs()
	for b.Loop() {
		review, err := new(reading).begin(d, nil)
		if err != nil {
			b.Fatal(err)
		}
		in := Input{Review: review}
		for _, q := range queries {
			if found, err := q.Violations(context.Background(), &in); err != nil || len(found) > 0 {
				b.Fatal(found, err)
			}
		}
	}
}

// BenchmarkPreparedQueries is the same by OPA's prepared queries over a map.
func BenchmarkPreparedQueries(b *testing.B) {
	var queries []rego.PreparedEvalQuery
	var inputs []map[string]any
	var review any
	if err := json.Unmarshal([]byte(reviewText(benchPod)), &review); err != nil {
		b.Fatal(err)
	}
	for _, c := range benchConstraints {
		file := "data/gatekeeper-library/library/" + c.template + "/template.yaml"
		options := []func(*rego.Rego){rego.Query(templateQuery(b, file).rule), rego.SetRegoVersion(ast.RegoV0),
			rego.StrictBuiltinErrors(true)}
		for i, m := range template(b, file) {
			options = append(options, rego.Module(string(rune('a'+i))+".rego", string(m.Source)))
		}
		q, err := rego.New(options...).PrepareForEval(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		var parameters any
		if err := json.Unmarshal([]byte(c.parameters), &parameters); err != nil {
			b.Fatal(err)
		}
		queries = append(queries, q)
		inputs = append(inputs, map[string]any{"review": review, "parameters": parameters})
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, q := range queries {
			results, err := q.Eval(context.Background(), rego.EvalInput(inputs[i]))
			if err != nil || len(results) != 1 || len(results[0].Expressions[0].Value.([]any)) > 0 {
				b.Fatal(results, err)
			}
		}
	}
}

// BenchmarkValueOf makes the value of a body of 1.3 KB.
func BenchmarkValueOf(b *testing.B) {
	d, err := document.Parse([]byte(reviewText(benchPod)), document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Release()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ValueOf(d.Root()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvaluations judges a POST of 1.3 KB by three constraints whose values were made before: by
// plans, and by OPA's evaluator.
func BenchmarkEvaluations(b *testing.B) {
	in := Input{Review: parsed(b, []byte(reviewText(benchPod)))}
	for _, by := range []struct {
		name string
		of   func(*Query) *Query
	}{
		{"plans", func(q *Query) *Query { return q }},
		{"topdown", byOPA},
	} {
		b.Run(by.name, func(b *testing.B) {
			var queries []*Query
			for _, q := range benchQueries(b) {
				queries = append(queries, by.of(q))
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, q := range queries {
					if found, err := q.Violations(context.Background(), &in); err != nil || len(found) > 0 {
						b.Fatal(found, err)
					}
				}
			}
		})
	}
}

// podConstraints are the constraints of Gatekeeper's library that match Pods: the first sample of each
// template.
func podConstraints(tb testing.TB) (queries []*Query) {
	dir := filepath.Join(suites(tb), "data", "gatekeeper-library", "library")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "template.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, file := range files {
		samples, err := filepath.Glob(filepath.Join(filepath.Dir(file), "samples", "*", "constraint.yaml"))
		if err != nil || len(samples) == 0 {
			continue
		}
		text, err := os.ReadFile(samples[0])
		if err != nil {
			tb.Fatal(err)
		}
		var c struct {
			Spec struct {
				Match      struct{ Kinds []struct{ Kinds []string } }
				Parameters map[string]any
			}
		}
		if err := yaml.Unmarshal(text, &c); err != nil {
			tb.Fatal(err)
		}
		if kinds := c.Spec.Match.Kinds; len(kinds) > 0 && slices.Contains(kinds[0].Kinds, "Pod") {
			if c.Spec.Parameters == nil {
				c.Spec.Parameters = map[string]any{}
			}
			relative, _ := filepath.Rel(suites(tb), file)
			queries = append(queries, templateQuery(tb, relative).With(encoded(tb, c.Spec.Parameters)))
		}
	}
	return queries
}

// BenchmarkFurther judges a Pod of 1.3 KB by 100 constraints, all that match Pods in Gatekeeper's
// library in turn: what a further one costs.
func BenchmarkFurther(b *testing.B) {
	of := podConstraints(b)
	review := parsed(b, []byte(reviewText(benchPod)))
	b.ReportAllocs()
	b.ReportMetric(float64(len(of)), "templates")
	for b.Loop() {
		in := Input{Review: review, Shared: plan.NewShared(nil)}
		for i := range 100 {
			if _, err := of[i%len(of)].Violations(context.Background(), &in); err != nil {
				b.Fatal(of[i%len(of)].rule, err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "µs/constraint")
}
