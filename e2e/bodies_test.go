package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// denying is a file with a policy, from its metadata on, and a binding that denies what it finds.
func denying(t *testing.T, policy string) string {
	t.Helper()
	name, _, _ := strings.Cut(strings.SplitAfterN(policy, "metadata: {name: ", 2)[1], "}")
	file := filepath.Join(t.TempDir(), name+".yaml")
	text := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n" + policy +
		"\n---\napiVersion: admissionregistration.k8s.io/v1\n" +
		"kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\nspec: {policyName: " + name +
		", validationActions: [Deny]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const aboutDefinitions = `
metadata: {name: definitions}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apiextensions.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [customresourcedefinitions]}]
  validations:
`

// definition has in it what protobuf and JSON write differently.
func definition(plural string) *apiextensionsv1.CustomResourceDefinition {
	preserve, most := true, 2.5
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".bodies.example.com",
			Annotations: map[string]string{"of": "<a&b> é \U0001F600"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "bodies.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "K" + plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"size": {Type: "number", Maximum: &most, Default: &apiextensionsv1.JSON{Raw: []byte("1.5")},
							Enum: []apiextensionsv1.JSON{{Raw: []byte("1.5")}, {Raw: []byte("2")}}},
						"free": {Type: "object", XPreserveUnknownFields: &preserve},
						"list": {Type: "array",
							Items: &apiextensionsv1.JSONSchemaPropsOrArray{
								Schema: &apiextensionsv1.JSONSchemaProps{XIntOrString: true}}},
						"map": {Type: "object",
							AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true,
								Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
					},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

func protobufClient(t *testing.T, url string) clientset.Interface {
	t.Helper()
	c, err := clientset.NewForConfig(&rest.Config{Host: url, QPS: 1000, Burst: 1000,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// client-go's clients of Kubernetes' own kinds, which speak protobuf, notice nothing but the policies (RES-7).
func TestProtobufClients(t *testing.T) {
	policy := denying(t, aboutDefinitions+`  - {expression: "request.operation == 'DELETE' || object.spec.versions.all(v, v.served)", message: "every version must be served"}`)
	through := protobufClient(t, startGateway(t, policy).url).ApiextensionsV1().CustomResourceDefinitions()
	direct := protobufClient(t, server.HTTP).ApiextensionsV1().CustomResourceDefinitions()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	stored, err := through.Create(ctx, definition("doors"), metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := direct.Create(ctx, definition("gates"), metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(stored.Spec.Versions, want.Spec.Versions) ||
		!equality.Semantic.DeepEqual(stored.Annotations, want.Annotations) {
		t.Errorf("through the gateway:\n%+v\nfrom the server:\n%+v", stored.Spec, want.Spec)
	}
	owned := func(d *apiextensionsv1.CustomResourceDefinition) string {
		b, err := json.Marshal(d.ManagedFields[0].FieldsV1)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, want := owned(stored), owned(want); got != want {
		t.Errorf("through the gateway the client owns\n%s\nfrom the server\n%s", got, want)
	}
	refused := definition("windows")
	refused.Spec.Versions = append(refused.Spec.Versions, *refused.Spec.Versions[0].DeepCopy())
	refused.Spec.Versions[1].Name, refused.Spec.Versions[1].Served, refused.Spec.Versions[1].Storage = "v2", false,
		false
	if _, err := through.Create(ctx, refused, metav1.CreateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "every version must be served") {
		t.Errorf("what the policy refuses is answered with %v", err)
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := through.Get(ctx, stored.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Labels = map[string]string{"changed": "true"}
		d, err = through.Update(ctx, d, metav1.UpdateOptions{})
		if err == nil && d.Labels["changed"] != "true" {
			t.Errorf("the update came to %v", d.Labels)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"doors", "gates"} {
		background := metav1.DeletePropagationBackground
		if err := through.Delete(ctx, name+".bodies.example.com",
			metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Error(err)
		}
	}
}

// Malformed protobuf that a policy matches is refused with a message, where the server itself ends the connection.
func TestProtobufGarbage(t *testing.T) {
	about := strings.Replace(strings.ReplaceAll(aboutDefinitions, "[apiextensions.k8s.io]", "['*']"),
		"[customresourcedefinitions]", "[customresourcedefinitions, widgets]", 1)
	through := startGateway(t, denying(t, about+`  - {expression: "true"}`))
	for _, body := range []string{"k8s\x00", "k8s\x00\xff", "k8s\x00" + strings.Repeat("\x0a\x00", 1000), "{}"} {
		a := ask(t, http.MethodPost, through.url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			runtime.ContentTypeProtobuf, body)
		if a.code != http.StatusBadRequest || !strings.Contains(a.body, `"kind":"Status"`) {
			t.Errorf("%q: answered %d %s", body, a.code, a.body)
		}
	}
	d := ask(t, http.MethodPost, server.HTTP+widgets, "application/xml", "<a/>")
	if a := ask(t, http.MethodPost, through.url+widgets, "application/xml", "<a/>"); a.code != d.code ||
		strings.TrimSpace(a.body) != strings.TrimSpace(d.body) {
		t.Errorf("another type: answered %d %s, by the server %d %s", a.code, a.body, d.code, d.body)
	}
	if a := ask(t, http.MethodPost, through.url+widgets, runtime.ContentTypeProtobuf,
		"k8s\x00"); a.code != http.StatusUnsupportedMediaType {
		t.Errorf("a custom resource in protobuf: answered %d %s", a.code, a.body)
	}
}

// YAML is read as the server reads it, and is judged on its way (RES-7).
func TestYAMLBodies(t *testing.T) {
	through := startGateway(t, "testdata/policies.yaml")
	const body = "apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: NAME}\nspec:\n  replicas: 2\n"
	get := func(base, name string) string {
		a := ask(t, http.MethodPost, base+widgets, "application/yaml", strings.ReplaceAll(body, "NAME", name), "Accept",
			"application/yaml")
		return masked(strings.ReplaceAll(a.body, name, "NAME"))
	}
	if got, want := get(through.url, "by-yaml"), get(server.HTTP, "by-yaml-direct"); got != want {
		t.Errorf("through the gateway:\n%s\nfrom the server:\n%s", got, want)
	}
	if a := ask(t, http.MethodPost, through.url+widgets, "application/yaml",
		strings.Replace(body, "replicas: 2", "replicas: 600", 1)); a.code != http.StatusUnprocessableEntity {
		t.Errorf("what a policy refuses is answered %d %s", a.code, a.body)
	}
}

// With admitOn DryRunResult policies see what the server makes of an object, here the strategy of conversion that
// nobody named, and the server stores it once.
func TestAdmitOnDryRunResult(t *testing.T) {
	policy := denying(t, aboutDefinitions+`  - {expression: "request.operation == 'DELETE' || object.spec.?conversion.strategy == optional.of('None')", message: "must not be converted"}`)
	args := []string{"--upstream", server.HTTP, "--dialect", "Kubernetes"}
	onRequest := startGatewayWith(t, "", args, policy)
	onResult := startGatewayWith(t, "admitOn: DryRunResult\n", args, policy)
	body, err := json.Marshal(definition("roofs"))
	if err != nil {
		t.Fatal(err)
	}
	body = bytes.Replace(body, []byte(`{"metadata"`), []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata"`), 1)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if a := ask(t, http.MethodPost, onRequest.url+definitions, "application/json",
		string(body)); a.code != http.StatusUnprocessableEntity {
		t.Errorf("judged by the request, it is answered %d %s", a.code, a.body)
	}
	if a := ask(t, http.MethodPost, onResult.url+definitions, "application/json",
		string(body)); a.code != http.StatusCreated {
		t.Errorf("judged by the result, it is answered %d %s", a.code, a.body)
	}
	if a := ask(t, http.MethodPost, onResult.url+definitions, "application/json",
		string(body)); a.code != http.StatusConflict {
		t.Errorf("what exists is answered %d %s", a.code, a.body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	through := protobufClient(t, onResult.url).ApiextensionsV1().CustomResourceDefinitions()
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := through.Get(ctx, "roofs.bodies.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Labels, d.Spec.Conversion = map[string]string{"changed": "true"}, nil
		_, err = through.Update(ctx, d, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Error(err)
	}
	stale := definition("roofs")
	stale.ResourceVersion = "1"
	if _, err := through.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale update is answered with %v", err)
	}
	if err := through.Delete(ctx, "roofs.bodies.example.com", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
