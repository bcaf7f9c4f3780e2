package deploy

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// tested is the namespace of the release whose `helm test` is run, and testHost the host by which the test asks.
const (
	tested   = "gateway-system"
	testHost = "gateway-test." + tested + ".svc"
)

// A release is the chart in a cluster that runs no Pods. The test runs their containers.
type release struct {
	*cluster
	volumes string // of the gateway's container
	admin   string
	pid     int
	log     bytes.Buffer
	ended   chan struct{}
}

// install applies what the chart makes of values, and runs the gateway's container until the test ends.
func (c *cluster) install(t *testing.T, policies, values string) *release {
	t.Helper()
	var all map[string]any
	if err := yaml.Unmarshal([]byte(values), &all); err != nil {
		t.Fatal(err)
	}
	all["policies"] = map[string]any{"limits.yaml": policies}
	text, err := template(t, all)
	if err != nil {
		t.Fatal(err)
	}
	c.must(t, text, "apply", "--server-side", "--namespace="+tested, "--validate=strict", "-f", "-")
	t.Cleanup(func() { c.must(t, text, "delete", "--namespace="+tested, "--wait=false", "-f", "-") })
	var deployment appsv1.Deployment
	get(t, c, "/apis/apps/v1/namespaces/"+tested+"/deployments/gateway", &deployment)
	pod := &deployment.Spec.Template.Spec
	r := &release{cluster: c, volumes: t.TempDir(), admin: testutil.FreeAddress(t), ended: make(chan struct{})}
	ctx, end := context.WithCancel(t.Context())
	command := c.container(t, ctx, tested, r.volumes, "", pod,
		append(pod.Containers[0].Args, "--listen="+testutil.FreeAddress(t), "--admin="+r.admin))
	command.Stdout, command.Stderr = &r.log, &r.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r.pid = command.Process.Pid
	go func() {
		_ = command.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		end()
		<-r.ended
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", &r.log)
		}
	})
	return r
}

// test runs the container of the Pod of `helm test`, and returns its exit code and what it printed.
func (r *release) test(t *testing.T) (code int, out string) {
	t.Helper()
	var pod corev1.Pod
	get(t, r.cluster, "/api/v1/namespaces/"+tested+"/pods/gateway-test", &pod)
	_, port, _ := strings.Cut(r.admin, ":")
	args := pod.Spec.Containers[0].Args
	for i := range args {
		args[i] = strings.Replace(args[i], ":8081", ":"+port, 1)
	}
	service := "echo 127.0.0.1 " + testHost + " >/etc/hosts\n"
	text, err := r.container(t, t.Context(), tested, t.TempDir(), service, &pod.Spec, args).CombinedOutput()
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // a command's own
		return failed.ExitCode(), string(text)
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, string(text)
}

// isServed reports whether the admin listener answers.
func (r *release) isServed() bool {
	answer, err := http.Get("http://" + r.admin + "/livez")
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil
}

// secret makes a Secret, or changes it.
func (c *cluster) secret(t *testing.T, name string, data map[string]string) {
	t.Helper()
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\ndata:\n"
	for key, value := range data {
		text += "  " + key + ": " + base64.StdEncoding.EncodeToString([]byte(value)) + "\n"
	}
	c.must(t, text, "apply", "--namespace="+tested, "-f", "-")
}

// `helm test` passes if the gateway is ready, and fails if it does not start, is not ready, has newer files that it
// refuses, or does not know the token.
func TestHelmTest(t *testing.T) {
	needsMounts(t)
	c := commonCluster(t)
	c.namespace(t, tested)
	c.account(t, tested)
	c.secret(t, "admin-token", map[string]string{"token": "0123456789abcdef"})
	backend := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(backend.Close)
	const (
		limits = "{apiVersion: admission-gateway.io/v1alpha1, kind: RateLimitPolicy, metadata: {name: a}, spec: {key: ClientAddress, requests: 5, periodSeconds: 1}}"
		wrong  = "{apiVersion: admission-gateway.io/v1alpha1, kind: RateLimitPolicy, metadata: {name: a}, spec: {key: Nobody}}"
	)
	values := func(endpoint, dialect, more string) string {
		return "{admin: {tokenSecret: {name: admin-token}" + more +
			"}, configuration: {upstreams: [{name: orders, endpoints: ['" + endpoint + "']" + dialect + "}]}}"
	}
	right := values(backend.URL, ", dialect: Plain", "")
	passes := func(t *testing.T, r *release) {
		t.Helper()
		eventually(t, "the test passes", func() bool {
			select {
			case <-r.ended:
				t.Fatal("the gateway ended")
			default:
			}
			code, _ := r.test(t)
			return code == 0
		})
		if _, out := r.test(t); !strings.Contains(out, " is ready, up ") {
			t.Errorf("the test says %s", out)
		}
	}
	fails := func(t *testing.T, r *release, want string) {
		t.Helper()
		if code, out := r.test(t); code != 1 || !strings.Contains(out, want) {
			t.Errorf("the test ends with %d, want 1, and says\n%s\nwant %q", code, out, want)
		}
	}
	t.Run("ready, then with a file that is refused", func(t *testing.T) {
		r := c.install(t, limits, right)
		passes(t, r)
		write(t, filepath.Join(r.volumes, "policies", "limits.yaml"), wrong)
		if err := syscall.Kill(r.pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the test fails", func() bool { code, _ := r.test(t); return code != 0 })
		fails(t, r, "THE NEWEST FILES ARE NOT IN FORCE")
	})
	t.Run("ready, by TLS", func(t *testing.T) {
		issuer, dir := newAuthority(t), t.TempDir()
		writePair(t, dir, issuer.issue(t, "gateway", nil, testHost))
		pair := map[string]string{"ca.crt": encoded("CERTIFICATE", issuer.certificate.Raw)}
		for _, name := range []string{"tls.crt", "tls.key"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			pair[name] = string(text)
		}
		c.secret(t, "admin-tls", pair)
		r := c.install(t, limits, values(backend.URL, ", dialect: Plain", ", tls: {secretName: admin-tls}"))
		passes(t, r)
		pair["ca.crt"] = encoded("CERTIFICATE", newAuthority(t).certificate.Raw)
		c.secret(t, "admin-tls", pair)
		fails(t, r, "certificate signed by unknown authority")
	})
	t.Run("another token", func(t *testing.T) {
		r := c.install(t, limits, right)
		passes(t, r)
		c.secret(t, "admin-token", map[string]string{"token": "fedcba9876543210"})
		fails(t, r, "401 Unauthorized")
		c.secret(t, "admin-token", map[string]string{"token": "0123456789abcdef"})
	})
	t.Run("not ready", func(t *testing.T) { // what the backend is, nothing says
		r := c.install(t, limits, values("http://"+testutil.FreeAddress(t), "", ""))
		eventually(t, "the admin listener answers", r.isServed)
		fails(t, r, "is NOT READY")
	})
	t.Run("policies that are refused from the start", func(t *testing.T) {
		r := c.install(t, wrong, right)
		<-r.ended
		fails(t, r, "the admin listener does not answer")
	})
}
