// Gateway puts Kubernetes' API conventions in front of any JSON API: defaults, validation with good messages, a
// protected status, PATCH, Status errors, fair rate limits. Each subcommand has a file of its own.
package main

import (
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := newRoot()
	root.AddCommand(commands()...)
	os.Exit(execute(root, os.Args[1:]))
}

// commands returns the subcommands in the order of a user's way: try it, run it, write policies.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newServe(), newDemo(), newBackend(), newStatus(),
		newCheck(), newTest(), newExplain(), newScan(), newLint(), newInit(), newSchemas(),
		newMan(), newVersion(),
	}
}
