package events

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
)

// The kinds of events that happen to the gateway itself. A Subject names one of them.
const (
	// Policies are the policy files.
	Policies = "Policies"
	// Bundle is a bundle of OPA.
	Bundle = "Bundle"
	// State is a collection that policies read.
	State = "State"
	// Upstream is a backend, or one of its servers.
	Upstream = "Upstream"
)

// subjects say what is done with each kind, and the reasons of its events.
var subjects = map[string]struct{ action, fails, recovers string }{
	Policies: {"Load", "PoliciesRejected", "PoliciesInForce"},
	Bundle:   {"Update", "BundleFailed", "BundleActivated"},
	State:    {"Read", "StateUnread", "StateRead"},
	Upstream: {"Ask", "UpstreamFailed", "UpstreamRecovered"},
}

// A Subject is the thing that something happens to.
type Subject struct {
	// Kind is one of the constants, Name its name in the configuration; a part of it may fail on its own.
	Kind, Name, Part string
}

// ownPerSecond and ownBurst bound the events about the gateway itself. Refusals do not use them up.
const (
	ownPerSecond = 1
	ownBurst     = 20
)

// Own records what happens to the gateway itself, as events about its Pod. A nil one records nothing. It is safe for
// concurrent use.
type Own struct {
	recorder *Recorder
	pod      corev1.ObjectReference
	at       string // the upstream that the events are recorded at
	limit    *rate.Limiter

	mu      sync.Mutex
	failing map[Subject]bool
}

// accounts is where a Pod finds the files of its account.
const accounts = "/var/run/secrets/kubernetes.io/serviceaccount"

// ThisPod names the Pod of the process: by POD_NAMESPACE and POD_NAME, or else by the files of its account and its
// host's name. It reports false outside of Pods.
func ThisPod() (corev1.ObjectReference, bool) { return podIn(accounts, os.Hostname) }

func podIn(folder string, hostname func() (string, error)) (corev1.ObjectReference, bool) {
	namespace, name := os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME")
	if namespace == "" {
		text, err := os.ReadFile(filepath.Join(folder, "namespace"))
		if err != nil {
			return corev1.ObjectReference{}, false
		}
		namespace = strings.TrimSpace(string(text))
	}
	if name == "" {
		name, _ = hostname() // empty with an error
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}, name != "" &&
		namespace != ""
}

// NewOwn returns what records events about the Pod at an upstream.
func NewOwn(r *Recorder, upstream string, pod corev1.ObjectReference) *Own {
	return &Own{
		recorder: r, at: upstream, pod: pod, failing: map[Subject]bool{},
		limit: rate.NewLimiter(ownPerSecond, ownBurst),
	}
}

// IsSentBy reports whether a recorder records the events.
func (o *Own) IsSentBy(r *Recorder) bool { return o != nil && o.recorder == r }

// Fails records that a subject fails.
func (o *Own) Fails(s Subject, note string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.failing[s] = true
	o.mu.Unlock()
	if s.Kind == Upstream && s.Name == o.at && s.Part == "" {
		return // which takes no event then
	}
	o.record(s, corev1.EventTypeWarning, subjects[s.Kind].fails, note)
}

// Recovers records that a subject is well again, if it failed before.
func (o *Own) Recovers(s Subject, note string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	failed := o.failing[s]
	delete(o.failing, s)
	o.mu.Unlock()
	if failed {
		o.record(s, corev1.EventTypeNormal, subjects[s.Kind].recovers, note)
	}
}

func (o *Own) record(s Subject, severity, reason, note string) {
	if !o.limit.AllowN(time.Now(), 1) {
		o.recorder.ended(Dropped, nil)
		return
	}
	about := &corev1.ObjectReference{APIVersion: "admission-gateway.io/v1alpha1", Kind: s.Kind, Name: s.Name}
	o.recorder.add(o.pod, about, severity, reason, subjects[s.Kind].action, note)
}
