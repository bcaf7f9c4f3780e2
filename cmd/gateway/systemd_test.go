package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// systemd hears when clients are served, that the process lives, and when it drains.
func TestSystemdNotices(t *testing.T) {
	_, addr := startBackend(t)
	dir, err := os.MkdirTemp("", "notify") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "socket"))
	t.Setenv("WATCHDOG_USEC", "20000")
	heard := func() string {
		t.Helper()
		state := make([]byte, 100)
		if err := socket.SetReadDeadline(time.Now().Add(testutil.Patience)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(state)
		if err != nil {
			t.Fatal(err)
		}
		return string(state[:n])
	}
	p := startServe(t, addr, "--config", write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\n"))
	for i, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := heard(); got != want {
			t.Errorf("message %d is %q, want %q", i, got, want)
		}
	}
	p.signal(t, syscall.SIGTERM)
	testutil.Becomes(t, "STOPPING=1", heard)
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// The unit has no mistake, and exposes as little as it may; also with the drop-in for a port below 1024.
func TestSystemdUnit(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/gateway.service")
	if err != nil {
		t.Fatal(err)
	}
	lowPort, err := os.ReadFile("../../deploy/systemd/low-port.conf")
	if err != nil {
		t.Fatal(err)
	}
	const program = "/usr/local/bin/gateway"
	for _, line := range []string{
		"Type=notify", "WatchdogSec=30", "DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict",
		"CapabilityBoundingSet=", "AmbientCapabilities=",
		"RestartPreventExitStatus=2", "ExecStart=" + program + " serve --config /etc/gateway/gateway.yaml",
	} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the unit has no line %s", line)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, dropIn := range map[string]string{"as it is": "", "below 1024": string(lowPort)} {
		unit := filepath.Join(t.TempDir(), "gateway.service") // verified with a program that is there
		testutil.WriteFile(t, unit, strings.Replace(string(text), program, self, 1))
		if dropIn != "" {
			if err := os.Mkdir(unit+".d", 0o755); err != nil {
				t.Fatal(err)
			}
			testutil.WriteFile(t, filepath.Join(unit+".d", "low-port.conf"), dropIn)
		}
		for _, args := range [][]string{{"verify", "--man=no", unit},
			{"security", "--offline=true", "--threshold=20", "--no-pager", unit}} {
			out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
			if err != nil || args[0] == "verify" && len(out) > 0 {
				t.Errorf("%s: systemd-analyze %s: %v\n%s", name, args[0], err, out)
			}
		}
	}
}
