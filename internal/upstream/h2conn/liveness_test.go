package h2conn

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestLife looks at a server period by period: it is asked if something was sent to it and nothing came since, or after
// a long silence, and is dead if nothing comes then.
func TestLife(t *testing.T) {
	var l liveness
	written, most := uint64(0), silentPeriods
	look := func(what string, wantAsk, wantDead bool) {
		t.Helper()
		if ask, isDead := l.look(written, most); ask != wantAsk || isDead != wantDead {
			t.Errorf("%s: asked %v, dead %v", what, ask, isDead)
		}
	}
	written = 100
	l.hear(written)
	look("a frame came", false, false)
	look("nothing was sent", false, false)
	written = 200
	look("something was sent", true, false)
	l.hear(written)
	look("it answered", false, false)
	look("nothing was sent again", false, false)
	for range silentPeriods - 2 {
		look("it is silent", false, false)
	}
	look("it is silent for long", true, false)
	look("it did not answer", false, true)
	l, most = liveness{}, 1
	l.hear(written)
	look("a frame came, and streams are open", false, false)
	look("it is silent", true, false)
	l.hear(written)
	look("it answered", false, false)
	look("it is silent again", true, false)
	look("it did not answer", false, true)
}

// TestPieces puts data in and takes them out in parts of any size.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var memory Memory
	var p dataChunks
	var in, out []byte
	for range 2000 {
		if r.IntN(2) == 0 && p.length < 100<<10 {
			data := make([]byte, r.IntN(40<<10))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			in = append(in, data...)
			p.put(data, &memory)
		} else {
			b := make([]byte, r.IntN(40<<10))
			out = append(out, b[:p.take(b, &memory)]...)
		}
		if p.length != len(in)-len(out) || (p.length == 0) != (p.first == nil) {
			t.Fatalf("%d bytes are there, %d are counted", len(in)-len(out), p.length)
		}
		pieces := 0
		for one := p.first; one != nil; one = one.next {
			pieces++
		}
		if most := p.length/pieceSize + 2; pieces > most {
			t.Fatalf("%d bytes take %d pieces", p.length, pieces)
		}
	}
	rest := make([]byte, p.length)
	out = append(out, rest[:p.take(rest, &memory)]...)
	if !bytes.Equal(in, out) {
		t.Errorf("%d bytes came out of %d", len(out), len(in))
	}
	p.put([]byte("more"), &memory)
	if p.clear(&memory); p.length != 0 || p.first != nil || p.last != nil {
		t.Error("something is left")
	}
}
