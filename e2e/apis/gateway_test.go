// Package apis runs ordinary APIs with their own clients, once directly and once through the gateway.
package apis

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

// The gateway's program, and the folder that the run removes at its end.
var (
	gatewayProgram string
	scratch        string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if os.Getenv("INTEROP_CASE") != "" {
		return m.Run() // which needs no gateway of its own
	}
	if scratch, err = os.MkdirTemp("", "gateway-apis-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	gatewayProgram = filepath.Join(scratch, "gateway")
	if err := testutil.BuildProgram(gatewayProgram, "../..", "./cmd/gateway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if *shrink {
		if err := takeOff(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if names := unmet(); code == 0 && flag.Lookup("test.run").Value.String() == "" && len(names) > 0 {
		fmt.Fprintf(os.Stderr, "known.txt has names that no proof has:\n%s\n", strings.Join(names, "\n"))
		return 1
	}
	return code
}

// A program is a process that runs until the test ends.
type program struct {
	address string // a host and a port
	admin   string // the same of the gateway's other listener, if the test asks for it
	process *os.Process
	log     *buffer
}

func (p *program) url() string { return "http://" + p.address }

// A buffer is written by a process and read by the test.
type buffer struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.String()
}

// startGateway runs the gateway before a Plain upstream at the URL, with policy files as text, until the test ends.
func startGateway(t testing.TB, upstream string, policies ...string) *program {
	t.Helper()
	if *nginx && len(policies) == 0 {
		return startNginx(t, upstream)
	}
	return startGatewayWith(t, "", upstream, policies...)
}

// With -nginx the tests without files run nginx instead of the gateway: they ask for no more than it does.
var nginx = flag.Bool("nginx", false, "run nginx instead of the gateway")

func startNginx(t testing.TB, upstream string) *program {
	dir := t.TempDir()
	return start(t, "", func(address string) *exec.Cmd {
		write(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_max_body_size 0;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  large_client_header_buffers 4 32k;
  map $http_upgrade $upgraded { default upgrade; "" close; }
  server {
    listen %[2]s;
    merge_slashes off;
    location / {
      proxy_pass %[3]s;
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_pass_header Server;
      proxy_pass_header Date;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $upgraded;
    }
  }
}
`, dir, address, upstream))
		return exec.Command("nginx", "-c", filepath.Join(dir, "nginx.conf"))
	})
}

// startGatewayWith runs it with further lines of the configuration.
func startGatewayWith(t testing.TB, lines, upstream string, policies ...string) *program {
	t.Helper()
	files := make([]string, 0, len(policies))
	for i, text := range policies {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("policies-%d.yaml", i))
		write(t, file, text)
		files = append(files, file)
	}
	return startGatewayFor(t, lines, upstream, files...)
}

// startGatewayFor runs it with policy files that exist.
func startGatewayFor(t testing.TB, lines, upstream string, files ...string) *program {
	t.Helper()
	args := []string{"--upstream", upstream, "--dialect", "Plain"}
	for _, file := range files {
		args = append(args, "--policies", file)
	}
	admin := testutil.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	write(t, config, "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nshutdownDeadlineSeconds: 1\n"+lines)
	return start(t, "http://"+admin+"/readyz", func(address string) *exec.Cmd {
		return exec.Command(gatewayProgram,
			append([]string{"serve", "--listen", address, "--admin", admin, "--config", config}, args...)...)
	})
}

// start runs a server on a free address until the test ends. It is ready when the URL answers 200. Without a scheme,
// the URL is a path of the server itself; an empty one asks for no more than a connection.
func start(t testing.TB, ready string, command func(address string) *exec.Cmd) *program {
	t.Helper()
	for range 3 {
		if p := startOnce(t, ready, command); p != nil {
			return p
		}
	}
	t.Fatal("three addresses that were free were taken before the server listened")
	return nil
}

// startOnce is start with one address; nil if that was taken in the meantime.
func startOnce(t testing.TB, ready string, command func(address string) *exec.Cmd) *program {
	t.Helper()
	p := &program{address: testutil.FreeAddress(t), log: &buffer{}}
	if strings.HasPrefix(ready, "/") {
		ready = p.url() + ready
	}
	cmd := command(p.address)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second // if a child still has the log open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.process = cmd.Process
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // so that it ends its children
		select {
		case <-exited:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(cmd.Path), p.log)
		}
	})
	if !eventually(func() bool { return isReady(ready, p.address) }, exited) {
		if said := p.log.String(); strings.Contains(said, "EADDRINUSE") ||
			strings.Contains(said, "address already in use") {
			return nil
		}
		t.Fatalf("%s was not ready in time:\n%s", cmd, p.log)
	}
	return p
}

func isReady(url, address string) bool {
	if url == "" {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	}
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// eventually reports whether ok becomes true within a minute, and before the channel is closed.
func eventually(ok func() bool, closed <-chan struct{}) bool {
	patience := time.After(time.Minute)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-closed:
			return false
		case <-patience:
			return false
		}
	}
	return true
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
