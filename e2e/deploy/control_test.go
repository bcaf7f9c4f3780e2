package deploy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admission-gateway/gateway/e2e/operator"
	"github.com/admission-gateway/gateway/e2e/testutil"
)

// complete says that the tests take all ways and take their time, as `make e2e-all` does.
var complete = os.Getenv("E2E_ALL") != ""

// native is the way of a control plane that asks the API server itself, with the same policies in the server.
const native = "native"

// A controlPlane is all that asks an API server in a cluster, and what it asks.
type controlPlane struct {
	*cluster         // as an observer sees it, past the gateway
	front    cluster // what the control plane, the nodes and the administrator ask
	dir      string
	clients  *authority            // signs the certificates of clients, and of both servers
	objects  *kubernetes.Clientset // the observer's
	dynamic  dynamic.Interface
	way      string
	log      string // audit events of what the clients ask
	server   string // audit events of what the API server is asked
}

// A whole control plane works before the gateway as it works before the API server: the controllers with their own
// roles and the scheduler, nodes, an operator, and an autoscaler with an aggregated API of metrics, while policies
// about what they write are in force. However the gateway identifies users to the server, no request is refused that is
// not refused natively too.
func TestControlPlane(t *testing.T) {
	if version != latest {
		t.Skipf("the controllers and the scheduler are those of Kubernetes %s, and the API server is %s", latest, version)
	}
	t.Parallel() // with TestEcho, which waits
	ways := []string{"FrontProxy"}
	if complete {
		ways = []string{"Pass", "FrontProxy", "Impersonate"}
	}
	var natively map[outcome]string
	t.Run(native, func(t *testing.T) { natively = runControlPlane(t, native) })
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			refused := runControlPlane(t, way)
			if natively == nil {
				t.Skip("nothing says what is refused natively")
			}
			for o, example := range refused {
				if _, isNative := natively[o]; !isNative && !o.isRace() {
					t.Errorf("%s %ss %s: %d, and natively not: %s", o.user, o.verb, o.resource, o.code, example)
				}
			}
		})
	}
}

// runControlPlane starts a cluster with its control plane, has it do its work, and returns which requests were refused,
// with an example.
func runControlPlane(t *testing.T, way string) map[outcome]string {
	p := startControlPlane(t, way)
	p.work(t)
	return p.refused(t)
}

