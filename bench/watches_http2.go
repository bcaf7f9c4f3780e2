package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// An http2Watch is one watch that goes by HTTP/2 on both sides: the client's end, and the backend's.
type http2Watch struct {
	leave  context.CancelFunc
	body   io.ReadCloser
	reader *bufio.Reader

	answer http.ResponseWriter
	gone   <-chan struct{} // closed when the backend's stream has ended
}

// http2Watchers are open watches by HTTP/2. They implement watching.
type http2Watchers struct {
	base    string
	client  *http.Client
	server  *http.Server
	arrived chan *http2Watch // with the backend's end alone
	all     []*http2Watch
}

// newHTTP2Watchers returns watches at a gateway, before a backend on the listener.
func newHTTP2Watchers(gateway string, backend net.Listener) *http2Watchers {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	w := &http2Watchers{base: "http://" + gateway, client: http2Client(0), arrived: make(chan *http2Watch)}
	w.server = &http.Server{
		Protocols: protocols, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			if !r.URL.Query().Has("watch") {
				http.NotFound(answer, r) // what the gateway asks on its own account
				return
			}
			answer.Header().Set("Content-Type", "application/json")
			answer.WriteHeader(http.StatusOK)
			gone := make(chan struct{})
			defer close(gone)
			w.arrived <- &http2Watch{answer: answer, gone: gone}
			<-r.Context().Done()
		}),
	}
	go func() { _ = w.server.Serve(backend) }() // until it is closed
	return w
}

// open opens watches one after the other and lets each have an event.
func (w *http2Watchers) open(n int) error {
	for range n {
		ctx, leave := context.WithCancel(context.Background())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+collection+
			"?watch=true&allowWatchBookmarks=true", http.NoBody)
		if err != nil {
			leave()
			return err
		}
		r.Header.Set("Accept", "application/json")
		answered := make(chan error, 1)
		var answer *http.Response
		go func() {
			var err error
			answer, err = w.client.Do(r) //nolint:bodyclose // close does it
			answered <- err
		}()
		one := &http2Watch{}
		select {
		case one = <-w.arrived:
		case err := <-answered:
			leave()
			return fmt.Errorf("a watch is answered without the backend: %w", err)
		}
		one.leave = leave
		if err := one.send(); err != nil {
			return err
		}
		if err := <-answered; err != nil {
			return err
		}
		one.body, one.reader = answer.Body, bufio.NewReaderSize(answer.Body, 1<<10)
		if _, err := one.reader.ReadString('\n'); err != nil {
			return err
		}
		w.all = append(w.all, one)
	}
	return nil
}

// size returns how many are open.
func (w *http2Watchers) size() int { return len(w.all) }

// send sends an event from the backend.
func (w *http2Watch) send() error {
	if _, err := io.WriteString(w.answer, watchEvent+"\n"); err != nil {
		return err
	}
	return http.NewResponseController(w.answer).Flush()
}

// event sends an event on a watch and returns the milliseconds until the client has its last byte.
func (w *http2Watchers) event(i int) (float64, error) {
	started := time.Now()
	if err := w.all[i].send(); err != nil {
		return 0, err
	}
	if _, err := w.all[i].reader.ReadString('\n'); err != nil {
		return 0, fmt.Errorf("an event did not arrive: %w", err)
	}
	return float64(time.Since(started).Microseconds()) / 1000, nil
}

// leave ends a client's stream and returns the milliseconds until the backend's has ended.
func (w *http2Watchers) leave(i int) (float64, error) {
	started := time.Now()
	w.all[i].leave()
	select {
	case <-w.all[i].gone:
	case <-time.After(10 * time.Second):
		return 0, errors.New("the backend's stream goes on though the client has gone")
	}
	return float64(time.Since(started).Microseconds()) / 1000, nil
}

func (w *http2Watchers) close() {
	for _, one := range w.all {
		one.leave()
		_ = one.body.Close()
	}
	w.client.CloseIdleConnections()
	_ = w.server.Close()
}
