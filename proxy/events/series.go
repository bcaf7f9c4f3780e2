package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

const (
	// finish is how long nothing like an event must have happened until it is forgotten. A series is ended then: its
	// last count is sent.
	finish = 6 * time.Minute
	// refresh is how often the count of a series that goes on is sent, so that the backend does not remove its event.
	refresh = 30 * time.Minute
)

// A key says which events are alike.
type key struct {
	severity, action, reason string
	about, related           corev1.ObjectReference
}

// A writer sends the events of a backend one after the other, with as many requests as client-go's broadcaster. That
// one asks the backend from many goroutines, so that a series may reach it before its event, and twice.
type writer struct {
	sink  sink
	known map[key]*eventsv1.Event
}

// run sends events until the context ends.
func (w *writer) run(ctx context.Context, queue <-chan *eventsv1.Event) {
	finishing, refreshing := time.NewTicker(finish), time.NewTicker(refresh)
	defer finishing.Stop()
	defer refreshing.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-queue:
			if ctx.Err() == nil { // select takes any case that is ready
				w.observe(ctx, e)
			}
		case now := <-finishing.C:
			w.finish(ctx, now.Add(-finish))
		case <-refreshing.C:
			w.refresh(ctx)
		}
	}
}

// observe sends an event, and the first count of a series. Further counts are sent as the series goes on, or ends.
func (w *writer) observe(ctx context.Context, e *eventsv1.Event) {
	k := key{severity: e.Type, action: e.Action, reason: e.Reason, about: e.Regarding}
	if e.Related != nil {
		k.related = *e.Related
	}
	first := w.known[k]
	switch {
	case first == nil:
		w.known[k] = e
		w.sink.create(ctx, e)
	case first.Series == nil:
		first.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: e.EventTime}
		w.sink.count(ctx, first)
	default:
		first.Series.Count++
		first.Series.LastObservedTime = e.EventTime
	}
}

// finish forgets events that were last observed before a time.
func (w *writer) finish(ctx context.Context, before time.Time) {
	for k, e := range w.known {
		last := e.EventTime
		if e.Series != nil {
			last = e.Series.LastObservedTime
		}
		if !last.Time.Before(before) {
			continue
		}
		delete(w.known, k)
		if e.Series != nil {
			w.sink.count(ctx, e)
		}
	}
}

// refresh sends the counts of all series.
func (w *writer) refresh(ctx context.Context) {
	for _, e := range w.known {
		if e.Series != nil {
			w.sink.count(ctx, e)
		}
	}
}
