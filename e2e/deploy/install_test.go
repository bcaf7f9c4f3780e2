package deploy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// TestInstallBeforeAPIServer follows docs/install.md in front of a kube-apiserver with RBAC. Nothing runs Pods there,
// so the test does: it runs the container of the Deployment that the page applies, with its arguments and its mounts.
func TestInstallBeforeAPIServer(t *testing.T) {
	needsMounts(t)
	issuer, dir := newAuthority(t), t.TempDir()
	authorities := filepath.Join(dir, "authority.crt")
	write(t, authorities, encoded("CERTIFICATE", issuer.certificate.Raw))
	writePair(t, dir, issuer.issue(t, "gateway", nil))
	shared := startStore(t, tokens)
	c := shared.launch(t, "--client-ca-file="+authorities)
	c.waitReady(t)
	c.writeKubeconfig(t, filepath.Join(dir, "kubeconfig"))

	text, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## In front of the API server\n")
	section, _, ends := strings.Cut(section, "\n## ")
	if !found || !ends {
		t.Fatal("docs/install.md has no section about the API server")
	}
	folders, err := filepath.Abs(bases)
	if err != nil {
		t.Fatal(err)
	}
	listen := testutil.FreeAddress(t)
	section = strings.NewReplacer("github.com/admission-gateway/gateway/deploy/", "", "gateway.gateway-system.svc",
		listen).Replace(section)
	brought := fmt.Sprintf("What the reader has:\n\n```sh\ncp -r %s kustomize\ncp %s/tls.crt %[2]s/tls.key %[2]s/authority.crt .\n```\n", folders, dir)
	write(t, filepath.Join(dir, "page.md"), brought+section)

	run, end := context.WithCancel(t.Context())
	var out []byte
	go func() {
		defer end()
		out, err = exec.CommandContext(run, "go", "run", "-C", "../..", "./internal/doctest/follow", "-gateway",
			gateway, "-command", "kubectl="+kubectl,
			"-env", "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "page.md")).CombinedOutput()
	}()
	log := c.play(t, run, shared, "gateway-system", listen)
	if err != nil {
		t.Errorf("docs/install.md: %v\n%s\nthe container:\n%s", err, out, log)
	}
}

// writeKubeconfig writes a kubeconfig of the administrator.
func (c *cluster) writeKubeconfig(t *testing.T, path string) {
	t.Helper()
	configured, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c",
			"cluster": map[string]any{"server": c.url, "insecure-skip-tls-verify": true}}},
		"users":    []any{map[string]any{"name": "root", "user": map[string]any{"token": "of-root"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "root"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(configured))
}

// play runs the container of the Deployment gateway as a kubelet would, once there is one, and says in its status that
// it is ready. It returns what the container has logged when ctx ends.
func (c *cluster) play(t *testing.T, ctx context.Context, shared *store, namespace, listen string) string {
	t.Helper()
	var deployment appsv1.Deployment
	if until(ctx, func() bool {
		code, body := ask(t, "of-root", "GET", c.url+"/apis/apps/v1/namespaces/"+namespace+"/deployments/gateway", "",
			"")
		return code == 200 && json.Unmarshal([]byte(body), &deployment) == nil
	}) != nil {
		return "it is not applied"
	}
	pod, admin := &deployment.Spec.Template.Spec, ""
	for admin == "" || admin == listen {
		admin = testutil.FreeAddress(t)
	}
	var prepare string
	var env []string
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		account := filepath.Join(t.TempDir(), "account")
		certificate, err := os.ReadFile(filepath.Join(shared.certificates(c), "apiserver.crt"))
		if err != nil {
			t.Fatal(err)
		}
		files(t, account, map[string]string{"token": c.token(t, namespace, pod.ServiceAccountName),
			"ca.crt": string(certificate), "namespace": namespace})
		prepare = bind(account, "/run/secrets/kubernetes.io/serviceaccount")
		host, port, err := net.SplitHostPort(strings.TrimPrefix(c.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
	}
	var log bytes.Buffer
	// A Pod has ports of its own, and this one shares the machine's.
	command := c.container(t, ctx, namespace, t.TempDir(), prepare, pod,
		append(pod.Containers[0].Args, "--listen="+listen, "--admin="+admin))
	command.Env, command.Stdout, command.Stderr = append(command.Env, env...), &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if until(ctx, answers("http://"+admin+pod.Containers[0].ReadinessProbe.HTTPGet.Path)) == nil {
		replicas := *deployment.Spec.Replicas
		c.must(t, "", "patch", "deployment", "gateway", "--namespace="+namespace, "--subresource=status",
			"--type=merge", "--patch", fmt.Sprintf(
				`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%[2]d,"readyReplicas":%[2]d,"availableReplicas":%[2]d}}`, deployment.Generation, replicas))
	}
	_ = command.Wait()
	return log.String()
}

// container returns the command of the first container of a Pod, with its variables and its volumes as a kubelet mounts
// them. The files of the volumes are written below a folder; prepare is what the shell does before.
func (c *cluster) container(t *testing.T, ctx context.Context, namespace, dir, prepare string, pod *corev1.PodSpec,
	args []string) *exec.Cmd {
	t.Helper()
	container := pod.Containers[0]
	script := "set -e\nmount -t tmpfs none /etc\nmount -t tmpfs none /run\n" + prepare
	for _, m := range container.VolumeMounts {
		folder := filepath.Join(dir, m.Name)
		c.project(t, namespace, folder, volume(pod.Volumes, m.Name))
		script += bind(folder, m.MountPath)
	}
	script += "exec " + gateway + " " + strings.Join(args, " ") + "\n"
	command := exec.CommandContext(ctx, "unshare", "--mount", "--map-root-user", "sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range container.Env {
		command.Env = append(command.Env, e.Name+"="+e.Value)
	}
	return command
}

// bind returns the commands that mount a folder at a path.
func bind(folder, at string) string {
	return fmt.Sprintf("mkdir -p %s\nmount --bind -o ro %s %[1]s\n", at, folder)
}

// needsMounts skips the test where the mounts of a container cannot be made.
func needsMounts(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none",
		"/mnt").CombinedOutput(); err != nil {
		t.Skipf("the container's mounts cannot be made: %v\n%s", err, out)
	}
}

// until asks again and again until ok returns true, or ctx ends.
func until(ctx context.Context, ok func() bool) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true,
		func(context.Context) (bool, error) { return ok(), nil })
}

func volume(all []corev1.Volume, name string) corev1.Volume {
	for _, v := range all {
		if v.Name == name {
			return v
		}
	}
	return corev1.Volume{}
}

// project writes the files of a volume.
func (c *cluster) project(t *testing.T, namespace, folder string, v corev1.Volume) {
	t.Helper()
	texts := map[string]string{}
	switch {
	case v.ConfigMap != nil:
		var from corev1.ConfigMap
		get(t, c, "/api/v1/namespaces/"+namespace+"/configmaps/"+v.ConfigMap.Name, &from)
		texts = from.Data
	case v.Secret != nil:
		var from struct{ Data map[string]string }
		get(t, c, "/api/v1/namespaces/"+namespace+"/secrets/"+v.Secret.SecretName, &from)
		for name, value := range from.Data {
			text, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
		if items := v.Secret.Items; len(items) > 0 {
			all := texts
			texts = map[string]string{}
			for _, item := range items {
				texts[item.Path] = all[item.Key]
			}
		}
	default:
		t.Fatalf("the volume %q is of another kind", v.Name)
	}
	files(t, folder, texts)
}

func files(t *testing.T, folder string, texts map[string]string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		write(t, filepath.Join(folder, name), text)
	}
}
