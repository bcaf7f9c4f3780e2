//go:build unix

package document

import (
	"os"
	"sync"
	"syscall"
	"testing"
)

// fences are pieces of memory that begin and end with a page that cannot be read.
var fences sync.Pool

// fenced copies a text to memory whose last byte, or whose first, is next to a page that cannot be read: a reader that
// goes beyond the text ends the process. Done gives the memory back.
func fenced(t testing.TB, text []byte, isFirst bool) (copied []byte, done func()) {
	t.Helper()
	page := os.Getpagesize()
	size := (len(text) + page - 1) / page * page
	fence, _ := fences.Get().(*[]byte)
	if fence == nil {
		fence = new([]byte)
	}
	memory := *fence
	if len(memory) < size+2*page {
		if memory != nil {
			if err := syscall.Munmap(memory); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if memory, err = syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|
			syscall.MAP_PRIVATE); err != nil {
			t.Fatal(err)
		}
		for _, end := range [][]byte{memory[:page], memory[len(memory)-page:]} {
			if err := syscall.Mprotect(end, syscall.PROT_NONE); err != nil {
				t.Fatal(err)
			}
		}
		*fence = memory
	}
	from := page
	if !isFirst {
		from = len(memory) - page - len(text)
	}
	copied = memory[from : from+len(text) : from+len(text)]
	copy(copied, text)
	return copied, func() { fences.Put(fence) }
}
