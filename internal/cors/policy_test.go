package cors

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// TestGrantedToOriginsAlone: a route's pattern lets whole hosts below it read, and nothing that is no origin, however
// it ends.
func TestGrantedToOriginsAlone(t *testing.T) {
	p := NewPolicy(Options{Origins: []string{"https://*.example.net", "https://shop.example.com"},
		HasCredentials: true})
	for origin, granted := range map[string]bool{
		"https://a.example.net": true, "https://a.b.example.net": true, "https://shop.example.com": true,
		"https://example.net": false, "https://a.example.net:8443": false, "http://a.example.net": false, "null": false,
		"*":                         false,
		"https://shop.example.com.": false, "https://SHOP.example.com": false, "https://shop.example.com:443": false,
		"https://evil.com#.example.net": false, "https://evil.com?.example.net": false,
		`https://evil.com\.example.net`: false,
		"https://evil.com`.example.net": false, "https://evil.com^.example.net": false,
		"https://evil.com|.example.net": false,
		"https://evil.com<.example.net": false, "https://evil.com .example.net": false,
		"https://evil.com[.example.net":   false,
		"https://evil.com%23.example.net": false, "https://evil.com/.example.net": false,
		"https://evil.com@a.example.net": false,
	} {
		r := &message.Response{}
		r.Start(204)
		p.Apply(request(t, origin), r)
		if got := string(r.Header(allowOrigin)); (got == origin) != granted || !granted && got != "" {
			t.Errorf("%s: granted to %q, want %t", origin, got, granted)
		}
	}
}
