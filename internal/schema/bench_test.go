package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// readCRD reads the definition in a file of testdata.
func readCRD(tb testing.TB, path string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		tb.Fatal(err)
	}
	return crd
}

// workload is the schema of testdata/workload-crd.yaml, and an object of it of about size bytes; 0 is the smallest.
func workload(tb testing.TB, size int, rules bool) (*schema.Schema, *apiextensionsv1.JSONSchemaProps, []byte) {
	tb.Helper()
	crd := readCRD(tb, "testdata/workload-crd.yaml")
	props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if !rules {
		dropRules(props)
	}
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		tb.Fatal(errs)
	}
	raw, err := os.ReadFile("testdata/workload.json")
	if err != nil {
		tb.Fatal(err)
	}
	return versions[0].Schema, props, grow(tb, compact(tb, raw), size)
}

func compact(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// grow adds variables to the environment of the first container.
func grow(tb testing.TB, raw []byte, size int) []byte {
	tb.Helper()
	at := bytes.Index(raw, []byte(`"env":[`))
	if at < 0 {
		tb.Fatal("no environment")
	}
	at += len(`"env":[`)
	var more []byte
	for i := 0; len(raw)+len(more) < size; i++ {
		item, err := json.Marshal(map[string]string{"name": "SETTING_" + string(rune('A'+i%26)) + "_" + itoa(i),
			"value": "value number " + itoa(i)})
		if err != nil {
			tb.Fatal(err)
		}
		more = append(append(more, item...), ',')
	}
	return append(append(append([]byte{}, raw[:at]...), more...), raw[at:]...)
}

func itoa(i int) string {
	raw, _ := json.Marshal(i) // an integer cannot fail
	return string(raw)
}

func dropRules(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = nil
	for name, p := range s.Properties {
		dropRules(&p)
		s.Properties[name] = p
	}
	if s.Items != nil {
		dropRules(s.Items.Schema)
	}
}

var sizes = []struct {
	name string
	size int
}{{"1KB", 0}, {"10KB", 10 << 10}, {"100KB", 100 << 10}, {"1MB", 1 << 20}}

// BenchmarkAdmit is the way from bytes to bytes: parse, prune, default, validate, print. Beside it, in the same run,
// the same object goes the same way through Kubernetes' libraries.
func BenchmarkAdmit(b *testing.B) {
	dir := suites(b)
	for _, rules := range []bool{false, true} {
		for _, size := range sizes {
			crd := readCRD(b, "testdata/workload-crd.yaml")
			raw, err := os.ReadFile("testdata/workload.json")
			if err != nil {
				b.Fatal(err)
			}
			benchmarkAdmit(b, "Workload/"+size.name, crd, rules, grow(b, compact(b, raw), size.size))
		}
		for _, size := range sizes[:3] {
			crd := definitions(b, dir+"/data/gateway-api/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml")[0]
			benchmarkAdmit(b, "HTTPRoute/"+size.name, crd, rules, httpRoute(size.size))
		}
	}
}

func benchmarkAdmit(b *testing.B, name string, crd *apiextensionsv1.CustomResourceDefinition, rules bool, raw []byte) {
	props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if rules {
		name += "-rules"
	} else {
		dropRules(props)
	}
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	kube, err := schematest.NewKubernetes(props)
	if err != nil {
		b.Fatal(err)
	}
	kube.Namespaced = true
	b.Run(name, func(b *testing.B) {
		frame := cel.NewFrame(b.Context())
		defer frame.Release()
		var out []byte
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			out = admit(b, versions[0].Schema, frame, raw, out)
		}
		ours := cost(func() { out = admit(b, versions[0].Schema, frame, raw, out) })
		b.ReportMetric(ours/float64(len(raw)), "cpu-ns/byte")
		b.ReportMetric(cost(func() { viaKubernetes(b, kube, raw) })/ours, "×Kubernetes")
	})
}

