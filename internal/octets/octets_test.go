package octets

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// judge compares what is found of a word with what a look at each byte says.
func judge(t *testing.T, b []byte) {
	t.Helper()
	x := Word(b)
	if x != WordOf(string(b)) {
		t.Fatalf("%q is two words", b)
	}
	first := func(is func(c byte) bool) int {
		for i, c := range b[:8] {
			if is(c) {
				return i
			}
		}
		return 8
	}
	for c := range uint64(0x81) {
		if got, want := First(FirstBelow(x, c)), first(func(b byte) bool { return uint64(b) < c }); got != want {
			t.Fatalf("the first byte of %q below %#x is at %d, want %d", b, c, got, want)
		}
		if c == 0x80 {
			break
		}
		if got, want := First(FirstEqual(x, c)), first(func(b byte) bool { return uint64(b) == c }); got != want {
			t.Fatalf("the first %#x of %q is at %d, want %d", c, b, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for c := range 256 { // each byte at each place, among bytes that carry and borrow
		for _, other := range []byte{0, 0x01, ',', '-', '.', '/', '0', '9', ':', 'Z', 'a', 'z', '{', 0x7f, 0x80, 0xff} {
			for place := range 8 {
				b := bytes.Repeat([]byte{other}, 8)
				b[place] = byte(c)
				judge(t, b)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, 8)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		judge(t, b)
	}
}

func FuzzWords(f *testing.F) {
	f.Add([]byte("Content-"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 8 {
			judge(t, b)
		}
	})
}
