package telemetry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func refused(path, reason string) *Record {
	return &Record{
		Request: ClientRequest{Method: "POST", Host: "shop.example", Path: path}, User: "alice",
		Outcome: Outcome{Code: 422, Reason: reason, Decision: Decision{Policy: "p", Field: "spec.a"}},
	}
}

// TestRefusals: the last refusals are remembered by names, the newest first, whatever becomes of the texts of the
// requests.
func TestRefusals(t *testing.T) {
	tel := newTelemetry(t)
	if got := tel.Refusals(); len(got) != 0 {
		t.Errorf("before there is one there are %+v", got)
	}
	tel.RequestDone(refused("/answered-by-the-backend", ""), nil)
	for i := range 100 {
		tel.RequestDone(refused(fmt.Sprintf("/%d", i), "Invalid"), nil)
	}
	tel.RequestDone(refused("/"+strings.Repeat("a", 100_000), "Invalid"), nil)
	all := tel.Refusals()
	if len(all) != 32 || len(all[0].Path) != 512 {
		t.Fatalf("%d refusals are remembered, the newest with a path of %d bytes", len(all), len(all[0].Path))
	}
	got := all[1]
	if got.Time.IsZero() {
		t.Error("it has no time")
	}
	got.Time = all[2].Time
	if want := (Refusal{Time: all[2].Time, Method: "POST", Host: "shop.example", Path: "/99", Code: 422,
		Reason: "Invalid", Policy: "p", Field: "spec.a"}); got != want {
		t.Errorf("remembered %+v, want %+v", got, want)
	}
	if all[31].Path != "/69" {
		t.Errorf("the oldest is %s", all[31].Path)
	}
}

// TestRefusalsAtOnce: many refusals at a time neither wait for each other nor mix.
func TestRefusalsAtOnce(t *testing.T) {
	tel := newTelemetry(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := refused(strings.Repeat(string(rune('a'+i)), 100), "Invalid")
			for range 500 {
				tel.RequestDone(r, nil)
				for _, one := range tel.Refusals() {
					if strings.Trim(one.Path, one.Path[:1]) != "" {
						t.Errorf("a path is mixed: %s", one.Path)
					}
				}
			}
		})
	}
	all.Wait()
}

// TestRefusalsAllocate: a flood of refusals takes no memory.
func TestRefusalsAllocate(t *testing.T) {
	tel := newTelemetry(t)
	r := refused("/path", "Invalid")
	for range 100 {
		tel.RequestDone(r, nil)
	}
	if n := testing.AllocsPerRun(100, func() { tel.RequestDone(r, nil) }); n > 0 {
		t.Errorf("a refusal allocates %.1f times", n)
	}
}

// TestAnswers: answers are counted by resource, whatever way led to it.
func TestAnswers(t *testing.T) {
	tel := newTelemetry(t)
	for _, code := range []int{200, 201, 404, 422, 500, 499} {
		for _, route := range []string{"a", "b"} {
			tel.RequestDone(&Record{
				Resource: ResourceRef{Verb: "create", Group: "g", Resource: "things", IsDescribed: true},
				Outcome:  Outcome{Code: code}, Routing: Routing{Route: route},
			}, nil)
		}
	}
	all := tel.RequestCounts()
	if want := (RequestCounts{Group: "g", Resource: "things", All: 12, Refused: 4, Failed: 2}); len(all) != 1 ||
		all[0] != want {
		t.Errorf("counted %+v, want %+v", all, want)
	}
}
