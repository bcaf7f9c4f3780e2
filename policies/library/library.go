// Package library has the ready-made policy files that the binary carries.
package library

import (
	"embed"
	"io/fs"
)

//go:embed demo pod-security workloads hygiene teams storage immutable ordinary-apis errors ratelimits start
var files embed.FS

// Demo are the policies of `gateway demo`.
func Demo() (fs.FS, error) { return fs.Sub(files, "demo") }

// All are all files of the library.
func All() fs.FS { return files }
