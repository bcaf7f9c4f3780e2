package schema_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// TestNumbersAgreeWithKubernetes has numbers at the edges of what their types and formats hold (VAL-5): they are right
// or wrong as in Kubernetes, and never rounded.
func TestNumbersAgreeWithKubernetes(t *testing.T) {
	types := []string{
		`{type: integer}`, `{type: integer, format: int32}`, `{type: integer, format: int64}`,
		`{type: integer, minimum: 9007199254740993}`,
		`{type: integer, maximum: 9007199254740992}`, `{type: integer, multipleOf: 2}`,
		`{type: integer, enum: [9007199254740993, 2]}`,
		`{type: number}`, `{type: number, format: float}`, `{type: number, format: double}`,
		`{type: number, enum: [0.1, 1e300]}`, `{x-kubernetes-int-or-string: true}`,
	}
	numbers := []string{
		"0", "-0", "-0.0", "1.0", "1.5", "1e3", "1E3", "0.1", "0.10", "1e-7", "2147483647", "2147483648", "-2147483648",
		"-2147483649", "2147483648.0", "4294967296",
		"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740992", "9007199254740991.0",
		"9007199254740992.0", "9007199254740993.0",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "18446744073709551616", "1e18", "1e19",
		"3.4028234663852886e38", "3.5e38", "-3.5e38", "1e300", "1.7976931348623157e308", "5e-324", "1e-400",
		"12345678901234567890.5",
	}
	for _, typ := range types {
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := yaml.Unmarshal([]byte(`{type: object, properties: {spec: {type: object, properties: {one: `+typ+
			`, l: {type: array, items: `+typ+`}}}}}`), props); err != nil {
			t.Fatal(err)
		}
		s, _, errs := schema.Compile(props, schema.Options{Resource: true})
		if len(errs) > 0 {
			t.Fatal(typ, errs)
		}
		kube, err := schematest.NewKubernetes(props)
		if err != nil {
			t.Fatal(err)
		}
		c := comparison{t: t, props: props, schema: s, kube: kube, frame: cel.NewFrame(t.Context())}
		for _, n := range numbers {
			object := []byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"spec":{"one":` + n + `,"l":[1,` +
				n + `]}}`)
			c.object(object, nil)
			d, _, refusal := c.ours(object)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if got := string(d.AppendTo(nil)); got != string(object) {
				t.Errorf("%s became %s", object, got)
			}
			d.Release()
		}
		c.frame.Release()
	}
}
