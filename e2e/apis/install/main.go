// Install installs the servers and clients of the tests of ordinary APIs where they are missing.
package main

import (
	"fmt"
	"os"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
)

func main() {
	if err := programs.Install(); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}
