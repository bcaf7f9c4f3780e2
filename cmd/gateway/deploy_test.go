package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
)

const kustomize = "../../deploy/kustomize"

// The configurations that the folders bring start a gateway, and drain within the Pod's grace period.
func TestDeployedConfigurations(t *testing.T) {
	account := t.TempDir() // of the Pod
	for _, name := range []string{"token", "ca.crt"} {
		if err := os.WriteFile(filepath.Join(account, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ingress := deployment(t, "ingress/deployment.yaml")
	for folder, grace := range map[string]int64{"ingress": ingress, "apiserver": ingress, "sidecar": 30} {
		flags := config.Flags{}
		if folder == "apiserver" {
			flags.Pod = config.Pod{Host: "10.96.0.1", Port: "443", Directory: account}
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

// Every object is one that Kubernetes reads without unknown or duplicate fields.
func TestDeployedObjects(t *testing.T) {
	decode(t, "ingress/deployment.yaml", &appsv1.Deployment{})
	decode(t, "ingress/service.yaml", &corev1.Service{})
	decode(t, "ingress/poddisruptionbudget.yaml", &policyv1.PodDisruptionBudget{})
	decode(t, "sidecar/patch.yaml", &appsv1.Deployment{})
	decode(t, "apiserver/deployment.yaml", &appsv1.Deployment{})
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
