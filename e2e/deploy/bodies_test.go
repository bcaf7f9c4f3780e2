package deploy

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// judged are policies about ConfigMaps, Secrets and Widgets: one that refuses, and, of ConfigMaps, one that changes.
const judged = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: judged}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["", e2e.example.com], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE], resources: [configmaps, secrets, widgets]}]
  validations:
  - {expression: "(object == null ? oldObject : object).metadata.?labels.?a != optional.of('bad')", message: "may not be bad"}
  - {expression: "request.operation != 'DELETE' || request.options.?propagationPolicy != optional.of('Orphan')", message: "may not orphan"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: judged}
spec: {policyName: judged, validationActions: [Deny]}
`

const changed = `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: changed}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'seen': 'true'}}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: changed}
spec: {policyName: changed}
`

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.e2e.example.com}
spec:
  group: e2e.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// A languages is a transport that counts in which types requests and their answers are written.
type languages struct {
	mu          sync.Mutex
	sent, given map[string]int
}

func (l *languages) wrap(next http.RoundTripper) http.RoundTripper { return &spoken{l, next} }

type spoken struct {
	*languages
	next http.RoundTripper
}

func (s *spoken) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := s.next.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Body != nil {
		s.sent[r.Header.Get("Content-Type")]++
	}
	if err == nil {
		s.given[a.Header.Get("Content-Type")]++
	}
	return a, err
}

func rootOf(url string, l *languages) *rest.Config {
	c := &rest.Config{Host: url, BearerToken: "of-root", QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{Insecure: strings.HasPrefix(url, "https:")}}
	if l != nil {
		c.WrapTransport = l.wrap
	}
	return c
}

// client-go's dynamic client, when it prefers CBOR, notices nothing but the policies: directly, through a gateway
// without policies about what it sends, and with some (RES-7).
func TestCBORClients(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	featurestesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
	c := startCluster(t, "--feature-gates=CBORServingAndStorage=true")
	c.must(t, widgetDefinition, "create", "-f", "-")
	c.must(t, "", "wait", "--for=condition=Established", "crd/widgets.e2e.example.com")
	for name, url := range map[string]string{
		"direct": c.url, "free": c.startBefore(t, strings.Replace(judged, "[configmaps, secrets, widgets]", "[pods]",
			1)), "judged": c.startBefore(t, judged), "described": c.startBefore(t, judged+"---"+widgetDefinition),
		"changed": c.startBefore(t, judged+changed),
	} {
		l := &languages{sent: map[string]int{}, given: map[string]int{}}
		client, err := dynamic.NewForConfig(rootOf(url, l))
		if err != nil {
			t.Fatal(err)
		}
		isJudged := name != "direct" && name != "free"
		for _, of := range []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"},
			{Version: "v1", Resource: "secrets"}, {Group: "e2e.example.com", Version: "v1", Resource: "widgets"}} {
			t.Run(name+"/"+of.Resource, func(t *testing.T) {
				live(t, client.Resource(of).Namespace("default"), of, name, isJudged, name == "changed" &&
					of.Resource == "configmaps")
			})
		}
		if l.sent["application/cbor"] == 0 || l.sent["application/apply-patch+cbor"] == 0 || l.sent["application/json"]+
			l.sent["application/apply-patch+yaml"] > 0 {
			t.Errorf("%s: the client sent %v", name, l.sent)
		}
		if l.given["application/cbor"] == 0 || l.given["application/cbor-seq"] == 0 {
			t.Errorf("%s: the client got %v", name, l.given)
		}
	}
}

// live leads an object through its life.
func live(t *testing.T, client dynamic.ResourceInterface, of schema.GroupVersionResource, name string, isJudged,
	isChanged bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "widgets": "Widget"}[of.Resource]
	o := &unstructured.Unstructured{
		Object: map[string]any{"metadata": map[string]any{"name": "of-" + name,
			"labels": map[string]any{"a": "<é>"[1:3]}}}}
	o.SetLabels(map[string]string{"a": "b"})
	o.SetAnnotations(map[string]string{"of": "<é\u2028>"})
	o.SetGroupVersionKind(of.GroupVersion().WithKind(kind))
	field := []string{"data", "x"}
	var value any = "y"
	switch kind {
	case "Secret":
		value = "AP8="
	case "Widget":
		field, value = []string{"spec", "x"}, []any{int64(9007199254740993), 1.0, 0.1, nil, "z", map[string]any{}}
	}
	set := func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, field...); err != nil {
			t.Fatal(err)
		}
	}
	set(o)
	watched, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	bad := o.DeepCopy()
	bad.SetLabels(map[string]string{"a": "bad"})
	bad.SetName("bad-" + name)
	if _, err := client.Create(ctx, bad, metav1.CreateOptions{}); apierrors.IsInvalid(err) != isJudged || !isJudged &&
		err != nil {
		t.Errorf("what a policy refuses is answered %v", err)
	} else if !isJudged {
		if err := client.Delete(ctx, bad.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	made, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: "m"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(how string, got *unstructured.Unstructured, label string) {
		t.Helper()
		found, _, err := unstructured.NestedFieldNoCopy(got.Object, field...)
		if err != nil || fmt.Sprintf("%#v", found) != fmt.Sprintf("%#v", value) || got.GetLabels()["a"] != label ||
			got.GetAnnotations()["of"] != "<é\u2028>" ||
			isChanged != (got.GetAnnotations()["seen"] == "true") {
			t.Errorf("%s: got %#v, %v, %v, %v", how, found, err, got.GetLabels(), got.GetAnnotations())
		}
	}
	check("created", made, "b")
	made.SetLabels(map[string]string{"a": "c"})
	if made, err = client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	check("updated", made, "c")
	made.SetLabels(map[string]string{"a": "bad"})
	if isJudged {
		if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("an update that a policy refuses is answered %v", err)
		}
		if _, err := client.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"bad"}}}`),
			metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("a patch that a policy refuses is answered %v", err)
		}
	}
	if made, err = client.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"d"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	check("patched", made, "d")
	asked := &unstructured.Unstructured{
		Object: map[string]any{"metadata": map[string]any{"name": o.GetName(), "labels": map[string]any{"a": "e"}}}}
	asked.SetGroupVersionKind(o.GroupVersionKind())
	if made, err = client.Apply(ctx, o.GetName(), asked,
		metav1.ApplyOptions{FieldManager: "applier", Force: true}); err != nil {
		t.Fatal(err)
	}
	check("applied", made, "e")
	if isJudged {
		asked.SetLabels(map[string]string{"a": "bad"})
		if _, err := client.Apply(ctx, o.GetName(), asked,
			metav1.ApplyOptions{FieldManager: "applier", Force: true}); !apierrors.IsInvalid(err) {
			t.Errorf("an apply that a policy refuses is answered %v", err)
		}
		orphan := metav1.DeletePropagationOrphan
		if err := client.Delete(ctx, o.GetName(),
			metav1.DeleteOptions{PropagationPolicy: &orphan}); !apierrors.IsInvalid(err) {
			t.Errorf("a deletion that a policy refuses is answered %v", err)
		}
	}
	if made, err = client.Get(ctx, o.GetName(), metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	check("read", made, "e")
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "a=e"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("listed %v, %v", list, err)
	}
	check("listed", &list.Items[0], "e")
	background := metav1.DeletePropagationBackground
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background},
		metav1.ListOptions{LabelSelector: "a=e"}); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(ctx, o.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted is answered %v", err)
	}
	for event := range watched.ResultChan() {
		got := event.Object.(*unstructured.Unstructured)
		if got.GetName() == o.GetName() && event.Type == "ADDED" {
			check("watched", got, "b")
		}
		if got.GetName() == o.GetName() && event.Type == "DELETED" {
			return
		}
	}
	t.Error("the watch ended before the deletion")
}

