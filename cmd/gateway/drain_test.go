package main

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// A watch of a described resource goes on while the gateway drains, and then ends as a complete answer: its client
// comes again, elsewhere.
func TestWatchEndsOnSIGTERM(t *testing.T) {
	api, addr := startBackend(t)
	file := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 2\n")
	p := startServe(t, addr, "--config", file, "--policies", "../../proxy/testdata/policies/widgets.yaml", "--policies",
		"../../proxy/testdata/policies/gadgets.yaml")
	collections := []string{"/apis/example.com/v1/namespaces/team-a/widgets",
		"/apis/example.com/v1/namespaces/team-a/gadgets"}
	watches := make([]*bufio.Reader, len(collections))
	for i, path := range collections {
		resp, err := http.Get("http://" + p.listen + path + "?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		watches[i] = bufio.NewReader(resp.Body)
	}
	put := func(name string) {
		t.Helper()
		for i, path := range collections {
			if _, err := api.Put(path+"/"+name, []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
				t.Fatal(err)
			}
			if line, err := watches[i].ReadString('\n'); err != nil || !strings.Contains(line, name) {
				t.Fatalf("of %s came the event %q, %v", name, line, err)
			}
		}
	}
	put("before")
	p.signal(t, syscall.SIGTERM)
	testutil.Eventually(t, "draining", func() bool { return p.get("/readyz").code == 503 })
	put("while-draining")
	p.signal(t, syscall.SIGHUP) // has no part in it
	for i, path := range collections {
		if rest, err := io.ReadAll(watches[i]); len(rest) > 0 || err != nil {
			t.Errorf("the watch of %s ends with %q, %v; want as a complete answer", path, rest, err)
		}
	}
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// What does not finish within shutdownDeadlineSeconds is cut off, and the exit code and the log say so.
func TestShutdownDeadline(t *testing.T) {
	api, addr := startBackend(t)
	file := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nshutdownDeadlineSeconds: 1\n")
	p := startServe(t, addr, "--config", file)
	arrived, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	api.SetFault(func(r *backend.Request) backend.Fault {
		if r.Target != "/v2/orders/slow" {
			return backend.Fault{} // the gateway's own question what the backend is
		}
		close(arrived)
		<-release
		return backend.Fault{}
	})
	answered := make(chan reply, 1)
	go func() { answered <- fetch("http://" + p.listen + "/v2/orders/slow") }()
	<-arrived
	p.signal(t, syscall.SIGTERM)
	err := p.Wait()
	if got := <-answered; got.code != 0 {
		t.Errorf("the request that was cut off is answered %+v", got)
	}
	if code := p.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit: %v, want code 1", err)
	}
	if !strings.Contains(p.log.String(), "some requests did not finish within 1 second") {
		t.Errorf("the log does not say what happened:\n%s", p.log)
	}
}
