package proxy

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestMemoryIsAlwaysGivenBack: for all requests, bounds of memory and times at which clients leave,
// all memory is given back in the end, and no request keeps a place in the line for heavy work.
func TestMemoryIsAlwaysGivenBack(t *testing.T) {
	const collection = "/apis/example.com/v1/namespaces/team-a/sets"
	object := func(spec string) string { return `{"metadata":{"name":"s1"},"spec":{` + spec + `}}` }
	stored := object(`"free":{"a":"` + strings.Repeat("x", 300_000) + `"}`)
	bodies := []struct{ method, target, contentType, body string }{
		{"POST", collection, "application/json", object(`"size":1`)},
		{"POST", collection, "application/json", object(`"free":{"x":[` + strings.Repeat("0,", 200_000) + `0]}`)},
		// cut off
		{"POST", collection, "application/json", object(`"free":{"x":[` + strings.Repeat("0,", 200_000) + `0]`)},
		{"POST", collection, "application/json", object(`"words":[` + strings.Repeat(`"one",`, 2999) + `"one"]`)},
		{"POST", collection, "application/json", object(`"defaulted":[` + strings.Repeat("{},", 30_000) + `{}]`)},
		{"POST", collection, "application/json", object(`"free":[` + strings.Repeat("1,", 100_000) + `1]`)},
		{"PUT", collection + "/s1", "application/json", object(`"text":"` + strings.Repeat("a", 500_000) + `"`)},
		{"PATCH", collection + "/s1", "application/merge-patch+json", `{"spec":{"free":{"b":[` +
			strings.Repeat("[],", 50_000) + `[]]}}}`},
		{"PATCH", collection + "/s1", "application/json-patch+json",
			`[` + strings.Repeat(`{"op":"copy","from":"/spec/free","path":"/spec/more"},`, 20) +
				`{"op":"remove","path":"/spec/more"}]`},
		{"POST", "/other", "application/json", `[` + strings.Repeat("1,", 300_000) + `1]`},
	}
	random := rand.New(rand.NewPCG(5, 12))
	for _, limit := range []int64{1, 256 << 10, 2 << 20, 12 << 20, 64 << 20} {
		t.Run(strconv.FormatInt(limit, 10), func(t *testing.T) {
			backend := newSink(t, stored)
			g := gatewayFor(t, t.TempDir(), backend.address,
				[]string{"policies=costly", "memory=" + strconv.FormatInt(limit, 10)})
			address := startGateway(t, g)
			codes := map[string]int{}
			for range testutil.Amount(60, 15) {
				b := bodies[random.IntN(len(bodies))]
				request := b.method + " " + b.target + " HTTP/1.1\r\nHost: gw\r\nContent-Type: " + b.contentType +
					"\r\nContent-Length: " + strconv.Itoa(len(b.body)) + "\r\n\r\n" + b.body
				nc, br := dial(t, address)
				switch random.IntN(4) {
				case 0: // leaves in the middle
					_, _ = nc.Write([]byte(request[:random.IntN(len(request))]))
				case 1: // leaves before the answer
					_, _ = nc.Write([]byte(request))
				default:
					go func() { _, _ = nc.Write([]byte(request)) }() // an early answer ends it
					if line, err := br.ReadString('\n'); err == nil {
						codes[strings.Fields(line)[1]]++
					}
				}
				_ = nc.Close()
			}
			t.Logf("answered %v", codes)
			if limit == 64<<20 && codes["503"] > 0 && codes["503"] == len(codes) {
				t.Error("nothing is served")
			}
			for code := range codes {
				if !strings.Contains("200 201 400 413 422 503", code) {
					t.Errorf("%d are answered %s", codes[code], code)
				}
			}
			testutil.Eventually(t, "all memory is given back",
				func() bool { return working(g) == 0 && g.BodyBytesInFlight() == 0 })
			if working, waiting := g.memory.Working(); working != 0 || waiting != 0 {
				t.Errorf("%d work still, %d wait", working, waiting)
			}
			if g.memory.Peak() > limit {
				t.Errorf("%d bytes were taken of %d", g.memory.Peak(), limit)
			}
		})
	}
}

// TestFaultsOfMemory: each fault has its answer, and nothing reaches the backend.
func TestFaultsOfMemory(t *testing.T) {
	const collection = "/apis/example.com/v1/namespaces/team-a/sets"
	list := `{"metadata":{"name":"s1"},"spec":{"free":{"x":[` + strings.Repeat("0,", 200_000) + `0]}}}`
	for _, c := range []struct {
		name   string
		limit  int64
		busy   int // requests that do heavy work already, or wait for it
		answer string
	}{
		{"no memory for the values", 2 << 20, 0, "the gateway holds as much of requests in memory as it may"},
		{"too many wait", 64 << 20, 17, "too many requests that take much work are waiting already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := newSink(t, "{}")
			g := gatewayFor(t, t.TempDir(), backend.address,
				[]string{"policies=costly", "memory=" + strconv.FormatInt(c.limit, 10)})
			address := startGateway(t, g)
			occupy(t, g, c.busy)
			nc, br := dial(t, address)
			send(t, nc, "POST "+collection+
				" HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(list))+
				"\r\n\r\n"+list)
			got, _ := readAnswer(t, br, false)
			if got.StatusCode != 503 || !strings.Contains(string(got.Content), c.answer) ||
				got.Header.Get("Retry-After") == "" {
				t.Errorf("answered %d, Retry-After %q: %s", got.StatusCode, got.Header.Get("Retry-After"), got.Content)
			}
			if n := backend.received.Load(); n != 0 {
				t.Errorf("%d bytes reached the backend", n)
			}
			// What takes little goes on.
			small := `{"metadata":{"name":"s1"},"spec":{}}`
			send(t, nc, "POST "+collection+
				" HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(small))+
				"\r\n\r\n"+small)
			if got, _ := readAnswer(t, br, false); got.StatusCode >= 300 {
				t.Errorf("a small request is answered %d: %s", got.StatusCode, got.Content)
			}
		})
	}
}

