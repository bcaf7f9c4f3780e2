package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// api is a backend that records its requests.
type api struct {
	mu       sync.Mutex
	requests []string
	outcomes map[Outcome]int
	answer   func(method string) (int, error)
}

func (a *api) send(_ context.Context, method, target, contentType string, body []byte) (int, []byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var e eventsv1.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return 0, nil, err
	}
	line := fmt.Sprintf("%s %s %s", method, contentType, target)
	if i := strings.LastIndex(line, "/events/"); i >= 0 {
		line = line[:i] + "/events/NAME"
	}
	if method == "POST" {
		line += fmt.Sprintf(" %s %s %s %s of %s/%s/%s: %s", e.Type, e.Reason, e.Action, e.ReportingController,
			e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name, e.Note)
	}
	if e.Series != nil {
		line += fmt.Sprintf(" (%d times)", e.Series.Count)
	}
	a.requests = append(a.requests, line)
	code, err := 201, error(nil)
	if a.answer != nil {
		code, err = a.answer(method)
	}
	if code >= 300 {
		body, _ = json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Code: int32(code), Message: "as the test asks", Reason: metav1.StatusReasonForbidden})
	}
	return code, body, err
}

func (a *api) ended(o Outcome, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcomes[o]++
}

func (a *api) seen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.requests, "\n")
}

func (a *api) count(o Outcome) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outcomes[o]
}

func newRecorder(t *testing.T, answer func(method string) (int, error)) (*Recorder, *api) {
	t.Helper()
	a := &api{outcomes: map[Outcome]int{}, answer: answer}
	r := New(Options{Send: a.send, Ended: a.ended})
	t.Cleanup(r.Close)
	return r, a
}

func pod(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "team-a", Name: name}
}

// TestSeries: events that are alike become one series. The backend learns of it with the second.
func TestSeries(t *testing.T) {
	r, a := newRecorder(t, nil)
	const created = "POST application/json /apis/events.k8s.io/v1/namespaces/team-a/events Warning AdmissionDenied create admission-gateway.io/gateway of Pod/team-a/web: no %s"
	want := created
	r.Record(pod("web"), Denied, "create", "no %s")
	testutil.Becomes(t, want, a.seen)
	r.Record(pod("web"), Denied, "create", "no, again")
	want += "\nPATCH application/strategic-merge-patch+json /apis/events.k8s.io/v1/namespaces/team-a/events/NAME (2 times)"
	testutil.Becomes(t, want, a.seen)
	r.Record(pod("web"), Denied, "create", "no, once more") // is counted, and not sent yet
	r.Record(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1"}, Failed, "update", "why")
	want += "\nPOST application/json /apis/events.k8s.io/v1/namespaces/default/events Warning PolicyFailed update admission-gateway.io/gateway of Node//n1: why"
	testutil.Becomes(t, want, a.seen)
	if sent := a.count(Sent); sent > 3 || a.count(Lost)+a.count(Dropped) > 0 {
		t.Errorf("%d were sent, and %d lost", sent, a.count(Lost)+a.count(Dropped))
	}
}

// TestGone: the event of a series that the backend has removed is created again.
func TestGone(t *testing.T) {
	r, a := newRecorder(t, func(method string) (int, error) {
		if method == "PATCH" {
			return 404, nil
		}
		return 201, nil
	})
	r.Record(pod("web"), Denied, "create", "no")
	testutil.Becomes(t, 1, func() int { return a.count(Sent) })
	r.Record(pod("web"), Denied, "create", "no")
	testutil.Becomes(t, 2, func() int { return a.count(Sent) })
	if got := a.seen(); strings.Count(got, "POST") != 2 || strings.Count(got, "PATCH") != 1 || a.count(Lost) != 0 {
		t.Errorf("the backend was asked\n%s", got)
	}
}

// TestTooMany: what comes faster than it may is dropped and counted.
func TestTooMany(t *testing.T) {
	r, a := newRecorder(t, nil)
	const all = 10 * burst
	for i := range all {
		r.Record(pod(fmt.Sprint("web-", i)), Denied, "create", "no")
	}
	testutil.Eventually(t, "all are done", func() bool { return a.count(Sent)+a.count(Dropped) == all })
	if sent := a.count(Sent); sent < burst || sent > all/2 {
		t.Errorf("%d of %d events were sent", sent, all)
	}
}

// TestFailures: a backend that fails is left alone for a while, one that refuses is not asked again about the event.
func TestFailures(t *testing.T) {
	for name, answer := range map[string]struct {
		code  int
		err   error
		asked int
	}{"down": {0, errors.New("connection refused"), 1}, "broken": {503, nil, 1}, "forbidden": {403, nil, 3}} {
		t.Run(name, func(t *testing.T) {
			r, a := newRecorder(t, func(string) (int, error) { return answer.code, answer.err })
			for i := range 3 {
				r.Record(pod(fmt.Sprint("web-", i)), Denied, "create", "no")
				testutil.Becomes(t, i+1, func() int { return a.count(Lost) })
			}
			if got := strings.Count(a.seen(), "POST"); got != answer.asked {
				t.Errorf("the backend was asked %d times, want %d", got, answer.asked)
			}
		})
	}
}

// TestClose: nothing is sent, and nothing panics, after the end.
func TestClose(t *testing.T) {
	r, a := newRecorder(t, nil)
	r.Record(pod("web"), Denied, "create", "no")
	testutil.Becomes(t, 1, func() int { return a.count(Sent) })
	r.Close()
	r.Close()
	r.Record(pod("other"), Denied, "create", "no")
	if got := a.count(Sent); got != 1 {
		t.Errorf("%d events were sent", got)
	}
}

func TestClip(t *testing.T) {
	for _, note := range []string{"", "short", strings.Repeat("x", maxNote), strings.Repeat("x", maxNote+1),
		strings.Repeat("ä", maxNote), "x" + strings.Repeat("€", maxNote)} {
		got := clip(note)
		if len(got) > maxNote || !utf8.ValidString(got) || len(note) <= maxNote && got != note || len(note) > maxNote &&
			len(got) < maxNote-6 {
			t.Errorf("%.20q of %d bytes becomes %d bytes", note, len(note), len(got))
		}
	}
}
