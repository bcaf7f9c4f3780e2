package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A container is a process with a network, a host name and a root folder of its own.
type container struct {
	command *exec.Cmd
	logs    *logs
	exited  chan struct{}
}

// A containerSpec is what the process becomes.
type containerSpec struct {
	// Root is its root folder, which has the program.
	Root, Program          string
	Arguments, Environment []string
	Address, Host          string
}

// Pause is the program of an image whose Pods have to run, and need not do anything.
const Pause = "pause"

// libraries are the folders of the machine that containers see too, as programs may need the system's libraries.
var libraries = []string{"/usr", "/lib", "/lib64"}

// container0 is the name by which a process of this program knows that it is to become a container.
const container0 = "gatewayapi-container"

// run starts a container.
func (n *network) run(spec containerSpec) (*container, error) {
	c := &container{command: exec.Command("/proc/self/exe"), logs: &logs{begun: make(chan struct{})},
		exited: make(chan struct{})}
	c.command.Args[0] = container0
	c.command.Stdout, c.command.Stderr = c.logs, c.logs
	c.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
		syscall.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL}
	in, err := c.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.command.Wait()
		close(c.exited)
	}()
	if err := n.connect(c.command.Process.Pid); err != nil {
		c.stop()
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(spec); err != nil {
		c.stop()
		return nil, err
	}
	return c, in.Close()
}

// stop ends the process, and waits until it has ended.
func (c *container) stop() {
	_ = c.command.Process.Kill()
	<-c.exited
}

// BecomeContainer becomes the process of a container if this process was started for one, and returns otherwise. Each
// program that starts a cluster calls it first.
func BecomeContainer() {
	if os.Args[0] != container0 {
		return
	}
	fmt.Fprintln(os.Stderr, becomeContainer(os.Stdin))
	os.Exit(1)
}

func becomeContainer(in io.Reader) error {
	var spec containerSpec
	if err := json.NewDecoder(in).Decode(&spec); err != nil {
		return err
	}
	if err := configure(spec.Address); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(spec.Host)); err != nil {
		return err
	}
	if err := mountLibraries(spec.Root); err != nil {
		return err
	}
	if err := syscall.Chroot(spec.Root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if spec.Program == Pause {
		fmt.Println("Waiting for the end.")
		select {}
	}
	program := "/" + filepath.Base(spec.Program)
	return syscall.Exec(program, append([]string{program}, spec.Arguments...), spec.Environment)
}

// mountLibraries mounts the libraries below a folder, in a mount namespace that ends with the process.
func mountLibraries(root string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, folder := range libraries {
		there := filepath.Join(root, folder)
		info, err := os.Lstat(folder)
		switch {
		case os.IsNotExist(err):
			continue
		case err != nil:
			return err
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(folder)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, there); err != nil {
				return err
			}
			continue
		}
		if err := os.Mkdir(there, 0o700); err != nil {
			return err
		}
		if err := syscall.Mount(folder, there, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("%s is not mounted: %w", folder, err)
		}
	}
	return nil
}
