package gatewayapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// echoes are two Pods with their Service.
const echoes = `
apiVersion: v1
kind: Namespace
metadata: {name: $NS}
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: $NS}
spec:
  selector: {app: echo}
  ports: [{port: 80, targetPort: 3000}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: $NS}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - name: echo
        image: registry.k8s.io/gateway-api/echo-basic:v1.6.0
        env:
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
`

// The cluster runs Pods, gives their addresses to EndpointSlices, serves their logs, and ends them.
func TestCluster(t *testing.T) {
	apply(t, strings.ReplaceAll(echoes, "$NS", "cluster"))
	client, err := kubernetes.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	addresses := func() (all []string) {
		slices, err := client.DiscoveryV1().EndpointSlices("cluster").List(t.Context(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=echo"})
		if err != nil {
			t.Fatal(err)
		}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if c := endpoint.Conditions.Ready; c != nil && *c {
					all = append(all, endpoint.Addresses...)
				}
			}
		}
		return all
	}
	eventually(t, "two endpoints are ready", func() bool { return len(addresses()) == 2 })
	for _, address := range addresses() {
		if code, body := fetch(t, "http://"+address+":3000/of-the-cluster"); code != http.StatusOK ||
			!strings.Contains(body, `"namespace": "cluster"`) {
			t.Errorf("%s answers %d: %s", address, code, body)
		}
	}
	pods, err := client.CoreV1().Pods("cluster").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		for since, want := range map[time.Time]bool{time.Now().Add(-time.Hour): true,
			time.Now().Add(time.Hour): false} {
			if got := strings.Contains(logsOf(t, client, &pods.Items[i], since), "/of-the-cluster"); got != want {
				t.Errorf("the log of %s since %s has the request: %t", pods.Items[i].Name, since, got)
			}
		}
	}
	if err := client.AppsV1().Deployments("cluster").Delete(t.Context(), "echo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no Pods are left", func() bool {
		left, err := client.CoreV1().Pods("cluster").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(left.Items) == 0
	})
}

func logsOf(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, since time.Time) string {
	t.Helper()
	at := metav1.NewTime(since)
	stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
		&corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name, SinceTime: &at}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var text bytes.Buffer
	if _, err := io.Copy(&text, stream); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// eventually waits until ok returns true, and ends the test if that takes longer than two minutes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	asks := func(context.Context) (bool, error) { return ok(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, asks); err != nil {
		t.Fatal(fmt.Errorf("not yet: %s: %w", what, err))
	}
}
