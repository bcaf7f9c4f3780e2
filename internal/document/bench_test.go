package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
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
		return []byte(`{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat(deployment+",", n-1) + deployment +
			`]}`)
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

// shapes are bodies that ask different things of the scanner.
func shapes(tb testing.TB) []struct {
	name string
	body []byte
} {
	workload, err := os.ReadFile("../../bench/workload.json")
	if err != nil {
		tb.Fatal(err)
	}
	indent := func(body []byte) []byte {
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", "  "); err != nil {
			tb.Fatal(err)
		}
		return b.Bytes()
	}
	list := func(n int, item func(i int) string) []byte {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return []byte(`{"items":[` + strings.Join(items, ",") + `]}`)
	}
	workloads := func(n int) []byte { return list(n, func(int) string { return string(workload) }) }
	long := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)
	return []struct {
		name string
		body []byte
	}{
		{"workload", workload},
		{"10KB", workloads(8)},
		{"100KB", workloads(80)},
		{"indented", indent(workload)},
		{"indented_100KB", indent(workloads(50))},
		{"environment", list(100, func(i int) string {
			return fmt.Sprintf(`{"name":"SETTING_%d","value":"https://service-%d.payments.example.com/v1/settings"}`, i, i)
		})},
		{"prices",
			list(300, func(i int) string { return fmt.Sprintf(`{"price":%d.%02d,"discount":-0.5}`, i*i, i%100) })},
		{"short_keys", list(1000, func(i int) string { return fmt.Sprintf(`{"a":"x","b":"y","cc":"z","d":"%d"}`, i) })},
		{"long_strings", list(100, func(int) string { return `{"text":"` + long + `"}` })},
		{"escapes",
			list(300, func(i int) string { return fmt.Sprintf(`{"line":"first \"quoted\"\nsecond\tline %d\n"}`, i) })},
		{"non-ASCII", list(300, func(i int) string {
			return fmt.Sprintf(`{"имя":"Пример %d","text":"Größe und Übermaß: 数据 %d"}`, i, i)
		})},
		{"integers", list(3000, func(i int) string { return fmt.Sprint(i * 7919) })},
		{"floats", list(2000, func(i int) string { return fmt.Sprintf("%d.%d,-1.5e-%d", i, i*31, i%300) })},
		{"literals", list(2000, func(i int) string { return [...]string{"true", "false", "null"}[i%3] })},
		{"lists", list(1000, func(i int) string { return `[[],[{}],[[1]]]` })},
		{"large_object", func() []byte {
			members := make([]string, 2000)
			for i := range members {
				members[i] = fmt.Sprintf(`"setting-%d":"%d"`, i, i)
			}
			return []byte("{" + strings.Join(members, ",") + "}")
		}()},
	}
}

// BenchmarkShapes parses bodies of many shapes.
func BenchmarkShapes(b *testing.B) {
	for _, shape := range shapes(b) {
		b.Run(shape.name, func(b *testing.B) {
			b.SetBytes(int64(len(shape.body)))
			for b.Loop() {
				d, err := Parse(shape.body, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				d.Release()
			}
		})
	}
}

// BenchmarkNames finds each member of an object, and of those within it, among the names of all.
func BenchmarkNames(b *testing.B) {
	d := mustParse(b, string(shapes(b)[0].body))
	defer d.Release()
	seen := map[string]bool{}
	var keys []string
	for i := range d.tape {
		if key := d.keyOf(&d.tape[i]); key != "" && !seen[key] {
			seen[key], keys = true, append(keys, key)
		}
	}
	names := NewNames(keys)
	for b.Loop() {
		for i := range d.tape {
			if e := &d.tape[i]; e.meta&flagMember != 0 && names.find(d, e) < 0 {
				b.Fatal(d.keyOf(e))
			}
		}
	}
}
