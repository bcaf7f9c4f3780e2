package telemetry

import (
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/status"
)

const (
	// maxRefusals is how many refusals are remembered.
	maxRefusals = 32
	// maxRefusalText is how much of each of its texts is, in bytes.
	maxRefusalText = 512
)

// A Refusal is a request that the gateway refused, by names alone: it has nothing of a body, a query or a client.
type Refusal struct {
	Time                  time.Time
	Method, Host, Path    string
	Code                  int
	Reason, Policy, Field string
}

// refusals are the last refusals. Texts are copied into memory that stays, so that a flood of refusals allocates
// nothing; and a refusal that another one is being written beside is left out, so that none waits.
type refusals struct {
	mu    sync.Mutex
	all   [maxRefusals]keptRefusal
	count int // ever
}

// keptRefusal is a Refusal whose texts are in buffers of its own.
type keptRefusal struct {
	at    time.Time
	code  int
	texts [6][]byte
}

// add notes a request if the gateway refused it.
func (r *refusals) add(of *Record) {
	if of.Outcome.Reason == "" || of.Outcome.Code == status.ClientClosedRequest || !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	kept := &r.all[r.count%maxRefusals]
	r.count++
	kept.at, kept.code = time.Now(), of.Outcome.Code
	for i, text := range [...]string{of.Request.Method, of.Request.Host, of.Request.Path, of.Outcome.Reason,
		of.Outcome.Policy, of.Outcome.Field} {
		kept.texts[i] = append(kept.texts[i][:0], text[:min(len(text), maxRefusalText)]...)
	}
}

// list returns the refusals, the newest first.
func (r *refusals) list() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Refusal, 0, min(r.count, maxRefusals))
	for i := r.count - 1; i >= 0 && len(all) < maxRefusals; i-- {
		kept := &r.all[i%maxRefusals]
		text := func(i int) string { return string(kept.texts[i]) }
		all = append(all, Refusal{
			Time: kept.at, Code: kept.code, Method: text(0), Host: text(1), Path: text(2), Reason: text(3),
			Policy: text(4), Field: text(5),
		})
	}
	return all
}
