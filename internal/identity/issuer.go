package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/outbound"
)

// issuer is the way to what an issuer of JWTs publishes. It bounds what is read, and how often its
// keys are: tokens that name an unknown key make the library look for new ones each time.
type issuer struct {
	base http.RoundTripper
	// failures counts the requests without a usable answer.
	failures atomic.Int64

	mu   sync.Mutex // guards what follows
	keys string     // the URL of the keys, once it is known
	next time.Time  // when they may be read again
}

const (
	// issuerTimeout bounds one request.
	issuerTimeout = 10 * time.Second
	// keysPeriod is how often keys are read at most. A request that needs them sooner waits.
	keysPeriod = time.Second
	// maxPublished is the size of the largest answer, in bytes.
	maxPublished = 1 << 20
)

// RoundTrip implements http.RoundTripper.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := i.pace(r); err != nil {
		return nil, err
	}
	answer, err := i.get(r)
	if err != nil {
		i.failures.Add(1)
	}
	return answer, err
}

func (i *issuer) get(r *http.Request) (*http.Response, error) {
	answer, err := i.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if closeErr := answer.Body.Close(); err == nil {
		err = closeErr
	}
	var large *outbound.TooLargeError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("the answer of '%s' has more than %d bytes", r.URL.Redacted(), large.MaxBytes)
	case err != nil:
		return nil, err
	case answer.StatusCode >= 400:
		return nil, fmt.Errorf("'%s' answered with code %d", r.URL.Redacted(), answer.StatusCode)
	}
	if !i.learn(r, body) {
		return nil, fmt.Errorf("'%s' answered with something that is not JSON", r.URL.Redacted())
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// learn reads the location of the keys from the issuer's metadata. It returns false for keys that
// cannot be read.
func (i *issuer) learn(r *http.Request, body []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != "" {
		return r.URL.String() != i.keys || json.Valid(body)
	}
	var metadata struct {
		Keys string `json:"jwks_uri"`
	}
	if json.Unmarshal(body, &metadata) == nil {
		i.keys = metadata.Keys
	}
	return true
}

// pace waits until keys may be read again.
func (i *issuer) pace(r *http.Request) error {
	i.mu.Lock()
	if i.keys == "" || r.URL.String() != i.keys {
		i.mu.Unlock()
		return nil
	}
	now := time.Now()
	wait := i.next.Sub(now)
	i.next = now.Add(max(wait, 0) + keysPeriod)
	i.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}
