package stack

import (
	"testing"
	"unsafe"
)

// TestWiden: the calls of a request do not move the stack of a new goroutine, which has been made large enough.
func TestWiden(t *testing.T) {
	isMoved := make(chan bool)
	go func() {
		Widen()
		var here byte
		before := uintptr(unsafe.Pointer(&here))
		descend(12)
		isMoved <- uintptr(unsafe.Pointer(&here)) != before
	}()
	if <-isMoved {
		t.Error("the stack was moved")
	}
}

// descend makes calls that take about 4 KB of the stack.
//
//go:noinline
func descend(n int) byte {
	var room [256]byte
	if room[n] = 1; n == 0 {
		return room[0]
	}
	return descend(n-1) + room[n]
}
