package vap

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission/admissiontest"
)

// librarySets are the folders of the library whose policies are all for Kubernetes, and read nothing beside the request
// but its namespace and a ConfigMap.
var librarySets = []string{"pod-security", "workloads", "hygiene", "teams", "immutable"}

// A libraryPolicy is a policy of the library with its binding, and the cases of the test beside it.
type libraryPolicy struct {
	name    string
	policy  *admissionv1.ValidatingAdmissionPolicy
	binding *admissionv1.ValidatingAdmissionPolicyBinding
	cases   []libraryCase
}

type libraryCase struct {
	Name             string
	Object, Existing json.RawMessage
	Request          struct{ Path string }
	Expect           struct{ Decision string }
}

// library returns the policies of the sets.
func library(t *testing.T) (all []libraryPolicy) {
	t.Helper()
	root := filepath.Join("..", "..", "policies", "library")
	for _, set := range librarySets {
		err := filepath.WalkDir(filepath.Join(root, set), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.yaml") {
				return err
			}
			p := libraryPolicy{name: strings.TrimPrefix(path, root+"/")}
			var test struct{ Spec struct{ Cases []libraryCase } }
			readObjects(t, strings.TrimSuffix(path, ".yaml")+"_test.yaml", func(string) any { return &test })
			p.cases = test.Spec.Cases
			readObjects(t, path, func(kind string) any {
				switch kind {
				case "ValidatingAdmissionPolicy":
					p.policy = &admissionv1.ValidatingAdmissionPolicy{}
					return p.policy
				case "ValidatingAdmissionPolicyBinding":
					p.binding = &admissionv1.ValidatingAdmissionPolicyBinding{}
					return p.binding
				}
				return nil
			})
			stored(p.policy.Spec.MatchConstraints)
			all = append(all, p)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// readObjects reads the objects of a file into what is made for their kinds, strictly if that is a type of Kubernetes.
func readObjects(t *testing.T, path string, of func(kind string) any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(data), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			t.Fatal(path, err)
		}
		into := of(kind.Kind)
		if into == nil {
			continue
		}
		unmarshal := yaml.UnmarshalStrict
		if kind.Kind == "PolicyTest" {
			unmarshal = yaml.Unmarshal
		}
		if err := unmarshal([]byte(text), into); err != nil {
			t.Fatal(path, err)
		}
	}
}

