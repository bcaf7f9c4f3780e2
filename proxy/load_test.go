package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	memory "github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestMixedLoad has clients that create, read, list, replace, patch and delete the same few objects, another writer
// that goes to the backend behind the gateway's back, and policy sets that are swapped meanwhile. Run under the race
// detector it shows that requests share nothing; in any case that each gets one of the answers it may get, that each
// patch that was confirmed counts exactly once, and that no client's status was ever stored.
func TestMixedLoad(t *testing.T) {
	const clients, names = 6, 3
	rounds := testutil.Amount(60, 15)
	api := memory.New(memory.Options{})
	upstream, err := api.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	c, err := config.Load("", config.Flags{Upstream: "http://" + upstream, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	sets := [2]*policies.Set{policiestest.LoadFiles(t, "testdata/policies/widgets.yaml"),
		policiestest.LoadFiles(t, "testdata/policies/widgets.yaml", "testdata/policies/orders.yaml")}
	var current atomic.Pointer[policies.Set]
	current.Store(sets[0])
	g := newTestGateway(t, c, current.Load)
	address := "http://" + startGateway(t, g)

	if _, err := api.Put(widgetsPath+"/counted", []byte(`{"metadata":{"name":"counted","labels":{}},"spec":{"size":1},"status":{"phase":"ours"}}`)); err != nil {
		t.Fatal(err)
	}

	stop := make(chan struct{})
	var aside, load sync.WaitGroup
	aside.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				current.Store(sets[i%2])
				if _, err := api.Put(fmt.Sprint(widgetsPath, "/w", i%names),
					[]byte(`{"spec":{"size":7},"status":{"phase":"ours"}}`)); err != nil {
					t.Errorf("the other writer: %v", err)
					return
				}
			}
		}
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	do := func(method, path, contentType, body string) (int, []byte) {
		r, err := http.NewRequest(method, address+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return 0, nil
		}
		defer func() { _ = resp.Body.Close() }()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return resp.StatusCode, answer
	}
	var confirmed atomic.Int64
	for n := range clients {
		load.Go(func() {
			for i := range rounds {
				path := fmt.Sprint(widgetsPath, "/w", (n+i)%names)
				var read struct {
					Metadata struct{ ResourceVersion string }
				}
				if code, answer := do("GET", path, "", ""); code == 200 {
					if err := json.Unmarshal(answer, &read); err != nil || read.Metadata.ResourceVersion == "" {
						t.Errorf("GET answered %s: %v", answer, err)
					}
				}
				for _, one := range []struct{ method, path, contentType, body, codes string }{
					{"GET", path, "", "", "200 404"},
					{"HEAD", path, "", "", "200 404"},
					{"GET", widgetsPath, "", "", "200"},
					{"POST", widgetsPath, "application/json",
						fmt.Sprintf(`{"metadata":{"name":"n%d-%d"},"spec":{"size":5},"status":{"phase":"theirs"}}`, n,
							i), "201"},
					{"POST", widgetsPath, "application/json", `{"metadata":{"name":"bad"},"spec":{"size":0}}`, "422"},
					{"PUT", path, "application/json", `{"metadata":{"resourceVersion":"` +
						read.Metadata.ResourceVersion + `"},"spec":{"size":6},"status":{"phase":"theirs"}}`,
						"200 404 409 422"},
					{"PATCH", path, "application/merge-patch+json",
						`{"spec":{"mode":"Locked"},"status":{"phase":"theirs"}}`, "200 404 409"},
					{"DELETE", fmt.Sprintf("%s/n%d-%d", widgetsPath, n, i), "", "", "200 204"},
					{"POST", "/v2/orders", "application/json", `{}`, "201 400 422"},
				} {
					code, answer := do(one.method, one.path, one.contentType, one.body)
					if !strings.Contains(one.codes, fmt.Sprint(code)) {
						t.Errorf("%s %s: answered %d, want %s: %s", one.method, one.path, code, one.codes, answer)
					}
					if bytes.Contains(answer, []byte("theirs")) {
						t.Errorf("%s %s: a client's status was stored: %s", one.method, one.path, answer)
					}
				}
				if code, answer := do("PATCH", widgetsPath+"/counted", "application/json-patch+json",
					`[{"op":"add","path":"/metadata/labels/l`+fmt.Sprintf("%d-%d", n, i)+
						`","value":"x"}]`); code == 200 {
					confirmed.Add(1)
				} else if code != 409 && code != 422 {
					t.Errorf("PATCH: answered %d %s", code, answer)
				}
			}
		})
	}
	load.Wait()
	close(stop)
	aside.Wait()
	_, answer := do("GET", widgetsPath+"/counted", "", "")
	var last struct {
		Metadata struct{ Labels map[string]string }
		Status   struct{ Phase string }
	}
	if err := json.Unmarshal(answer, &last); err != nil {
		t.Fatal(err)
	}
	if int64(len(last.Metadata.Labels)) != confirmed.Load() || confirmed.Load() == 0 || last.Status.Phase != "ours" {
		t.Errorf("%d patches were confirmed and %d are stored, status %q", confirmed.Load(), len(last.Metadata.Labels),
			last.Status.Phase)
	}
	if n := g.BodyBytesInFlight(); n != 0 {
		t.Errorf("%d bytes of the budget are still taken", n)
	}
}
