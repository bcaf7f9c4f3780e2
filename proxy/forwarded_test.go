package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestForwarded: a trusted proxy that names its client by Forwarded is believed, and what it passes on of
// X-Forwarded-* is its client's word.
func TestForwarded(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"} {
			for _, value := range r.Header.Values(name) {
				_, _ = io.WriteString(w, name+": "+value+"\n") // the client may be gone
			}
		}
	}))
	t.Cleanup(backend.Close)
	by := startConfigured(t, `
listen: 127.0.0.1:0
upstreams: [{name: shop, endpoints: [%s]}]
trustedProxies: [127.0.0.1, 10.0.0.0/8]
forwardedHeader: Forwarded
`, backend.URL)
	without := startConfigured(t, `
listen: 127.0.0.1:0
upstreams: [{name: shop, endpoints: [%s]}]
trustedProxies: [127.0.0.1, 10.0.0.0/8]
`, backend.URL)
	client := &http.Client{Timeout: 30 * time.Second}
	for _, tt := range []struct {
		name, address string
		forwarded     []string
		code          int
		want          string
	}{
		{
			"by Forwarded", by, []string{`for=1.1.1.1, for="203.0.113.9:80";proto=https;host=shop.example.com`,
				"for=10.0.0.2"}, 200,
			"Forwarded: for=1.1.1.1, for=\"203.0.113.9:80\";proto=https;host=shop.example.com\nForwarded: for=10.0.0.2\nForwarded: for=127.0.0.1;proto=http\n" +
				"X-Forwarded-For: 203.0.113.9, 127.0.0.1\nX-Forwarded-Proto: https\nX-Forwarded-Host: shop.example.com\n",
		},
		{"by Forwarded, without one", by, nil, 200,
			"X-Forwarded-For: 127.0.0.1\nX-Forwarded-Proto: http\nX-Forwarded-Host: " + by + "\n"},
		{
			"a quote that hides what the proxy says", by, []string{`for="1.1.1.1, for=203.0.113.9`}, 400,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the header 'Forwarded' must be a list of elements such as 'for=192.0.2.1;proto=https', as RFC 7239 has them","reason":"BadRequest","code":400}`,
		},
		{
			"by X-Forwarded-For", without, []string{"for=1.1.1.1"}, 200,
			"X-Forwarded-For: 203.0.113.77, 127.0.0.1\nX-Forwarded-Proto: ftp\nX-Forwarded-Host: evil.example.com\n",
		},
	} {
		request, err := http.NewRequest(http.MethodGet, "http://"+tt.address+"/orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header["Forwarded"] = tt.forwarded
		request.Header.Set("X-Forwarded-For", "203.0.113.77")
		request.Header.Set("X-Forwarded-Proto", "ftp")
		request.Header.Set("X-Forwarded-Host", "evil.example.com")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was read
		if err != nil || answer.StatusCode != tt.code || string(body) != tt.want {
			t.Errorf("%s: %d, %v\n%s\nwant %d\n%s", tt.name, answer.StatusCode, err, body, tt.code, tt.want)
		}
	}
}
