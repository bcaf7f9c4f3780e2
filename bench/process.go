package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// A Process is a server that this program started, with the CPUs it may use.
type Process struct {
	cmd    *exec.Cmd
	log    string // file with what it printed
	exited chan struct{}
}

// startProcess runs a command on the given CPUs (a list as taskset reads it). What it prints goes to a file in dir.
func startProcess(dir, name, cpus string, command ...string) (*Process, error) {
	log := filepath.Join(dir, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	// taskset replaces itself by the command, so that the pid is the server's.
	cmd := exec.Command("taskset", append([]string{"-c", cpus}, command...)...)
	cmd.Stdout, cmd.Stderr = out, out
	// A signal to this program must not stop the servers before it does so itself; nor may they outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(p.exited)
	}()
	return p, nil
}

// waitReady waits until the server answers a GET with a 2xx code, at most a minute, and returns how long that took.
func (p *Process) waitReady(ctx context.Context, url string) (time.Duration, error) {
	return p.waitReadyBy(ctx, insecureClient(time.Second), url)
}

// waitReadyBy is waitReady by a client, which it closes.
func (p *Process) waitReadyBy(ctx context.Context, client *http.Client, url string) (time.Duration, error) {
	started := time.Now()
	defer client.CloseIdleConnections()
	var last error
	for time.Since(started) < time.Minute {
		response, err := client.Get(url)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode/100 == 2 {
				return time.Since(started), nil
			}
			err = errors.New(response.Status)
		}
		last = err
		select {
		case <-p.exited:
			return 0, fmt.Errorf("it has exited: %s", p.output())
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
	return 0, fmt.Errorf("%s does not answer: %w: %s", url, last, p.output())
}

// output returns the end of the server's output.
func (p *Process) output() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-2000):]))
}

// stop ends the process: SIGTERM to the pid that was started, SIGKILL after five seconds.
func (p *Process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// cpu returns the time that all threads of the process and of its children have used so far.
func (p *Process) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range withChildren(p.cmd.Process.Pid) {
		spent, err := spentBy(pid)
		if err != nil {
			return 0, err
		}
		sum += spent
	}
	return sum, nil
}

// spentBy reads the CPU clock of a process, which is of all its threads, ended ones included. The ticks of
// /proc/PID/stat are 10 ms, a hundredth of a short round.
func spentBy(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: user and system time, in nanoseconds
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// user returns the time that the process and its children have used so far in user space, in ticks of 10 ms.
func (p *Process) user() (time.Duration, error) {
	all, err := p.stat()
	return time.Duration(all.userTicks) * 10 * time.Millisecond, err
}

// resident returns the resident memory of the process and its children in MiB.
func (p *Process) resident() (float64, error) {
	all, err := p.stat()
	return float64(all.pages*os.Getpagesize()) / (1 << 20), err
}

// stat returns the sums of the process and its children.
func (p *Process) stat() (processStat, error) {
	var all processStat
	for _, pid := range withChildren(p.cmd.Process.Pid) {
		one, err := readStat(pid)
		if err != nil {
			return processStat{}, err
		}
		all.userTicks += one.userTicks
		all.pages += one.pages
	}
	return all, nil
}

// peak is how much memory the process itself has had resident at most, in MiB.
func (p *Process) peak() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if said, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(said), "kB")), 64)
			return kib / (1 << 10), err
		}
	}
	return 0, errors.New("the system does not say how much memory the process has had at most")
}

type processStat struct{ parent, userTicks, pages int }

// readStat reads /proc/PID/stat.
func readStat(pid int) (processStat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	// The name, in parentheses, may hold spaces: the other fields start after its end.
	_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 22 {
		return processStat{}, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	var s processStat
	for _, field := range []struct {
		index int // counted from the state, field 3 of proc(5)
		to    *int
	}{{1, &s.parent}, {11, &s.userTicks}, {21, &s.pages}} {
		if *field.to, err = strconv.Atoi(f[field.index]); err != nil {
			return processStat{}, err
		}
	}
	return s, nil
}

// withChildren returns the process and its direct children.
func withChildren(parent int) []int {
	all := []int{parent}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return all
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.parent == parent {
			all = append(all, pid)
		}
	}
	return all
}

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	port, err := testutil.ReservePort()
	return fmt.Sprint("127.0.0.1:", port), err
}
