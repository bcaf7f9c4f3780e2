package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a reader of the log that reads nothing until it is let go.
type stuck struct {
	bytes.Buffer
	reading, free chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case s.reading <- struct{}{}:
	default:
	}
	<-s.free
	return s.Buffer.Write(p)
}

// Writers of lines do not wait for the reader: what is too much is dropped and counted, and the log
// says so.
func TestLinesNeverBlock(t *testing.T) {
	slow := &stuck{reading: make(chan struct{}, 1), free: make(chan struct{})}
	log, err := OpenLog(slow, LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log.Messages.Info("first")
	<-slow.reading
	long := strings.Repeat("x", maxWaiting/8)
	for range 20 {
		log.Messages.Info(long)
	}
	dropped := log.Dropped()
	if dropped != 13 {
		t.Errorf("%d lines were dropped, want 13", dropped)
	}
	short, cancel := context.WithCancel(context.Background())
	cancel()
	if err := log.Close(short); !errors.Is(err, context.Canceled) {
		t.Errorf("Close returned %v before all was written", err)
	}
	close(slow.free)
	if err := log.Close(context.Background()); err != nil {
		t.Error(err)
	}
	text := slow.String()
	if got := strings.Count(text, long); got != 7 {
		t.Errorf("%d long lines were written, want 7", got)
	}
	log.Messages.Info("late")
	if got := log.Dropped(); got <= dropped {
		t.Errorf("a line after the end is not counted: %d", got)
	}
}

func TestLinesTellOfDrops(t *testing.T) {
	slow := &stuck{reading: make(chan struct{}, 1), free: make(chan struct{})}
	log, err := OpenLog(slow, LogOptions{Format: "JSON"})
	if err != nil {
		t.Fatal(err)
	}
	log.Messages.Info("first")
	<-slow.reading
	log.Messages.Info(strings.Repeat("x", maxWaiting+1))
	slow.free <- struct{}{} // the first
	log.Messages.Info("second")
	<-slow.reading
	close(slow.free)
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := slow.String(); !strings.Contains(got, `"msg":"lines of the log were dropped, because it is read too slowly","lines":1}`) {
		t.Errorf("the log has\n%s", got)
	}
}

func accessLine(t *testing.T, o LogOptions, r *Record) string {
	t.Helper()
	var out bytes.Buffer
	log, err := OpenLog(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	log.Access.Add(r)
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`("time":"|time=)[^" ]+`).ReplaceAllString(out.String(), "$1…")
}

func denied() *Record {
	return &Record{
		ID: "r1", Trace: Trace{ID: [16]byte{1}, Span: [8]byte{2}, Sampled: true},
		Client: netip.MustParseAddr("192.0.2.1"), User: "ann\nroot",
		Request: ClientRequest{Method: "POST", Host: "gw", Path: "/apis/example.com/v1/widgets",
			UserAgent: "curl \"8\"",
			Version:   "1.1"},
		Resource: ResourceRef{Verb: "create", Group: "example.com", Resource: "widgets", Name: "w1"},
		Routing:  Routing{Route: "all", Upstream: "api"},
		Outcome: Outcome{Code: 422, Reason: "Invalid",
			Decision: Decision{Policy: "small", Binding: "b", Field: "spec.size"}},
		Usage: Usage{Took: 1500 * time.Microsecond, Backend: time.Millisecond, Received: 10, Sent: 20},
	}
}

func TestAccessFormats(t *testing.T) {
	const (
		otel = `time=… level=INFO msg=request http.request.id=r1 http.request.method=POST url.path=/apis/example.com/v1/widgets http.response.status_code=422 gateway.reason=Invalid gateway.policy=small gateway.binding=b gateway.field=spec.size user.name="ann\nroot" client.address=192.0.2.1 gateway.verb=create gateway.group=example.com gateway.resource=widgets gateway.name=w1 gateway.route=all gateway.upstream=api gateway.duration=0.0015 gateway.upstream.duration=0.001 http.request.body.size=10 http.response.body.size=20 server.address=gw user_agent.original="curl \"8\"" trace_id=01000000000000000000000000000000 span_id=0200000000000000` + "\n"
		ecs  = `{"time":"…","level":"INFO","msg":"request","http.request.id":"r1","http.request.method":"POST","url.path":"/apis/example.com/v1/widgets","http.response.status_code":422,"gateway.reason":"Invalid","gateway.policy":"small","gateway.binding":"b","gateway.field":"spec.size","user.name":"ann\nroot","client.ip":"192.0.2.1","gateway.verb":"create","gateway.group":"example.com","gateway.resource":"widgets","gateway.name":"w1","gateway.route":"all","gateway.upstream":"api","event.duration":1500000,"gateway.upstream.duration":1000000,"http.request.body.bytes":10,"http.response.body.bytes":20,"url.domain":"gw","user_agent.original":"curl \"8\"","trace.id":"01000000000000000000000000000000","span.id":"0200000000000000"}` + "\n"
	)
	if got := accessLine(t, LogOptions{Access: AccessOptions{Refused: true}}, denied()); got != otel {
		t.Errorf("the line is\n%swant\n%s", got, otel)
	}
	got := accessLine(t, LogOptions{Format: LogJSON, Access: AccessOptions{Refused: true, ECS: true}}, denied())
	if got != ecs || !json.Valid([]byte(got)) {
		t.Errorf("the line is\n%swant\n%s", got, ecs)
	}
}

func TestAccessChoice(t *testing.T) {
	for _, tt := range []struct {
		name   string
		access AccessOptions
		code   int
		logged bool
	}{
		{"none", AccessOptions{}, 500, false},
		{"refused", AccessOptions{Refused: true}, 403, true},
		{"failed", AccessOptions{Refused: true}, 502, true},
		{"unanswered", AccessOptions{Refused: true}, 0, true},
		{"good, of refused ones", AccessOptions{Refused: true}, 201, false},
		{"good, of all", AccessOptions{Refused: true, OneIn: 1}, 201, true},
	} {
		r := denied()
		r.Outcome.Code = tt.code
		if got := accessLine(t, LogOptions{Level: "Error", Access: tt.access}, r) != ""; got != tt.logged {
			t.Errorf("%s: logged is %v", tt.name, got)
		}
	}
	var out bytes.Buffer
	log, err := OpenLog(&out, LogOptions{Access: AccessOptions{OneIn: 10}})
	if err != nil {
		t.Fatal(err)
	}
	r := denied()
	r.Outcome.Code = 200
	for range 1000 {
		log.Access.Add(r)
	}
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n < 20 || n > 300 {
		t.Errorf("%d of 1000 requests are logged, want about 100", n)
	}
}

func BenchmarkAccessLog(b *testing.B) {
	for _, code := range []int{201, 422} {
		b.Run(map[int]string{201: "admitted", 422: "refused"}[code], func(b *testing.B) {
			log, err := OpenLog(&bytes.Buffer{}, LogOptions{Access: AccessOptions{Refused: true}})
			if err != nil {
				b.Fatal(err)
			}
			r := denied()
			r.Outcome.Code, r.Trace.Sampled, r.Client = code, false, netip.Addr{}
			b.ReportAllocs()
			for b.Loop() {
				log.Access.Add(r)
			}
		})
	}
}

// TestLinesTellOfAll: after a burst the log says how many lines it lacks, however full it was.
func TestLinesTellOfAll(t *testing.T) {
	slow := &stuck{reading: make(chan struct{}, 1), free: make(chan struct{})}
	log, err := OpenLog(slow, LogOptions{Format: "JSON"})
	if err != nil {
		t.Fatal(err)
	}
	log.Messages.Info("first")
	<-slow.reading
	for range 20000 {
		log.Messages.Info("a line of a burst, which is longer than others are: " + strings.Repeat("x", 60))
	}
	dropped := log.Dropped()
	close(slow.free)
	if err := log.Close(context.Background()); err != nil {
		t.Error(err)
	}
	var told uint64
	written := 0
	for line := range strings.Lines(slow.String()) {
		var one struct {
			Level string
			Msg   string
			Lines uint64
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if written++; strings.Contains(one.Msg, "dropped") || one.Lines > 0 {
			told += one.Lines
			written--
		}
	}
	if dropped < 10000 || told != dropped || uint64(written)+dropped != 20001 {
		t.Errorf("%d lines were dropped and %d written, and %d are told of", dropped, written, told)
	}
}

// torn takes a part of each write, and fails for as often as it says.
type torn struct {
	bytes.Buffer
	failures int
}

func (b *torn) Write(p []byte) (int, error) {
	if b.failures--; b.failures < 0 {
		return b.Buffer.Write(p)
	}
	n, _ := b.Buffer.Write(p[:1])
	return n, syscall.EPIPE
}

// TestLinesAreWrittenAgain: a log that cannot be written says why meanwhile, and has each line when it can be.
func TestLinesAreWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, failures := &torn{failures: 3}, 0
		log, err := OpenLog(to, LogOptions{Format: "JSON"})
		if err != nil {
			t.Fatal(err)
		}
		log.SetFailed(func(why error) {
			if failures++; !errors.Is(why, syscall.EPIPE) {
				t.Errorf("the error is %v", why)
			}
		})
		log.Messages.Info("first")
		synctest.Wait()
		if err := log.Failure(); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the failure is %v", err)
		}
		log.Messages.Info("second")
		time.Sleep(time.Minute)
		if err := log.Failure(); err != nil || failures != 3 || log.Dropped() != 0 {
			t.Errorf("the failure is %v, after %d; %d lines are dropped", err, failures, log.Dropped())
		}
		if err := log.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var said []string
		for line := range strings.Lines(to.String()) {
			var one struct{ Msg, Cause string }
			if json.Unmarshal([]byte(line), &one) == nil { // a pipe keeps the part of a line that was written
				said = append(said, one.Msg+" "+one.Cause)
			}
		}
		if got := strings.Join(said, ", "); got != "first , second , the log could not be written broken pipe" &&
			got != "first , the log could not be written broken pipe, second " {
			t.Errorf("the log has %s", got)
		}
	})
}

// TestLinesAreLost: lines that cannot be written until the log is closed are counted as dropped.
func TestLinesAreLost(t *testing.T) {
	log, err := OpenLog(&torn{failures: 100}, LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log.Messages.Info("first")
	log.Messages.Info("second")
	if err := log.Close(t.Context()); err != nil || log.Dropped() < 2 {
		t.Errorf("%d lines are dropped: %v", log.Dropped(), err)
	}
}
