package gatewayapi

import (
	"net/http"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// replicas are two gateways in Pods, as a Deployment.
const replicas = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: gateway, namespace: led}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: led}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gateway}
subjects: [{kind: ServiceAccount, name: gateway, namespace: led}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: gateway, namespace: led}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gateway, namespace: led}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gateway}
subjects: [{kind: ServiceAccount, name: gateway, namespace: led}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gateway, namespace: led}
data:
  gateway.yaml: |
    apiVersion: admission-gateway.io/v1alpha1
    kind: GatewayConfiguration
    listen: 0.0.0.0:8080
    admin: {listen: "0.0.0.0:8081"}
    kubernetes:
      watch:
        controllerName: example.com/led
        publishedAddresses: [192.0.2.10]
        lease: {name: gateway}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, namespace: led}
spec:
  replicas: 2
  selector: {matchLabels: {app: gateway}}
  template:
    metadata: {labels: {app: gateway}}
    spec:
      serviceAccountName: gateway
      containers:
      - name: gateway
        image: gateway
        args: [serve, --config, /etc/gateway/gateway.yaml]
        ports: [{name: admin, containerPort: 8081}]
        readinessProbe: {httpGet: {path: /readyz, port: admin}}
        volumeMounts: [{name: config, mountPath: /etc/gateway}]
      volumes: [{name: config, configMap: {name: gateway}}]
`

// Of two gateways the one that has the Lease writes statuses. If it dies, the other one goes on to serve, and takes the
// Lease.
func TestLeaderDies(t *testing.T) {
	if testing.Short() {
		t.Skip("a Lease takes its time to end")
	}
	raiseFront(t, "led")
	grant(t)
	apply(t, replicas)
	c := newClient(t)
	var pods corev1.PodList
	eventually(t, "both gateways are ready", func() bool {
		err := c.List(t.Context(), &pods, client.InNamespace("led"), client.MatchingLabels{"app": "gateway"})
		return err == nil && len(pods.Items) == 2 && isReady(&pods.Items[0]) && isReady(&pods.Items[1])
	})
	if address := addressOf(t, "led", "front"); address != "192.0.2.10" {
		t.Errorf("the address of the Gateway is %s, and not the published one", address)
	}
	leader := holder(t, c)
	var dying, staying *corev1.Pod
	for i := range pods.Items {
		p := &pods.Items[i]
		awaitAnswer(t, once, "http://"+p.Status.PodIP+"/", "shop.example.com", http.StatusOK)
		if strings.HasPrefix(leader, p.Name) {
			dying = p
		} else {
			staying = p
		}
	}
	if dying == nil || staying == nil {
		t.Fatalf("the Lease is held by %s, which is none of the Pods", leader)
	}
	l := startLoad(t, 2, "http://"+staying.Status.PodIP+"/", "shop.example.com")
	if err := c.Delete(t.Context(), dying, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another gateway has the Lease", func() bool { return holder(t, c) != leader })
	apply(t, strings.NewReplacer("$NS", "led", "$CLASS", "led", "name: shop,", "name: later,", "shop.example.com",
		"later.example.com").Replace(front))
	eventually(t, "the status of a new route is written", func() bool {
		var route gatewayv1.HTTPRoute
		err := c.Get(t.Context(), types.NamespacedName{Namespace: "led", Name: "later"}, &route)
		return err == nil && len(route.Status.Parents) == 1 && len(route.Status.Parents[0].Conditions) > 0
	})
	l.await(t, 100)
	l.allSucceeded(t)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// holder waits until somebody has the Lease of the gateways, and returns its name.
func holder(t *testing.T, c client.Client) (name string) {
	t.Helper()
	eventually(t, "a gateway has the Lease", func() bool {
		var lease coordinationv1.Lease
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "led", Name: "gateway"}, &lease); err != nil ||
			lease.Spec.HolderIdentity == nil {
			return false
		}
		name = *lease.Spec.HolderIdentity
		return name != ""
	})
	return name
}
