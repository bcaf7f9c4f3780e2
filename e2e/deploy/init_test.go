package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// What a Pod has that the policies of `gateway init` let pass, and one that has its node in its hands.
const (
	soundPod = `{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"registry.example.com/web:1.2.3",
		"resources":{"requests":{"cpu":"10m","memory":"64Mi"},"limits":{"memory":"64Mi"}},"securityContext":{"readOnlyRootFilesystem":true},
		"readinessProbe":{"tcpSocket":{"port":80}},"livenessProbe":{"tcpSocket":{"port":80}}}]}`
	privilegedPod = `{"hostPID":true,"hostNetwork":true,"volumes":[{"name":"node","hostPath":{"path":"/"}}],
		"containers":[{"name":"web","image":"registry.example.com/web:latest","securityContext":{"privileged":true}}]}`
)

// A workload is a kind that makes Pods, or the Pod itself.
type workload struct {
	kind, path string
	// around is the object but for kind and metadata, with %[4]s for the spec of the Pod.
	around string
	// at leads to the Pod.
	at string
}

const started = "/namespaces/started/"

var workloads = []workload{
	{"Deployment", "/apis/apps/v1" + started + "deployments", `"apiVersion":"apps/v1","spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":%[4]s}}`, "spec.template."},
	{"StatefulSet", "/apis/apps/v1" + started + "statefulsets", `"apiVersion":"apps/v1","spec":{"serviceName":"web","selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":%[4]s}}`, "spec.template."},
	{"DaemonSet", "/apis/apps/v1" + started + "daemonsets", `"apiVersion":"apps/v1","spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":%[4]s}}`, "spec.template."},
	{"ReplicaSet", "/apis/apps/v1" + started + "replicasets", `"apiVersion":"apps/v1","spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":%[4]s}}`, "spec.template."},
	{"ReplicationController", "/api/v1" + started + "replicationcontrollers", `"apiVersion":"v1","spec":{"selector":{"app":"web"},"template":{"metadata":{"labels":{"app":"web"}},"spec":%[4]s}}`, "spec.template."},
	{"PodTemplate", "/api/v1" + started + "podtemplates", `"apiVersion":"v1","template":{"metadata":{"labels":{"app":"web"}},"spec":%[4]s}`, "template."},
	{"Job", "/apis/batch/v1" + started + "jobs", `"apiVersion":"batch/v1","spec":{"ttlSecondsAfterFinished":600,"template":{"spec":%[4]s}}`, "spec.template."},
	{"CronJob", "/apis/batch/v1" + started + "cronjobs", `"apiVersion":"batch/v1","spec":{"schedule":"0 3 * * *","concurrencyPolicy":"Forbid","jobTemplate":{"spec":{"template":{"spec":%[4]s}}}}`, "spec.jobTemplate.spec.template."},
	{"Pod", "/api/v1" + started + "pods", `"apiVersion":"v1","spec":%[4]s`, ""},
}

// of returns the object of a name that has the Pod. Jobs end, so that their Pods are not restarted for ever.
func (w *workload) of(name, metadata, pod string) string {
	if strings.HasSuffix(w.kind, "Job") {
		pod = strings.Replace(pod, "{", `{"restartPolicy":"Never",`, 1)
	}
	return fmt.Sprintf(`{"kind":%q,"metadata":{"name":%q%s},`+w.around+"}", w.kind, name, metadata, pod)
}

// What `gateway init --enforce Deny` writes refuses a privileged Pod in front of a kube-apiserver, alone and as the
// template of each kind that makes Pods, in the words that docs/library.md promises. The same objects with a sound Pod
// are stored.
func TestInitBeforeAPIServer(t *testing.T) {
	c, dir := commonCluster(t), filepath.Join(t.TempDir(), "platform")
	if out, err := exec.Command(gateway, "init", "--backend", "Kubernetes", "--enforce", "Deny",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.namespace(t, "started")
	c.account(t, "started")
	c.namespace(t, "platform")
	c.must(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: registries, namespace: platform}\ndata: {ours: registry.example.com/}\n", "apply", "-f", "-")
	kubeconfig, listen, admin := filepath.Join(dir, "kubeconfig"), testutil.FreeAddress(t), testutil.FreeAddress(t)
	c.writeKubeconfig(t, kubeconfig)
	start(t, answers("http://"+admin+"/readyz"), filepath.Join(dir, "log"), gateway, "serve", "--config",
		filepath.Join(dir, "gateway.yaml"),
		"--kubeconfig", kubeconfig, "--listen", listen, "--admin", admin)
	through := "http://" + listen
	fields := []string{"spec.hostPID", "spec.hostNetwork", "spec.volumes[0].hostPath",
		"spec.containers[0].securityContext.privileged", "spec.containers[0].image"}
	owner := ""
	for _, w := range workloads {
		code, body := ask(t, "of-root", "POST", through+w.path, "application/json",
			w.of("privileged", owner, privilegedPod))
		var refused struct {
			Reason  string
			Details struct {
				Causes []struct{ Field, Message string }
			}
		}
		if err := json.Unmarshal([]byte(body), &refused); err != nil || code < 400 || code >= 500 {
			t.Errorf("a privileged %s is answered %d %s", w.kind, code, body)
		}
		named := map[string]bool{}
		for _, cause := range refused.Details.Causes {
			named[cause.Field] = true
		}
		for _, field := range fields {
			if !named[w.at+field] {
				t.Errorf("a privileged %s: no cause has the field %s%s: %s", w.kind, w.at, field, body)
			}
		}
		if code, body := ask(t, "of-root", "GET", c.url+w.path+"/privileged", "", ""); code != 404 {
			t.Errorf("a privileged %s is stored: %d %s", w.kind, code, body)
		}
		if w.kind == "Pod" { // one that belongs to no workload is refused for that alone
			code, body := ask(t, "of-root", "POST", through+w.path, "application/json", w.of("sound", "", soundPod))
			if code < 400 || strings.Count(body, `"field"`) != 1 ||
				!strings.Contains(body, "pods must belong to a workload") {
				t.Errorf("a sound Pod without an owner is answered %d %s", code, body)
			}
		}
		code, body = ask(t, "of-root", "POST", through+w.path, "application/json", w.of("sound", owner, soundPod))
		var stored struct{ Metadata struct{ Name, UID string } }
		if err := json.Unmarshal([]byte(body), &stored); err != nil || code != 201 {
			t.Fatalf("a sound %s is answered %d %s", w.kind, code, body)
		}
		if w.kind == "ReplicaSet" {
			owner = fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"sound","uid":%q,"controller":true}]`, stored.Metadata.UID)
		}
	}
}
