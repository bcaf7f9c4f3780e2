package proxy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies"
)

// TestToken: a token is sent with what the gateway asks on its own account, and read anew when it has changed.
func TestToken(t *testing.T) {
	behind := newScriptedBackend(t, nil)
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	c, err := config.Load("", config.Flags{Upstream: "http://" + behind.address})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams[0].TokenFile = file
	set := policies.Empty()
	g := newTestGateway(t, c, func() *policies.Set { return set })
	b := g.Backend("", "/").(*backend)
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "Authorization: Bearer one\r\n"},
		{func() { write("two") }, "Authorization: Bearer one\r\n"},
		{func() { b.token.read = time.Time{} }, "Authorization: Bearer two\r\n"},
		{func() { write("not\na token"); b.token.read = time.Time{} }, "Authorization: Bearer two\r\n"},
	} {
		step.change()
		if _, err := b.Send(context.Background(), state.Request{Method: "GET", Target: "/api/v1/namespaces/team-a", Limit: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		requests := strings.SplitAfter(string(behind.received()), "\r\n\r\n")
		if last := requests[len(requests)-2]; !strings.Contains(last, step.want) {
			t.Errorf("sent %q, want %q", last, step.want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.token.read, b.token.value = time.Time{}, ""
	if _, err := b.Send(context.Background(), state.Request{Method: "GET", Target: "/", Limit: 1}); err != errNoToken {
		t.Errorf("without a token: %v", err)
	}
	if _, err := newRoutes(c, nil, nil); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("a gateway starts without the token: %v", err)
	}
}

// TestOwnBackends: which upstream is asked: that of the name, else that to which a route leads for the path.
func TestOwnBackends(t *testing.T) {
	c, err := config.Load("", config.Flags{Upstream: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams = []config.Upstream{{Name: "a", Endpoints: []string{"http://127.0.0.1:1/"}}, {Name: "b", Endpoints: []string{"http://b.example.com"}, Dialect: config.Plain}}
	c.Routes = []config.Route{{PathPrefix: "/v2", Upstream: "b"}, {Host: "a.example.com", PathPrefix: "/", Upstream: "a"}}
	set := policies.Empty()
	g := newTestGateway(t, c, func() *policies.Set { return set })
	for _, step := range []struct{ name, path, want, host string }{
		{"a", "/v2/x", "a", "127.0.0.1:1"}, {"b", "/x", "b", "b.example.com"}, {"", "/v2/x", "b", "b.example.com"}, {"", "/x", "", ""}, {"c", "/v2/x", "", ""},
	} {
		b, found := g.Backend(step.name, step.path).(*backend)
		switch {
		case !found && step.want == "":
		case !found || b.name != step.want || b.host != step.host || b.Kubernetes() == (step.want == "b"):
			t.Errorf("'%s' with %s: %v", step.name, step.path, b)
		}
	}
}
