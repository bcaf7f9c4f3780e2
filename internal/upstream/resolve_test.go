package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// names is a Resolver that says what the test says.
type names struct {
	mu      sync.Mutex
	answers map[string]string // addresses, or an error that begins with '!'
	asked   int
}

func (n *names) say(host, answer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[host] = answer
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	answer := n.answers[host]
	if why, bad := strings.CutPrefix(answer, "!"); bad {
		return nil, errors.New(why)
	}
	var found []netip.Addr
	for _, a := range strings.Fields(answer) {
		found = append(found, netip.MustParseAddr(a))
	}
	return found, nil
}

// lookups is how often it was asked.
func (n *names) lookups() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// addresses are the endpoints in force.
func addresses(c *Client) string {
	var all []string
	for _, e := range c.State().Endpoints {
		all = append(all, e.Address)
	}
	return strings.Join(all, " ")
}

func TestNamesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := &names{answers: map[string]string{"a.example.com": "10.0.0.2 10.0.0.1 10.0.0.2",
			"b.example.com": "::ffff:10.1.0.1 fd00::1"}}
		var mu sync.Mutex
		var reported []string
		client, err := New(Config{
			Endpoints: []string{"http://a.example.com:9000", "http://192.0.2.1", "http://b.example.com",
				"http://localhost:1"},
			Resolver: resolver, ResolvePeriod: 30 * time.Second,
			OnChange: func(c balance.Change) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, fmt.Sprint(c.Event, " ", c.Endpoint, ": ", c.Cause))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		const before = "10.0.0.1:9000 10.0.0.2:9000 192.0.2.1:80 10.1.0.1:80 [fd00::1]:80 localhost:1"
		if got := addresses(client); got != before {
			t.Fatalf("the endpoints are %s", got)
		}
		client.pool.mu.Lock()
		stays := client.pool.set.All()[1]
		for range 3 {
			client.pool.set.Observe(stays, balance.Failed, time.Now())
		}
		client.pool.mu.Unlock()
		news := func() []string {
			mu.Lock()
			defer mu.Unlock()
			all := reported
			reported = nil
			slices.Sort(all)
			return all
		}
		news()

		// What fails, or has no addresses, leaves all as it is, and is reported once.
		resolver.say("a.example.com", "!the name server is away")
		resolver.say("b.example.com", "")
		asked := resolver.lookups()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := addresses(client); got != before {
			t.Errorf("the endpoints are %s", got)
		}
		if got := strings.Join(news(), "; "); got != "LookupFailed a.example.com:9000: the name server is away; LookupFailed b.example.com:80: the name has no addresses" {
			t.Errorf("reported: %s", got)
		}
		if got := fmt.Sprint(client.State().Unresolved); got != "[{a.example.com:9000 the name server is away} {b.example.com:80 the name has no addresses}]" {
			t.Errorf("unresolved are %s", got)
		}
		// Failed lookups are made again sooner, but not without a pause.
		if n := resolver.lookups() - asked; n < 24 || n > 40 {
			t.Errorf("%d lookups in five minutes", n)
		}

		resolver.say("a.example.com", "10.0.0.2 10.0.0.3")
		resolver.say("b.example.com", "10.1.0.1 fd00::1")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if got := addresses(
			client); got != "10.0.0.2:9000 10.0.0.3:9000 192.0.2.1:80 10.1.0.1:80 [fd00::1]:80 localhost:1" {
			t.Errorf("the endpoints are %s", got)
		}
		if got := client.State().Unresolved; got != nil {
			t.Errorf("unresolved are %v", got)
		}
		client.pool.mu.Lock()
		if client.pool.set.All()[0] != stays || stays.Failures() != 3 {
			t.Error("an endpoint that stays was made anew")
		}
		client.pool.mu.Unlock()
		if got := strings.Join(news(),
			"; "); got != "AddressesChanged a.example.com:9000: 1 added, 1 removed, 2 in all" {
			t.Errorf("reported: %s", got)
		}
		client.Close()
		synctest.Wait()
		asked = resolver.lookups()
		time.Sleep(time.Hour)
		synctest.Wait()
		if resolver.lookups() != asked {
			t.Error("a client that is closed looks up names")
		}
	})
}

// A name may not stand for endpoints without end.
func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []string
		for i := range 5000 {
			many = append(many, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
		}
		client, err := New(Config{
			Endpoints: []string{"http://a.example.com"}, ResolvePeriod: time.Second,
			Resolver: &names{answers: map[string]string{"a.example.com": strings.Join(many, " ")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(client.State().Endpoints); n != maxAddresses {
			t.Errorf("there are %d endpoints", n)
		}
		client.Close()
	})
}

// The first request waits until its backend's name is known, and fails if it cannot be.
func TestFirstLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := &names{answers: map[string]string{"a.example.com": "!no such host"}}
		client, err := New(Config{Endpoints: []string{"http://a.example.com"}, Resolver: resolver,
			ResolvePeriod: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var resp message.Response
		var e *Error
		if err := client.Do(request("PUT", "/", "{}"), &resp); !errors.As(err, &e) || e.Kind != Unreachable || e.Sent ||
			e.Cause.Error() != "no such host" {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		resolver.say("a.example.com", "10.0.0.1")
		time.Sleep(time.Second)
		synctest.Wait()
		if cn := client.pool.acquire(t); cn.endpoint.Addr != "10.0.0.1:80" {
			t.Errorf("the connection is to %s", cn.endpoint.Addr)
		}
		client.Close()
	})
}

// Requests to an address that is no longer one of the name's end in peace.
func TestRemovedEndpointDrains(t *testing.T) {
	s := newScripted(t, okReply, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", okReply)
	resolver := &names{answers: map[string]string{}}
	client, err := New(Config{Endpoints: []string{"http://a.example.com:1"}, Resolver: resolver})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o := client.origins[0]
	client.pool.replace(o, []string{s.Addr().String()}, time.Now())
	var first, second message.Response
	if err := client.Do(request("GET", "/1", ""), &second); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(request("GET", "/2", ""), &first); err != nil {
		t.Fatal(err)
	}
	other := newScripted(t, okReply)
	client.pool.replace(o, []string{other.Addr().String()}, time.Now())
	if open, idle := client.Conns(); open != 1 || idle != 0 {
		t.Errorf("%d connections are open, %d idle", open, idle)
	}
	if err := client.Do(request("GET", "/3", ""), &second); err != nil {
		t.Fatal(err)
	}
	if requests, _ := other.seen(); len(requests) != 1 {
		t.Errorf("the new address saw %v", requests)
	}
	s.mu.Lock()
	_, _ = s.open[0].Write([]byte("1\r\nb\r\n0\r\n\r\n"))
	s.mu.Unlock()
	var got []byte
	buf := make([]byte, 10)
	for {
		n, err := first.Stream().Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	if string(got) != "ab" {
		t.Errorf("the stream is %q", got)
	}
	if open, idle := client.Conns(); open != 1 || idle != 1 {
		t.Errorf("%d connections are open, %d idle", open, idle)
	}
}