func startControlPlane(t *testing.T, way string) *controlPlane {
	t.Helper()
	dir := t.TempDir()
	p := &controlPlane{dir: dir, way: way, clients: newAuthority(t), log: filepath.Join(dir, "audit.log"),
		server: filepath.Join(dir, "server.log")}
	in := func(name string) string { return filepath.Join(dir, name) }
	proxies := newAuthority(t) // signs the certificates of those whose X-Remote-User the server believes
	write(t, in("ca.crt"), encoded("CERTIFICATE", p.clients.certificate.Raw))
	write(t, in("proxies.crt"), encoded("CERTIFICATE", proxies.certificate.Raw))
	p.keep(t, "server", p.clients.issue(t, "kube-apiserver", nil))
	p.keep(t, "gateway", proxies.issue(t, "gateway", nil))
	p.keep(t, "aggregator", proxies.issue(t, "aggregator", nil))
	write(t, in("token"), "of-gateway")
	c := startCluster(t, "--tls-cert-file="+in("server.crt"), "--tls-private-key-file="+in("server.key"),
		"--client-ca-file="+in("ca.crt"),
		"--requestheader-client-ca-file="+in("proxies.crt"), "--requestheader-allowed-names=gateway,aggregator",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+in("aggregator.crt"), "--proxy-client-key-file="+in("aggregator.key"),
		"--enable-admission-plugins=NodeRestriction",
		"--audit-policy-file="+filepath.Join("testdata", "control", "audit.yaml"), "--audit-log-path="+p.server)
	p.cluster, p.front = &cluster{url: c.url, as: "of-observer"}, *c
	observer := &rest.Config{Host: c.url, BearerToken: "of-observer",
		TLSClientConfig: rest.TLSClientConfig{CAFile: in("ca.crt")}, QPS: 100, Burst: 100}
	var err error
	if p.objects, err = kubernetes.NewForConfig(observer); err != nil {
		t.Fatal(err)
	}
	if p.dynamic, err = dynamic.NewForConfig(observer); err != nil {
		t.Fatal(err)
	}
	crds := filepath.Join("..", "testdata", "crds.yaml")
	p.must(t, "", "create", "-f", crds)
	p.must(t, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", crds)
	p.must(t, "", "get", "widgets", "--all-namespaces") // the server can watch them from then on
	p.must(t, "", "create", "-f", filepath.Join("testdata", "control", "cluster.yaml"))
	if way == native {
		p.log = p.server
		p.must(t, "", "create", "-f", filepath.Join("testdata", "control", "policies.yaml"))
		p.awaitPolicies(t)
	} else {
		p.startGateway(t)
	}
	p.startComponents(t)
	return p
}

// awaitPolicies waits until the server's own policies are in force, those about custom resources too.
func (p *controlPlane) awaitPolicies(t *testing.T) {
	t.Helper()
	probe := func(replicas int) (int, string) {
		return ask(t, "of-observer", "POST", p.url+"/apis/e2e.example.com/v1/namespaces/default/widgets?dryRun=All",
			"application/json",
			fmt.Sprintf(`{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"probe"},"spec":{"replicas":%d}}`, replicas))
	}
	eventually(t, "the server's own policies are in force", func() bool {
		code, text := probe(9)
		return code == http.StatusUnprocessableEntity && strings.Contains(text, "less than or equal to 5")
	})
	eventually(t, "the server's own policies change objects", func() bool {
		code, text := probe(1)
		return code == http.StatusCreated && strings.Contains(text, `"injected"`)
	})
}

// keep writes a certificate and its key into the folder.
func (p *controlPlane) keep(t *testing.T, name string, certificate tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.dir, name+".crt"), encoded("CERTIFICATE", certificate.Certificate[0]))
	write(t, filepath.Join(p.dir, name+".key"), encoded("PRIVATE KEY", key))
}

