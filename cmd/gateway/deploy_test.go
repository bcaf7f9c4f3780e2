package main

import (
	"bytes"
	"os"
	"path/filepath"
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
	for folder, grace := range map[string]int64{"ingress": ingress, "apiserver": ingress, "sidecar": corev1.DefaultTerminationGracePeriodSeconds} {
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
		t.Errorf("the configuration speaks of %d gateways, the autoscaler may run %d", c.Replicas, scaled.Spec.MaxReplicas)
	}
	apiserver := filepath.Join(kustomize, "apiserver", "gateway.yaml")
	if got := run("check", "--config", apiserver, filepath.Join(kustomize, "ingress", "policies.yaml")); got.code != 0 {
		t.Errorf("%s is refused outside of a cluster: %+v", apiserver, got)
	}
	for _, f := range policies.Check([]string{filepath.Join(kustomize, "ingress", "policies.yaml")}) {
		t.Error(f)
	}
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
