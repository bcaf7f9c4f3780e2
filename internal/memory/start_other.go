//go:build !linux

package memory

import "runtime/debug"

// ForgetStart gives back the heap on which policies were compiled.
func ForgetStart() { debug.FreeOSMemory() }