// startGateway runs the gateway between the control plane and the server, by TLS on both sides, with the least role
// that its files need.
func (p *controlPlane) startGateway(t *testing.T) {
	t.Helper()
	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	file := filepath.Join(p.dir, "gateway.yaml")
	for _, name := range []string{"policies.yaml", "audit.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", "control", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(p.dir, name), string(text))
	}
	certificate := ""
	if p.way == "FrontProxy" {
		certificate = ", certFile: gateway.crt, keyFile: gateway.key"
	}
	write(t, file, `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+listen+`
tls: {certFile: server.crt, keyFile: server.key, clientCAFile: ca.crt}
admin: {listen: `+admin+`}
identity: {anonymous: Allow, authenticators: [{tokenReview: {upstream: cluster}}, {clientCertificate: {}}]}
upstreams: [{name: cluster, endpoints: [`+p.url+`], dialect: Kubernetes, credentials: `+p.way+`, tokenFile: token, tls: {caFile: ca.crt`+certificate+`}}]
routes: [{pathPrefix: /, upstream: cluster}]
policies: [policies.yaml, audit.yaml]
telemetry: {audit: {mode: Batch, log: {path: `+p.log+`}}}
`)
	p.grant(t, file, filepath.Join(p.dir, "policies.yaml"))
	start(t, answers("http://"+admin+"/readyz"), filepath.Join(p.dir, "log"), gateway, "serve", "--config", file)
	p.front.url = "https://" + listen
}

// account writes a kubeconfig for a user of the control plane. With Pass the server has to see the user's own
// credentials, a token; otherwise it is a certificate, as such components mostly have.
func (p *controlPlane) account(t *testing.T, name, token, user string,
	groups ...string) (kubeconfig string, config *rest.Config) {
	t.Helper()
	credentials := `{token: ` + token + `}`
	if p.way != "Pass" {
		p.keep(t, name, p.clients.issue(t, user, groups))
		credentials = `{client-certificate: ` + name + `.crt, client-key: ` + name + `.key}`
	}
	kubeconfig = filepath.Join(p.dir, name+".kubeconfig")
	write(t, kubeconfig, `
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "`+p.front.url+`", certificate-authority: ca.crt}}]
users: [{name: u, user: `+credentials+`}]
`)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig, config
}

// startComponents starts what asks the server until the test ends.
func (p *controlPlane) startComponents(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(p.startMetrics(t))
	if err != nil {
		t.Fatal(err)
	}
	registration, err := os.ReadFile(filepath.Join("testdata", "control", "metrics.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.must(t, strings.ReplaceAll(string(registration), "PORT", port), "create", "-f", "-")
	p.must(t, "", "wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1beta1.metrics.k8s.io")

	leads := func(name string) func() bool {
		return func() bool {
			lease, err := p.objects.CoordinationV1().Leases("kube-system").Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
		}
	}
	controllers, _ := p.account(t, "controllers", "of-controllers", "system:kube-controller-manager")
	scheduler, _ := p.account(t, "scheduler", "of-scheduler", "system:kube-scheduler")
	start(t, leads("kube-controller-manager"), filepath.Join(p.dir, "controllers.log"),
		component(t, "kube-controller-manager"), "--kubeconfig="+controllers,
		"--use-service-account-credentials", "--root-ca-file="+filepath.Join(p.dir, "ca.crt"), "--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=300",
		"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
		"--horizontal-pod-autoscaler-cpu-initialization-period=0s")
	start(t, leads("kube-scheduler"), filepath.Join(p.dir, "scheduler.log"), component(t, "kube-scheduler"),
		"--kubeconfig="+scheduler, "--secure-port=0")

	ctx, cancel := context.WithCancel(context.Background())
	var ends []<-chan error
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		_, config := p.account(t, name, "of-"+name, "system:node:"+name, "system:nodes")
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() { end <- (&kubelet{name, client}).run(ctx) }()
		ends = append(ends, end)
	}
	_, config := p.account(t, "operator", "of-operator", "operator")
	end, err := new(operator.Operator).Start(ctx, config, "operator")
	if err != nil {
		t.Fatal(err)
	}
	ends = append(ends, end)
	t.Cleanup(func() {
		cancel()
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
	})
}

// startMetrics runs the API metrics.k8s.io of a cluster whose load is the same, however many Pods share it, and returns
// its address.
func (p *controlPlane) startMetrics(t *testing.T) string {
	t.Helper()
	const load = 300 // thousandths of a processor
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "metrics.k8s.io/v1beta1", APIResources: []metav1.APIResource{
				{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
			}})
	})
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods",
		func(w http.ResponseWriter, r *http.Request) {
			pods, err := p.objects.CoreV1().Pods(r.PathValue("namespace")).List(r.Context(),
				metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			items := []any{}
			for _, pod := range pods.Items {
				items = append(items, map[string]any{
					"metadata":  map[string]any{"name": pod.Name, "namespace": pod.Namespace, "labels": pod.Labels},
					"timestamp": metav1.Now(), "window": "1s",
					"containers": []any{map[string]any{"name": "c",
						"usage": map[string]any{"cpu": fmt.Sprint(load/len(pods.Items), "m"), "memory": "1Mi"}}},
				})
			}
			answer(w, map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1",
				"metadata": map[string]any{}, "items": items})
		})
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// work gives the control plane its usual work, and waits until each part of it is done.
func (p *controlPlane) work(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, namespace := range []string{"work", "gone"} {
		eventually(t, "Pods can have the account of "+namespace, func() bool {
			_, err := p.objects.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err == nil
		})
	}
	p.front.must(t, "", "create", "-f", filepath.Join("testdata", "control", "workload.yaml"))
	apps := p.objects.AppsV1()
	isRolledOut := func(namespace, name string, replicas int32) func() bool {
		return func() bool {
			d, err := apps.Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
			s := d.Status
			return err == nil && s.ObservedGeneration == d.Generation && s.Replicas == replicas &&
				s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas
		}
	}
	pods := func(namespace, selector string) []corev1.Pod {
		list, err := p.objects.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	eventually(t, "the Deployment is available", isRolledOut("work", "web", 3))
	eventually(t, "the autoscaler has scaled", isRolledOut("work", "load", 3))
	eventually(t, "the Job is complete", func() bool {
		job, err := p.objects.BatchV1().Jobs("work").Get(ctx, "done", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 3 && job.Status.CompletionTime != nil
	})
	eventually(t, "the other Job is complete, and gone with its Pods", func() bool {
		_, err := p.objects.BatchV1().Jobs("work").Get(ctx, "fleeting", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(pods("work", "batch.kubernetes.io/job-name=fleeting")) == 0
	})
	isStateful := func(replicas int32) func() bool {
		return func() bool {
			s, err := apps.StatefulSets("work").Get(ctx, "db", metav1.GetOptions{})
			return err == nil && s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == replicas &&
				s.Status.Replicas == replicas
		}
	}
	eventually(t, "the StatefulSet is ready", isStateful(2))
	isOnEachNode := func() bool {
		d, err := apps.DaemonSets("work").Get(ctx, "agent", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.NumberReady == 3 &&
			d.Status.UpdatedNumberScheduled == 3
	}
	eventually(t, "the DaemonSet is on each node", isOnEachNode)
	eventually(t, "the Service has its endpoints", func() bool {
		slices, err := p.objects.DiscoveryV1().EndpointSlices("work").List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 3
	})
	widgets := p.dynamic.Resource(schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1",
		Resource: "widgets"})
	eventually(t, "the operator has reconciled the widget", func() bool {
		w, err := widgets.Namespace("operator").Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status, _ := w.Object["status"].(map[string]any)
		return status["phase"] == "Ready" && w.GetAnnotations()["injected"] == "yes"
	})
	eventually(t, "the namespace can be deleted", isRolledOut("gone", "web", 2))

	p.front.must(t, "", "delete", "namespace", "gone", "--wait=false")
	p.front.must(t, "", "set", "image", "-n", "work", "deployment/web", "c=i:2")
	p.front.must(t, "", "set", "image", "-n", "work", "daemonset/agent", "c=i:2")
	p.front.must(t, "", "scale", "-n", "work", "statefulset/db", "--replicas=3")
	p.front.must(t, "", "delete", "-n", "operator", "widget/one", "--wait=false")
	hasOnly := func(selector, image string, n int) func() bool {
		return func() bool {
			all := pods("work", selector)
			return len(all) == n && !slices.ContainsFunc(all, func(pod corev1.Pod) bool {
				return pod.Spec.Containers[0].Image != image || pod.DeletionTimestamp != nil
			})
		}
	}
	eventually(t, "the Deployment is rolled out", isRolledOut("work", "web", 3))
	eventually(t, "its former Pods are gone", hasOnly("app=web", "i:2", 3))
	eventually(t, "the DaemonSet is rolled out",
		func() bool { return isOnEachNode() && hasOnly("app=agent", "i:2", 3)() })
	eventually(t, "the StatefulSet is scaled", isStateful(3))
	eventually(t, "the operator has let the widget go", func() bool {
		_, err := widgets.Namespace("operator").Get(ctx, "one", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	eventually(t, "the namespace is gone", func() bool {
		_, err := p.objects.CoreV1().Namespaces().Get(ctx, "gone", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})

	// What the policies forbid is forbidden.
	p.front.must(t, "", "label", "-n", "work", "pod/db-0", "protected=yes")
	if out, ok := p.front.kubectl(t, "", "delete", "-n", "work", "pod/db-0", "--wait=false"); ok ||
		!strings.Contains(out, "a protected Pod stays") {
		t.Errorf("a protected Pod is deleted: %s", out)
	}
	p.front.must(t, "", "label", "-n", "work", "pod/db-0", "protected-")
	if out, ok := p.front.kubectl(t, "", "scale", "-n", "work", "statefulset/db", "--replicas=6"); ok ||
		!strings.Contains(out, "replicas must be less than or equal to 5") {
		t.Errorf("more replicas are there than may be: %s", out)
	}

	p.front.must(t, "", "drain", "node-3", "--ignore-daemonsets", "--force", "--timeout=60s")
	eventually(t, "the Pods run elsewhere", func() bool {
		return isRolledOut("work", "web", 3)() && isStateful(3)() &&
			!slices.ContainsFunc(pods("work", "app in (web,db,load)"),
				func(pod corev1.Pod) bool { return pod.Spec.NodeName == "node-3" })
	})
	p.front.must(t, "", "uncordon", "node-3")
	if complete {
		p.workLonger(t, ctx, isOnEachNode, pods)
	}
	p.front.must(t, "", "delete", "-n", "work", "deployment/load", "hpa/load", "--cascade=foreground", "--timeout=60s")
	if left := pods("work", "app=load"); len(left) > 0 {
		t.Errorf("%d Pods are left of a Deployment that was deleted with them", len(left))
	}
	p.checkEnd(t, ctx, pods)
}

// workLonger is what takes its time: a CronJob, and a node that takes no Pods any more.
func (p *controlPlane) workLonger(t *testing.T, ctx context.Context, isOnEachNode func() bool,
	pods func(namespace, selector string) []corev1.Pod) {
	t.Helper()
	eventually(t, "the CronJob has run", func() bool {
		c, err := p.objects.BatchV1().CronJobs("work").Get(ctx, "often", metav1.GetOptions{})
		return err == nil && c.Status.LastSuccessfulTime != nil
	})
	p.front.must(t, "", "taint", "node", "node-2", "out=yes:NoExecute")
	eventually(t, "no Pod is left on the node", func() bool {
		return !slices.ContainsFunc(pods("work", ""), func(pod corev1.Pod) bool {
			return pod.Spec.NodeName == "node-2" && pod.Status.Phase == corev1.PodRunning
		})
	})
	p.front.must(t, "", "taint", "node", "node-2", "out-")
	eventually(t, "the DaemonSet is on each node again", isOnEachNode)
}

// checkEnd proves that nothing was lost on the way: the policies changed each Pod, nodes are ready, and each lease is
// held by who took it first.
func (p *controlPlane) checkEnd(t *testing.T, ctx context.Context, pods func(namespace, selector string) []corev1.Pod) {
	t.Helper()
	for _, pod := range pods("", "") {
		if pod.Annotations["injected"] != "yes" {
			t.Errorf("no policy has changed the Pod %s/%s", pod.Namespace, pod.Name)
		}
	}
	nodes, err := p.objects.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			t.Errorf("%s has the taints %v", node.Name, node.Spec.Taints)
		}
	}
	leases, err := p.objects.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if n := lease.Spec.LeaseTransitions; n != nil && *n > 0 {
			t.Errorf("the lease %s/%s has changed hands %d times", lease.Namespace, lease.Name, *n)
		}
	}
	var former []appsv1.ReplicaSet
	sets, err := p.objects.AppsV1().ReplicaSets("work").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.Items {
		if set.Status.Replicas == 0 {
			former = append(former, set)
		}
	}
	if len(sets.Items) != 2 || len(former) != 1 {
		t.Errorf("%d of %d ReplicaSets have no Pods, want 1 of 2", len(former), len(sets.Items))
	}
}

// An outcome is what becomes of requests of one kind.
type outcome struct {
	user, verb, resource string
	code                 int32
	isNamed, isEnding    bool // it names an object, in a namespace that is deleted
}

// isRace reports whether it depends on the moment alone whether such a request is refused: another writer was faster,
// the object or its namespace is gone already, the namespace takes no more, or too few Pods are ready to evict another
// one.
func (o outcome) isRace() bool {
	switch o.code {
	case http.StatusConflict:
		return slices.Contains([]string{"create", "update", "patch", "delete"}, o.verb)
	case http.StatusNotFound:
		return o.isNamed || o.isEnding
	case http.StatusForbidden:
		return o.isEnding && o.verb == "create"
	case http.StatusTooManyRequests:
		return o.resource == "pods/eviction"
	}
	return false
}

// refused returns which requests of the control plane were refused, or failed, with an example of each.
func (p *controlPlane) refused(t *testing.T) map[outcome]string {
	t.Helper()
	const last = "/api/v1/namespaces/the-last-request"
	if code, _ := ask(t, "of-root", "GET", p.front.url+last, "", ""); code != http.StatusNotFound {
		t.Errorf("there is a namespace that nobody made: %d", code)
	}
	all, asked := map[outcome]string{}, map[string]bool{}
	eventually(t, "all events are written", func() bool {
		events := readEvents(t, p.log)
		if len(events) == 0 || !slices.ContainsFunc(events,
			func(e auditv1.Event) bool { return e.RequestURI == last }) {
			return false
		}
		for _, e := range events {
			asked[e.User.Username] = true
		}
		for o, example := range outcomes(events) {
			if !slices.Contains([]string{"observer", "system:apiserver", "gateway"}, o.user) {
				all[o] = example
			}
		}
		return true
	})
	for _, user := range []string{
		"root", "operator", "system:kube-controller-manager", "system:kube-scheduler", "system:node:node-1",
		"system:node:node-3",
		"system:serviceaccount:kube-system:replicaset-controller",
		"system:serviceaccount:kube-system:horizontal-pod-autoscaler",
		"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:job-controller",
	} {
		if !asked[user] {
			t.Errorf("%s has not asked for anything", user)
		}
	}
	for _, o := range []outcome{
		{user: "root", verb: "delete", resource: "pods", code: 422, isNamed: true},
		{user: "root", verb: "patch", resource: "apps/statefulsets/scale", code: 422, isNamed: true},
		{user: "operator", verb: "update", resource: "e2e.example.com/widgets", code: 422, isNamed: true},
	} {
		if all[o] == "" {
			t.Errorf("%s %ss %s, and is not answered %d", o.user, o.verb, o.resource, o.code)
		}
	}
	// What the gateway asks on its own account it may ask.
	for o, example := range outcomes(readEvents(t, p.server)) {
		if o.user == "gateway" && o.code != http.StatusNotFound {
			t.Errorf("the gateway itself %ss %s: %d: %s", o.verb, o.resource, o.code, example)
		}
	}
	return all
}

// readEvents reads the events of an audit log but for a line that is not written whole yet.
func readEvents(t *testing.T, file string) (events []auditv1.Event) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		events = append(events, e)
	}
	return events
}

// outcomes returns what was refused of events, or failed, with an example of each.
func outcomes(events []auditv1.Event) map[outcome]string {
	all := map[outcome]string{}
	for _, e := range events {
		if e.ResponseStatus == nil || e.ResponseStatus.Code < 400 {
			continue
		}
		o := outcome{user: e.User.Username, verb: e.Verb, resource: e.RequestURI, code: e.ResponseStatus.Code}
		if e.ImpersonatedUser != nil {
			o.user = e.ImpersonatedUser.Username
		}
		if r := e.ObjectRef; r != nil {
			o.resource, o.isNamed = strings.Trim(r.APIGroup+"/"+r.Resource+"/"+r.Subresource, "/"), r.Name != ""
			o.isEnding = r.Namespace == "gone"
		}
		all[o] = e.RequestURI + ": " + e.ResponseStatus.Message
	}
	return all
}
