package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A Process is a program that runs, and writes its log to a file.
type Process struct {
	// Log is the file.
	Log     string
	name    string
	command *exec.Cmd
	exited  chan struct{}
}

// StartProcess starts a program, whose log follows what is in the file already.
func StartProcess(log, program string, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the process has its own
	p := &Process{Log: log, name: filepath.Base(program), command: exec.Command(program, args...),
		exited: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = file, file
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Stop kills the process, and waits until it has ended.
func (p *Process) Stop() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.command.Process.Signal(s) }

// Err returns an error with the end of the log if the process has ended.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has ended:\n%s", p.name, p.Tail())
	default:
		return nil
	}
}

// Tail returns the end of the log.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
