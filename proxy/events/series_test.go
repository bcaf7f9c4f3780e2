package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// TestSeriesEnds: the count of a series that goes on is sent every half hour, and the last one after its end. What
// happens later is another event.
func TestSeriesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a := newRecorder(t, nil)
		time.Sleep(time.Second)
		for range 8 { // until 35 minutes
			r.Record(pod("web"), Denied, "create", "no")
			time.Sleep(5 * time.Minute)
		}
		time.Sleep(15 * time.Minute)
		r.Record(pod("web"), Denied, "create", "no")
		synctest.Wait()
		const created = "POST application/json /apis/events.k8s.io/v1/namespaces/team-a/events Warning AdmissionDenied create admission-gateway.io/gateway of Pod/team-a/web: no"
		const counted = "PATCH application/strategic-merge-patch+json /apis/events.k8s.io/v1/namespaces/team-a/events/NAME"
		want := strings.Join([]string{created, counted + " (2 times)", counted + " (6 times)", counted + " (8 times)",
			created}, "\n")
		if got := a.seen(); got != want {
			t.Errorf("the backend was asked\n%s\nwant\n%s", got, want)
		}
	})
}

// A judged keeps what a backend is asked about each event: methods with the counts of series.
type judged struct {
	mu     sync.Mutex
	events map[string][]string
	isGone bool // the backend forgets events at once
}

func (j *judged) send(_ context.Context, method, target, _ string, body []byte) (int, []byte, error) {
	var e eventsv1.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return 0, nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	name := cmp.Or(e.Name, target[strings.LastIndex(target, "/")+1:])
	asked := fmt.Sprintf("%s %s %s", method, e.Action, e.Regarding.Name)
	if e.Series != nil {
		asked += fmt.Sprintf(" (%d times)", e.Series.Count)
	}
	// A series may be refreshed and ended in the same minute, which sends its count twice.
	if !slices.Contains(j.events[name], asked) {
		j.events[name] = append(j.events[name], asked)
	}
	if method == http.MethodPatch && j.isGone {
		return http.StatusNotFound, nil, nil
	}
	return http.StatusCreated, body, nil
}

// all returns what was asked about all events.
func (j *judged) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for _, asked := range j.events {
		lines = append(lines, strings.Join(asked, ", "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A clientGo is a backend as client-go's broadcaster sees one.
type clientGo struct{ *judged }

func (c clientGo) ask(ctx context.Context, method, name string, e *eventsv1.Event,
	body []byte) (*eventsv1.Event, error) {
	code, _, err := c.send(ctx, method, "/events"+name, "", body)
	if err == nil && code >= 300 {
		err = apierrors.NewGenericServerResponse(code, method, schema.GroupResource{Resource: "events"}, e.Name, "", 0,
			false)
	}
	return e, err
}

// Create implements events.EventSink.
func (c clientGo) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, http.MethodPost, "", e, body)
}

// Update implements events.EventSink.
func (c clientGo) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, errors.New("client-go updates an event")
}

// Patch implements events.EventSink.
func (c clientGo) Patch(ctx context.Context, e *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return c.ask(ctx, http.MethodPatch, "/"+e.Name, e, data)
}

// TestAsClientGo: the backend is asked the same as client-go's broadcaster asks it, whenever events come.
func TestAsClientGo(t *testing.T) {
	for seed := range int64(60) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &judged{events: map[string][]string{}, isGone: seed%3 == 0},
				&judged{events: map[string][]string{}, isGone: seed%3 == 0}
			ours := New(Options{Send: a.send, Ended: func(Outcome, error) {}})
			defer ours.Close()
			ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
			defer stop()
			broadcaster := events.NewBroadcaster(clientGo{b})
			defer broadcaster.Shutdown()
			if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
				t.Fatal(err)
			}
			theirs := broadcaster.NewRecorder(runtime.NewScheme(), Controller)
			time.Sleep(17 * time.Second) // nothing happens while series are looked at
			r := rand.New(rand.NewSource(seed))
			for range 60 {
				time.Sleep(time.Minute*time.Duration(r.Intn(5)) + 1)
				about, action := pod(fmt.Sprint("web-", r.Intn(2))), []string{"create", "update"}[r.Intn(2)]
				ours.Record(about, Denied, action, "no")
				theirs.Eventf(about, nil, corev1.EventTypeWarning, Denied, action, "no")
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if got, want := a.all(), b.all(); got != want {
				t.Errorf("seed %d: the backend was asked\n%s\nby client-go\n%s", seed, got, want)
			}
		})
	}
}
