package library_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	psadmission "k8s.io/pod-security-admission/admission"
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

// A holder is a kind that has a pod: the Pod itself, or a template of Pods.
type holder struct {
	group, kind, resource string
	// around is the object, with %s in place of the pod's metadata and spec.
	around string
	// path leads to the pod.
	path string
	// typed is an empty object of Kubernetes' own type.
	typed func() runtime.Object
}

const ofPod = `"metadata":%s,"spec":%s`

var holders = []holder{
	{"", "Pod", "pods", ofPod, "", func() runtime.Object { return &corev1.Pod{} }},
	{"", "PodTemplate", "podtemplates", `"template":{` + ofPod + `}`, "template.",
		func() runtime.Object { return &corev1.PodTemplate{} }},
	{"", "ReplicationController", "replicationcontrollers", `"spec":{"template":{` + ofPod + `}}`, "spec.template.",
		func() runtime.Object { return &corev1.ReplicationController{} }},
	{"apps", "ReplicaSet", "replicasets", `"spec":{"template":{` + ofPod + `}}`, "spec.template.",
		func() runtime.Object { return &appsv1.ReplicaSet{} }},
	{"apps", "Deployment", "deployments", `"spec":{"template":{` + ofPod + `}}`, "spec.template.",
		func() runtime.Object { return &appsv1.Deployment{} }},
	{"apps", "StatefulSet", "statefulsets", `"spec":{"template":{` + ofPod + `}}`, "spec.template.",
		func() runtime.Object { return &appsv1.StatefulSet{} }},
	{"apps", "DaemonSet", "daemonsets", `"spec":{"template":{` + ofPod + `}}`, "spec.template.",
		func() runtime.Object { return &appsv1.DaemonSet{} }},
	{"batch", "Job", "jobs", `"spec":{"template":{` + ofPod + `}}`, "spec.template.",
		func() runtime.Object { return &batchv1.Job{} }},
	{"batch", "CronJob", "cronjobs", `"spec":{"jobTemplate":{"spec":{"template":{` + ofPod + `}}}}`,
		"spec.jobTemplate.spec.template.", func() runtime.Object { return &batchv1.CronJob{} }},
}

