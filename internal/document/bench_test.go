package document

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deployment is an object of about 1.4 KB as kubectl would send it.
const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"payments-api","namespace":"team-a","labels":{"app.kubernetes.io/name":"payments-api","app.kubernetes.io/part-of":"payments","team":"team-a","tier":"backend"},"annotations":{"example.com/owner":"payments@example.com","example.com/change":"2024-05-17T09:30:00Z"}},"spec":{"replicas":3,"revisionHistoryLimit":5,"progressDeadlineSeconds":600,"selector":{"matchLabels":{"app.kubernetes.io/name":"payments-api"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},"template":{"metadata":{"labels":{"app.kubernetes.io/name":"payments-api","team":"team-a"}},"spec":{"serviceAccountName":"payments-api","terminationGracePeriodSeconds":30,"securityContext":{"runAsNonRoot":true,"runAsUser":10001},"containers":[{"name":"api","image":"registry.example.com/payments/api:1.14.2","imagePullPolicy":"IfNotPresent","args":["--listen=:8443","--log-level=info"],"ports":[{"name":"https","containerPort":8443,"protocol":"TCP"}],"env":[{"name":"DB_HOST","value":"db.payments.svc"},{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"payments-db","key":"password"}}}],"resources":{"requests":{"cpu":"250m","memory":"256Mi"},"limits":{"memory":"512Mi"}},"readinessProbe":{"httpGet":{"path":"/readyz","port":"https","scheme":"HTTPS"},"periodSeconds":10}}]}}}}`

// bodies are lists of deployments of several sizes; the first is one alone.
func bodies() map[string][]byte {
	list := func(n int) []byte {
		return []byte(`{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat(deployment+",", n-1) + deployment + `]}`)
	}
	return map[string][]byte{
		"1.4KB": []byte(deployment),
		"10KB":  list(7),
		"100KB": list(72),
		"1MB":   list(740),
	}
}

var sizes = []string{"1.4KB", "10KB", "100KB", "1MB"}

// BenchmarkParse parses bodies of several sizes, and beside it, in the same run,
// encoding/json decodes them.
func BenchmarkParse(b *testing.B) {
	for _, size := range sizes {
		body := bodies()[size]
		b.Run(size, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			ours := func() {
				d, err := Parse(body, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				d.Release()
			}
			for b.Loop() {
				ours()
			}
			cpu := cost(ours)
			b.ReportMetric(cpu/float64(len(body)), "cpu-ns/byte")
			b.ReportMetric(cost(func() {
				var v map[string]any
				if err := json.Unmarshal(body, &v); err != nil {
					b.Fatal(err)
				}
			})/cpu, "×encoding/json")
		})
	}
}

// cost is the CPU time of one call of f, garbage collection included, in
// nanoseconds: the least of some rounds, so that what else the machine does takes
// no part in it.
func cost(f func()) float64 {
	spent := func() float64 {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for the process itself
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	least := math.Inf(1)
	for range 5 {
		runs, start, before := 0, time.Now(), spent()
		for ; runs < 2 || time.Since(start) < 50*time.Millisecond; runs++ {
			f()
		}
		least = min(least, (spent()-before)/float64(runs))
	}
	return least
}

func BenchmarkParseIndented(b *testing.B) {
	var v any
	if err := json.Unmarshal([]byte(deployment), &v); err != nil {
		b.Fatal(err)
	}
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		d, err := Parse(body, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		d.Release()
	}
}

// BenchmarkAdmit reads ten fields, sets three and prints, as admission does.
func BenchmarkAdmit(b *testing.B) {
	body := []byte(deployment)
	var dst []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		dst = admit(b, body, dst[:0])
	}
}

func admit(tb testing.TB, body, dst []byte) []byte {
	d, err := Parse(body, Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	root := d.Root()
	spec, _ := root.Get("spec")
	metadata, _ := root.Get("metadata")
	template, _ := spec.Get("template")
	pod, _ := template.Get("spec")
	containers, _ := pod.Get("containers")
	name, _ := metadata.Get("name")
	replicas, _ := spec.Get("replicas")
	if n, ok := replicas.Int64(); !ok || n != 3 || name.Str() != "payments-api" || containers.Len() != 1 {
		tb.Fatal("wrong value")
	}
	d.Set(spec, "minReadySeconds", []byte("0"))
	d.Set(pod, "restartPolicy", []byte(`"Always"`))
	d.Set(containers.First(), "imagePullPolicy", []byte(`"Always"`))
	dst = d.AppendTo(dst)
	d.Release()
	return dst
}

// BenchmarkLargeObject parses objects of many keys, where comparing keys
// pairwise would show.
func BenchmarkLargeObject(b *testing.B) {
	for _, keys := range []int{10, 100, 10000} {
		body := []byte{'{'}
		for i := range keys {
			if i > 0 {
				body = append(body, ',')
			}
			body = fmt.Appendf(body, `"setting-%d":"%d"`, i, i)
		}
		body = append(body, '}')
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				d, err := Parse(body, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				d.Release()
			}
		})
	}
}
