package main

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

const (
	// sampleInterval is how often requests are counted for the rates of the status page.
	sampleInterval = 5 * time.Second
	// rateSamples are the samples of the last minute.
	rateSamples = int(time.Minute / sampleInterval)
)

// rates remembers how many requests there were in the last minute.
type rates struct {
	mu      sync.Mutex
	samples [rateSamples]map[string]uint64 // of all requests since the start, by resource
	next    int
}

// run samples until stop is closed.
func (r *rates) run(stop <-chan struct{}, answers func() []telemetry.RequestCounts) {
	each := time.NewTicker(sampleInterval)
	defer each.Stop()
	for {
		select {
		case <-stop:
			return
		case <-each.C:
			r.sample(answers())
		}
	}
}

// sample notes the counts of now in place of those of a minute ago.
func (r *rates) sample(all []telemetry.RequestCounts) {
	counts := make(map[string]uint64, len(all))
	for i := range all {
		counts[answersName(&all[i])] = all[i].All
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples[r.next%rateSamples] = counts
	r.next++
}

// lastMinute returns how many of so many requests for a resource came in the last minute, or since the start if that is
// shorter.
func (r *rates) lastMinute(name string, count uint64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(count - r.samples[r.next%rateSamples][name])
}

// answersName is the name of a resource as match blocks have it.
func answersName(a *telemetry.RequestCounts) string {
	if a.Group == "" || a.Group == a.Resource { // other
		return a.Resource
	}
	return a.Resource + "." + a.Group
}

// describeActivity shows the resources in force, what came of requests for them, and the last refusals.
func (n *node) describeActivity(s *admin.Status) {
	s.Resources, s.Answers, s.Refusals = []admin.Resource{}, []admin.RequestCounts{}, []admin.Refusal{}
	if m := n.manager.Load(); m != nil {
		for _, r := range m.Current().Registry().Resources() {
			if r.Operation == nil {
				s.Resources = append(s.Resources, admin.Resource{Name: r.GroupResource().String(), Version: r.Version,
					Kind: r.Names.Kind, Paths: r.Paths})
			}
		}
	}
	slices.SortFunc(s.Resources, func(a, b admin.Resource) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	answers := n.metrics.RequestCounts()
	for i := range answers {
		a := &answers[i]
		name := answersName(a)
		s.Answers = append(s.Answers, admin.RequestCounts{
			Resource: name, Requests: int64(a.All), Refused: int64(a.Refused), Failed: int64(a.Failed),
			LastMinute: n.rates.lastMinute(name, a.All),
		})
	}
	slices.SortFunc(s.Answers, func(a, b admin.RequestCounts) int {
		return cmp.Or(cmp.Compare(b.LastMinute, a.LastMinute), cmp.Compare(b.Requests, a.Requests),
			strings.Compare(a.Resource, b.Resource))
	})
	for _, r := range n.metrics.Refusals() {
		s.Refusals = append(s.Refusals, admin.Refusal{
			Time: r.Time.UTC(), Method: r.Method, Host: r.Host, Path: r.Path, Code: r.Code, Reason: r.Reason,
			Policy: r.Policy, Field: r.Field,
		})
	}
}
