package gatewayapi

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rest is how long a client waits before it asks again.
const rest = time.Millisecond

// A load is requests that follow one another on a connection, as long as it runs.
type load struct {
	answered atomic.Int64
	stop     chan struct{}
	done     sync.WaitGroup
	mu       sync.Mutex
	failed   []string
}

// startLoad asks for a URL again and again, by several clients at once. Each rests for a moment between its requests,
// so that there is time left to the servers.
func startLoad(t *testing.T, clients int, url, host string) *load {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	t.Cleanup(transport.CloseIdleConnections)
	return startLoadBy(t, &http.Client{Transport: transport, Timeout: 10 * time.Second}, clients, url, host)
}

// startLoadBy is startLoad with a client of the test.
func startLoadBy(t *testing.T, client *http.Client, clients int, url, host string) *load {
	t.Helper()
	l := &load{stop: make(chan struct{})}
	for range clients {
		l.done.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := askOnce(client, url, host); err != nil {
					l.mu.Lock()
					l.failed = append(l.failed, err.Error())
					l.mu.Unlock()
					continue
				}
				l.answered.Add(1)
				time.Sleep(rest)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func askOnce(client *http.Client, url, host string) error {
	r, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r.Host = host
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Status, body)
	}
	return nil
}

// await waits until so many more requests are answered.
func (l *load) await(t *testing.T, more int64) {
	t.Helper()
	want := l.answered.Load() + more
	eventually(t, fmt.Sprint(more, " requests more are answered"), func() bool { return l.answered.Load() >= want })
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

// allSucceeded ends the load, and fails the test if a request has failed.
func (l *load) allSucceeded(t *testing.T) {
	t.Helper()
	l.end()
	if len(l.failed) > 0 {
		t.Errorf("%d of %d requests failed, first: %s", len(l.failed), l.answered.Load()+int64(len(l.failed)),
			l.failed[0])
	}
}