// cost is the CPU time of one call of f, garbage collection included, in nanoseconds: the least of some rounds, so that
// what else the machine does takes no part in it.
func cost(f func()) float64 {
	spent := func() float64 {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for the process itself
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	least := math.Inf(1)
	for range 5 {
		runs, start, before := 0, time.Now(), spent()
		for ; runs < 2 || time.Since(start) < 50*time.Millisecond; runs++ {
			f()
		}
		least = min(least, (spent()-before)/float64(runs))
	}
	return least
}

// httpRoute is a route of about size bytes; 0 is one of 1.3 KB.
func httpRoute(size int) []byte {
	var rules [16][]string // matches of each
	total := 0
	for i := 0; total < max(size, 1300)-1000; i++ {
		match := fmt.Sprintf(`{"path":{"type":"PathPrefix","value":"/v2/payments/%d"},"method":"GET"`, i)
		if i%2 == 0 || size > 1300 { // there may be no more than 127 matches
			var headers []string
			for h := range min(16, 1+size/6000) {
				headers = append(headers, fmt.Sprintf(`{"type":"Exact","name":"X-Tenant-%d","value":"team-a-%d"}`, h,
					i))
			}
			match += `,"headers":[` + strings.Join(headers, ",") + `]`
		}
		at := i % len(rules)
		rules[at] = append(rules[at], match+"}")
		total += len(match)
	}
	var b strings.Builder
	b.WriteString(`{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"payments","namespace":"team-a","labels":{"app.kubernetes.io/name":"payments","team":"team-a"}},`)
	b.WriteString(`"spec":{"parentRefs":[{"name":"public","sectionName":"https"}],"hostnames":["payments.example.com","api.example.com"],"rules":[`)
	for i, matches := range rules {
		if len(matches) == 0 {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"matches":[%s],"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"X-Served-By","value":"gateway"}],"remove":["X-Debug"]}}],`+
			`"timeouts":{"request":"10s","backendRequest":"5s"},"backendRefs":[{"name":"payments-%d","port":8443,"weight":90},{"name":"payments-canary","port":8443,"weight":10}]}`,
			strings.Join(matches, ","), i)
	}
	b.WriteString(`]}}`)
	return []byte(b.String())
}

// BenchmarkSteps is each step of BenchmarkAdmit on its own, for an object of 1.4 KB.
func BenchmarkSteps(b *testing.B) {
	s, _, raw := workload(b, 0, false)
	parse := func() *document.Document {
		d, err := document.Parse(raw, document.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parse().Release()
		}
	})
	b.Run("prune", func(b *testing.B) {
		d := parse()
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Prune(d, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse+default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := parse()
			defaults.Apply(d, s)
			d.Release()
		}
	})
	b.Run("print", func(b *testing.B) {
		d := parse()
		defaults.Apply(d, s)
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			out = d.AppendTo(out[:0])
		}
	})
	b.Run("validate", func(b *testing.B) {
		d := parse()
		defaults.Apply(d, s)
		b.ReportAllocs()
		for b.Loop() {
			if r := s.Validate(nil, d.Root(), document.Node{}); !r.Valid() {
				b.Fatal(r.Errors)
			}
		}
	})
}

// BenchmarkCompileCRD measures loading a definition of the suites.
func BenchmarkCompileCRD(b *testing.B) {
	for _, name := range []string{"httproutes", "gateways", "referencegrants"} {
		crd := definitions(b, suites(b)+"/data/gateway-api/config/crd/standard/gateway.networking.k8s.io_"+name+
			".yaml")[0]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, errs := schema.CompileCRD(crd); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

func admit(b *testing.B, s *schema.Schema, frame *cel.Frame, raw, out []byte) []byte {
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Prune(d, nil); err != nil {
		b.Fatal(err)
	}
	defaults.Apply(d, s)
	if r := s.Validate(frame, d.Root(), document.Node{}); !r.Valid() {
		b.Fatal(r.Errors)
	}
	out = d.AppendTo(out[:0])
	d.Release()
	return out
}

func viaKubernetes(b *testing.B, kube *schematest.Kubernetes, raw []byte) {
	obj, err := schematest.Decode(raw)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := kube.Prune(obj); err != nil {
		b.Fatal(err)
	}
	kube.Default(obj)
	if failures, err := kube.Validate(obj, nil); err != nil || len(failures) > 0 {
		b.Fatal(failures, err)
	}
	schematest.Encode(obj)
}
