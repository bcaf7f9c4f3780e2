//go:build !linux

package peek

import (
	"syscall"
	"time"
)

// A Set waits for nothing here: a goroutine has to wait for each socket.
type Set struct{}

// A Wait is the wait for one socket.
type Wait struct{}

// NewSet returns nil.
func NewSet(time.Duration) *Set { return nil }

// Add returns false.
func (*Set) Add(*Wait, syscall.RawConn, time.Time, func(isLate bool)) bool { return false }

// Remove returns false.
func (*Set) Remove(*Wait) bool { return false }

// Close does nothing.
func (*Set) Close() {}
