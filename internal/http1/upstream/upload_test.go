package upstream

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/http1"
)

// stuckUpload is an upload that ends in the middle, while its client goes on waiting.
type stuckUpload struct {
	text        []byte
	once        sync.Once
	interrupted chan struct{}
}

func (u *stuckUpload) Length() int64 { return 100 }

func (u *stuckUpload) Interrupt() { u.once.Do(func() { close(u.interrupted) }) }

func (u *stuckUpload) Read(p []byte) (int, error) {
	if len(u.text) > 0 {
		n := copy(p, u.text)
		u.text = u.text[n:]
		return n, nil
	}
	<-u.interrupted
	return 0, errors.New("the read was interrupted")
}

// A backend that dies while it takes an upload is the reason why there is no answer, and not the client, whose sending is
// ended for it.
func TestBackendDiesInUpload(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(c, make([]byte, 80)) // the head and a part of the upload
		_ = c.Close()
	}()
	client := newTestClient(t, &scripted{Listener: l}, Config{})
	req := request("PUT", "/files/one", "")
	req.Head = []byte("PUT /files/one HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
	req.Upload = &stuckUpload{text: make([]byte, 50), interrupted: make(chan struct{})}
	var resp http1.Response
	var failure *Error
	if err := client.Do(req, &resp); !errors.As(err, &failure) || failure.Kind != Broken {
		t.Errorf("got %v, want that the backend closed the connection", err)
	}
}
