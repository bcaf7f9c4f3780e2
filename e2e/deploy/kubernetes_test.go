package deploy

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admission-gateway/gateway/e2e/etcd"
	"github.com/admission-gateway/gateway/e2e/testutil"
)

// tokens are the tokens of the users that a cluster knows.
const tokens = `of-root,root,0,system:masters
of-gateway,gateway,1
of-stranger,stranger,2
of-controllers,system:kube-controller-manager,3
of-scheduler,system:kube-scheduler,4
of-operator,operator,5
of-crowd,crowd,10
of-observer,observer,9,system:masters
of-node-1,system:node:node-1,6,system:nodes
of-node-2,system:node:node-2,7,system:nodes
of-node-3,system:node:node-3,8,system:nodes
`

// A cluster is a kube-apiserver with its store; no Pods run there.
type cluster struct {
	url string
	as  string // the token with which kubectl asks; the administrator's if it is empty
}

// latest is the version of Kubernetes that go.mod pins. Each folder of e2e/servers pins another one.
const latest = "1.37"

// version is the version of the API server that the tests run.
var version = cmp.Or(os.Getenv("E2E_SERVER"), latest)

// isBefore reports whether the tests run an API server older than the release 1.MINOR.
func isBefore(t *testing.T, minor int) bool {
	t.Helper()
	have, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		t.Fatalf("E2E_SERVER is %q, and not a version such as %s", version, latest)
	}
	return have < minor
}