// request is the write of a case.
func (c *libraryCase) request(t *testing.T) practiceRequest {
	t.Helper()
	object := c.Object
	r := practiceRequest{operation: "CREATE", path: c.Request.Path, object: string(c.Object), old: string(c.Existing)}
	switch {
	case object == nil:
		r.operation, object = "DELETE", c.Existing
	case c.Existing != nil:
		r.operation = "UPDATE"
	}
	if r.path != "" {
		return r
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatal(err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	r.path = "/apis/" + o.APIVersion
	if plural.Group == "" {
		r.path = "/api/" + o.APIVersion
	}
	if o.Namespace != "" {
		r.path += "/namespaces/" + o.Namespace
	}
	r.path += "/" + plural.Resource
	if r.operation != "CREATE" {
		r.path += "/" + o.Name
	}
	return r
}

// TestLibrary: the policies of the library run unchanged in kube-apiserver: its own plugin decides the cases of their
// tests as the tests expect, and in the same words as the gateway.
func TestLibrary(t *testing.T) {
	lookup := &admissiontest.Lookup{Authz: reviewer{}}
	for _, object := range practiceObjects {
		lookup.Add(object)
	}
	cases := 0
	for _, p := range library(t) {
		t.Run(p.name, func(t *testing.T) {
			binding, errs := CompileBinding(p.binding)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			compiled, errs := Compile(p.policy, binding)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			hook := hookOf(t, p.policy, []*admissionv1.ValidatingAdmissionPolicyBinding{p.binding})
			for _, c := range p.cases {
				cases++
				r := c.request(t)
				want := r.kubernetes(t, hook)
				decision := "Allowed"
				if len(want.warnings) > 0 {
					decision = "Warned"
				}
				if want.message != "" {
					decision = "Denied"
				}
				if decision != c.Expect.Decision {
					t.Errorf("%s: kube-apiserver's plugin: %s, want %s: %+v", c.Name, decision, c.Expect.Decision, want)
				}
				if got := r.ours(t, compiled, lookup); !got.agrees(want) {
					t.Errorf("%s\ngot  %+v\nwant %+v", c.Name, got, want)
				}
			}
		})
	}
	if cases < 400 {
		t.Errorf("only %d cases", cases)
	}
}

// TestLibraryCost: no schema bounds how many containers a template has, nor labels and finalizers. A CronJob with 1,000
// of each, which say all that the policies look at, costs each policy at most a tenth of what kube-apiserver lets it
// spend.
func TestLibraryCost(t *testing.T) {
	const budget = celconfig.RuntimeCELCostBudget / 10
	probe := map[string]any{"httpGet": map[string]any{"port": int64(80)}}
	security := map[string]any{
		"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
		"runAsUser": int64(1000), "procMount": "Default",
		"capabilities":    map[string]any{"drop": []any{"ALL"}, "add": []any{"NET_BIND_SERVICE"}},
		"seccompProfile":  map[string]any{"type": "RuntimeDefault"},
		"appArmorProfile": map[string]any{"type": "RuntimeDefault"},
		"seLinuxOptions":  map[string]any{"type": "container_t"},
		"windowsOptions":  map[string]any{"hostProcess": false},
	}
	resources := map[string]any{"cpu": "100m", "memory": "64Mi"}
	var containers []any
	for i := range 1000 {
		containers = append(containers, map[string]any{
			"name": fmt.Sprintf("c%d", i), "image": "registry.example.com/web:1.2.3@sha256:" + strings.Repeat("0", 64),
			"securityContext": security,
			"resources":       map[string]any{"requests": resources, "limits": resources}, "livenessProbe": probe,
			"readinessProbe": probe, "startupProbe": probe,
			"lifecycle": map[string]any{"preStop": probe, "postStart": probe},
			"ports":     []any{map[string]any{"containerPort": int64(80)}},
			"env": []any{map[string]any{"name": "MODE", "value": "fast"},
				map[string]any{"name": "LEVEL", "value": "info"}},
		})
	}
	labels, finalizers := map[string]any{"team": "shop"}, []any{}
	for i := range 1000 {
		labels[fmt.Sprintf("label-%d.example.com/name", i)] = "a"
		finalizers = append(finalizers, fmt.Sprintf("finalizer-%d.example.com/name", i))
	}
	metadata := map[string]any{"name": "web", "namespace": "shop", "labels": labels, "finalizers": finalizers}
	pod := map[string]any{
		"metadata": map[string]any{"labels": labels, "finalizers": finalizers,
			"annotations": map[string]any{"container.apparmor.security.beta.kubernetes.io/c0": "runtime/default"}},
		"spec": map[string]any{
			"containers": containers, "serviceAccountName": "web", "restartPolicy": "Never",
			"securityContext": security,
			"volumes":         []any{map[string]any{"name": "a", "emptyDir": map[string]any{}}},
		},
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata,
		"spec": map[string]any{"schedule": "0 3 * * *", "concurrencyPolicy": "Forbid",
			"jobTemplate": map[string]any{"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"template": pod}}},
	}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
		Labels: map[string]string{"team": "shop"}}}
	params := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"data": map[string]any{"a": "quay.io/", "b": "registry.example.com/"}}}
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	attributes := &kadmission.VersionedAttributes{VersionedKind: o.GroupVersionKind(),
		VersionedObject:    kadmission.NewLazyObject(o),
		VersionedOldObject: kadmission.NewLazyObject(o),
		Attributes: kadmission.NewAttributesRecord(o, o, o.GroupVersionKind(), "shop", "web", resource, "",
			kadmission.Update, nil, false, &user.DefaultInfo{})}
	judged := 0
	for _, p := range library(t) {
		if !strings.Contains(fmt.Sprint(p.policy.Spec.MatchConstraints.ResourceRules), "cronjobs") {
			continue
		}
		judged++
		hook := hookOf(t, p.policy, nil)
		for _, c := range []struct {
			budget int64
			want   validating.PolicyDecisionEvaluation
		}{{budget, validating.EvalAdmit}, {1, validating.EvalError}} {
			result := hook.Evaluator.Validate(context.Background(), resource, attributes, params, namespace, c.budget,
				reviewer{})
			for _, d := range result.Decisions {
				if d.Evaluation != c.want {
					t.Errorf("%s: with a budget of %d units: %s: %s, want %s", p.name, c.budget, d.Evaluation,
						d.Message, c.want)
				}
			}
		}
	}
	if judged < 33 {
		t.Errorf("only %d policies judge a CronJob", judged)
	}
}
