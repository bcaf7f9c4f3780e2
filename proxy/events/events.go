// Package events records what admission refused, and which policies failed, as Events of Kubernetes
// (events.k8s.io) beside the objects that they are about. client-go makes one series of events that
// are alike.
package events

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// Controller is the reporting controller of the events.
const Controller = "admission-gateway.io/gateway"

// The reasons of the events. All are of the type Warning.
const (
	// Denied: a policy refused a request about the object.
	Denied = "AdmissionDenied"
	// Failed: a policy could not judge a request about the object.
	Failed = "PolicyFailed"
)

const (
	// perSecond and burst bound the events of a backend. client-go remembers each for some minutes.
	perSecond = 5
	burst     = 50
	// maxNote is how long a note may be in Kubernetes, in bytes.
	maxNote = 1024
)

// An Outcome says what became of an event.
type Outcome string

// The outcomes. Events of one series are sent together.
const (
	Sent    Outcome = "Sent"
	Lost    Outcome = "Failed"  // the backend did not take it
	Dropped Outcome = "Dropped" // there were too many
)

// Options configure New.
type Options struct {
	// Send sends a request to the backend on the gateway's own account.
	Send Send
	// Ended is told what became of events; the error says why one is lost.
	Ended func(Outcome, error)
}

// A Recorder records the events about the objects of one backend. It is safe for concurrent use.
type Recorder struct {
	recorder    events.EventRecorder
	broadcaster events.EventBroadcaster
	limit       *rate.Limiter
	ended       func(Outcome, error)
	stop        context.CancelFunc
	closed      sync.Once
}

// New returns a Recorder that works until Close.
func New(o Options) (*Recorder, error) {
	// client-go's own log would have a line for each event that is lost. Ended tells of them.
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	b := events.NewBroadcaster(&sink{send: o.Send, ended: o.Ended})
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		stop()
		return nil, err
	}
	return &Recorder{
		recorder: b.NewRecorder(runtime.NewScheme(), Controller), broadcaster: b,
		limit: rate.NewLimiter(perSecond, burst), ended: o.Ended, stop: stop,
	}, nil
}

// Record records that something happened to a request for an action on an object. It never waits.
func (r *Recorder) Record(about *corev1.ObjectReference, reason, action, note string) {
	if !r.limit.AllowN(time.Now(), 1) {
		r.ended(Dropped, nil)
		return
	}
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, reason, action, "%s", clip(note))
}

// clip cuts a note off at the end of a character.
func clip(note string) string {
	const more = "…"
	if len(note) <= maxNote {
		return note
	}
	end := maxNote - len(more)
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + more
}

// Close ends the recording. Events that are not sent yet are lost.
func (r *Recorder) Close() {
	r.closed.Do(func() {
		r.stop()
		r.broadcaster.Shutdown()
	})
}