// occupy lets so many requests do heavy work, or wait for it.
func occupy(t *testing.T, g *Gateway, n int) {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	for range n {
		go func() {
			var a memory.Reservation
			a.Open(g.memory.Budget, nil)
			a.Work()
			<-end
			a.Close()
		}()
	}
	testutil.Eventually(t, "all of them work or wait", func() bool {
		working, waiting := g.memory.Working()
		return working+waiting == n
	})
}

// TestMemoryEndsAtAnyEdit: wherever in the defaulting of an object its memory ends, the object reaches the backend
// whole, or not at all.
func TestMemoryEndsAtAnyEdit(t *testing.T) {
	object := `{"metadata":{"name":"s1"},"spec":{"defaulted":[` + strings.Repeat("{},", 4000) + `{}]}}`
	request := "POST /apis/example.com/v1/namespaces/team-a/sets HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(object)) + "\r\n\r\n" + object
	// try returns the code of the answer, and how many bytes reached the backend.
	try := func(limit int64) (int, int64) {
		backend := newSink(t, "{}")
		g := gatewayFor(t, t.TempDir(), backend.address,
			[]string{"policies=costly", "memory=" + strconv.FormatInt(limit, 10)})
		nc, br := dial(t, startGateway(t, g))
		go func() { _, _ = nc.Write([]byte(request)) }()
		got, _ := readAnswer(t, br, false)
		return got.StatusCode, backend.received.Load()
	}
	done, whole := try(256 << 20)
	if done >= 300 || whole <= int64(len(object)) {
		t.Fatalf("with memory for all it is answered %d, and %d bytes reach the backend", done, whole)
	}
	refused, passed := 0, 0
	for limit := int64(64 << 10); passed < 2; limit += limit / 6 {
		switch code, received := try(limit); {
		case code == done && received == whole:
			passed++
		case code == 503 && received == 0:
			refused++
		default:
			t.Errorf("with %d bytes of memory it is answered %d, and %d of %d bytes reach the backend", limit, code, received, whole)
		}
		if limit > 256<<20 {
			t.Fatal("it never passes")
		}
	}
	if refused < 4 {
		t.Errorf("it is refused with %d amounts of memory", refused)
	}
}

// TestMemoryEndsAtACollection: an API server is asked to delete no object of a collection that no policy
// has seen whole.
func TestMemoryEndsAtACollection(t *testing.T) {
	policy := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]
  validations:
  - {expression: "oldObject == null || oldObject.data.mode != 'Locked'", message: "it is locked"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep}
spec: {policyName: keep, validationActions: [Deny]}
`
	var items []string
	for _, name := range []string{"a", "b"} {
		items = append(items, `{"metadata":{"name":"`+name+`","resourceVersion":"1"},"data":{"mode":"Locked"},"list":[`+
			strings.Repeat("1,", 10_000)+`1]}`)
	}
	const collection = "/api/v1/namespaces/team-a/configmaps"
	list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	deleted := atomic.Int64{}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			deleted.Add(1)
			_, _ = io.WriteString(w, "{}")
		case r.URL.Path == collection:
			_, _ = io.WriteString(w, list)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	refused, denied := 0, 0
	for limit := int64(64 << 10); denied < 2; limit += limit / 8 {
		if limit > 256<<20 {
			t.Fatal("it is never denied")
		}
		g := gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"),
			[]string{"kubernetes", "memory=" + strconv.FormatInt(limit, 10)})
		nc, br := dial(t, startGateway(t, g))
		_, _ = io.WriteString(nc, "DELETE "+collection+" HTTP/1.1\r\nHost: gw\r\n\r\n")
		got, _ := readAnswer(t, br, false)
		switch got.StatusCode {
		case http.StatusServiceUnavailable:
			refused++
		case http.StatusUnprocessableEntity, http.StatusForbidden:
			denied++
		default:
			t.Errorf("with %d bytes of memory it is answered %d", limit, got.StatusCode)
		}
		if n := deleted.Swap(0); n > 0 {
			t.Errorf("with %d bytes of memory %d objects are deleted", limit, n)
		}
	}
	if refused < 2 {
		t.Errorf("it is refused with %d amounts of memory", refused)
	}
}
