// Package events records what admission refused, and which policies failed, as Events of Kubernetes
// (events.k8s.io) beside the objects that they regard. Events that are alike become one series.
package events

import (
	"cmp"
	"context"
	"os"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record/util"

	"github.com/admission-gateway/gateway/internal/quote"
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
	// perSecond and burst bound the events of a backend. Each is remembered for some minutes.
	perSecond = 5
	burst     = 50
	// maxQueue is how many events wait to be sent at most.
	maxQueue = 1000
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
	// Ended is called with the outcome of events; the error says why one is lost.
	Ended func(Outcome, error)
}

// A Recorder records the events about the objects of one backend. It is safe for concurrent use.
type Recorder struct {
	queue  chan *eventsv1.Event
	limit  *rate.Limiter
	ended  func(Outcome, error)
	stop   context.CancelFunc
	host   string
	closed <-chan struct{}
}

// New returns a Recorder that works until Close.
func New(o Options) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	host, _ := os.Hostname() // empty with an error
	r := &Recorder{
		queue: make(chan *eventsv1.Event, maxQueue), limit: rate.NewLimiter(perSecond, burst), ended: o.Ended,
		stop: stop, host: host, closed: ctx.Done(),
	}
	w := &writer{sink: sink{send: o.Send, ended: o.Ended}, known: map[key]*eventsv1.Event{}}
	go w.run(ctx, r.queue)
	return r
}

// Record records that something happened to a request for an action on an object. It never waits.
func (r *Recorder) Record(about *corev1.ObjectReference, reason, action, note string) {
	if !r.limit.AllowN(time.Now(), 1) {
		r.ended(Dropped, nil)
		return
	}
	r.add(*about, nil, corev1.EventTypeWarning, reason, action, note)
}

// add has an event sent. It never waits: if too many wait already, the event is dropped.
func (r *Recorder) add(about corev1.ObjectReference, related *corev1.ObjectReference, severity, reason, action,
	note string) {
	now := time.Now()
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      util.GenerateEventName(about.Name, now.UnixNano()),
			Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault),
		},
		EventTime: metav1.MicroTime{Time: now}, Type: severity, Reason: reason, Action: action, Note: clip(note),
		Regarding: about, Related: related, ReportingController: Controller, ReportingInstance: Controller + "-" +
			r.host,
	}
	select {
	case <-r.closed:
	case r.queue <- e:
	default:
		r.ended(Dropped, nil)
	}
}

// clip cuts a note off at the end of a character.
func clip(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return quote.Clip(note, maxNote-len("…"))
}

// Close ends the recording. Events that are not sent yet are lost.
func (r *Recorder) Close() { r.stop() }
