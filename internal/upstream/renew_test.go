package upstream

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// Renew ends idle connections at once, and those in use with their exchange.
func TestRenew(t *testing.T) {
	s := newScripted(t, okReply, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", okReply)
	client := newTestClient(t, s, Config{})
	var resp message.Response
	ask := func(target string, conns int) {
		t.Helper()
		if err := client.Do(request("GET", target, ""), &resp); err != nil {
			t.Fatal(err)
		}
		if _, n := s.seen(); n != conns {
			t.Errorf("%s: the backend saw %d connections, want %d", target, n, conns)
		}
	}
	ask("/1", 1)
	client.Renew()
	if open, idle := client.Conns(); open != 0 || idle != 0 {
		t.Errorf("%d connections, %d of them idle, are kept", open, idle)
	}
	grant, err := client.pool.get(&attempt{}, nil)
	if err != nil || grant.conn != nil {
		t.Fatalf("got %+v, %v", grant, err)
	}
	cn, err := client.dialBy(t.Context(), client.config.Protocol, grant.endpoint, client.config.Timeouts.Connect)
	if err != nil {
		t.Fatal(err)
	}
	client.pool.made(cn)
	client.Renew()
	client.pool.put(cn, true, balance.Inconclusive, cn.freed)
	if open, _ := client.Conns(); open != 0 {
		t.Errorf("%d connections of an earlier generation are kept", open)
	}
	ask("/2", 3)
	ask("/3", 3)
}
