// Gateway puts Kubernetes' API conventions in front of any JSON API: defaults, validation with good messages, a protected
// status, PATCH, Status errors, fair rate limits. Each subcommand has a file of its own.
package main

import "os"

func main() {
	root := newRoot()
	root.AddCommand(newServe(), newDemo(), newBackend(), newStatus(), newCheck(), newTest(), newLint(), newInit(), newSchemas(), newVersion())
	os.Exit(execute(root, os.Args[1:]))
}
