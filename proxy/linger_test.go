package proxy

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
)

// zeros is a body that never holds all of itself in memory.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestRefusedWhileSending refuses bodies of 4 MB that Go's client is still sending, by TLS and without: it always reads
// the answer, and never a reset.
func TestRefusedWhileSending(t *testing.T) {
	t.Parallel()
	const size, times = 4 << 20, 15
	for _, scheme := range []string{"http://", "https://"} {
		backend := newRecorder(t)
		words := []string{"policies=widgets", "kubernetes"}
		if scheme == "https://" {
			words = append(words, "tls")
		}
		g := gatewayFor(t, t.TempDir(), backend.Addr().String(), words)
		address := startGateway(t, g)
		for _, c := range []struct {
			name, path, media, encoding string
			code                        int
		}{
			{"too large", "/v2/orders", "application/json", "", 413},
			{"too large for a widget", widgetsPath, "application/json", "", 413},
			{"media type", widgetsPath, "text/plain", "", 415},
			{"coding", widgetsPath, "application/json", "br", 415},
			{"bad path", "/a/%2e%2e/b", "application/json", "", 400},
			{"method", widgetsPath + "/w", "application/json", "", 405},
		} {
			t.Run(strings.TrimSuffix(scheme, "://")+" "+c.name, func(t *testing.T) {
				for _, length := range []int64{size, -1} { // with a length and in chunks
					for range times {
						transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
							DisableKeepAlives: true}
						req, err := http.NewRequest("POST", scheme+address+c.path, io.LimitReader(zeros{}, size))
						if err != nil {
							t.Fatal(err)
						}
						req.ContentLength = length
						req.Header.Set("Content-Type", c.media)
						if c.encoding != "" {
							req.Header.Set("Content-Encoding", c.encoding)
						}
						resp, err := transport.RoundTrip(req)
						if err != nil {
							t.Fatalf("length %d: %v", length, err)
						}
						body, err := io.ReadAll(resp.Body)
						if err != nil || resp.StatusCode != c.code ||
							!strings.Contains(string(body), `"kind":"Status"`) {
							t.Fatalf("length %d: answered %d %.200s, %v; want %d", length, resp.StatusCode, body, err,
								c.code)
						}
						_ = resp.Body.Close()
						transport.CloseIdleConnections()
					}
				}
			})
		}
		if got := backend.Take(); got != "" {
			t.Errorf("the backend got %.100q", got)
		}
	}
}
