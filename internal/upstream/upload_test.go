package upstream

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// stuckUpload is an upload that ends in the middle, while its client goes on waiting.
type stuckUpload struct {
	text        []byte
	once        sync.Once
	interrupted chan struct{}
}

func (u *stuckUpload) Length() int64 { return 100 }

func (u *stuckUpload) Trailers() []message.Header { return nil }

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

// A backend that dies while it takes an upload is the reason why there is no answer, and not the client, whose sending
// is ended for it.
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
	var resp message.Response
	var failure *Error
	if err := client.Do(req, &resp); !errors.As(err, &failure) || failure.Kind != Broken {
		t.Errorf("got %v, want that the backend closed the connection", err)
	}
}

// lateUpload is an upload whose end comes when the backend has answered.
type lateUpload struct {
	answered, interrupted chan struct{}
	once                  sync.Once
}

func (u *lateUpload) Length() int64 { return -1 }

func (u *lateUpload) Trailers() []message.Header { return nil }

func (u *lateUpload) Interrupt() { u.once.Do(func() { close(u.interrupted) }) }

func (u *lateUpload) Read([]byte) (int, error) {
	select {
	case <-u.answered:
		return 0, io.EOF
	case <-u.interrupted:
		return 0, errors.New("the read was interrupted")
	}
}

// A backend that answers before it has read the body does not end an upload whose client has sent
// everything: the client would lose the requests behind it.
func TestBackendAnswersBeforeTheUploadEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const head, end, answer = "POST /activate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	answered := make(chan chan struct{}, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for {
					if _, err := io.ReadFull(c, make([]byte, len(head))); err != nil {
						return
					}
					_, _ = io.WriteString(c, answer)
					close(<-answered)
					if _, err := io.ReadFull(c, make([]byte, len(end))); err != nil {
						return
					}
				}
			}()
		}
	}()
	client := newTestClient(t, &scripted{Listener: l}, Config{})
	for range 50 {
		u := &lateUpload{answered: make(chan struct{}), interrupted: make(chan struct{})}
		answered <- u.answered
		req := request("POST", "/activate", "")
		req.Head, req.Upload = []byte(head), u
		var resp message.Response
		if err := client.Do(req, &resp); err != nil {
			t.Fatal(err)
		}
		select {
		case <-u.interrupted:
			t.Fatal("the upload was interrupted")
		default:
		}
	}
}
