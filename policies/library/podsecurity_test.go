package library_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// denies reports whether a set refuses the creation of a pod.
func denies(t *testing.T, set *policies.Set, pod []byte) bool {
	t.Helper()
	d, err := document.Parse(pod, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a := &admission.Attributes{
		Info:      &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1", Resource: "pods", Namespace: "default"},
		Operation: admission.Create, User: &identity.User{Name: "jane"}, Object: d, Frame: cel.NewFrame(context.Background()), Lookup: &admissiontest.Lookup{},
	}
	defer a.Frame.Release()
	var r admission.Report
	set.Admission().Validate(context.Background(), a, &r)
	return len(r.Denials()) > 0
}

// TestPodSecurityStandards: the sets refuse exactly the pods that Kubernetes' own admission of the standards refuses: its
// recorded pods, and pods that are put together of values that the checks look at.
func TestPodSecurityStandards(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	baseline := policiestest.LoadFiles(t, "pod-security/baseline")
	restricted := policiestest.LoadFiles(t, "pod-security/baseline", "pod-security/restricted")
	counts := map[string]int{}
	compare := func(name string, pod []byte) {
		t.Helper()
		var p corev1.Pod
		if err := json.Unmarshal(pod, &p); err != nil {
			t.Fatal(name, err)
		}
		for _, level := range []struct {
			level api.Level
			set   *policies.Set
		}{{api.LevelBaseline, baseline}, {api.LevelRestricted, restricted}} {
			theirs := policy.AggregateCheckResults(checks.EvaluatePod(api.LevelVersion{Level: level.level, Version: api.LatestVersion()}, &p.ObjectMeta, &p.Spec))
			ours := denies(t, level.set, pod)
			counts[fmt.Sprintf("%s %v", level.level, ours)]++
			if ours == theirs.Allowed {
				t.Errorf("%s: %s: denied %v, want %v (%s %s)\n%s", name, level.level, ours, !theirs.Allowed, theirs.ForbiddenReason(), theirs.ForbiddenDetail(), pod)
			}
		}
	}
	for name, pod := range recordedPods(t) {
		compare(name, pod)
	}
	r := rand.New(rand.NewSource(1))
	for i := range testutil.Amount(5000, 1000) {
		compare(fmt.Sprint("pod ", i), randomPod(r))
	}
	for _, kind := range []string{"baseline true", "baseline false", "restricted true", "restricted false"} {
		if counts[kind] < 100 {
			t.Errorf("%s: only %d pods", kind, counts[kind])
		}
	}
}

// recordedPods returns the pods that Kubernetes' own tests of the standards have.
func recordedPods(t *testing.T) map[string][]byte {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	root := filepath.Join(strings.TrimSpace(string(out)), "test", "testdata")
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pod, err := yaml.YAMLToJSON(data)
		all[strings.TrimPrefix(path, root)] = pod
		return err
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("%d recorded pods, %v", len(all), err)
	}
	return all
}

