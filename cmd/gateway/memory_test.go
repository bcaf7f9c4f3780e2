package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// container returns the gateway's container of a Deployment.
func container(t *testing.T, name string) corev1.Container {
	t.Helper()
	var d appsv1.Deployment
	decode(t, name, &d)
	for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		if c.Name == "gateway" && c.Resources.Limits.Memory().Value() > 0 {
			return c
		}
	}
	t.Fatalf("%s has no container of the gateway with a memory limit", name)
	return corev1.Container{}
}

// TestDeployedMemory: what the folders let requests hold fits their containers, beside as much for everything else, and
// holds the largest body. No GOMEMLIMIT is set, because the gateway keeps Go's collector below nine tenths by itself.
func TestDeployedMemory(t *testing.T) {
	for folder, deployment := range map[string]string{"ingress": "ingress/deployment.yaml",
		"apiserver": "ingress/deployment.yaml", "sidecar": "sidecar/patch.yaml"} {
		c, err := config.Load(filepath.Join(kustomize, folder, "gateway.yaml"),
			config.Flags{Pod: config.Pod{Host: "10.96.0.1", Port: "443"}})
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		pod := container(t, deployment)
		bytes := pod.Resources.Limits.Memory().Value()
		if got, most := c.Limits.BodiesInFlightBytes, memory.Collectable(bytes)/2; got > most {
			t.Errorf("%s: requests may hold %d bytes, more than %d, half of what the collector may use of a container of %d", folder, got, most, bytes)
		}
		if most := bytes - bytes/10; memory.Collectable(bytes) > most {
			t.Errorf("%s: the collector may use %d bytes, more than %d, nine tenths of the container", folder,
				memory.Collectable(bytes), most)
		}
		for _, e := range pod.Env {
			if e.Name == "GOMEMLIMIT" {
				t.Errorf("%s sets GOMEMLIMIT, which would have to follow the limit", folder)
			}
		}
		if shortage := c.Limits.Shortage(); shortage != "" {
			t.Errorf("%s: %s", folder, shortage)
		}
		if got := run("check", "--config", filepath.Join(kustomize, folder, "gateway.yaml"),
			filepath.Join(kustomize, "ingress", "policies.yaml")); strings.Contains(got.stdout+got.stderr, "limits") {
			t.Errorf("%s: %+v", folder, got)
		}
	}
}

// TestCheckSaysWhatDoesNotFit: a configuration whose largest body does not fit its memory is warned of, in check and at
// the start.
func TestCheckSaysWhatDoesNotFit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: a, endpoints: [http://127.0.0.1:9]}]\nlimits: {bodiesInFlightBytes: 50000000}\n"
	testutil.WriteFile(t, file, text)
	want := file + ":4:1: limits: warning: a body of `limits.bodyBytes` (3145728) with `limits.jsonNodes` (1048576) values takes about 74099370 bytes, " +
		"which is more than the 43750000 that `limits.bodiesInFlightBytes` (50000000) leaves to one request: such a body is refused with 503 however " +
		"often it is sent; give the gateway more memory, raise `limits.bodiesInFlightBytes`, or lower `limits.jsonNodes`"
	if got := run("check", "--config", file, filepath.Join(kustomize, "ingress", "policies.yaml")); got.code != 1 ||
		strings.TrimSpace(got.stdout) != want {
		t.Errorf("got  %+v\nwant %s", got, want)
	}
	if p := startServe(t, "127.0.0.1:9", "--config", file); !strings.Contains(p.log.String(),
		"the memory for requests is short") {
		t.Errorf("the log does not say it: %s", p.log)
	}
}