// component returns the path of a program of Kubernetes, in the version that the tests run. Go builds it if need be.
func component(t *testing.T, name string) string {
	t.Helper()
	command := exec.Command("go", "tool", "-n", name)
	if version != latest {
		command.Dir = filepath.Join("..", "servers", "v"+version)
	}
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("there is no %s %s: %v\n%s", name, version, err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// A store is what kube-apiservers share: etcd, the users and the keys.
type store struct {
	etcd *etcd.Store
	dir  string
}

// startStore runs etcd until the test ends.
func startStore(t *testing.T, users string) *store {
	t.Helper()
	s := openStore(t, t.TempDir(), users)
	t.Cleanup(s.etcd.Close)
	return s
}

// openStore runs etcd with its files in a folder.
func openStore(t *testing.T, dir, users string) *store {
	t.Helper()
	db, err := etcd.Start(filepath.Join(dir, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	writeKey(t, filepath.Join(dir, "accounts.key"))
	write(t, filepath.Join(dir, "tokens.csv"), users)
	return &store{db, dir}
}

// common is the cluster of the tests that need no flags of their own, and end is what stops it.
var (
	common *cluster
	end    = func() {}
)

// commonCluster returns a kube-apiserver that the first test starts which asks for it, and that runs until all tests
// have ended. A test that uses it has namespaces and users of its own, and does not run beside another one. What it
// leaves in the cluster beside them is in the way of no other test.
func commonCluster(t *testing.T) *cluster {
	t.Helper()
	if common == nil {
		dir := filepath.Join(scratch, "common")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir, tokens)
		end = s.etcd.Close
		c, p := s.run(t)
		end = func() {
			p.stop()
			s.etcd.Close()
		}
		c.waitReady(t)
		common = c
	}
	return common
}

// namespace makes a namespace, if there is none of that name.
func (c *cluster) namespace(t *testing.T, name string) {
	t.Helper()
	c.must(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n", "apply", "-f", "-")
}

// define makes the cluster know the CustomResourceDefinitions of a file.
func (c *cluster) define(t *testing.T, file string) {
	t.Helper()
	c.must(t, "", "apply", "--server-side", "-f", file)
	c.must(t, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", file)
}

// startCluster runs a kube-apiserver until the test ends, with further flags.
func startCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := startStore(t, tokens).launch(t, flags...)
	c.waitReady(t)
	return c
}

// launch starts a kube-apiserver that runs until the test ends, with flags beside those that all have.
func (s *store) launch(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c, p := s.run(t, flags...)
	p.endWith(t)
	return c
}

// run starts a kube-apiserver.
func (s *store) run(t *testing.T, flags ...string) (*cluster, *process) {
	t.Helper()
	_, port, err := net.SplitHostPort(testutil.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	c, key := &cluster{url: "https://127.0.0.1:" + port}, filepath.Join(s.dir, "accounts.key")
	all := []string{
		"--etcd-servers=" + s.etcd.URL, "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--cert-dir=" + s.certificates(c),
		"--token-auth-file=" + filepath.Join(s.dir, "tokens.csv"), "--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=10.96.0.0/24",
		"--service-account-issuer=https://cluster.example", "--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--shutdown-delay-duration=0s",
	}
	if isBefore(t, 36) { // MutatingAdmissionPolicy is v1 since 1.36, and v1beta1 on demand before
		all = append(all, "--feature-gates=MutatingAdmissionPolicy=true",
			"--runtime-config=admissionregistration.k8s.io/v1beta1=true")
	}
	return c, startProcess(t, filepath.Join(s.dir, "log-"+port), component(t, "kube-apiserver"),
		append(all, flags...)...)
}

// certificates returns the folder with the certificate that the server shows.
func (s *store) certificates(c *cluster) string {
	return filepath.Join(s.dir, "certificates-"+c.url[strings.LastIndex(c.url, ":")+1:])
}

// waitReady waits until the server is ready.
func (c *cluster) waitReady(t *testing.T) {
	t.Helper()
	eventually(t, "kube-apiserver is ready", func() bool {
		r, err := http.NewRequest(http.MethodGet, c.url+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer of-root")
		answer, err := insecure.Do(r)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// servedPolicies returns policies as the server takes them that the tests run.
func servedPolicies(t *testing.T, policies string) string {
	t.Helper()
	if !isBefore(t, 36) {
		return policies
	}
	return strings.ReplaceAll(policies, "apiVersion: admissionregistration.k8s.io/v1\nkind: Mutating",
		"apiVersion: admissionregistration.k8s.io/v1beta1\nkind: Mutating")
}

func writeKey(t *testing.T, file string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file,
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
}

// kubectl runs kubectl as the administrator, unless the cluster has another token, and returns what it printed and
// whether it succeeded.
func (c *cluster) kubectl(t *testing.T, stdin string, args ...string) (out string, ok bool) {
	t.Helper()
	command := exec.Command(kubectl,
		append([]string{"--server", c.url, "--token", cmp.Or(c.as, "of-root"), "--insecure-skip-tls-verify"},
			args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HOME="+scratch)
	command.Stdin = strings.NewReader(stdin)
	b, err := command.CombinedOutput()
	return string(b), err == nil
}

// must is kubectl for what has to succeed.
func (c *cluster) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, ok := c.kubectl(t, stdin, args...)
	if !ok {
		t.Fatalf("kubectl %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// A process is a program that runs, and writes its log to a file.
type process struct {
	name   string
	log    *os.File
	exited chan struct{}
	kill   func() error
}

// startProcess starts a program.
func startProcess(t *testing.T, log, program string, args ...string) *process {
	t.Helper()
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = file, file
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{filepath.Base(program), file, make(chan struct{}), command.Process.Kill}
	go func() {
		_ = command.Wait()
		close(p.exited)
	}()
	return p
}

// stop kills the process, and waits until it has ended.
func (p *process) stop() {
	_ = p.kill()
	<-p.exited
	_ = p.log.Close()
}

// endWith stops the process when the test ends, and shows its log if the test has failed.
func (p *process) endWith(t *testing.T) {
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text, err := os.ReadFile(p.log.Name())
			t.Logf("%s: %v\n%s", p.name, err, text[max(0, len(text)-4000):])
		}
	})
}

// start runs a program until the test ends, waits until it is ready, and shows its log if the test fails.
func start(t *testing.T, isReady func() bool, log, program string, args ...string) {
	t.Helper()
	p := startProcess(t, log, program, args...)
	p.endWith(t)
	eventually(t, p.name+" is ready", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("%s ended", p.name)
		default:
		}
		return isReady()
	})
}

// answers returns a function that reports whether a URL is answered with 200.
func answers(url string) func() bool {
	return func() bool {
		answer, err := http.Get(url)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}
}

// accepts returns a function that reports whether connections to an address succeed.
func accepts(address string) func() bool {
	return func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}
}

// eventually waits until ok returns true, and ends the test if that takes longer than two minutes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	asks := func(context.Context) (bool, error) { return ok(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, asks); err != nil {
		t.Fatalf("not yet: %s: %v", what, err)
	}
}

// account makes the account of Pods that name none, such as the one of `helm test`, in place of a controller.
func (c *cluster) account(t *testing.T, namespace string) {
	t.Helper()
	c.must(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: "+namespace+"}\n", "apply",
		"-f", "-")
}

// kube-apiserver takes every object of both ways, in strict validation and without a warning.
func TestKubernetesTakesTheObjects(t *testing.T) {
	c := commonCluster(t)
	for _, name := range []string{"servicemonitors", "prometheusrules"} {
		c.define(t, "testdata/monitoring.coreos.com_"+name+".yaml")
	}
	classes := gatewayAPI("gatewayclasses")
	_, err := os.Stat(classes)
	if err == nil {
		c.define(t, classes)
	}
	// kustomize's apiserver names this one itself, and the others none.
	const namespace = "gateway-system"
	c.namespace(t, namespace)
	c.account(t, namespace)
	all := renderings(t)
	all["everything/helm"] = allValues(t)
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			if err != nil && strings.HasPrefix(name, "controller/") {
				t.Skip("SUITES_DIR has no definition of GatewayClass")
			}
			out := c.must(t, text, "apply", "--server-side", "--namespace="+namespace, "--validate=strict", "-f", "-")
			defer c.must(t, text, "delete", "--namespace="+namespace, "--wait=false", "-f", "-")
			for line := range strings.Lines(out) {
				if !strings.HasSuffix(line, " serverside-applied\n") {
					t.Errorf("kubectl apply says %q", line)
				}
			}
			if got, want := strings.Count(out, "\n"), len(objects(t, text)); got != want {
				t.Errorf("%d objects are applied, want %d", got, want)
			}
			if !strings.HasPrefix(name, "sidecar/") {
				checkSelectors(t, c, namespace)
			}
		})
	}
}

// checkSelectors proves that each object that selects Pods selects the Pods of the Deployment, as the server has stored
// it.
func checkSelectors(t *testing.T, c *cluster, namespace string) {
	t.Helper()
	var deployment appsv1.Deployment
	var service corev1.Service
	var budget policyv1.PodDisruptionBudget
	var network networkingv1.NetworkPolicy
	var scaler autoscalingv2.HorizontalPodAutoscaler
	for path, o := range map[string]any{
		"/apis/apps/v1/namespaces/NS/deployments": &deployment, "/api/v1/namespaces/NS/services": &service,
		"/apis/policy/v1/namespaces/NS/poddisruptionbudgets":          &budget,
		"/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies":    &network,
		"/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers": &scaler,
	} {
		get(t, c, strings.Replace(path, "NS", namespace, 1)+"/gateway", o)
	}
	labels := deployment.Spec.Template.Labels
	for kind, selector := range map[string]map[string]string{
		"deployment": deployment.Spec.Selector.MatchLabels, "service": service.Spec.Selector,
		"poddisruptionbudget": budget.Spec.Selector.MatchLabels, "networkpolicy": network.Spec.PodSelector.MatchLabels,
	} {
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("the selector of the %s is %v, the Pods have the labels %v", kind, selector, labels)
			}
		}
		if len(selector) == 0 {
			t.Errorf("the %s selects all Pods", kind)
		}
	}
	if of := scaler.Spec.ScaleTargetRef; of.Kind != "Deployment" || of.Name != "gateway" {
		t.Errorf("the autoscaler is of %v, want Deployment/gateway", of)
	}
}
