package params

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/resource"
)

func lookup() *admissiontest.Lookup {
	l := &admissiontest.Lookup{}
	for _, o := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a, labels: {x: '1'}}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: team-a, labels: {x: '1'}}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shared, labels: {x: '2'}}}",
		"{apiVersion: example.com/v1, kind: Limit, metadata: {name: one, labels: {x: '1'}}}",
	} {
		l.Add(o)
	}
	return l
}

// TestFind: as kube-apiserver's CollectParams, with its words.
func TestFind(t *testing.T) {
	configMap := &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	limit := &admissionv1.ParamKind{APIVersion: "example.com/v1", Kind: "Limit"}
	unknown := &admissionv1.ParamKind{APIVersion: "example.com/v1", Kind: "Unknown"}
	allow, deny := new(admissionv1.AllowAction), new(admissionv1.DenyAction)
	all := &metav1.LabelSelector{}
	one := &metav1.LabelSelector{MatchLabels: map[string]string{"x": "1"}}
	none := &metav1.LabelSelector{MatchLabels: map[string]string{"x": "3"}}
	const noParams = "no params found for policy binding with `Deny` parameterNotFoundAction"
	for _, c := range []struct {
		kind      *admissionv1.ParamKind
		ref       *admissionv1.ParamRef
		namespace string
		want      string
	}{
		{nil, nil, "team-a", "null"},
		{nil, &admissionv1.ParamRef{Name: "a", ParameterNotFoundAction: deny}, "team-a", "null"},
		{configMap, nil, "team-a", "null"},
		{configMap, &admissionv1.ParamRef{Name: "a", ParameterNotFoundAction: deny}, "team-a", "team-a/a"},
		{configMap, &admissionv1.ParamRef{Name: "a", Namespace: "shared", ParameterNotFoundAction: deny}, "team-a",
			"shared/a"},
		{configMap, &admissionv1.ParamRef{Name: "a", Namespace: "shared", ParameterNotFoundAction: deny}, "",
			"shared/a"},
		{configMap, &admissionv1.ParamRef{Name: "a", ParameterNotFoundAction: allow}, "", "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"},
		{configMap, &admissionv1.ParamRef{Name: "c", ParameterNotFoundAction: allow}, "team-a", ""},
		{configMap, &admissionv1.ParamRef{Name: "c", ParameterNotFoundAction: deny}, "team-a", noParams},
		{configMap, &admissionv1.ParamRef{Selector: all, ParameterNotFoundAction: deny}, "team-a", "team-a/a team-a/b"},
		{configMap, &admissionv1.ParamRef{Selector: one, ParameterNotFoundAction: deny}, "team-a", "team-a/a team-a/b"},
		{configMap, &admissionv1.ParamRef{Selector: one, Namespace: "shared", ParameterNotFoundAction: allow}, "team-a",
			""},
		{configMap, &admissionv1.ParamRef{Selector: none, ParameterNotFoundAction: deny}, "team-a", noParams},
		{limit, &admissionv1.ParamRef{Name: "one", ParameterNotFoundAction: deny}, "", "/one"},
		{limit, &admissionv1.ParamRef{Name: "one", ParameterNotFoundAction: deny}, "team-a", "/one"},
		{limit, &admissionv1.ParamRef{Selector: all, ParameterNotFoundAction: deny}, "team-a", "/one"},
		{limit, &admissionv1.ParamRef{Name: "one", Namespace: "team-a", ParameterNotFoundAction: deny}, "team-a",
			"paramRef.namespace must not be provided for a cluster-scoped `paramKind`"},
		{unknown, &admissionv1.ParamRef{Name: "one", ParameterNotFoundAction: allow}, "team-a",
			"the paramKind 'Unknown' of 'example.com/v1' is not known: no object is of it"},
	} {
		ref, errs := Compile(c.ref, field.NewPath("spec"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		kind, _ := Kind(c.kind)
		found, err := ref.Find(context.Background(), kind,
			&admission.Attributes{Info: &resource.Info{Namespace: c.namespace}, Lookup: lookup()})
		var got []string
		for _, n := range found {
			if !n.Valid() {
				got = append(got, "null")
				continue
			}
			metadata, _ := n.Get("metadata")
			namespace, _ := metadata.Get("namespace")
			name, _ := metadata.Get("name")
			got = append(got, namespace.Str()+"/"+name.Str())
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%v, %v in '%s': %s\nwant %s", c.kind, c.ref, c.namespace, text, c.want)
		}
	}
}

// TestFindFails: what cannot be read is an error, never taken for missing.
func TestFindFails(t *testing.T) {
	kind, _ := Kind(&admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"})
	for _, r := range []*admissionv1.ParamRef{
		{Name: "a", ParameterNotFoundAction: new(admissionv1.AllowAction)},
		{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: new(admissionv1.AllowAction)},
	} {
		ref, _ := Compile(r, nil)
		broken := lookup()
		broken.Err = errors.New("the backend cannot be reached")
		for _, l := range []admission.Lookup{broken, nil} {
			if found, err := ref.Find(context.Background(), kind,
				&admission.Attributes{Info: &resource.Info{Namespace: "team-a"}, Lookup: l}); err == nil ||
				len(found) > 0 {
				t.Errorf("%v: %v, %v", r, found, err)
			}
		}
	}
}

// TestValidate: what kube-apiserver refuses.
func TestValidate(t *testing.T) {
	deny := new(admissionv1.DenyAction)
	for _, c := range []struct {
		ref  admissionv1.ParamRef
		want string
	}{
		{admissionv1.ParamRef{Name: "a/b", ParameterNotFoundAction: deny},
			"[spec.name: Invalid value: \"a/b\": may not contain '/']"},
		{admissionv1.ParamRef{Name: "a", Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: deny},
			"[spec.name: Forbidden: name and selector are mutually exclusive spec.selector: Forbidden: name and selector are mutually exclusive]"},
		{admissionv1.ParamRef{ParameterNotFoundAction: deny},
			"[spec: Required value: one of name or selector must be specified]"},
		{admissionv1.ParamRef{Name: "a"}, "[spec.parameterNotFoundAction: Required value]"},
		{admissionv1.ParamRef{Name: "a",
			ParameterNotFoundAction: new(admissionv1.ParameterNotFoundActionType("Maybe"))},
			`[spec.parameterNotFoundAction: Unsupported value: "Maybe": supported values: "Deny", "Allow"]`},
		{
			admissionv1.ParamRef{Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
				ParameterNotFoundAction: deny},
			`[spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator]`},
	} {
		ref, errs := Compile(&c.ref, field.NewPath("spec"))
		if got := fmt.Sprint(errs); got != c.want || ref != nil {
			t.Errorf("%v: %s\nwant %s", c.ref, got, c.want)
		}
	}
	for _, c := range []struct{ version, kind, want string }{
		{"v1", "ConfigMap", "[]"},
		{"", "ConfigMap", "[spec.apiVersion: Required value]"},
		{"a/b/c", "ConfigMap", `[spec.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c]`},
		{"v1", "", "[spec.kind: Required value]"},
	} {
		if got := fmt.Sprint(ValidateKind(&admissionv1.ParamKind{APIVersion: c.version, Kind: c.kind},
			field.NewPath("spec"))); got != c.want {
			t.Errorf("%s %s: %s\nwant %s", c.version, c.kind, got, c.want)
		}
	}
}
