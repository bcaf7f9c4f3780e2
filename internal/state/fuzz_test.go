package state

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/discovery"
)

// FuzzWatch reads whatever a backend may list and stream: what is kept stays in order and within its bounds, and counts
// what it holds.
func FuzzWatch(f *testing.F) {
	f.Add(`{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"b"}},{"metadata":{"name":"a"}}]}`,
		`{"type":"ADDED","object":{"metadata":{"name":"c","resourceVersion":"2"}}}`+"\n"+
			`{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"3"}}}`)
	f.Add(`[{"a":1}]`, `{"type":"ERROR","object":{"code":410}}`)
	f.Add(`{"items":null}`, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`+"\n\n{")
	f.Add(`{"kind":"AList","apiVersion":"v1","items":[{},{},{"kind":"B"}]}`, strings.Repeat(`{"type":"MODIFIED","object":{"metadata":{"name":"x","namespace":"y","resourceVersion":"9"}}}`+"\n", 3))
	f.Fuzz(func(t *testing.T, list, events string) {
		fd := &feed{source: Source{Path: "/x", MaxObjects: 8, MaxBytes: 4096}, log: slog.New(slog.DiscardHandler),
			read: func(schema.GroupVersionKind) {}}
		page, _, err := readPage([]byte(list), nil, schema.GroupVersionKind{},
			bounds{fd.source.MaxObjects, fd.source.MaxBytes})
		if err == nil {
			fd.store.fill(page)
		}
		_, _ = fd.watch(context.Background(), streamed(events), "1", time.Second, Liveness{Grace: time.Minute},
			func() {})
		v := fd.store.view()
		if v == nil {
			return
		}
		if !slices.IsSorted(v.keys) || len(v.keys) != len(v.objects) || len(v.sizes) != len(v.objects) {
			t.Errorf("keys %q of %d objects", v.keys, len(v.objects))
		}
		var bytes int64
		for _, n := range v.sizes {
			bytes += int64(n)
		}
		if bytes != fd.store.bytes || len(v.objects) > fd.source.MaxObjects+1 {
			t.Errorf("%d objects of %d bytes, counted as %d", len(v.objects), bytes, fd.store.bytes)
		}
		for i, o := range v.objects {
			if v.keys[i] != keyOf(o) {
				t.Errorf("%q is at %q", keyOf(o), v.keys[i])
			}
		}
	})
}

// streamed is a Backend that streams a text.
type streamed string

func (streamed) Discovery() *discovery.Client { return nil }

func (streamed) API() API { return APIServer }

func (streamed) Send(context.Context, Request) (Response, error) { return Response{Code: 404}, nil }

func (s streamed) Open(context.Context, string, time.Duration) (int, io.ReadCloser, error) {
	return 200, io.NopCloser(strings.NewReader(string(s))), nil
}