// withField is an object in protobuf with a field that no version knows.
func withField(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(b.Bytes()[4:]); err != nil {
		t.Fatal(err)
	}
	envelope.Raw = append(binary.AppendUvarint(envelope.Raw, 99<<3|2), 3, 'n', 'e', 'w')
	raw, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), raw...)
}

// A client of a later Kubernetes sends protobuf with fields that the gateway does not know. Objects that no policy
// matches pass, what policies validate is judged by what the server makes of it, and what they change is refused with
// what to do (RES-7).
func TestClientsOfLaterKubernetes(t *testing.T) {
	c := commonCluster(t)
	url := c.startBefore(t, judged+changed)
	direct, err := kubernetes.NewForConfig(rootOf(c.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path string, o runtime.Object, want int, answer string) {
		t.Helper()
		code, text := ask(t, "of-root", method, url+path, runtime.ContentTypeProtobuf, string(withField(t, o)))
		if code != want || !strings.Contains(text, answer) {
			t.Errorf("%s %s: answered %d %s, want %d %s", method, path, code, text, want, answer)
		}
	}
	c.namespace(t, "later")
	const namespace = "/api/v1/namespaces/later/"
	secret := func(label string) *corev1.Secret {
		return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: "s1", Labels: map[string]string{"a": label}},
			Data:       map[string][]byte{"k": {0, 255}}}
	}
	send("POST", namespace+"services", &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "s1"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, 201, "")
	send("POST", namespace+"secrets", secret("bad"), 422, "may not be bad")
	send("POST", namespace+"secrets", secret("b"), 201, "")
	send("POST", namespace+"secrets", secret("b"), 409, "already exists")
	send("POST", namespace+"configmaps",
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, 400,
		"it must not have a field 99, which this version of the gateway does not know. Policies or schemas are about the object: the body must be JSON")
	stored, err := direct.CoreV1().Secrets("later").Get(context.Background(), "s1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored.Data["k"], []byte{0, 255}) || stored.Labels["a"] != "b" {
		t.Errorf("stored was %v", stored)
	}
	stored.APIVersion, stored.Kind, stored.Labels = "v1", "Secret", map[string]string{"a": "bad"}
	send("PUT", namespace+"secrets/s1", stored, 422, "may not be bad")
	stored.Labels["a"] = "c"
	send("PUT", namespace+"secrets/s1", stored, 200, "")
	send("PUT", namespace+"secrets/s1", stored, 409, "the object has been modified")
	stored.ResourceVersion = ""
	send("PUT", namespace+"secrets/s1", stored, 400,
		"the body must name the `metadata.resourceVersion` that it replaces")
}

// A client that prefers CBOR falls back on JSON before a server that does not speak it, as it does without the gateway.
func TestCBORClientsFallBack(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	featurestesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
	c := commonCluster(t)
	for name, url := range map[string]string{"direct": c.url,
		"free":   c.startBefore(t, strings.Replace(judged, "[configmaps, secrets, widgets]", "[pods]", 1)),
		"judged": c.startBefore(t, judged)} {
		l := &languages{sent: map[string]int{}, given: map[string]int{}}
		client, err := dynamic.NewForConfig(rootOf(url, l))
		if err != nil {
			t.Fatal(err)
		}
		of := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": "of-" + name}}}
		for range 2 { // the first one is lost, as client-go says
			if _, err = client.Resource(of).Namespace("default").Create(t.Context(), o,
				metav1.CreateOptions{}); err == nil {
				break
			}
			if !apierrors.IsUnsupportedMediaType(err) {
				t.Errorf("%s: a client that speaks another language is answered %v", name, err)
			}
		}
		if err != nil || l.sent["application/cbor"] != 1 || l.sent["application/json"] != 1 {
			t.Errorf("%s: the client sent %v: %v", name, l.sent, err)
		}
	}
}
