package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// writeKubeconfig writes a kubeconfig for a server and a user by a token.
func writeKubeconfig(t *testing.T, server, ca, token string) string {
	t.Helper()
	k := api.NewConfig()
	k.Clusters["a"] = &api.Cluster{Server: server, CertificateAuthority: ca}
	k.AuthInfos["a"] = &api.AuthInfo{Token: token}
	k.Contexts["a"], k.CurrentContext = &api.Context{Cluster: "a", AuthInfo: "a"}, "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// startSecureGateway runs the gateway between TLS and TLS, before the API server that a kubeconfig of its own names. It
// returns the kubeconfig of a user.
func startSecureGateway(t *testing.T, policies ...string) (kubeconfig string) {
	t.Helper()
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("gateway.e2e", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	crt, pem := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, content := range map[string][]byte{crt: certificate, pem: key} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	through := startGatewayWith(t, fmt.Sprintf("tls: {certFile: %s, keyFile: %s}\n", crt, pem),
		[]string{"--kubeconfig", writeKubeconfig(t, server.HTTPS, server.CA, "of-the-gateway")}, policies...)
	return writeKubeconfig(t, through.url, crt, "of-alice")
}

// kubectl and client-go by TLS to the gateway, which goes by TLS to the API server that its own kubeconfig names. Each
// request comes with the credentials of whose it is.
func TestTLS(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(strings.ReplaceAll(boundedReplicas, "'bounded'", "'secure'")),
		0o600); err != nil {
		t.Fatal(err)
	}
	user := startSecureGateway(t, policy, "testdata/policies.yaml", "testdata/crds.yaml")

	run := func(stdin string, args ...string) (string, bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, client,
			append([]string{"--kubeconfig", user, "--cache-dir", t.TempDir(), "-n", "secure"}, args...)...)
		command.Env, command.Stdin = append(os.Environ(), "HOME="+t.TempDir()), strings.NewReader(stdin)
		b, err := command.CombinedOutput()
		return string(b), err == nil
	}
	widget := func(name string, replicas int) string {
		return fmt.Sprintf("apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {replicas: %d}\n", name, replicas)
	}
	config, err := clientcmd.BuildConfigFromFlags("", user)
	if err != nil {
		t.Fatal(err)
	}
	widgets, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	events, err := widgets.Resource(widgetResource).Namespace("secure").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for _, step := range []struct {
		name     string
		replicas int
		refused  string
	}{
		{"limit", 3, ""},
		{"small", 2, ""},
		{"large", 4, "must be at most 3"},
		{"huge", 6, "replicas must be less than or equal to 5"},
	} {
		out, ok := run(widget(step.name, step.replicas), "create", "-f", "-")
		if ok != (step.refused == "") || !strings.Contains(out, step.refused) {
			t.Errorf("%s: %s", step.name, out)
		}
	}
	for _, name := range []string{"limit", "small"} {
		select {
		case e := <-events.ResultChan():
			if object, ok := e.Object.(metav1.Object); e.Type != watch.Added || !ok || object.GetName() != name {
				t.Errorf("the watch has %+v, want %s", e, name)
			}
		case <-ctx.Done():
			t.Fatal("the watch has no event")
		}
	}
	const path = "/apis/e2e.example.com/v1/namespaces/secure/widgets"
	for _, one := range []struct {
		request, token string
		want           bool
	}{
		{"POST " + path, "Bearer of-alice", true},
		{"GET " + path, "Bearer of-alice", true},
		{"GET " + path + "/limit", "Bearer of-the-gateway", true}, // for the policy
		{"GET " + path + "/limit", "Bearer of-alice", false},
		{"POST " + path, "Bearer of-the-gateway", false},
	} {
		if got := server.AskedBy(one.request, one.token); got != one.want {
			t.Errorf("%s by %s: %v, want %v", one.request, one.token, got, one.want)
		}
	}
	if out, ok := run("", "delete", "widgets", "--all"); !ok {
		t.Error(out)
	}
}
