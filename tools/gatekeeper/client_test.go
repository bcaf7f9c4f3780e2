package gatekeeper

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	constraintclient "github.com/open-policy-agent/frameworks/constraint/pkg/client"
	"github.com/open-policy-agent/frameworks/constraint/pkg/client/drivers/rego"
	"github.com/open-policy-agent/frameworks/constraint/pkg/client/reviews"
	"github.com/open-policy-agent/gatekeeper/v3/apis"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/drivers/k8scel"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/reader"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/types"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/target"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/util"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := apis.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// namespaces are all that there are, with their labels.
var namespaces = map[string]map[string]string{
	"team-a":      {"tier": "prod", "kubernetes.io/metadata.name": "team-a"},
	"team-b":      {"kubernetes.io/metadata.name": "team-b"},
	"kube-system": {"tier": "dev", "kubernetes.io/metadata.name": "kube-system"},
	"default":     {"kubernetes.io/metadata.name": "default"},
}

// addNamespaces lets the gateway's API server know them.
func addNamespaces(g *gateway) {
	for name, labels := range namespaces {
		g.server.store("/api/v1/namespaces/"+name,
			map[string]any{"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": name, "labels": labels}})
	}
}

func namespaceOf(name string) *corev1.Namespace {
	if name == "" {
		return nil
	}
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: namespaces[name]}}
}

// newClient makes a client of Gatekeeper's. Of a template with code for both engines it uses the
// expressions if they come first, as Gatekeeper does by default, and otherwise Rego.
func newClient(t *testing.T, expressionsFirst bool) *constraintclient.Client {
	t.Helper()
	modules, err := rego.New(rego.Externs("inventory"))
	if err != nil {
		t.Fatal(err)
	}
	expressions, err := k8scel.New()
	if err != nil {
		t.Fatal(err)
	}
	drivers := []constraintclient.Opt{constraintclient.Driver(modules), constraintclient.Driver(expressions)}
	if expressionsFirst {
		drivers[0], drivers[1] = drivers[1], drivers[0]
	}
	c, err := constraintclient.NewClient(append(drivers,
		constraintclient.Targets(&target.K8sValidationTarget{}),
		constraintclient.EnforcementPoints(util.WebhookEnforcementPoint))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func objectsOf(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := reader.ReadUnstructureds([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// add adds templates, and then constraints.
func add(t *testing.T, c *constraintclient.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if !reader.IsTemplate(o) {
			continue
		}
		template, err := reader.ToTemplate(scheme, o)
		if err == nil {
			_, err = c.AddTemplate(context.Background(), template)
		}
		if err != nil {
			t.Fatalf("%s: %v", o.GetName(), err)
		}
	}
	for _, o := range objects {
		if o.GroupVersionKind().Group != "constraints.gatekeeper.sh" {
			continue
		}
		if _, err := c.AddConstraint(context.Background(), o.DeepCopy()); err != nil {
			t.Fatalf("%s: %v", o.GetName(), err)
		}
	}
}

func gvkOf(object map[string]any) schema.GroupVersionKind {
	return (&unstructured.Unstructured{Object: object}).GroupVersionKind()
}

// ask returns what Gatekeeper's webhook answers, as its handler words it.
func ask(t *testing.T, c *constraintclient.Client, r *request) (denied string, warnings []string) {
	t.Helper()
	gvk := gvkOf(r.object)
	q := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(gvk), Name: r.name(), Namespace: r.namespace, Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: encoded(r.object)}, DryRun: ptr.To(false),
	}
	if r.old != nil {
		q.Operation, q.OldObject = admissionv1.Update, runtime.RawExtension{Raw: encoded(r.old)}
	}
	review := &target.AugmentedReview{AdmissionRequest: q, Source: types.SourceTypeOriginal, IsAdmission: true,
		Namespace: namespaceOf(r.namespace)}
	options := []reviews.ReviewOpt{reviews.EnforcementPoint(util.WebhookEnforcementPoint)}
	if ns := namespaceOf(r.namespace); ns != nil {
		var object map[string]any
		if err := json.Unmarshal(encoded(ns), &object); err != nil {
			t.Fatal(err)
		}
		options = append(options, reviews.Namespace(object))
	}
	responses, err := c.Review(context.Background(), review, options...)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, result := range responses.Results() {
		actions := []string{result.EnforcementAction}
		if result.EnforcementAction == string(util.Scoped) {
			actions = result.ScopedEnforcementActions
		}
		for _, action := range actions {
			line := fmt.Sprintf("[%s] %s", result.Constraint.GetName(), result.Msg)
			switch action {
			case string(util.Deny):
				lines = append(lines, line)
			case string(util.Warn):
				warnings = append(warnings, line)
			}
		}
	}
	if len(lines) > 0 {
		denied = refusal + strings.Join(lines, "\n")
	}
	return denied, warnings
}
