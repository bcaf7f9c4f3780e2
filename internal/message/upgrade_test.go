package message

import "testing"

// TestUpgrade checks which heads ask for another protocol, and which answers agree to one: in one
// way only.
func TestUpgrade(t *testing.T) {
	const asked = "GET / HTTP/1.1\r\nHost: a\r\n"
	for head, want := range map[string]string{
		asked + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n":            "websocket",
		asked + "Upgrade: SPDY/3.1\r\nConnection: keep-alive, upgrade\r\n\r\n": "SPDY/3.1",
		// which is no protocol
		asked + "Connection: keep-alive\r\nConnection: UPGRADE\r\nUpgrade: a, b\r\n\r\n":           "a, b",
		asked + "Upgrade: websocket\r\n\r\n":                                                       "",
		asked + "Connection: Upgrade\r\n\r\n":                                                      "",
		asked + "Connection: Upgrade\r\nUpgrade: websocket\r\nupgrade: websocket\r\n\r\n":          "",
		asked + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n": "",
		"GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n":                      "",
	} {
		var h Head
		if err := h.Parse([]byte(head), &Options{}); err != nil {
			t.Fatal(err)
		}
		if string(h.Upgrade) != want {
			t.Errorf("%q: got %q, want %q", head, h.Upgrade, want)
		}
		for _, l := range h.Headers() {
			if !l.Dropped && l.Field != FieldHost {
				t.Errorf("%q: the line %s passes", head, l.Name)
			}
		}
	}
	const agreed = "HTTP/1.1 101 Switching Protocols\r\n"
	for head, want := range map[string]string{
		agreed + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n":                          "websocket",
		agreed + "Upgrade: SPDY/3.1\r\nConnection: upgrade\r\n\r\n":                           "SPDY/3.1",
		agreed + "Upgrade: websocket\r\n\r\n":                                                 "",
		agreed + "Connection: Upgrade\r\n\r\n":                                                "",
		agreed + "Connection: Upgrade\r\nUpgrade: a\r\nUpgrade: b\r\nUpgrade: a\r\n\r\n":      "",
		"HTTP/1.0 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n":       "",
		"HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n": "",
	} {
		var a ResponseHead
		if err := a.Parse([]byte(head)); err != nil {
			t.Fatal(err)
		}
		if string(a.Upgrade) != want {
			t.Errorf("%q: got %q, want %q", head, a.Upgrade, want)
		}
	}
}
