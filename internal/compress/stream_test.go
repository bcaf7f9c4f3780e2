package compress

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// asItCame is an editor that changes nothing.
type asItCame struct{ Editor }

func (asItCame) Append(dst, src []byte, _ int) ([]byte, int, error) {
	return append(dst, src...), len(src), nil
}
func (asItCame) Close(dst []byte) ([]byte, error) { return append(dst, "end"...), nil }
func (asItCame) Release()                         {}

// TestStreams: the reader of a stream has each event when it has left, whichever the coding, and
// encoders are used again.
func TestStreams(t *testing.T) {
	for _, c := range ForStreams {
		for range 2 {
			released := 0
			e := NewEditor(asItCame{}, c, func() { released++ })
			from, to := io.Pipe()
			plain := make(chan string)
			go func() {
				defer close(plain)
				r, err := NewReader(from, []byte(c.String()))
				if err != nil {
					t.Error(err)
					return
				}
				room := make([]byte, 64<<10)
				for {
					n, err := r.Read(room)
					if n > 0 {
						plain <- string(room[:n])
					}
					if err != nil {
						if err != io.EOF {
							t.Errorf("%s: %v", c, err)
						}
						return
					}
				}
			}()
			for _, event := range []string{"one", strings.Repeat("two", 10_000), "three"} {
				encoded, used, err := e.Append(nil, []byte(event), 1<<20)
				if err != nil || used != len(event) {
					t.Fatalf("%s: %d, %v", c, used, err)
				}
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = to.Write(encoded)
				}()
				got := ""
				for len(got) < len(event) {
					got += <-plain
				}
				if <-sent; got != event {
					t.Errorf("%s: read %.20q, want %.20q", c, got, event)
				}
			}
			last, err := e.Close(nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = to.Write(last)
				_ = to.Close()
			}()
			if got := <-plain; got != "end" {
				t.Errorf("%s: read %q at the end", c, got)
			}
			<-plain
			if e.Release(); released != 1 {
				t.Errorf("%s: released %d times", c, released)
			}
		}
	}
}

// FuzzDecode: whatever the bytes, no more comes of them than may.
func FuzzDecode(f *testing.F) {
	for _, c := range ForBodies {
		encoded, _ := Append(nil, bytes.Repeat([]byte("abc"), 1000), c)
		f.Add(encoded, c.String())
	}
	f.Add([]byte("\x78\x9c\x03\x00\x00\x00\x00\x01"), "deflate")
	f.Fuzz(func(t *testing.T, encoded []byte, encoding string) {
		taken := 0
		text, err := Decode(encoded, []byte(encoding), 1000, func(n int) bool {
			taken += n
			return taken <= 4000
		})
		if len(text) > 1000 || taken > 4000 || err == nil && !IsReadable([]byte(encoding)) {
			t.Errorf("%d bytes, %d taken, %v", len(text), taken, err)
		}
	})
}

// BenchmarkStreamMemory shows what an encoder of a stream takes.
func BenchmarkStreamMemory(b *testing.B) {
	event := bytes.Repeat([]byte(`{"name":"a","value":12345}`), 2000)
	for _, c := range ForStreams {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var sink sink
				e := map[Coding]func() encoder{Gzip: newGzip, Brotli: newBrotli, Zstd: newZstd}[c]()
				e.Reset(&sink)
				_, _ = e.Write(event)
				_ = e.Flush()
			}
		})
	}
}
