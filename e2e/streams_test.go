package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	execerrors "k8s.io/client-go/util/exec"
)

const podPath = "/api/v1/namespaces/team-a/pods/web"

// executors are client-go's ways into a container, the last one as kubectl has it.
func executors(t *testing.T, gateway string, o *corev1.PodExecOptions) map[string]remotecommand.Executor {
	t.Helper()
	config := &rest.Config{Host: gateway}
	u, err := url.Parse(gateway + podPath + "/exec?" + optionsOf(o).Encode())
	if err != nil {
		t.Fatal(err)
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
	if err != nil {
		t.Fatal(err)
	}
	old, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	both, err := remotecommand.NewFallbackExecutor(websocket, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"WebSocket": websocket, "SPDY": old, "WebSocket, else SPDY": both}
}

// TestExec runs commands in a container by WebSocket and by SPDY: their streams in full, their exit codes, the size of
// the terminal, and what a policy denies.
func TestExec(t *testing.T) {
	through := startGatewayBefore(t, startPods(t), "testdata/connect.yaml")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := func(t *testing.T, o corev1.PodExecOptions, each func(t *testing.T, e remotecommand.Executor)) {
		for name, e := range executors(t, through.url, &o) {
			t.Run(strings.Join(o.Command, " ")+" by "+name, func(t *testing.T) { each(t, e) })
		}
	}
	input := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	run(t, corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true, Stderr: true},
		func(t *testing.T, e remotecommand.Executor) {
			var out, errs bytes.Buffer
			err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: bytes.NewReader(input), Stdout: &out,
				Stderr: &errs})
			if err != nil || !bytes.Equal(out.Bytes(), input) || errs.Len() > 0 {
				t.Errorf("%v; %d of %d bytes came back, errors %q", err, out.Len(), len(input), errs.String())
			}
		})
	run(t, corev1.PodExecOptions{Command: []string{"fail"}, Stdout: true, Stderr: true},
		func(t *testing.T, e remotecommand.Executor) {
			var out, errs bytes.Buffer
			err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
			var code execerrors.CodeExitError
			if !errors.As(err, &code) || code.Code != 3 || errs.String() != "it failed\n" {
				t.Errorf("%v, %q", err, errs.String())
			}
		})
	run(t, corev1.PodExecOptions{Command: []string{"size"}, Stdin: true, Stdout: true, TTY: true},
		func(t *testing.T, e remotecommand.Executor) {
			var out bytes.Buffer
			sizes := make(terminal, 1)
			sizes <- &remotecommand.TerminalSize{Width: 132, Height: 43}
			err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: &out,
				Tty: true, TerminalSizeQueue: sizes})
			if err != nil || out.String() != "132 x 43" {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	run(t, corev1.PodExecOptions{Command: []string{"sh"}, Stdout: true}, func(t *testing.T, e remotecommand.Executor) {
		err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'shells' with binding 'shells' denied request: may not run a shell") {
			t.Errorf("got %v", err)
		}
	})
}

type terminal chan *remotecommand.TerminalSize

// Next implements remotecommand.TerminalSizeQueue.
func (t terminal) Next() *remotecommand.TerminalSize { return <-t }

// TestPortForward forwards a port by SPDY and by SPDY in WebSocket, several connections at once.
func TestPortForward(t *testing.T) {
	through := startGatewayBefore(t, startPods(t), "testdata/connect.yaml")
	config := &rest.Config{Host: through.url}
	u, err := url.Parse(through.url + podPath + "/portforward")
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	tunnelled, err := portforward.NewSPDYOverWebsocketDialer(u, config)
	if err != nil {
		t.Fatal(err)
	}
	for name, dialer := range map[string]httpstream.Dialer{
		"SPDY":      spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u),
		"WebSocket": tunnelled,
	} {
		t.Run(name, func(t *testing.T) {
			stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			f, err := portforward.New(dialer, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- f.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-ended:
				t.Fatal(err)
			case <-time.After(time.Minute):
				t.Fatal("the port was not forwarded in time")
			}
			ports, err := f.GetPorts()
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() { echo(t, fmt.Sprintf("127.0.0.1:%d", ports[0].Local), byte('a'+i)) })
			}
			all.Wait()
			close(stop)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// echo sends bytes to an address that sends them back.
func echo(t *testing.T, address string, of byte) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	sent := bytes.Repeat([]byte{of}, 256<<10)
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%c did not come back: %v", of, err)
	}
}

// TestKubectlStreams runs kubectl's commands that stream.
func TestKubectlStreams(t *testing.T) {
	through := startGatewayBefore(t, startPods(t), "testdata/connect.yaml")
	for _, c := range []struct {
		args, stdin, want string
		fails             bool
	}{
		{args: "exec web -n team-a -i -- cat", stdin: "hello", want: "hello"},
		{args: "exec web -n team-a -- fail", want: "command terminated with exit code 3", fails: true},
		{args: "exec web -n team-a -- sh", want: "may not run a shell", fails: true},
		{args: "attach web -n team-a -i", stdin: "hello", want: "hello"},
		{args: "logs web -n team-a -f", want: "line 0\nline 1\nline 2\n"},
	} {
		out, ok := kubectl(t, through.url, c.stdin, strings.Fields(c.args)...)
		if !strings.Contains(out, c.want) || ok == c.fails {
			t.Errorf("kubectl %s\nsucceeded: %v, printed:\n%s\nwant %q", c.args, ok, out, c.want)
		}
	}
	for _, setting := range []string{"true", "false"} { // by WebSocket, by SPDY
		t.Run("port-forward with KUBECTL_PORT_FORWARD_WEBSOCKETS="+setting, func(t *testing.T) {
			command := exec.Command(client, "--server", through.url, "--cache-dir", t.TempDir(), "port-forward",
				"pod/web", "-n", "team-a", ":80")
			command.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HOME="+t.TempDir(),
				"KUBECTL_PORT_FORWARD_WEBSOCKETS="+setting)
			command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			command.Stderr = os.Stderr
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if address, _, found := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ->"); err != nil ||
				!found {
				t.Errorf("kubectl printed %q, %v", line, err)
			} else {
				echo(t, address, 'x')
			}
			_ = command.Process.Kill()
			_ = command.Wait()
		})
	}
}
