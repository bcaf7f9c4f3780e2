package octets

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// judgeMasks compares the masks of a text, as this processor and as any one makes them, with what a
// look at each byte says.
func judgeMasks(t *testing.T, text []byte) {
	t.Helper()
	want := make([]uint64, (len(text)+MaskBytes-1)/MaskBytes)
	for i := range text {
		if text[i] < ' ' || text[i] == '"' || text[i] == '\\' || text[i] >= 0x80 {
			want[i/MaskBytes] |= 1 << (i % MaskBytes)
		}
	}
	masks := make([]uint64, len(want)+1)
	masks[len(want)] = 0x5a5a
	Masks(masks, text)
	for i, w := range append(want, 0x5a5a) {
		if masks[i] != w {
			t.Fatalf("mask %d of %q is %064b, want %064b", i, text, masks[i], w)
		}
	}
	whole := len(text) / MaskBytes
	maskWords(masks[:whole], text)
	for i, w := range want[:whole] {
		if masks[i] != w {
			t.Fatalf("mask %d of %q by words is %064b, want %064b", i, text, masks[i], w)
		}
	}
}

func TestMasks(t *testing.T) {
	judgeTexts(t, []byte{0, 0x1f, ' ', '!', '"', '#', '[', '\\', ']', 'a', 0x7f, 0x80, 0xa2, 0xff}, judgeMasks)
}

// judgeTexts judges each byte at each place among others, which carry and borrow, and random texts at each alignment
// and of each length.
func judgeTexts(t *testing.T, others []byte, judge func(t *testing.T, text []byte)) {
	t.Helper()
	for c := range 256 {
		for _, other := range others {
			text := bytes.Repeat([]byte{other}, MaskBytes)
			for at := range text {
				text[at] = byte(c)
				judge(t, text)
				text[at] = other
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 5*MaskBytes)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	for from := range MaskBytes {
		for end := from; end <= len(text); end++ {
			judge(t, text[from:end])
		}
	}
}

func FuzzMasks(f *testing.F) {
	f.Add([]byte("a \"text\" with a \\ and more than one mask\x00\x7f\x80 of 64 bytes, which goes on"))
	f.Fuzz(judgeMasks)
}

func BenchmarkMasks(b *testing.B) {
	var masks [16]uint64
	text := bytes.Repeat([]byte(`"name":"value",`), 100)[:len(masks)*MaskBytes]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Masks(masks[:], text)
	}
}

func BenchmarkMasksByWords(b *testing.B) {
	var masks [16]uint64
	text := bytes.Repeat([]byte(`"name":"value",`), 100)[:len(masks)*MaskBytes]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		maskWords(masks[:], text)
	}
}
