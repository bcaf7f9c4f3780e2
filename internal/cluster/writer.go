package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/ingress"
	"github.com/admission-gateway/gateway/internal/state"
)

const (
	// writers is how many statuses are written at a time, writeTimeout how long one may take.
	writers      = 4
	writeTimeout = 10 * time.Second
	// maxAnswer is how large the answer to a write may be, in bytes.
	maxAnswer = 4 << 20
	// again is after what time statuses are written again that could not be.
	again = time.Second
	// contentMerge is the type of a JSON merge patch.
	contentMerge = "application/merge-patch+json"
)

// writer writes statuses while this gateway has the Lease.
type writer struct {
	client  *client
	options Options
	election
	stale  func() // has the objects translated anew
	wakeUp chan struct{}

	mu     sync.Mutex
	wanted []ingress.Status // that have changed
	// done are the versions of objects whose status was written, and has not been seen since.
	done map[string]string
}

func newWriter(c *client, o Options, stale func()) *writer {
	return &writer{client: c, options: o, election: newElection(c, o), stale: stale, wakeUp: make(chan struct{}, 1),
		done: map[string]string{}}
}

// want says which statuses objects are to have from now on. Those of Gateways and what they are made of come before
// those of routes, of which there are many more.
func (w *writer) want(all []ingress.Status) {
	var changed []ingress.Status
	for _, isRoute := range []bool{false, true} {
		for i := range all {
			if s := &all[i]; s.HasChanged && strings.HasSuffix(s.Kind, "Route") == isRoute {
				changed = append(changed, *s)
			}
		}
	}
	w.mu.Lock()
	w.wanted = changed
	w.mu.Unlock()
	w.wake()
}

func (w *writer) wake() {
	select {
	case w.wakeUp <- struct{}{}:
	default:
	}
}

// run writes until ctx is done.
func (w *writer) run(ctx context.Context) {
	go w.election.run(ctx, w.wake)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wakeUp:
		}
		if !w.leads() {
			continue
		}
		if !w.round(ctx) {
			if !pause(ctx, again) {
				return
			}
			w.stale() // by what the objects are by then
			w.wake()
		}
	}
}

// round writes what is wanted, and reports whether all of it could be written, or need not be any more.
func (w *writer) round(ctx context.Context) bool {
	w.mu.Lock()
	wanted := w.wanted
	done := make(map[string]string, len(wanted))
	var open []*ingress.Status
	for i := range wanted {
		s := &wanted[i]
		id := s.Kind + " " + s.Namespace + "/" + s.Name
		if w.done[id] == s.Version {
			done[id] = s.Version // the watch has yet to bring the status
			continue
		}
		open = append(open, s)
	}
	w.done = done
	w.mu.Unlock()
	var group sync.WaitGroup
	next := make(chan *ingress.Status)
	failed := make(chan struct{}, writers)
	for range min(writers, len(open)) {
		group.Go(func() {
			for s := range next {
				if !w.write(ctx, s) {
					select {
					case failed <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	for _, s := range open {
		if ctx.Err() != nil || !w.leads() || w.isNewer(wanted) {
			break
		}
		next <- s
	}
	close(next)
	group.Wait()
	return len(failed) == 0
}

// isNewer reports whether other statuses are wanted by now. Those that are still to be written are among them.
func (w *writer) isNewer(than []ingress.Status) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wanted) != len(than) || len(than) > 0 && &w.wanted[0] != &than[0]
}

// write writes a status, and reports whether it need not be tried again.
func (w *writer) write(ctx context.Context, s *ingress.Status) bool {
	target, err := s.Target()
	if err != nil {
		w.options.Log.Error("a status cannot be written", "cause", err)
		return true
	}
	body, err := patchOf(s)
	if err != nil {
		w.options.Log.Error("a status cannot be written", "target", target, "cause", err)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	answer, err := w.client.send(ctx,
		state.Request{Method: http.MethodPatch, Target: target + "?fieldManager=admission-gateway", Body: body,
			Limit: maxAnswer}, contentMerge)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			w.options.Log.Warn("a status cannot be written", "target", target, "cause", err)
		}
		return false
	case answer.Code == http.StatusOK:
		w.mu.Lock()
		w.done[s.Kind+" "+s.Namespace+"/"+s.Name] = s.Version
		w.mu.Unlock()
		return true
	case answer.Code == http.StatusConflict, answer.Code == http.StatusNotFound:
		return true // the object is another one by now, which the watch will bring
	}
	w.options.Log.Warn("a status cannot be written", "target", target, "code", answer.Code, "answer",
		short(answer.Body))
	return answer.Code < http.StatusInternalServerError && answer.Code != http.StatusTooManyRequests
}

// short is the beginning of an answer.
func short(body []byte) string {
	const most = 512
	return string(body[:min(len(body), most)])
}

// patchOf returns the merge patch that gives an object of a version its status. A field that the new status does not
// have is taken out.
func patchOf(s *ingress.Status) ([]byte, error) {
	text, err := json.Marshal(s.Value)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	for _, name := range s.Fields() {
		if _, found := fields[name]; !found {
			fields[name] = json.RawMessage("null")
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": s.Version}, "status": fields})
}
