//go:build !linux

package main

import "runtime/debug"

// settle gives back to the system what only the start needed.
func settle() { debug.FreeOSMemory() }
