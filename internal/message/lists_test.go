package message

import "testing"

func TestRepeats(t *testing.T) {
	h, err := parse(t, head("GET / HTTP/1.1", "Host: a", "X-Api-Key: 1", "x-api-key: 2", "X-Tenant: 1", "X_Tenant: 2",
		"X-One: 1", "X-Remote-Group: a", "X-Remote-Group: b",
		"X-Remote-Extra-a: 1", "X-Remote-Extra-a: 2", "Accept: a", "accept: b", "Cookie: a", "Cookie: b",
		"X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 5.6.7.8",
		"X-Gone: 1", "X-Gone: 2", "Connection: x-gone"), Options{Trusted: true, Underscores: PassUnderscores})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"x-api-key": true, "X-API-KEY": true, "x_api_key": true, "x-tenant": true, "x_tenant": true, "cookie": true,
		"x-one": false, "x-none": false, "": false, "accept": false, "x-forwarded-for": false, "x-remote-group": false,
		"x-remote-extra-a": false, "x-gone": false,
	} {
		if got := h.Repeats(name); got != want {
			t.Errorf("Repeats(%q) = %v", name, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { h.Repeats("x-forwarded-for") }); n > 0 {
		t.Errorf("takes %v allocations", n)
	}
}
