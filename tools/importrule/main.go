// Importrule checks that imports within the gateway's module only point down, and that each engine is imported by its
// own rooms alone. The tables in rules.go are the design; this program prints what departs from it.
//
// Usage: importrule DIR, where DIR holds the module's go.mod. The exit code is 1 if anything is found.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	packages, err := list(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "importrule:", err)
		os.Exit(2)
	}
	found := violations(packages)
	for _, v := range found {
		fmt.Println(v)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// pkg is a package of the module, in the fields of `go list -json` that the rules need.
type pkg struct {
	ImportPath string
	Imports    []string // without the imports of tests, which may look anywhere
	Module     struct{ Path string }
}

// list reads all packages of the module in dir.
func list(dir string) ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the packages: %w\n%s", err, &stderr)
	}
	var packages []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read what go list prints: %w", err)
		}
		packages = append(packages, p)
	}
}
