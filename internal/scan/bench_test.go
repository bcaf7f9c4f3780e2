package scan

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// tenRules are ten policies with a CEL rule each about Deployments, of the kind that platform teams write.
func tenRules() string {
	var b strings.Builder
	for i, rule := range []string{
		`object.spec.replicas <= 100`,
		`object.spec.replicas >= 1`,
		`has(object.metadata.labels) && 'team' in object.metadata.labels`,
		`object.metadata.name.size() <= 60`,
		`object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))`,
		`object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))`,
		`object.spec.template.spec.containers.all(c, has(c.resources) && has(c.resources.limits))`,
		`!has(object.spec.template.spec.hostNetwork) || !object.spec.template.spec.hostNetwork`,
		`object.spec.template.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)`,
		`object.spec.selector.matchLabels.all(k, object.spec.template.metadata.labels[k] == object.spec.selector.matchLabels[k])`,
	} {
		fmt.Fprintf(&b, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: rule-%d}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations: [{expression: "%s"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: rule-%d}
spec: {policyName: rule-%d, validationActions: [Deny]}
`, i, rule, i, i)
	}
	return b.String()
}

// deployments returns the text of so many Deployments of 1 KB, one a line. Each fiftieth breaks one rule.
func deployments(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		replicas := 3
		if i%50 == 49 {
			replicas = 500
		}
		fmt.Fprintf(&b, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","namespace":"team-%d","labels":{"app":"web","team":"team-%d"},`+
			`"annotations":{"example.com/owner":"payments@example.com","example.com/change":"CH-20418"}},"spec":{"replicas":%d,"minReadySeconds":10,`+
			`"progressDeadlineSeconds":600,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web","tier":"backend"}},`+
			`"spec":{"serviceAccountName":"web","containers":[{"name":"web","image":"registry.example.com/payments/web:1.42.0","ports":[{"name":"http",`+
			`"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"DB_HOST","value":"db.payments.svc"}],"resources":`+
			`{"requests":{"cpu":"250m","memory":"256Mi"},"limits":{"cpu":"1","memory":"512Mi"}}},{"name":"proxy","image":"registry.example.com/platform/envoy:1.31.2",`+
			`"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"200m","memory":"128Mi"}}}]}}}}`+"\n", i, i%100, i%100, replicas)
	}
	return b.Bytes()
}

// offline returns options with the gateway of a policy file and without a backend.
func offline(t testing.TB, text string) Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.yaml")
	testutil.WriteFile(t, file, text)
	set, err := Compile([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	side, end, err := Offline(set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return Options{New: side, Upstream: "default", As: Create, User: identity.User{Name: "gateway-scan"}, List: 100}
}

// spent returns how much time of processors the process has taken.
func spent(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFiles is a scan of files by ten CEL rules. objects/cpu-s is how many objects a processor judges in a second
// of its time, whatever else the machine does meanwhile.
func BenchmarkFiles(b *testing.B) {
	const n = 20_000
	lines := deployments(n)
	list := append([]byte(`{"apiVersion":"v1","kind":"List","items":[`),
		bytes.Join(bytes.Split(bytes.TrimSpace(lines), []byte("\n")), []byte(","))...)
	for _, c := range []struct {
		name string
		text []byte
	}{{"lines", lines}, {"list", append(list, "]}"...)}} {
		b.Run(c.name, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "objects.json")
			if err := os.WriteFile(file, c.text, 0o600); err != nil {
				b.Fatal(err)
			}
			o := offline(b, tenRules())
			o.Files, o.Workers = []string{file}, 1
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			before, times := spent(b), 0
			for b.Loop() {
				times++
				r, err := Run(context.Background(), o)
				if err != nil || r.Objects != n || r.Denied != n/50 {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(n)*float64(times)/(spent(b)-before).Seconds(), "objects/cpu-s")
		})
	}
}
