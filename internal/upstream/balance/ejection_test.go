package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// modelEndpoint is an endpoint as the documentation of Ejection describes it: the history of its exchanges.
type modelEndpoint struct {
	streak    int       // of failures
	ejections []ejected // all of them
}

type ejected struct{ from, until time.Time }

func (m *modelEndpoint) out(now time.Time) bool {
	n := len(m.ejections)
	return n > 0 && now.Before(m.ejections[n-1].until)
}

// level is how many Bases the next ejection lasts.
func (m *modelEndpoint) level(now time.Time, base time.Duration) int {
	level, last := 0, time.Time{}
	for _, e := range m.ejections {
		if level > 0 {
			level = max(0, level-int(e.from.Sub(last)/base))
		}
		level, last = level+1, e.until
	}
	if level > 0 {
		level = max(0, level-int(now.Sub(last)/base))
	}
	return level + 1
}

// Endpoints are ejected and come back as the model says, in virtual time.
func TestEjectionAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		config := Ejection{
			Failures: 1 + r.IntN(4), Answers: seed%2 == 0, Base: time.Duration(1+r.IntN(10)) * time.Second,
			Percent: []int{1, 34, 50, 67, 100}[r.IntN(5)],
		}
		config.Max = config.Base * time.Duration(1+r.IntN(6))
		var addrs []string
		for i := range 1 + r.IntN(6) {
			addrs = append(addrs, fmt.Sprintf("10.0.0.%d", i+1))
		}
		p := newTestSet(Policy{Ejection: config}, addrs...)
		model := make([]modelEndpoint, len(addrs))
		now := time.Unix(1_700_000_000, 0)
		for step := range 400 {
			now = now.Add(time.Duration(r.IntN(int(config.Base))))
			back := make([]bool, len(model))
			for i := range model {
				back[i] = len(model[i].ejections) > 0 && !model[i].out(now)
			}
			before := make([]bool, len(model))
			for i, e := range p.all {
				before[i] = e.ejected
			}
			p.rebuild(now)
			for i := range model {
				if before[i] && back[i] {
					model[i].streak = config.Failures - 1 // on probation
				}
			}
			i, v := r.IntN(len(model)), []Outcome{Answered, Unavailable, Failed, Failed, Inconclusive}[r.IntN(5)]
			p.Observe(p.all[i], v, now)
			m := &model[i]
			switch {
			case v == Answered, v == Unavailable && !config.Answers:
				m.streak = 0
			case v != Inconclusive:
				m.streak++
				out := 0
				for j := range model {
					if model[j].out(now) {
						out++
					}
				}
				most := max(1, len(model)*config.Percent/100)
				if m.streak >= config.Failures && !m.out(now) && len(model) > 1 && out < most {
					period := min(config.Base*time.Duration(m.level(now, config.Base)), config.Max)
					m.ejections = append(m.ejections, ejected{now, now.Add(period)})
				}
			}
			for j, e := range p.all {
				if want := model[j].out(now); e.ejected != want ||
					want && !e.until.Equal(model[j].ejections[len(model[j].ejections)-1].until) {
					t.Fatalf("seed %d, step %d: %s is ejected: %v until %v; the model says %v, %+v", seed, step, e.Addr,
						e.ejected, e.until, want, model[j].ejections)
				}
				if slices.Contains(p.ready, e) == e.ejected {
					t.Fatalf("seed %d, step %d: %s is ejected: %v, and ready too", seed, step, e.Addr, e.ejected)
				}
			}
		}
	}
}

// If every endpoint is out all are asked; one alone is never ejected.
func TestPanic(t *testing.T) {
	now := time.Now()
	p := newTestSet(Policy{Ejection: Ejection{Failures: 1, Base: time.Minute, Max: time.Hour, Percent: 100}},
		"10.0.0.1", "10.0.0.2", "10.0.0.3")
	for _, e := range p.all {
		p.Observe(e, Failed, now)
	}
	if len(p.ready) != 0 {
		t.Fatalf("%d endpoints are ready", len(p.ready))
	}
	chosen := make(map[string]bool)
	for range 30 {
		e := p.Choose(&FailedEndpoints[none]{})
		e.Busy++
		chosen[e.Addr] = true
	}
	if len(chosen) != 3 {
		t.Errorf("only %v were asked", chosen)
	}

	p = newTestSet(Policy{Ejection: Ejection{Failures: 1, Base: time.Minute, Max: time.Hour, Percent: 100}}, "10.0.0.1")
	for range 10 {
		p.Observe(p.all[0], Failed, now)
	}
	if len(p.ready) != 1 {
		t.Error("the only endpoint was ejected")
	}
}

// Each change is reported once, in order.
func TestChangesAreReported(t *testing.T) {
	now := time.Unix(1_700_000_000, 0).UTC()
	p := newTestSet(Policy{Ejection: Ejection{Failures: 2, Base: 10 * time.Second, Max: time.Minute, Percent: 50}},
		"10.0.0.1", "10.0.0.2")
	for _, at := range []int{0, 1, 2, 3, 12, 13, 14} {
		at := now.Add(time.Duration(at) * time.Second)
		p.Refresh(at)
		var not FailedEndpoints[none]
		not.Add(p.all[1])
		p.Observe(p.Choose(&not), Failed, at)
	}
	var reported []string
	for _, c := range p.TakeChanges() {
		reported = append(reported, fmt.Sprintf("%v %s %s", c.Event, c.Endpoint, c.Until.Format("05")))
	}
	want := "Ejected 10.0.0.1 31, Readmitted 10.0.0.1 00, Ejected 10.0.0.1 52"
	if got := strings.Join(reported, ", "); got != want {
		t.Errorf("reported:\n%s\nwant\n%s", got, want)
	}
	if p.HasChanges() {
		t.Error("there are changes left")
	}
}

// A request that failed somewhere goes elsewhere: to one that is ready, then to
// one that is not, and only then to the same again.
func TestChooseOther(t *testing.T) {
	p := newTestSet(Policy{}, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	p.all[2].unhealthy = true
	p.rebuild(time.Now())
	var not FailedEndpoints[none]
	for _, want := range [][]int{{0, 1}, {2}, {0, 1}} {
		for range 20 {
			e := p.Choose(&not)
			if i := slices.Index(p.all, e); !slices.Contains(want, i) {
				t.Fatalf("with %d tried endpoint %d was chosen, not one of %v", not.n, i, want)
			}
		}
		if not.n == 0 {
			not.Add(p.all[0])
			if e := p.Choose(&not); e != p.all[1] {
				t.Fatal("the other ready one was not chosen")
			}
			not.Add(p.all[1])
		} else {
			not.Add(p.all[2])
		}
	}
}
