package schema_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"

	"github.com/admission-gateway/gateway/internal/merge/mergetest"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// published is the type by which kube-apiserver merges objects of a schema: the types of the OpenAPI document that it
// publishes.
func published(t *testing.T, props *apiextensionsv1.JSONSchemaProps) managedfields.TypeConverter {
	t.Helper()
	document, err := builder.BuildOpenAPIV3(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget",
				ListKind: "WidgetList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
			}},
		},
	}, "v1", builder.Options{V2: false})
	if err != nil {
		t.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(document.Components.Schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

// TestMergesLikeKubernetes: apply configurations of random objects of random schemas are merged as kube-apiserver
// merges them, and refused where it refuses them.
func TestMergesLikeKubernetes(t *testing.T) {
	merged, refused := 0, 0
	for seed := range uint64(700) {
		g := schematest.New(seed)
		props := g.Schema()
		for name, inner := range props.Properties {
			props.Properties[name] = withAtomics(g, inner)
		}
		s, _, errs := schema.Compile(props, schema.Options{Resource: true})
		if len(errs) > 0 {
			continue
		}
		converter, typ := published(t, props), s.MergeType()
		values := mergetest.Generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		for _, sloppy := range []int{1000, 1000, 60} {
			live, configuration := decoded(t, g.Object(props, sloppy)), decoded(t, g.Object(props, sloppy))
			configuration = values.Applicable(typ, configuration).(map[string]any)
			for _, o := range []map[string]any{live, configuration} {
				o["apiVersion"], o["kind"] = "example.com/v1", "Widget"
			}
			liveText, configurationText := schematest.Encode(live), schematest.Encode(configuration)
			d, c := parsed(t, string(liveText)), parsed(t, string(configurationText))
			_, err := typ.Apply(d, c.Root())
			got := d.AppendTo(nil)
			want, wantErr := patch.ApplyStructuredMergeDiff(converter, &unstructured.Unstructured{Object: live},
				&unstructured.Unstructured{Object: configuration})
			switch {
			case (err == nil) != (wantErr == nil):
				t.Fatalf("seed %d: one of them fails:\n%s\nobject %s\nconfiguration %s\ngot  %v\nwant %v", seed,
					schematest.Text(props), liveText, configurationText, err, wantErr)
			case err != nil:
				refused++
				if first, _, _ := strings.Cut(err.Error(), ":"); !strings.HasPrefix(wantErr.Error(), first) {
					t.Fatalf("seed %d: they fail for different reasons:\ngot  %v\nwant %v", seed, err, wantErr)
				}
			case !reflect.DeepEqual(decoded(t, got),
				decoded(t, schematest.Encode(want.(*unstructured.Unstructured).Object))):
				t.Fatalf("seed %d: they differ:\n%s\nobject %s\nconfiguration %s\ngot  %s\nwant %s", seed,
					schematest.Text(props), liveText, configurationText, got,
					schematest.Encode(want.(*unstructured.Unstructured).Object))
			default:
				merged++
			}
		}
	}
	if merged < 200 || refused < 50 {
		t.Errorf("%d merged and %d refused", merged, refused)
	}
}

// withAtomics makes some maps of a schema single values.
func withAtomics(g *schematest.Generator, s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if s.Type == "object" && !s.XEmbeddedResource && g.IntN(6) == 0 {
		atomic := "atomic"
		s.XMapType = &atomic
	}
	for name, inner := range s.Properties {
		s.Properties[name] = withAtomics(g, inner)
	}
	if s.Items != nil && s.Items.Schema != nil {
		inner := withAtomics(g, *s.Items.Schema)
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &inner}
	}
	return s
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	object, err := schematest.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}
