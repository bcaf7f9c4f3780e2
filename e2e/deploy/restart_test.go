package deploy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// silentKubelet takes every exec, and then neither sends nor closes anything.
func silentKubelet(t *testing.T) (port string, opened <-chan net.Conn) {
	t.Helper()
	connections := make(chan net.Conn, 4)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+
			r.Header.Get("Upgrade")+"\r\n\r\n")
		connections <- c
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connections
}

// A single gateway before a kube-apiserver is restarted as a supervisor does it, which waits for the end of the
// process, while an exec stays open. A controller whose lease is renewed through the gateway keeps it.
func TestRestartKeepsLeases(t *testing.T) {
	c := commonCluster(t)
	port, kubelet := silentKubelet(t)
	c.must(t, `
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Namespace
metadata: {name: leases}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: leases}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: leases}
spec: {nodeName: n1, automountServiceAccountToken: false, tolerations: [{operator: Exists}], containers: [{name: c, image: i}]}
`, "create", "-f", "-")
	c.must(t, "", "patch", "node", "n1", "--subresource=status", "--type=merge",
		"-p", `{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":`+port+`}}}}`)
	c.must(t, "", "patch", "pod", "web", "-n", "leases", "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"Running"}}`)

	listen, admin, dir := testutil.FreeAddress(t), testutil.FreeAddress(t), t.TempDir()
	write(t, filepath.Join(dir, "gateway.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+listen+`
admin: {listen: `+admin+`}
upstreams: [{name: cluster, endpoints: [`+c.url+`], dialect: Kubernetes, tls: {insecureSkipTLSVerify: true}}]
routes: [{pathPrefix: /, upstream: cluster}]
drainSeconds: 1
shutdownDeadlineSeconds: 86400
`)
	run := func() *exec.Cmd {
		p := exec.Command(gateway, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
		p.Stderr = os.Stderr
		p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		eventually(t, "the gateway is ready", answers("http://"+admin+"/readyz"))
		return p
	}
	p := run()

	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "http://" + listen, BearerToken: "of-root"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var leads, lost atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "leases", Name: "controller"}, Client: clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "this"},
		},
		// as controllers have them
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads.Store(true) },
			OnStoppedLeading: func() { lost.Store(ctx.Err() == nil) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	eventually(t, "the controller leads", leads.Load)

	stream := openExec(t, listen)
	far := <-kubelet
	defer func() { _ = far.Close() }()
	if _, err := io.WriteString(stream, "input"); err != nil {
		t.Fatal(err)
	}
	if got := make([]byte, 5); true {
		if _, err := io.ReadFull(far, got); err != nil {
			t.Fatal(err)
		}
	}

	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the gateway ends with %v, want 0", err)
	}
	if rest, err := io.ReadAll(stream); len(rest) > 0 || err != nil {
		t.Errorf("the exec ends with %q, %v", rest, err)
	}
	run()
	renewed := func() time.Time {
		var lease coordinationv1.Lease
		get(t, c, "/apis/coordination.k8s.io/v1/namespaces/leases/leases/controller", &lease)
		return lease.Spec.RenewTime.Time
	}
	before := renewed()
	eventually(t, "the lease is renewed through the next gateway", func() bool { return renewed().After(before) })
	holder := c.must(t, "", "get", "lease", "controller", "-n", "leases", "-o",
		"jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}")
	if lost.Load() || holder != "this 0" {
		t.Errorf("the controller lost its lease: %v, %s", lost.Load(), holder)
	}
}

// openExec opens an exec through a gateway by SPDY, of which it sends and reads nothing but bytes.
func openExec(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, "POST /api/v1/namespaces/leases/pods/web/exec?command=sh&stdin=true&stdout=true HTTP/1.1\r\nHost: gateway\r\n"+
		"Authorization: Bearer of-root\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("an exec is answered %s %s", answer.Status, text)
	}
	return c
}
