package message

import (
	"errors"
	"testing"
)

// Each field of the table is found by its name in any case, and if a server reads '_' as '-'.
func TestForeign(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range foreign {
		if seen[f.name] || f.reason == "" {
			t.Errorf("'%s' is listed twice, or has no reason", f.name)
		}
		seen[f.name] = true
		for _, name := range []string{f.name, upper(f.name), upper(f.name[:1]) + f.name[1:]} {
			if got := FieldOf([]byte(name)); got != f.field {
				t.Errorf("FieldOf(%q) is %d, want %d", name, got, f.field)
			}
			under := underscored(name)
			h, err := parse(t, head("GET / HTTP/1.1", "Host: a", under+": 1"), Options{Underscores: PassUnderscores})
			if err != nil {
				t.Fatal(err)
			}
			if !h.Has(f.field) {
				t.Errorf("'%s' is not taken for '%s'", under, f.name)
			}
		}
	}
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 0x20
		}
	}
	return string(b)
}

func underscored(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '-' {
			b[i] = '_'
		}
	}
	return string(b)
}

func TestDrop(t *testing.T) {
	h, err := parse(t, head("GET / HTTP/1.1", "Host: a", "True-Client-IP: 1.2.3.4", "A: 1", "client-ip: 5.6.7.8",
		"X-Original-URL: /b"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.Drop(Fields(FieldRange))
	h.Drop(Fields(FieldClientAddress))
	if h.Has(FieldClientAddress) || !h.Has(FieldTargetOverride) {
		t.Error("the lines of one field only are to be dropped")
	}
	if v, found := h.Lookup("Client-IP"); found {
		t.Errorf("Client-IP is %q", v)
	}
	got := h.AppendForward(nil, &Forward{Length: -1})
	want := head("GET / HTTP/1.1", "Host: a", "A: 1", "X-Original-URL: /b", "X-Forwarded-Host: a")
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A trusted proxy that passes on its client's Connection would drop what the proxy says of the
// client.
func TestConnectionNamesWhoTheClientIs(t *testing.T) {
	const message = "the header 'Connection' must not name headers by which a trusted proxy tells who the client is"
	for _, named := range []string{
		"X-Remote-User", "x-remote-group", "X-Remote-Extra-scopes", "X_Remote_Group", "X-Forwarded-For",
		"x_forwarded_for", "X-Forwarded-Port", "Forwarded",
		"X-Real-IP", "True-Client-IP", "Authorization", "X-HTTP-Method-Override", "X-Original-URL",
	} {
		for _, connection := range []string{named, "close, " + named + " ", "keep-alive,," + named + ",x-a"} {
			_, err := parse(t, head("GET / HTTP/1.1", "Host: a", "Connection: "+connection), Options{Trusted: true})
			var bad *Error
			if !errors.As(err, &bad) || *bad != (Error{400, message}) {
				t.Errorf("'%s' of a trusted proxy: got %v", connection, err)
			}
			h, err := parse(t, head("GET / HTTP/1.1", "Host: a", "Connection: "+connection), Options{})
			if err != nil {
				t.Errorf("'%s' of a client: got %v", connection, err)
				continue
			}
			if !h.ConnectionNames(clientField([]byte(named))) {
				t.Errorf("'%s' of a client: what it names is not known", connection)
			}
		}
	}
	for _, named := range []string{"X-A", "Via", "X-Remote", "Upgrade", "Host", "Keep-Alive", "Cookie"} {
		if _, err := parse(t, head("GET / HTTP/1.1", "Host: a", "Connection: "+named),
			Options{Trusted: true}); err != nil {
			t.Errorf("'%s' of a trusted proxy: got %v", named, err)
		}
	}
}
