package plain

import (
	"io"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
)

// stream is a body that is still on its way; its reader gives the bytes to the editor.
type stream struct{ message.Stream }

func (stream) Length() int64            { return -1 }
func (stream) Close() error             { return nil }
func (stream) Read([]byte) (int, error) { return 0, io.EOF }

// TestStreamedVersion: the version of an object that streams is the one in the head that came. The head is made for
// sending before the body comes, in the same memory if an answer before it left enough.
func TestStreamedVersion(t *testing.T) {
	for _, lines := range []string{
		"ETag: \"9\"\r\nAccept-Ranges: bytes\r\n", "Accept-Ranges: bytes\r\nETag: \"9\"\r\n",
		"ETag: \"9\"\r\nAccept-Ranges: bytes\r\nX-Between: 1\r\nContent-MD5: x\r\n",
	} {
		s, r := readOf(t, widgets, widgetsPath+"/w1")
		r.Head = &message.Head{Method: []byte("GET")}
		r.Response.Receive(200, []byte("HTTP/1.1 200 OK\r\nX-Before: "+strings.Repeat("x", 1000)+"\r\n\r\n"))
		r.Response.Reset(4000)
		r.Response.Receive(200, []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+lines+"\r\n"))
		r.Response.SetStream(stream{})
		if err := s.completeRead(r, nil, r.Response.ETag()); err != nil {
			t.Fatal(err)
		}
		if head := string(r.Response.StreamHead(true, true, "Connection: close\r\n")); !strings.Contains(head,
			"\r\nETag: \"9\"\r\n") || strings.Contains(head, "Accept-Ranges") {
			t.Errorf("the head is %q", head)
		}
		got, used, err := r.Editor.Append(nil, []byte(`{"metadata":{},`+bareWidget[1:]), 1<<20)
		if err == nil {
			got, err = r.Editor.Close(got)
		}
		r.Editor.Release()
		if err != nil || used == 0 || !strings.HasPrefix(string(got), `{"metadata":{"resourceVersion":"1009"},`) {
			t.Errorf("after a head with %q come %s, %v", lines, got, err)
		}
	}
}

// TestUnreadParts: only what defaults concern is read of an answer. The rest passes as it came.
func TestUnreadParts(t *testing.T) {
	const name = `"kind":"Widget","apiVersion":"example.com/v1",`
	for _, tt := range []struct{ body, want string }{ // an empty one is refused
		{`{` + name + `"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"size":1,"max":2,"mode":"Locked"}}`, `{` + name + `"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"size":1,"max":2,"mode":"Locked"}}`},
		{`{` + name + `"status":{"x":tru},"spec":{"size":1,"max":2}}`,
			`{` + name + `"status":{"x":tru},"spec":{"size":1,"max":2,"mode":"Open"}}`},
		{`{` + name + `"status":{},"status":{},"spec":{}}`, ""},
		{`{` + name + `"spec":{"max":1,"max":2}}`, ""},
		{`{` + name + `"status":{"x":1`, ""},
		{`{` + name + `"status":{}]`, ""},
	} {
		s, r := readOf(t, widgets, widgetsPath+"/w1")
		if tt.want == "" {
			one := s.completionOf(&r.Info, r.Memory, nil)
			if _, err := document.Parse([]byte(tt.body), document.Limits{Outline: one.outline()}); err == nil {
				t.Errorf("%s can be read", tt.body)
			}
			continue
		}
		if got, err := completed(s, r, []byte(tt.body)); err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.body, got, err, tt.want)
		}
	}
}