// bombPolicies make large values of small requests.
const bombPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%[1]s]}]
  validations: [{expression: "%[2]s"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
---
`

// bombDefinition describes the resource that bombs of a class are sent to.
const bombDefinition = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: %[1]s.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: %[1]s, kind: Bomb%[1]s}
  envelope: Bare
  fields: {name: metadata.name}
  backend: {patch: Emulated}
  paths: {collection: "/apis/example.com/v1/namespaces/{namespace}/%[1]s", item: "/apis/example.com/v1/namespaces/{namespace}/%[1]s/{name}"}
  schema:
    openAPIV3Schema:
      type: object
      x-kubernetes-preserve-unknown-fields: true
      properties: {l: {type: array, items: {x-kubernetes-int-or-string: true}}, text: {type: string}}
---
`

// yamlDefinition describes a resource that is written in YAML, too.
const yamlDefinition = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: yamls.example.com}
spec:
  group: example.com
  version: v2
  names: {plural: yamls, kind: Yaml}
  paths: {collection: /v2/yamls, item: "/v2/yamls/{name}"}
  fields: {name: id}
  yamlBodies: Allowed
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestBombs sends sixty bombs of each class at once to a gateway with the limits that the sidecar ships, in the memory
// that its container has, while other clients read and write little: they are all served, and the memory stays within
// the container.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if testutil.Race {
		t.Skip("the race detector takes more memory than the container has")
	}
	const bombs = 60
	var keys strings.Builder
	for i := range 230_000 {
		fmt.Fprintf(&keys, `"%s":0,`, strconv.FormatInt(int64(i), 36))
	}
	ones := `[` + strings.Repeat("1,", 1_000_000) + `1]`
	object := func(member string) string { return `{"metadata":{"name":"a"},` + member + `}` }
	text := object(`"text":"` + strings.Repeat("a", 2_900_000) + `"`)
	classes := []struct{ name, expression, method, contentType, body string }{
		{"values", "", "POST", "application/json", object(`"l":` + ones)},
		{"maps", "object.l.map(x, x).size() == 0", "POST", "application/json", object(`"l":` + ones)},
		{"loops", "object.l.all(x, object.l.all(y, x == y))", "POST", "application/json",
			object(`"l":[` + strings.Repeat("1,", 3000) + `1]`)},
		{"matches", "object.text.findAll('a').size() == 0", "POST", "application/json", text},
		{"pieces", "object.text.split('a').size() == 0", "POST", "application/json", text},
		{"joins", "object.l.map(x, '').join(object.text).size() == 0", "POST", "application/json",
			object(`"text":"` + strings.Repeat("a", 1_000_000) + `","l":[` + strings.Repeat("1,", 20_000) + `1]`)},
		{"keys", "", "POST", "application/json", object(`"o":{` + strings.TrimSuffix(keys.String(), ",") + `}`)},
		{"yamls", "", "POST", "application/yaml", "id: a\nl:\n" + strings.Repeat("- b\n", 200_000)},
		{"patches", "true", "PATCH", "application/merge-patch+json", `{"spec":{"a":1}}`},
	}
	dir := t.TempDir()
	for _, c := range classes {
		if c.name == "yamls" {
			continue
		}
		files := fmt.Sprintf(bombDefinition, c.name)
		if c.expression != "" {
			files += fmt.Sprintf(bombPolicies, c.name, c.expression)
		}
		testutil.WriteFile(t, filepath.Join(dir, c.name+".yaml"), files)
	}
	stored := object(`"l":[` + strings.Repeat(`"0123456789abcdef",`, 110_000) + `""]`)
	testutil.WriteFile(t, filepath.Join(dir, "resource.yaml"), yamlDefinition)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"1"`)
		answer := "{}"
		if r.Method == "GET" && strings.Contains(r.URL.Path, "/patches/") {
			answer = strings.Replace(stored, `"a"`, `"`+path.Base(r.URL.Path)+`"`, 1)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(backend.Close)

	shipped, err := config.Load(filepath.Join(kustomize, "sidecar", "gateway.yaml"), config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	pod := container(t, "sidecar/patch.yaml")
	memoryLimit := pod.Resources.Limits.Memory().Value()
	file := filepath.Join(dir, "gateway.config")
	limits := fmt.Sprintf("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlimits: {bodiesInFlightBytes: %d, heavyRequests: %d}\n",
		shipped.Limits.BodiesInFlightBytes, shipped.Limits.HeavyRequests)
	testutil.WriteFile(t, file, limits)
	// What the gateway would set itself in the container.
	t.Setenv("GOMEMLIMIT", strconv.FormatInt(memory.Collectable(memoryLimit), 10))
	t.Setenv("GOGC", "100")
	p := startServe(t, strings.TrimPrefix(backend.URL, "http://"), "--config", file, "--policies", dir)

	watch := watchMemory(t, p)
	small := startSmallRequests(t, p.listen)
	for _, c := range classes {
		t.Run(c.name, func(t *testing.T) {
			served := small.done.Load()
			var mu sync.Mutex
			codes := map[int]int{}
			// A few milliseconds of bombs may be over before a busy machine serves a small request.
			for rounds := 0; rounds == 0 || small.done.Load() == served && rounds < 50; rounds++ {
				var wg sync.WaitGroup
				for i := range bombs {
					wg.Go(func() {
						target := "/apis/example.com/v1/namespaces/team-a/" + c.name
						switch {
						case c.name == "yamls":
							target = "/v2/yamls"
						case c.method == "PATCH":
							target += "/a" + strconv.Itoa(i)
						}
						code := sendBomb(p.listen, c.method, target, c.contentType, c.body)
						mu.Lock()
						defer mu.Unlock()
						codes[code]++
					})
				}
				wg.Wait()
			}
			t.Logf("answered %v; %d small requests meanwhile", codes, small.done.Load()-served)
			for code := range codes {
				if !slices.Contains([]int{200, 201, 400, 413, 422, 503}, code) {
					t.Errorf("%d are answered %d", codes[code], code)
				}
			}
			if len(codes) == 1 && codes[503] > 0 {
				t.Error("none of them is worked on")
			}
			if small.done.Load() == served {
				t.Error("no small request is served meanwhile")
			}
		})
	}
	small.stop()
	testutil.Eventually(t, "all memory given back",
		func() bool { return gauge(p.get("/metrics").body, "gateway_request_bodies_in_flight_bytes") == 0 })
	heap, charged := watch()
	t.Logf("at most %d MiB of memory of its own, %d MiB charged; small requests took %v at most, 99 of 100 %v", heap>>20, charged>>20, small.slowest(1), small.slowest(0.99))
	if heap > memoryLimit {
		t.Errorf("the gateway had %d bytes of memory of its own, more than the container's %d", heap, memoryLimit)
	}
	if charged == 0 {
		t.Error("nothing was charged: the bombs passed")
	}
	if charged > shipped.Limits.BodiesInFlightBytes {
		t.Errorf("%d bytes were charged, more than %d", charged, shipped.Limits.BodiesInFlightBytes)
	}
}

// sendBomb sends a request on a connection of its own, which an early answer may end; code 0 means none came.
func sendBomb(address, method, path, contentType, body string) int {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return 0
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(2 * testutil.Patience))
	go func() {
		_, _ = fmt.Fprintf(nc, "%s %s HTTP/1.1\r\nHost: gw\r\nContent-Type: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, path, contentType, len(body), body)
	}()
	answer := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(nc, answer); err != nil {
		// What was refused while it was still sent may end with a reset, as the answer is lost.
		return http.StatusServiceUnavailable
	}
	code, _ := strconv.Atoi(string(answer[len("HTTP/1.1 "):]))
	_, _ = io.Copy(io.Discard, nc)
	return code
}

// watchMemory looks at the memory of a process until the function is called, which returns the most that it saw: of the
// process's own, and charged to requests.
func watchMemory(t *testing.T, p *process) (stop func() (own, charged int64)) {
	ctx, cancel := context.WithCancel(t.Context())
	var own, charged int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			own = max(own, ownMemory(p.Process.Pid))
			if i%20 == 0 {
				metrics := p.get("/metrics").body
				charged = max(charged, gauge(metrics, "gateway_request_bodies_in_flight_bytes"))
				own = max(own, gauge(metrics, "go_memstats_heap_inuse_bytes"))
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() (int64, int64) {
		cancel()
		wg.Wait()
		return own, charged
	}
}

// ownMemory returns a process's memory that no file backs; 0 if the system does not say.
func ownMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// gauge is the value of a metric without labels of its own, -1 if there is none.
func gauge(metrics, name string) int64 {
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, name) {
			continue
		}
		fields := strings.Fields(line)
		if v, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil {
			return int64(v)
		}
	}
	return -1
}

// smallRequests are clients that read and write little, one request after the other.
type smallRequests struct {
	done atomic.Int64
	stop func()

	mu   sync.Mutex
	took []time.Duration
}

func startSmallRequests(t *testing.T, address string) *smallRequests {
	s := &smallRequests{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	s.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(s.stop)
	for _, method := range []string{"GET", "POST"} {
		wg.Go(func() {
			client := &http.Client{Timeout: testutil.Patience, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				start := time.Now()
				if err := smallRequest(client, method, address); err != nil {
					t.Errorf("a small %s: %v", method, err)
					return
				}
				s.mu.Lock()
				s.took = append(s.took, time.Since(start))
				s.mu.Unlock()
				s.done.Add(1)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	return s
}

func smallRequest(client *http.Client, method, address string) error {
	path, body := "/apis/example.com/v1/namespaces/team-a/maps", `{"metadata":{"name":"a"},"l":[]}`
	if method == "GET" {
		path, body = path+"/a", ""
	}
	r, err := http.NewRequest(method, "http://"+address+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != 200 && resp.StatusCode != 201 {
		err = fmt.Errorf("answered %d: %s", resp.StatusCode, answer)
	}
	return err
}

// slowest is the time that the given share of the requests took at most.
func (s *smallRequests) slowest(share float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.took)
	if len(s.took) == 0 {
		return 0
	}
	return s.took[min(int(share*float64(len(s.took))), len(s.took)-1)]
}
