package testutil

import (
	"runtime"
	"testing"
)

// BytesBy finds what is held, and only as long as it is.
func TestBytesBy(t *testing.T) {
	RecordAllocations(t)
	memory := allocateForTest(1 << 20)
	if got := BytesBy(".allocateForTest"); got < 1<<20 || got > 2<<20 {
		t.Errorf("%d bytes are held, want 1 MiB", got)
	}
	runtime.KeepAlive(memory)
	memory = nil
	if got := BytesBy(".allocateForTest"); got > 1<<10 {
		t.Errorf("%d bytes are held of what was dropped", got)
	}
}

//go:noinline
func allocateForTest(n int) []byte { return make([]byte, n) }
