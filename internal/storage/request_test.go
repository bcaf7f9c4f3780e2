package storage

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestReset: nothing that one request learned is there for the next one, whatever field is added. Memory that is kept
// is in slices without items, in answers and in buffers.
func TestReset(t *testing.T) {
	r := &Request{}
	of := []reflect.Value{testutil.Fill(r), testutil.Fill(&r.Subject), testutil.Fill(&r.Exchanges)}
	r.Info, r.Started, r.deadline, r.lock = resource.Info{Verb: resource.VerbGet}, time.Now(), time.Now(),
		ObjectLock{shard: &lockShard{}}
	r.From.Host, r.try.call.Whole, r.try.extra[0] = "a", 1, message.Header{Name: []byte("a")}
	r.try.forward.IsChunked = true
	r.Response.StartJSON(200, nil, []byte("{}"))
	r.kept.stored.StartBody(200, JSON, []byte("{}"))
	r.kept.preview.StartBody(200, JSON, []byte("{}"))
	r.kept.head = []byte("a")
	r.Reset()
	for _, fields := range of {
		for i := range fields.NumField() {
			field, name := fields.Field(i), fields.Type().Field(i).Name
			switch name {
			case "Exchanges", "Response", "kept": // see below
				continue
			}
			if isKept := field.Kind() == reflect.Slice && field.Len() == 0; !isKept && !field.IsZero() {
				t.Errorf("%s is %v after a request", name, field)
			}
		}
	}
	for _, answer := range []*message.Response{&r.Response.Response, &r.kept.stored, &r.kept.preview} {
		if answer.Status() != 0 || len(answer.Body()) > 0 {
			t.Errorf("an answer of %d is still there after a request", answer.Status())
		}
	}
	if len(r.kept.head) > 0 {
		t.Error("a buffer has something in it after a request")
	}
}

// TestDeadline: a client's ?timeout= ends what the gateway asks for it, but for a watch, which ends by itself (ERR-4).
func TestDeadline(t *testing.T) {
	began := time.Now()
	for _, c := range []struct {
		options resource.Options
		want    time.Time
	}{
		{resource.Options{}, time.Time{}},
		{resource.Options{Timeout: time.Second}, began.Add(time.Second)},
		{resource.Options{Timeout: time.Second, Watch: true}, time.Time{}},
	} {
		r := &Request{Exchanges: Exchanges{Started: began}}
		// of a target that is rewritten
		r.SetSubject(&resource.Info{Options: resource.Options{Timeout: time.Hour}}, nil)
		r.SetSubject(&resource.Info{Options: c.options}, nil)
		if got := r.Deadline(); !got.Equal(c.want) {
			t.Errorf("with %+v the deadline is %s, not %s", c.options, got, c.want)
		}
	}
}

// TestNothingIsSentWithoutMemory: no request that may change something leaves for a client whose memory
// has ended.
func TestNothingIsSentWithoutMemory(t *testing.T) {
	var m memory.Reservation
	m.Open(memory.NewBudget(1<<20, 1), nil)
	m.Fail()
	refused := errors.New("refused")
	var head message.Head
	if err := head.Parse([]byte("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"), &message.Options{}); err != nil {
		t.Fatal(err)
	}
	e := &Exchanges{Head: &head, Memory: &m, Limits: &Limits{Refused: func(memory.Refusal) error { return refused }}}
	b := &Backend{} // has no client to send anything
	_, connected := e.Connect(b, &Message{}, nil)
	_, asked := e.DryRun(b, nil, nil, e.Limits)
	for name, err := range map[string]error{
		"a message": e.Send(b, &Message{}), "a part": e.SendPart(b, nil, nil, &message.Response{}, e.Limits),
		"a tunnel": connected, "a question": asked,
	} {
		if err != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForgetAllocates: memory that is left to the next request is no reason to allocate.
func TestForgetAllocates(t *testing.T) {
	k := &kept{head: make([]byte, 100), edited: make([]byte, 100)}
	if n := testing.AllocsPerRun(100, k.forget); n != 0 {
		t.Errorf("to forget a request allocates %v times", n)
	}
}
