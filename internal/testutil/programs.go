package testutil

// The modules of e2e and tools/gatekeeper have this file by a symbolic link, as ports.go.

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// BuildProgram builds the program of a package, a path relative to the root of a module, and writes it to a file. Go's
// cache keeps a program that `go run` builds, and none that `go build` does. So each program is linked once for the
// tests of all modules, and not at all if nothing of it has changed.
func BuildProgram(file, module, program string) error {
	file, err := filepath.Abs(file) // go run changes to the module's folder
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "run", "-C", module, "-tags", "grpcnotrace", "-exec", "cp", program,
		file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s is not built: %w\n%s", program, err, out)
	}
	return nil
}
