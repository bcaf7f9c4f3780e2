// Errorrule checks that functions return errors as error, not as pointers to a type that implements it: such a pointer
// that is nil becomes an error that is not nil. Constructors may return pointers: functions that never return nil,
// because all that they return is a new value or what another constructor returned.
//
// Usage: errorrule DIR, where DIR holds the module's go.mod. The exit code is 1 if anything is found.
package main

import (
	"fmt"
	"os"

	"github.com/admission-gateway/gateway/tools/load"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	packages, err := load.Module(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "errorrule:", err)
		os.Exit(2)
	}
	found := violations(packages)
	for _, f := range found {
		fmt.Printf("%s: %s returns %s: it must return error, or never nil\n", f.at, f.name, f.pointer)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}
