package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// answering serves a code and a body at every path.
func answering(code int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	})
}

const (
	apiVersion   = `{"major":"1","minor":"34","gitVersion":"v1.34.1","goVersion":"go1.24"}`
	unauthorized = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
)

// TestAPIServerOfNoDialect: the gateway does not start in front of an API server whose dialect is
// not configured.
func TestAPIServerOfNoDialect(t *testing.T) {
	for _, tt := range []struct {
		code int
		body string
	}{{200, apiVersion}, {401, unauthorized}, {403, strings.ReplaceAll(unauthorized, "401", "403")}} {
		server := httptest.NewServer(answering(tt.code, tt.body))
		defer server.Close()
		file := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams:\n- {name: cluster, endpoints: ['"+server.URL+"']}\n")
		const rest = " is a Kubernetes API server, by its answer to GET /version, and nothing says its dialect: write "
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"--upstream", server.URL}, "gateway serve: --upstream: the upstream 'default' (" + server.URL + ")" + rest + "`--dialect Kubernetes`, or Plain if it is to be served as an ordinary API all the same\n"},
			{[]string{"--config", file}, "gateway serve: the upstream 'cluster' (" + server.URL + ")" + rest + "`dialect: Kubernetes`, or Plain if it is to be served as an ordinary API all the same\n"},
		} {
			got := run(append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, c.args...)...)
			if got.code != 2 || !strings.HasSuffix(got.stderr, c.want) {
				t.Errorf("%d, %v: %+v", tt.code, c.args, got)
			}
		}
	}
}

// TestBackendOfNoDialect: before the backend has answered, the gateway is not ready; a plain API then makes it
// ready, and an API server ends it with the code of a wrong file.
func TestBackendOfNoDialect(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		exit       int // of the process; 0 if it gets ready
	}{
		{"ordinary", `{"version":"1"}`, 0},
		{"API server", apiVersion, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := testutil.FreeAddress(t)
			p := &process{listen: testutil.FreeAddress(t), admin: testutil.FreeAddress(t), log: &lockedBuffer{}}
			p.Cmd = exec.Command(os.Args[0], "serve", "--listen", p.listen, "--admin", p.admin, "--upstream",
				"http://"+address)
			p.Env, p.Stderr = append(os.Environ(), "GATEWAY_TEST_RUN_MAIN=1"), p.log
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = p.Wait(); close(ended) }()
			t.Cleanup(func() { _ = p.Process.Kill(); <-ended })
			testutil.Eventually(t, "not ready for the backend alone", func() bool {
				ready := p.get("/readyz?verbose")
				return ready.code == 503 &&
					strings.Contains(ready.body, "has not answered yet whether it is a Kubernetes API server") &&
					strings.Contains(p.log.String(), "msg=serving")
			})
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: answering(200, tt.body)}
			go func() { _ = server.Serve(l) }()
			defer func() { _ = server.Close() }()
			if tt.exit == 0 {
				testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
				return
			}
			<-ended
			if code := p.ProcessState.ExitCode(); code != tt.exit ||
				!strings.Contains(p.log.String(), "write `--dialect Kubernetes`") {
				t.Errorf("exit code %d; log\n%s", code, p.log)
			}
		})
	}
}

// TestStatedPlainBeforeAPIServer: a configured Plain is believed, with a warning of what answers.
func TestStatedPlainBeforeAPIServer(t *testing.T) {
	server := httptest.NewServer(answering(200, apiVersion))
	defer server.Close()
	p := startServe(t, strings.TrimPrefix(server.URL, "http://"))
	testutil.Eventually(t, "warned", func() bool {
		return strings.Contains(p.log.String(), "level=WARN") &&
			strings.Contains(p.log.String(),
				"a Kubernetes API server answers where the configuration says `dialect: Plain`")
	})
}
