//go:build !linux

package main

import "runtime/debug"

// forgetStart gives back the heap on which policies were compiled.
func forgetStart() { debug.FreeOSMemory() }