// of is the object of the kind that has a pod.
func (h *holder) of(pod []byte) []byte {
	var p struct{ Metadata, Spec json.RawMessage }
	if err := json.Unmarshal(pod, &p); err != nil {
		panic(err)
	}
	name := ""
	if h.path != "" {
		name = `"metadata":{"name":"p"},`
	}
	version := strings.TrimPrefix(h.group+"/v1", "/")
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,%s`+h.around+`}`, version, h.kind, name, p.Metadata, p.Spec)
}

// info is a request for the kind.
func (h *holder) info(verb resource.Verb, subresource string) *resource.Info {
	prefix := "apis"
	if h.group == "" {
		prefix = "api"
	}
	return &resource.Info{Verb: verb, IsResource: true, APIPrefix: prefix, Group: h.group, Version: "v1",
		Resource: h.resource, Subresource: subresource, Namespace: "default", Name: "p"}
}

// judge returns the fields that a set has something against in an object, each with its policy's message; nil if the
// set admits it.
func judge(t *testing.T, set *policies.Set, lookup *admissiontest.Lookup, info *resource.Info,
	operation admission.Operation, object []byte) (wrong []string) {
	t.Helper()
	d, err := document.Parse(object, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	a := &admission.Attributes{Info: info, Operation: operation, User: &identity.User{Name: "jane"}, Object: d,
		Frame: cel.NewFrame(context.Background()), Lookup: lookup}
	if operation == admission.Update {
		a.Old = d
	}
	defer a.Frame.Release()
	var r admission.Report
	set.Admission().Validate(context.Background(), a, &r)
	for _, denial := range r.Denials() {
		for _, c := range append(denial.Details, denial.Cause) {
			wrong = append(wrong, c.Field+": "+denial.Cause.Message)
		}
	}
	return wrong
}

// below returns the fields of a pod as they are called in the object that has it.
func below(path string, wrong []string) (all []string) {
	for _, w := range wrong {
		all = append(all, path+w)
	}
	return all
}

// TestPodSecurityStandards: the sets refuse exactly the pods that Kubernetes' own admission of the standards refuses,
// alone and as the template of each kind that it knows: its recorded pods, and pods that are put together of values
// that the checks look at. What is wrong with a template has the field of the Pod, below the template.
func TestPodSecurityStandards(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	extractor := psadmission.DefaultPodSpecExtractor{}
	var known, ours []string
	for _, r := range extractor.PodSpecResources() {
		known = append(known, r.String())
	}
	for _, h := range holders {
		ours = append(ours, schema.GroupResource{Group: h.group, Resource: h.resource}.String())
	}
	if slices.Sort(known); !slices.Equal(known, slices.Sorted(slices.Values(ours))) {
		t.Fatalf("Kubernetes judges %v, the test %v", known, ours)
	}
	levels := []struct {
		level api.Level
		set   *policies.Set
	}{
		{api.LevelBaseline, policiestest.LoadFiles(t, "pod-security/baseline")},
		{api.LevelRestricted, policiestest.LoadFiles(t, "pod-security/baseline", "pod-security/restricted")},
	}
	lookup := &admissiontest.Lookup{}
	counts := map[string]int{}
	compare := func(name string, pod []byte) {
		t.Helper()
		for _, level := range levels {
			var ofPod []string
			for i := range holders {
				h := &holders[i]
				object := h.of(pod)
				typed := h.typed()
				if err := json.Unmarshal(object, typed); err != nil {
					t.Fatal(name, err)
				}
				metadata, spec, err := extractor.ExtractPodSpec(typed)
				if err != nil {
					t.Fatal(err)
				}
				theirs := policy.AggregateCheckResults(
					checks.EvaluatePod(api.LevelVersion{Level: level.level, Version: api.LatestVersion()}, metadata,
						spec))
				wrong := judge(t, level.set, lookup, h.info(resource.VerbCreate, ""), admission.Create, object)
				counts[fmt.Sprintf("%s %s %v", level.level, h.kind, len(wrong) == 0)]++
				if (len(wrong) == 0) != theirs.Allowed {
					t.Errorf("%s: %s: %s: wrong are %q, allowed %v (%s %s)\n%s", name, level.level, h.kind, wrong,
						theirs.Allowed, theirs.ForbiddenReason(), theirs.ForbiddenDetail(), object)
				}
				if again := judge(t, level.set, lookup, h.info(resource.VerbUpdate, ""), admission.Update,
					object); !slices.Equal(again, wrong) {
					t.Errorf("%s: %s: an update of a %s: wrong are %q, of a new one %q", name, level.level, h.kind,
						again, wrong)
				}
				if h.path == "" {
					ofPod = wrong
					if again := judge(t, level.set, lookup, h.info(resource.VerbUpdate, "ephemeralcontainers"),
						admission.Update, object); !slices.Equal(again, wrong) {
						t.Errorf("%s: %s: with ephemeral containers: wrong are %q, of a new Pod %q", name, level.level,
							again, wrong)
					}
				}
				if !slices.Equal(below(h.path, ofPod), wrong) {
					t.Errorf("%s: %s: of a %s wrong are\n%q\nof the pod\n%q\n%s", name, level.level, h.kind, wrong,
						ofPod, object)
				}
			}
		}
	}
	recorded := recordedPods(t)
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if pod := recorded[name]; !seen[string(pod)] { // most versions of the standards have the same ones
			seen[string(pod)] = true
			compare(name, pod)
		}
	}
	r := rand.New(rand.NewSource(1))
	for i := range testutil.Amount(5000, 500) {
		compare(fmt.Sprint("pod ", i), randomPod(r))
	}
	for _, level := range levels {
		for _, h := range holders {
			for _, allowed := range []bool{true, false} {
				if kind := fmt.Sprintf("%s %s %v", level.level, h.kind, allowed); counts[kind] < 50 {
					t.Errorf("%s: only %d objects", kind, counts[kind])
				}
			}
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
		`"hostNetwork":true`, `"hostPID":true`, `"hostIPC":true`, `"hostNetwork":false`, `"hostUsers":false`,
		`"hostUsers":true`,
		`"volumes":[{"name":"a","hostPath":{"path":"/"}}]`,
		`"volumes":[{"name":"a","emptyDir":{}},{"name":"b","secret":{}}]`,
		`"volumes":[{"name":"a","nfs":{"server":"s","path":"/"}}]`,
		`"volumes":[{"name":"a","image":{}},{"name":"b","csi":{"driver":"d"}},{"name":"c","downwardAPI":{}},{"name":"d","projected":{"sources":[]}},{"name":"e","ephemeral":{}}]`,
	}
	securityOfPods = []string{
		`"runAsNonRoot":true`, `"runAsNonRoot":false`, `"runAsUser":0`, `"runAsUser":1000`,
		`"seccompProfile":{"type":"RuntimeDefault"}`, `"seccompProfile":{"type":"Unconfined"}`,
		`"seLinuxOptions":{"type":"container_t"}`, `"seLinuxOptions":{"type":"spc_t"}`, `"seLinuxOptions":{"user":"u"}`,
		`"seLinuxOptions":{"role":""}`, `"windowsOptions":{"hostProcess":true}`,
		`"windowsOptions":{"hostProcess":false}`, `"appArmorProfile":{"type":"Unconfined"}`,
		`"appArmorProfile":{"type":"Localhost"}`, `"sysctls":[{"name":"net.ipv4.tcp_rmem","value":"1"}]`,
		`"sysctls":[{"name":"kernel.msgmax","value":"1"}]`, `"sysctls":[]`,
	}
	securityOfContainers = []string{
		`"privileged":true`, `"privileged":false`, `"allowPrivilegeEscalation":false`,
		`"allowPrivilegeEscalation":true`, `"runAsNonRoot":true`, `"runAsNonRoot":false`, `"runAsUser":0`,
		`"capabilities":{"drop":["ALL"]}`, `"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}`,
		`"capabilities":{"add":["CHOWN"]}`, `"capabilities":{"add":["NET_RAW"],"drop":["ALL"]}`,
		`"seccompProfile":{"type":"Localhost"}`, `"seccompProfile":{"type":"Unconfined"}`, `"procMount":"Unmasked"`,
		`"procMount":"Default"`, `"seLinuxOptions":{"type":"container_init_t"}`,
		`"seLinuxOptions":{"type":"","level":"s0"}`, `"seLinuxOptions":{"role":"r"}`,
		`"windowsOptions":{"hostProcess":true}`, `"appArmorProfile":{"type":"RuntimeDefault"}`,
		`"appArmorProfile":{"type":"Other"}`,
	}
	containerSettings = []string{
		`"ports":[{"containerPort":80,"hostPort":80}]`, `"ports":[{"containerPort":80,"hostPort":0}]`,
		`"livenessProbe":{"httpGet":{"port":1,"host":"h"}}`, `"readinessProbe":{"tcpSocket":{"port":1,"host":"h"}}`,
		`"startupProbe":{"httpGet":{"port":1}}`, `"lifecycle":{"preStop":{"httpGet":{"port":1,"host":"h"}}}`,
		`"lifecycle":{"postStart":{"tcpSocket":{"port":1}}}`,
	}
	annotations = []string{
		`"container.apparmor.security.beta.kubernetes.io/a":"unconfined"`,
		`"container.apparmor.security.beta.kubernetes.io/a":"runtime/default"`,
		`"container.apparmor.security.beta.kubernetes.io/b":""`,
		`"container.apparmor.security.beta.kubernetes.io/b":"localhost/x"`, `"other":"unconfined"`,
	}
	// restrictedContainer keeps to the stricter standard, so that other values decide.
	restrictedContainer = []string{`"allowPrivilegeEscalation":false`, `"capabilities":{"drop":["ALL"]}`,
		`"seccompProfile":{"type":"RuntimeDefault"}`, `"runAsNonRoot":true`}
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