// settings are the values that the checks look at, by the place that they stand at: whole, of pods and of containers.
var (
	podSettings = []string{
		`"hostNetwork":true`, `"hostPID":true`, `"hostIPC":true`, `"hostNetwork":false`, `"hostUsers":false`, `"hostUsers":true`,
		`"volumes":[{"name":"a","hostPath":{"path":"/"}}]`, `"volumes":[{"name":"a","emptyDir":{}},{"name":"b","secret":{}}]`, `"volumes":[{"name":"a","nfs":{"server":"s","path":"/"}}]`,
		`"volumes":[{"name":"a","image":{}},{"name":"b","csi":{"driver":"d"}},{"name":"c","downwardAPI":{}},{"name":"d","projected":{"sources":[]}},{"name":"e","ephemeral":{}}]`,
	}
	securityOfPods = []string{
		`"runAsNonRoot":true`, `"runAsNonRoot":false`, `"runAsUser":0`, `"runAsUser":1000`, `"seccompProfile":{"type":"RuntimeDefault"}`, `"seccompProfile":{"type":"Unconfined"}`,
		`"seLinuxOptions":{"type":"container_t"}`, `"seLinuxOptions":{"type":"spc_t"}`, `"seLinuxOptions":{"user":"u"}`, `"seLinuxOptions":{"role":""}`, `"windowsOptions":{"hostProcess":true}`,
		`"windowsOptions":{"hostProcess":false}`, `"appArmorProfile":{"type":"Unconfined"}`, `"appArmorProfile":{"type":"Localhost"}`, `"sysctls":[{"name":"net.ipv4.tcp_rmem","value":"1"}]`,
		`"sysctls":[{"name":"kernel.msgmax","value":"1"}]`, `"sysctls":[]`,
	}
	securityOfContainers = []string{
		`"privileged":true`, `"privileged":false`, `"allowPrivilegeEscalation":false`, `"allowPrivilegeEscalation":true`, `"runAsNonRoot":true`, `"runAsNonRoot":false`, `"runAsUser":0`,
		`"capabilities":{"drop":["ALL"]}`, `"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}`, `"capabilities":{"add":["CHOWN"]}`, `"capabilities":{"add":["NET_RAW"],"drop":["ALL"]}`,
		`"seccompProfile":{"type":"Localhost"}`, `"seccompProfile":{"type":"Unconfined"}`, `"procMount":"Unmasked"`, `"procMount":"Default"`, `"seLinuxOptions":{"type":"container_init_t"}`,
		`"seLinuxOptions":{"type":"","level":"s0"}`, `"seLinuxOptions":{"role":"r"}`, `"windowsOptions":{"hostProcess":true}`, `"appArmorProfile":{"type":"RuntimeDefault"}`, `"appArmorProfile":{"type":"Other"}`,
	}
	containerSettings = []string{
		`"ports":[{"containerPort":80,"hostPort":80}]`, `"ports":[{"containerPort":80,"hostPort":0}]`, `"livenessProbe":{"httpGet":{"port":1,"host":"h"}}`, `"readinessProbe":{"tcpSocket":{"port":1,"host":"h"}}`,
		`"startupProbe":{"httpGet":{"port":1}}`, `"lifecycle":{"preStop":{"httpGet":{"port":1,"host":"h"}}}`, `"lifecycle":{"postStart":{"tcpSocket":{"port":1}}}`,
	}
	annotations = []string{
		`"container.apparmor.security.beta.kubernetes.io/a":"unconfined"`, `"container.apparmor.security.beta.kubernetes.io/a":"runtime/default"`, `"container.apparmor.security.beta.kubernetes.io/b":""`,
		`"container.apparmor.security.beta.kubernetes.io/b":"localhost/x"`, `"other":"unconfined"`,
	}
	// restrictedContainer keeps to the stricter standard, so that other values decide.
	restrictedContainer = []string{`"allowPrivilegeEscalation":false`, `"capabilities":{"drop":["ALL"]}`, `"seccompProfile":{"type":"RuntimeDefault"}`, `"runAsNonRoot":true`}
)

// members returns the text of an object with up to so many of some members, each name once.
func members(r *rand.Rand, most int, from []string, fixed ...string) string {
	seen, all := map[string]bool{}, []string{}
	for range r.Intn(most + 1) {
		fixed = append(fixed, from[r.Intn(len(from))])
	}
	for i := len(fixed) - 1; i >= 0; i-- { // what was drawn takes the place of what is fixed
		name, _, _ := strings.Cut(fixed[i], ":")
		if !seen[name] {
			seen[name] = true
			all = append(all, fixed[i])
		}
	}
	return strings.Join(all, ",")
}

func randomPod(r *rand.Rand) []byte {
	isStrict := r.Intn(2) == 0
	container := func(name string) string {
		var fixed []string
		if isStrict {
			fixed = append(fixed, restrictedContainer...)
		}
		text := `{"name":"` + name + `","image":"i"`
		if security := members(r, 2, securityOfContainers, fixed...); security != "" || r.Intn(2) == 0 {
			text += `,"securityContext":{` + security + `}`
		}
		if r.Intn(4) == 0 {
			if settings := members(r, 1, containerSettings); settings != "" {
				text += "," + settings
			}
		}
		return text + "}"
	}
	spec := `"containers":[` + container("a") + `]`
	if r.Intn(3) == 0 {
		spec = `"containers":[` + container("a") + "," + container("b") + `],"initContainers":[` + container("c") + `]`
	}
	if r.Intn(6) == 0 {
		spec += `,"ephemeralContainers":[` + container("d") + `]`
	}
	if r.Intn(2) == 0 {
		spec += `,"securityContext":{` + members(r, 2, securityOfPods) + `}`
	}
	if r.Intn(3) == 0 {
		if settings := members(r, 2, podSettings); settings != "" {
			spec += "," + settings
		}
	}
	// The values that a pod of Windows may not have at all are decided otherwise by both.
	if !strings.Contains(spec, "seccompProfile") && !strings.Contains(spec, "capabilities") && r.Intn(4) == 0 {
		spec += `,"os":{"name":"windows"}`
	}
	metadata := `{"name":"p"}`
	if r.Intn(4) == 0 {
		metadata = `{"name":"p","annotations":{` + members(r, 2, annotations) + `}}`
	}
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":` + metadata + `,"spec":{` + spec + `}}`)
}
