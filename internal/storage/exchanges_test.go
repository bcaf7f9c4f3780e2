package storage

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

// Requests with large objects use memory of those before them, and none that another one still uses.
func TestLargeObjectsShareMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collections take memory that no request uses
	const size, rounds = 200_000, 100
	d, err := document.Parse([]byte(`{"text":"`+strings.Repeat("x", size)+`"}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	content := func(e *Exchanges, n int) (sent []byte, want string) {
		d.Set(d.Root(), "n", fmt.Append(nil, n))
		w := &Write{Exchanges: e, Body: Body{Object: d}}
		return w.Content(), string(d.AppendTo(nil))
	}
	var first, second Exchanges
	a, wantA := content(&first, 1)
	b, wantB := content(&second, 2)
	if string(a) != wantA || string(b) != wantB {
		t.Fatal("a request sends what another one sent")
	}
	first.memory().forget()
	if c, wantC := content(&first, 3); string(c) != wantC || string(b) != wantB {
		t.Fatal("a request overwrites what another one sends")
	}
	first.memory().forget()
	second.memory().forget()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		e := new(Exchanges)
		(&Write{Exchanges: e, Body: Body{Object: d}}).Content()
		e.memory().forget()
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > rounds*size/2 {
		t.Errorf("%d requests took %d bytes", rounds, took)
	}
}
