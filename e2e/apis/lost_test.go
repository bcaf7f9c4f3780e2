package apis

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A tagged is a backend with one object. Its kinds differ in what they make of ETags.
type tagged struct {
	mutex   sync.Mutex
	object  map[string]any
	version int
	kind    string
}

func (b *tagged) tag() string {
	switch b.kind {
	case "none":
		return ""
	case "strong", "untrue":
		return fmt.Sprintf(`"%d"`, b.version)
	default:
		return fmt.Sprintf(`W/"%d"`, b.version)
	}
}

// matches reports whether the backend stores a PUT that has this If-Match. A weak tag matches nothing (RFC 9110,
// 13.1.1); "weak" and "untrue" do not look.
func (b *tagged) matches(ifMatch string) bool {
	switch b.kind {
	case "strong":
		return ifMatch == "" || ifMatch == "*" || ifMatch == b.tag()
	case "weak-compared":
		return ifMatch == "" || ifMatch == "*"
	default:
		return true
	}
}

func (b *tagged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent map[string]any
	if r.Method == http.MethodPut {
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &sent); err != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
	}
	code, answer, tag := b.exchange(r, sent)
	time.Sleep(20 * time.Millisecond) // as long as a database may take: readers read before another one has written
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(answer)
}

func (b *tagged) exchange(r *http.Request, sent map[string]any) (code int, answer []byte, tag string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case r.Method == http.MethodGet:
		code = http.StatusOK
	case r.Method != http.MethodPut:
		return http.StatusMethodNotAllowed, []byte(`{"error":"method"}`), ""
	case !b.matches(r.Header.Get("If-Match")):
		return http.StatusPreconditionFailed, []byte(`{"error":"precondition"}`), b.tag()
	default:
		b.object, code = sent, http.StatusOK
		b.version++
	}
	answer, _ = json.Marshal(b.object)
	return code, answer, b.tag()
}

const counters = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: counters.shop.example.com}
spec:
  group: shop.example.com
  version: v1
  names: {plural: counters, kind: Counter}
  paths: {collection: /counters, item: "/counters/{name}"}
  backend: {patch: Emulated}
  schema:
    openAPIV3Schema: {type: object, additionalProperties: {type: integer}}
`

// writers returns how many clients patch at once.
func writers() int {
	if testing.Short() {
		return 6
	}
	return 20
}

// TestNoUpdateIsLost: many clients patch a field each at once. All are answered 200 and find the field stored, whatever
// ETags the backend has.
func TestNoUpdateIsLost(t *testing.T) {
	modes := map[string]string{"Optimistic": counters, "BestEffort": counters + "  concurrency: BestEffort\n"}
	redis := startRedis(t)
	for mode, file := range modes {
		for _, kind := range []string{"strong", "weak", "weak-compared", "untrue", "none"} {
			prove(t, "one-gateway/"+mode+"/"+kind, func(t *proof) {
				backend := startTagged(t, kind)
				proveAllStored(t, backend, startGateway(t, backend.url, file).address)
			})
			prove(t, "two-gateways/"+mode+"/"+kind, func(t *proof) {
				backend, lines := startTagged(t, kind), "redis: {addresses: [\""+redis.address+"\"]}\n"
				proveAllStored(t, backend, startGatewayWith(t, lines, backend.url, file).address,
					startGatewayWith(t, lines, backend.url, file).address)
			})
		}
	}
}

type runningTagged struct {
	*tagged
	url string
}

func startTagged(t testing.TB, kind string) runningTagged {
	b := &tagged{object: map[string]any{}, kind: kind}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return runningTagged{b, server.URL}
}

func startRedis(t *testing.T) *program {
	t.Helper()
	file := debian(t, "redis-server")
	return start(t, "", func(address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		return exec.Command(file, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir())
	})
}

func proveAllStored(t *proof, b runningTagged, gateways ...string) {
	var all sync.WaitGroup
	stored := make([]bool, writers())
	for i := range writers() {
		all.Go(func() {
			a, err := patchCounter(gateways[i%len(gateways)], i)
			switch {
			case err != nil:
				t.Error(err)
			case a.code == http.StatusOK:
				stored[i] = true
			default:
				t.Errorf("client %d: %d %s", i, a.code, a.body)
			}
		})
	}
	all.Wait()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var lost []string
	for i := range writers() {
		if _, has := b.object[fmt.Sprintf("f%d", i)]; stored[i] && !has {
			lost = append(lost, fmt.Sprintf("f%d", i))
		}
	}
	if len(lost) > 0 {
		t.Errorf("answered 200 and lost: %s", strings.Join(lost, ", "))
	}
}

// patchCounter patches one field, and tries again while the gateway says that another writer was first, or that it
// may come again.
func patchCounter(gateway string, i int) (*answer, error) {
	r := request{method: "PATCH", target: "/counters/1", header: []string{"Content-Type: application/merge-patch+json"},
		body: fmt.Sprintf(`{"f%d":%d}`, i, i)}
	for {
		a, err := r.send(gateway)
		switch {
		case err != nil || a.code != http.StatusConflict && a.header.Get("Retry-After") == "":
			return a, err
		case a.code != http.StatusConflict:
			seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
			time.Sleep(time.Duration(seconds) * time.Second)
		}
	}
}
