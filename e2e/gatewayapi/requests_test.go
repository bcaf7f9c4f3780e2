package gatewayapi

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// once has a connection for each request.
var once = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}

// fetch asks for a URL, and returns the status and the body. The status is 0 if there was no answer.
func fetch(t *testing.T, url string) (code int, body string) {
	t.Helper()
	return ask(t, once, url, "")
}

// ask asks for a URL as one of a host, and returns the status and the body. The status is 0 if there was no answer.
func ask(t *testing.T, client *http.Client, url, host string) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// awaitAnswer waits until requests for a host are answered with a status, and returns the body of the answer.
func awaitAnswer(t *testing.T, client *http.Client, url, host string, want int) (body string) {
	t.Helper()
	var code int
	defer func() {
		if code != want {
			t.Logf("the last answer is %d: %s", code, body)
		}
	}()
	eventually(t, fmt.Sprintf("%s of %s is answered %d", url, host, want), func() bool {
		code, body = ask(t, client, url, host)
		return code == want
	})
	return body
}
