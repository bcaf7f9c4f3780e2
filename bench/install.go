package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// install makes sure that the programs of the Debian packages are there: each package is named as its program, or by
// both as PROGRAM:PACKAGE. Missing ones are installed by apt-get, without starting their services; that takes root.
func install(ctx context.Context, packages []string) error {
	var missing []string
	for _, name := range packages {
		program, of, isOther := strings.Cut(name, ":")
		if !isOther {
			of = program
		}
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, of)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s must be installed: run 'apt-get install %s' as root", strings.Join(missing, ", "),
			strings.Join(missing, " "))
	}
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...),
	} {
		fmt.Fprintln(os.Stderr, "apt-get", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		// In runlevel 1 Debian's packages install their services without starting them.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}
