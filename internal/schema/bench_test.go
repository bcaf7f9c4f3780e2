package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

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
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		tb.Fatal(err)
	}
	return versions[0].Schema, props, grow(tb, compact.Bytes(), size)
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
		item, err := json.Marshal(map[string]string{"name": "SETTING_" + string(rune('A'+i%26)) + "_" + itoa(i), "value": "value number " + itoa(i)})
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

// BenchmarkAdmit is the way from bytes to bytes: parse, prune, default, validate, print.
func BenchmarkAdmit(b *testing.B) {
	for _, rules := range []bool{false, true} {
		for _, size := range sizes {
			s, _, raw := workload(b, size.size, rules)
			name := size.name
			if rules {
				name += "-rules"
			}
			b.Run(name, func(b *testing.B) {
				frame := cel.NewFrame(b.Context())
				defer frame.Release()
				var out []byte
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					out = admit(b, s, frame, raw, out)
				}
			})
		}
	}
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

// BenchmarkKubernetes is the same way through Kubernetes' libraries.
func BenchmarkKubernetes(b *testing.B) {
	for _, rules := range []bool{false, true} {
		for _, size := range sizes[:3] {
			_, props, raw := workload(b, size.size, rules)
			judge, err := schematest.NewJudge(props)
			if err != nil {
				b.Fatal(err)
			}
			judge.Namespaced = true
			name := size.name
			if rules {
				name += "-rules"
			}
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					judged(b, judge, raw)
				}
			})
		}
	}
}

// BenchmarkCompileCRD is what loading a definition of the suites costs.
func BenchmarkCompileCRD(b *testing.B) {
	for _, name := range []string{"httproutes", "gateways", "referencegrants"} {
		crd := definitions(b, suites(b)+"/data/gateway-api/config/crd/standard/gateway.networking.k8s.io_"+name+".yaml")[0]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, errs := schema.CompileCRD(crd); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkGatewayAPI is the way from bytes to bytes for a recorded object of a definition in wide use, here and through
// Kubernetes' libraries.
func BenchmarkGatewayAPI(b *testing.B) {
	dir := suites(b)
	crd := definitions(b, dir+"/data/gateway-api/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml")[0]
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	judge, err := schematest.NewJudge(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		b.Fatal(err)
	}
	judge.Namespaced = true
	var raw []byte
	for _, c := range readCases(b, dir+"/cases/gateway-api-examples.jsonl") {
		if c.Expect.Code == 201 && strings.HasSuffix(c.Request.Path, "/v1/namespaces/default/httproutes") && len(c.Request.Body) > len(raw) {
			raw = c.Request.Body
		}
	}
	raw = bytes.Replace(raw, []byte(`"metadata": {`), []byte(`"metadata": {"namespace": "default", `), 1)
	b.Run("here", func(b *testing.B) {
		frame := cel.NewFrame(b.Context())
		defer frame.Release()
		var out []byte
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			out = admit(b, versions[0].Schema, frame, raw, out)
		}
	})
	b.Run("Kubernetes", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			judged(b, judge, raw)
		}
	})
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

func judged(b *testing.B, judge *schematest.Judge, raw []byte) {
	obj, err := schematest.Decode(raw)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := judge.Prune(obj); err != nil {
		b.Fatal(err)
	}
	judge.Default(obj)
	if failures, err := judge.Validate(obj, nil); err != nil || len(failures) > 0 {
		b.Fatal(failures, err)
	}
	schematest.Encode(obj)
}
