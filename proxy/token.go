package proxy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// token is the bearer token of what the gateway asks a backend on its own account, in a file that somebody else keeps up
// to date, as Kubernetes does with those of service accounts.
type token struct {
	path string

	mu    sync.Mutex
	read  time.Time
	value string
}

const (
	// tokenAge is how long a token counts before its file is read again.
	tokenAge = time.Minute
	// maxToken is how large a token may be, in bytes.
	maxToken = 64 << 10
)

var errNoToken = errors.New("the gateway's own token for the backend cannot be read")

// get is the token; empty where there is no file. A file that cannot be read leaves the token that was read before.
func (t *token) get() (string, error) {
	if t.path == "" {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) < tokenAge {
		return t.value, nil
	}
	value, err := readToken(t.path)
	switch {
	case err == nil:
		t.value, t.read = value, time.Now()
	case t.value == "":
		return "", errNoToken
	}
	return t.value, nil
}

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	unprintable := strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' })
	if value == "" || len(value) > maxToken || unprintable {
		return "", fmt.Errorf("the file '%s' must hold a token: at most %d printable ASCII characters", path, maxToken)
	}
	return value, nil
}
