package gatewayapi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admission-gateway/gateway/e2e/gatewayapi/cluster"
)

// TestTutorial follows docs/tutorial-ingress.md, with kubectl: the gateway is installed by its kustomization, with the
// rights that this gives it. What the page gets from the network is taken from the clone, and from the module of
// Gateway API.
func TestTutorial(t *testing.T) {
	for _, name := range []string{"sh", "curl", "kubectl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := shared.Kubeconfig(cluster.Administrator)
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(t.TempDir(), "kubectl")
	text := fmt.Sprintf(`#!/bin/sh
case "$*" in
*standard-install.yaml) exec %[1]s get --raw /apis/gateway.networking.k8s.io/v1 ;; # the tests' cluster has the experimental ones
"apply -k .") ln -sfn %[2]s/deploy/kustomize clone && sed -i 's,github.com/admission-gateway/gateway/deploy/kustomize,./clone,' kustomization.yaml ;;
esac
exec %[1]s "$@"
`, kubectl, root)
	if err := os.WriteFile(wrapper, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go balance(ctx, newClient(t))
	out, err := exec.Command(built.Follow, "-gateway", built.Gateway, "-command", "kubectl="+wrapper, "-env",
		"KUBECONFIG="+kubeconfig,
		filepath.Join(root, "docs", "tutorial-ingress.md")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// balance gives the Service of the gateway the address of its Pod, in place of a cloud's load balancer.
func balance(ctx context.Context, c client.Client) {
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		var pods corev1.PodList
		var service corev1.Service
		if c.List(ctx, &pods, client.InNamespace("gateway-system")) != nil || len(pods.Items) == 0 ||
			!isReady(&pods.Items[0]) ||
			c.Get(ctx, types.NamespacedName{Namespace: "gateway-system", Name: "gateway"}, &service) != nil {
			continue
		}
		before := service.DeepCopy()
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: pods.Items[0].Status.PodIP}}
		_ = c.Status().Patch(ctx, &service, client.MergeFrom(before)) // it is tried again
	}
}
