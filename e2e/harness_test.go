// Package e2e holds the gateway against real servers and real clients.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admission-gateway/gateway/e2e/apiserver"
	"github.com/admission-gateway/gateway/e2e/testutil"
)

// What all tests share: a real API server that knows the test's CustomResourceDefinitions, and the programs.
var (
	server  *apiserver.Server
	gateway string // the binary
	client  string // kubectl
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gateway-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	gateway = filepath.Join(dir, "gateway")
	if err := testutil.BuildProgram(gateway, "..", "./cmd/gateway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if client, err = exec.LookPath("kubectl"); err != nil {
		client = filepath.Join(dir, "kubectl")
		if err := testutil.BuildProgram(client, ".", "./kubectl"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if server, err = apiserver.Start(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	if err := define("testdata/crds.yaml"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// define makes the API server know the CustomResourceDefinitions of a file.
func define(file string) error {
	out, err := exec.Command(client, "--server", server.HTTP, "create", "-f", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	out, err = exec.Command(client, "--server", server.HTTP, "wait", "--for=condition=Established", "--timeout=60s",
		"-f", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// A node is a running gateway in front of the API server.
type node struct {
	url string
	log *bytes.Buffer
}

// startGateway runs the gateway with the policy files before the API server until the test ends.
func startGateway(t testing.TB, policies ...string) *node {
	t.Helper()
	return startGatewayBefore(t, server.HTTP, policies...)
}

// startGatewayBefore runs it before a server of the test's own.
func startGatewayBefore(t testing.TB, backend string, policies ...string) *node {
	t.Helper()
	return startGatewayWith(t, "", []string{"--upstream", backend, "--dialect", "Kubernetes"}, policies...)
}

// startGatewayWith runs it with further lines of the configuration and further arguments.
func startGatewayWith(t testing.TB, lines string, args []string, policies ...string) *node {
	t.Helper()
	n := &node{log: &bytes.Buffer{}}
	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--config", config, "--listen", listen, "--admin", admin}, args...)
	for _, p := range policies {
		args = append(args, "--policies", p)
	}
	command := exec.Command(gateway, args...)
	command.Stdout, command.Stderr = n.log, n.log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
			<-exited
		}
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", n.log)
		}
	})
	n.url = "http://" + listen
	if strings.Contains(lines, "tls:") {
		n.url = "https://" + listen
	}
	eventually(t, "the gateway is ready", func() bool {
		select {
		case <-exited:
			t.Fatal("the gateway ended")
		default:
		}
		answer, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return n
}

// eventually waits until ok returns true, and ends the test if that takes longer than a minute.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	asks := func(context.Context) (bool, error) { return ok(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, asks); err != nil {
		t.Fatalf("not yet: %s: %v", what, err)
	}
}

// kubectl runs kubectl against a server and returns what it printed and whether it succeeded.
func kubectl(t testing.TB, url, stdin string, args ...string) (out string, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, client, append([]string{"--server", url, "--cache-dir", t.TempDir()},
		args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HOME="+t.TempDir())
	command.Stdin = strings.NewReader(stdin)
	b, err := command.CombinedOutput()
	return string(b), err == nil
}

// an answer as it came, less what changes from one moment to the next.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends one request and reads the answer whole.
func ask(t testing.TB, method, url, contentType, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(b)}
}
