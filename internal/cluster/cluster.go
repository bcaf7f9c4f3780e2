// Package cluster routes by the objects of a cluster: it lists and watches what routes are made of, translates it, and
// writes what became of it to the status of the objects, while this gateway is the one of all that has the Lease.
//
// What was read stays in force while the API server cannot be asked.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/ingress"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/state"
)

// How long a change waits for others that come with it. While changes keep coming, as much time is left between two
// translations as one takes.
const quiet = 10 * time.Millisecond

// statusInterval is how long the objects are not translated again if their statuses alone change.
const statusInterval = time.Second

// A Watcher keeps routes up to date with a cluster.
type Watcher struct {
	options    Options
	client     *client
	states     *state.Manager
	read       collections
	translator *ingress.Translator
	changed    chan struct{} // has something in it if something has changed
	writer     *writer
	applied    *routing.Table
	problem    atomic.Pointer[string] // why nothing, or not the newest, is in force; nil if all is well
	said       map[string]bool        // problems of objects that are in the log
	translated time.Time
	// when the first change that is not in force came, in nanoseconds of Unix time; 0: there is none
	noticed   atomic.Int64
	lag       atomic.Int64 // nanoseconds from there until it was in force, of the last change
	rechecked atomic.Bool  // listeners take requests, or none, since the last translation
	isDue     bool         // statuses have changed since
}

// New returns a Watcher, which watches nothing yet.
func New(o Options) (*Watcher, error) {
	c := newClient(&o)
	w := &Watcher{options: o, client: c, changed: make(chan struct{}, 1), said: map[string]bool{}}
	w.translator = ingress.New(ingress.Options{
		Controller: o.Controller, GatewayClass: o.GatewayClass, Pool: o.Pool, Published: o.Published,
		Service: o.Service,
	})
	var err error
	if w.states, err = state.NewManager(state.Options{Log: o.Log, Liveness: o.Liveness,
		Read: func(schema.GroupVersionKind) {
			w.noticed.CompareAndSwap(0, time.Now().UnixNano())
			w.notice()
		}}); err != nil {
		return nil, err
	}
	w.read = collections{sourcesOf(o.Namespaces), o.Log}
	w.writer = newWriter(c, o, w.notice)
	reason := "the objects of the cluster have not been read yet"
	w.problem.Store(&reason)
	return w, nil
}

// notice has the objects translated anew.
func (w *Watcher) notice() {
	select {
	case w.changed <- struct{}{}:
	default: // they will be
	}
}

// Activities returns what was read of the collections of each kind. Of several namespaces the oldest decides the age.
func (w *Watcher) Activities() map[string]state.Activity {
	all := map[string]state.Activity{}
	for _, one := range w.states.Activities() {
		sum := all[one.Kind]
		one.Events, one.Lists, one.Silences = one.Events+sum.Events, one.Lists+sum.Lists, one.Silences+sum.Silences
		one.Age = max(one.Age, sum.Age)
		if sum.LastEvent.After(one.LastEvent) {
			one.LastEvent = sum.LastEvent
		}
		all[one.Kind] = one
	}
	return all
}

// Age is how long ago the API server last showed that what was read of it is right, of the kind of which that was
// longest ago; 0 before anything was read.
func (w *Watcher) Age() (oldest time.Duration) {
	for _, one := range w.states.Activities() {
		oldest = max(oldest, one.Age)
	}
	return oldest
}

// Overdue returns which objects may be old, since nothing shows that they are right; nil if there are none. They stay
// in force.
func (w *Watcher) Overdue() error { return w.states.Overdue() }

// Lag is how long the last change took from its event until it was in force; 0 before the first one.
func (w *Watcher) Lag() time.Duration { return time.Duration(w.lag.Load()) }

// Recheck says that Options.Unserved has changed.
func (w *Watcher) Recheck() {
	w.rechecked.Store(true)
	w.notice()
}

// Ready returns why the objects of the cluster are not in force; nil if they are.
func (w *Watcher) Ready() error {
	if p := w.problem.Load(); p != nil {
		return errors.New(*p)
	}
	return nil
}

// Run watches until ctx is done.
func (w *Watcher) Run(ctx context.Context) {
	var all []*state.Source
	for i := range w.read.sources {
		all = append(all, &w.read.sources[i].Source)
	}
	w.states.Start(w.client)
	w.states.Apply(all)
	go w.writer.run(ctx)
	defer w.client.close()
	defer w.states.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if !pause(ctx, quiet) {
			return
		}
		select {
		case <-w.changed: // what came meanwhile is translated with it
		default:
		}
		began := time.Now()
		w.translate()
		if !pause(ctx, time.Since(began)) {
			return
		}
	}
}

// translate translates the objects as they are now, and brings the table into force.
func (w *Watcher) translate() {
	noticed := w.noticed.Swap(0) // what comes from now on may be of the next translation
	objects, isNew, err := w.read.snapshot(w.states)
	if err != nil {
		w.noticed.CompareAndSwap(0, noticed)
		if w.applied == nil {
			reason := err.Error()
			w.problem.Store(&reason)
		}
		return
	}
	if !w.rechecked.Swap(false) && !isNew && w.applied != nil && time.Since(w.translated) < statusInterval {
		// Statuses alone have changed, mostly by this gateway's own writing: how they differ by then is enough.
		if !w.isDue {
			w.isDue = true
			time.AfterFunc(statusInterval, w.notice)
		}
		return
	}
	w.isDue, w.translated = false, time.Now()
	out := w.translator.Translate(objects, w.translated)
	w.say(out.Problems)
	if w.applied == nil || !routing.Equal(w.applied, out.Table) {
		if err := w.options.Apply(out.Table); err != nil {
			reason := fmt.Sprintf("what the objects of the cluster come to cannot be brought into force: %s", err)
			w.problem.Store(&reason)
			w.noticed.CompareAndSwap(0, noticed)
			w.options.Log.Error("the routes of the cluster cannot be brought into force, those before stay", "cause",
				err)
			time.AfterFunc(again, w.notice) // what is in the way, such as a socket, may be gone then
			return
		}
		w.options.Log.Debug("the routes of the cluster are in force", "listeners", len(out.Table.Listeners), "routes",
			len(out.Table.Routes))
	}
	w.applied = out.Table
	w.problem.Store(nil)
	if noticed != 0 {
		w.lag.Store(time.Now().UnixNano() - noticed)
	}
	w.writer.want(out.Statuses(w.options.Unserved()))
}

// say logs each problem of an object once, until it is gone.
func (w *Watcher) say(problems []ingress.Problem) {
	now := make(map[string]bool, len(problems))
	for _, p := range problems {
		id := p.Kind + " " + p.Namespace + "/" + p.Name + " " + p.Path + " " + p.Message
		if now[id] = true; !w.said[id] {
			w.options.Log.Warn("an object of the cluster is not in force as it is written",
				"kind", p.Kind, "namespace", p.Namespace, "name", p.Name, "field", p.Path, "problem", p.Message)
		}
	}
	w.said = now
}
