package message

import "testing"

// TestSalvage: of a head that was refused its path, host and origin are read if there is one of each.
func TestSalvage(t *testing.T) {
	for head, want := range map[string]string{
		"GET /a HTTP/1.1\r\nHost: gw\r\nOrigin: https://a.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n": "/a gw https://a.example",
		"GET /a HTTP/1.1\r\nHost: gw\r\n folded\r\nno colon\r\nOrigin: https://a.example\r\n\r\n":                    "/a gw https://a.example",
		"GET /a HTTP/1.1\nHost: gw\nOrigin: https://a.example\nCookie: too lo":                                       "/a gw https://a.example",
		"GET /a HTTP/1.1\r\nOrigin: https://a.example\r\nOrigin: https://b.example\r\n\r\n":                          "/a  ",
		"GET  a HTTP/1.1\r\nHost: a b\r\nOrigin: https://a.example\r\n\r\nOrigin: https://b.example\r\n\r\n":         "  https://a.example",
		"GET /too-lo":  "  ",
		"\x00\r\n\r\n": "  ",
		"":             "  ",
	} {
		var h Head
		_ = h.Parse([]byte(head), &Options{})
		h.Salvage([]byte(head))
		if got := string(h.Target) + " " + string(h.Host) + " " + string(h.Value(FieldOrigin)); got != want {
			t.Errorf("of %q: %q, want %q", head, got, want)
		}
	}
}
