package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// inside is set in the environment of a process that Enter has started.
const inside = "GATEWAYAPI_INSIDE"

// IsInside reports whether the process has a network of its own.
func IsInside() bool { return os.Getenv(inside) != "" }

// Enter runs the program again, with a network of its own and variables beside those of this process, and returns its
// exit code. An EndpointSlice may not have addresses of the loopback network, so that Pods need others, which on the
// machine's own network could be those of something else. In a user namespace that takes no rights.
func Enter(variables ...string) (int, error) {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Args[0] = os.Args[0]
	command.Env = append(append(os.Environ(), inside+"=yes"), variables...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	var exit *exec.ExitError
	switch err := command.Run(); {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	default:
		return 1, fmt.Errorf("the tests have no network of their own: %w", err)
	}
}
