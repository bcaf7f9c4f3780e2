package octets

import "testing"

// judgeStructures compares the structure of a text, as this processor and as any one finds it, with
// what a look at each byte says.
func judgeStructures(t *testing.T, text []byte) {
	t.Helper()
	want := make([]Structure, (len(text)+MaskBytes-1)/MaskBytes)
	for i, c := range text {
		bit := uint64(1) << (i % MaskBytes)
		switch b := &want[i/MaskBytes]; c {
		case '"':
			b.Quotes |= bit
		case '\\':
			b.Backslashes |= bit
		case '{', '[':
			b.Opens |= bit
		case '}', ']':
			b.Closes |= bit
		}
	}
	guard := Structure{1, 2, 3, 4}
	got := append(make([]Structure, len(want)), guard)
	Structures(got, text)
	for i, w := range append(want, guard) {
		if got[i] != w {
			t.Fatalf("block %d of %q is %064b, want %064b", i, text, got[i], w)
		}
	}
	whole := len(text) / MaskBytes
	structureWords(got[:whole], text)
	for i, w := range want[:whole] {
		if got[i] != w {
			t.Fatalf("block %d of %q by words is %064b, want %064b", i, text, got[i], w)
		}
	}
}

func TestStructures(t *testing.T) {
	judgeTexts(t, []byte{0, '!', '"', '#', '[', '\\', ']', 'z', '{', '|', '}', 0x7f, 0x80, 0xa2, 0xdb, 0xff},
		judgeStructures)
}

func FuzzStructures(f *testing.F) {
	f.Add([]byte(`{"a":["\"[","\\"],"b":{}} and more than one block of 64 bytes, which goes on: {}[]"\`))
	f.Fuzz(judgeStructures)
}
