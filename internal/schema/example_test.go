package schema_test

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// A schema prunes what it does not know; after the defaults are set, it reports everything that is
// wrong with its path.
func Example() {
	atMost := 10.0
	s, _, errs := schema.Compile(&apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"name"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name":     {Type: "string"},
			"replicas": {Type: "integer", Maximum: &atMost},
			"color":    {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"green"`)}},
		},
	}, schema.Options{})
	if errs != nil {
		fmt.Println(errs)
		return
	}
	d, err := document.Parse([]byte(`{"replicas": 12, "colour": "red"}`), document.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Release()
	var unknown schema.Unknown
	if err := s.Prune(d, &unknown); err != nil {
		fmt.Println(err)
		return
	}
	defaults.Apply(d, s)
	fmt.Println(unknown.Messages())
	fmt.Println(string(d.AppendTo(nil)))
	result := s.Validate(nil, d.Root(), document.Node{})
	for _, err := range result.Errors {
		fmt.Println(err)
	}
	// Output:
	// [unknown field "colour"]
	// {"replicas": 12, "color":"green"}
	// name: Required value
	// replicas: Invalid value: 12: must be less than or equal to 10
}
