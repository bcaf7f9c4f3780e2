package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

const kustomize = "../../deploy/kustomize"

// The configurations that the folders bring start a gateway, and drain within the Pod's grace period.
func TestDeployedConfigurations(t *testing.T) {
	serviceAccount := t.TempDir() // of the Pod
	for _, name := range []string{"token", "ca.crt"} {
		testutil.WriteFile(t, filepath.Join(serviceAccount, name), "")
	}
	ingress := deployment(t, "ingress/deployment.yaml")
	for folder, grace := range map[string]int64{"ingress": ingress, "apiserver": ingress,
		"sidecar": corev1.DefaultTerminationGracePeriodSeconds} {
		flags := config.Flags{}
		if folder == "apiserver" {
			flags.Pod = config.Pod{Host: "10.96.0.1", Port: "443", Directory: serviceAccount}
		}
		c, err := config.Load(filepath.Join(kustomize, folder, "gateway.yaml"), flags)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		if got := int64(c.DrainSeconds + c.ShutdownDeadlineSeconds); got >= grace {
			t.Errorf("%s: drains for %d seconds, but the Pod is killed after %d", folder, got, grace)
		}
	}
	c, err := config.Load(filepath.Join(kustomize, "ingress", "gateway.yaml"), config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	var scaled autoscalingv2.HorizontalPodAutoscaler
	decode(t, "ingress/horizontalpodautoscaler.yaml", &scaled)
	if c.Replicas != scaled.Spec.MaxReplicas {
		t.Errorf("the configuration speaks of %d gateways, the autoscaler may run %d", c.Replicas,
			scaled.Spec.MaxReplicas)
	}
	for _, file := range []string{"apiserver/policies.yaml", "apiserver-limits/limits.yaml"} {
		apiserver, file := filepath.Join(kustomize, "apiserver", "gateway.yaml"), filepath.Join(kustomize, file)
		if got := run("check", "--strict", "--config", apiserver, file); got.code != 0 {
			t.Errorf("%s with %s is refused outside of a cluster: %+v", apiserver, file, got)
		}
	}
	for _, f := range policies.Check([]string{filepath.Join(kustomize, "ingress", "policies.yaml")}) {
		t.Error(f)
	}
}

// Nothing limits the clients of an API server unless the operator asks for it, by the component or by further values.
func TestLimitsOfAnAPIServerAreOptIn(t *testing.T) {
	const examples = "../../deploy/helm/examples/"
	own := filepath.Join(t.TempDir(), "policies.yaml") // of the chart's example
	testutil.WriteFile(t, own, policiesOfValues(t, examples+"apiserver.yaml")["policies.yaml"])
	for _, file := range []string{own, filepath.Join(kustomize, "apiserver/policies.yaml")} {
		set, found := policies.Load([]string{file})
		if set == nil || len(found) > 0 {
			t.Fatalf("%s: %v", file, found)
		}
		for _, f := range set.Files() {
			if len(f.Objects) > 0 {
				t.Errorf("%s brings %+v", file, f.Objects)
			}
		}
	}
	limits, err := os.ReadFile(filepath.Join(kustomize, "apiserver-limits/limits.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"limits.yaml": string(limits)}
	if got := policiesOfValues(t, examples+"apiserver-limits.yaml"); !maps.Equal(got, want) {
		t.Errorf("the chart's example has %q, the component has %q", got, want)
	}
}

// sparedByLimits are cases for the limit that deploy/ has for an API server: who is spared asks ten times its burst at
// once.
const sparedByLimits = `
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: limits}
spec:
  cases:
  - {name: scheduler, user: {name: "system:kube-scheduler"}, request: &pods {method: GET, path: /api/v1/pods, times: 1000}, expect: &spared {decision: Allowed}}
  - {name: controller manager, user: {name: "system:kube-controller-manager"}, request: *pods, expect: *spared}
  - {name: API server, user: {name: "system:apiserver"}, request: *pods, expect: *spared}
  - {name: administrator, user: {name: admin, groups: ["system:masters"]}, request: *pods, expect: *spared}
  - {name: node, user: {name: "system:node:a", groups: ["system:nodes"]}, request: *pods, expect: *spared}
  - name: controller with a service account
    user: {name: "system:serviceaccount:kube-system:job-controller", groups: ["system:serviceaccounts", "system:serviceaccounts:kube-system"]}
    request: *pods
    expect: *spared
  - {name: nobody, request: &more {method: GET, path: /api/v1/pods, times: 101}, expect: &held {decision: Denied, code: 429, message: per-user}}
  - {name: anonymous, user: {name: "system:anonymous", groups: ["system:unauthenticated"]}, request: *more, expect: *held}
  - {name: user, user: {name: jane, groups: ["system:authenticated"]}, request: *more, expect: *held}
  - {name: node by its name alone, user: {name: "system:node:a", groups: ["system:authenticated"]}, request: *more, expect: *held}
  - name: another service account
    user: {name: "system:serviceaccount:shop:robot", groups: ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]}
    request: *more
    expect: *held
`

// The limit spares the control plane, nodes and kube-system's service accounts by name, and no
// other client.
func TestLimitsOfAnAPIServerSpareTheControlPlane(t *testing.T) {
	limits, err := os.ReadFile(filepath.Join(kustomize, "apiserver-limits/limits.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "limits.yaml"), string(limits))
	testutil.WriteFile(t, filepath.Join(dir, "test.yaml"), sparedByLimits)
	if got := run("test", "-v", dir); got.code != 0 || strings.Count(got.stdout, "limits/") < 11 {
		t.Errorf("%+v", got)
	}
}

// policiesOfValues returns the policy files in values of the chart.
func policiesOfValues(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Policies map[string]string `json:"policies"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	return values.Policies
}

// deployment returns the grace period of a Deployment's Pods.
func deployment(t *testing.T, name string) int64 {
	t.Helper()
	var d appsv1.Deployment
	decode(t, name, &d)
	if d.Spec.Template.Spec.TerminationGracePeriodSeconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds
	}
	return *d.Spec.Template.Spec.TerminationGracePeriodSeconds
}

func decode(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kustomize, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}
