package scenario

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const ending = `A scenario.
-- policy.yaml --
kind: Nothing
-- config --
kubernetes
-- request.1 --
POST /v2/orders HTTP/1.1
Host: gw
Content-Length: *

{"size": 1}
-- request.2 --
HEAD /v2/orders HTTP/1.1
Host: gw

-- backend.1 --
HTTP/1.1 201 Created
Date: Mon, 01 Jan 2024 00:00:00 GMT
Content-Length: *

{"metadata":{"uid":"11111111-1111-1111-1111-111111111111","creationTimestamp":"2024-01-01T00:00:00Z"}}
-- backend.2 --
HTTP/1.1 200 OK
Content-Length: 12

`

const answered = `HTTP/1.1 201 Created
Date: *
Content-Length: 102

{"metadata":{"uid":"*","creationTimestamp":"*"}}
HTTP/1.1 200 OK
Content-Length: 12

`

const received = `POST /v2/orders HTTP/1.1
Host: gw
Content-Length: 11

{"size": 1}
HEAD /v2/orders HTTP/1.1
Host: gw

`

// A recorder is a test that may fail.
type recorder struct {
	testing.TB
	hasFailed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.hasFailed = true }

// TestPlay plays a scenario before its own backend, writes what came of it, and compares it with that.
func TestPlay(t *testing.T) {
	folder := testutil.WriteFiles(t, map[string]string{"one.txtar": ending})
	s := ReadAll(t, folder)[0]
	if name, config := s.Name(), string(s.Section("config")); name != "one" || config != "kubernetes\n" {
		t.Errorf("the scenario is %q and its config %q", name, config)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := NewBackend(t, l, s.Sections("backend."))
	dial := func(t testing.TB) net.Conn {
		c, err := net.Dial("tcp", b.Address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if got := string(Exchange(t, dial(t),
		[]byte("GET /version HTTP/1.1\r\nHost: gw\r\n\r\n"))); got != KubernetesVersion+"\n" {
		t.Errorf("the version is %q", got)
	}
	if got := string(Paper(s.Play(t, dial))); got != answered {
		t.Errorf("answered\n%s\nwant\n%s", got, answered)
	}
	if got := string(Paper(b.Received())); got != received {
		t.Errorf("received\n%s\nwant\n%s", got, received)
	}
	if got := string(Exchange(t, dial(t), JSON("POST /v2/orders", "{}"))); !strings.HasSuffix(got,
		"end of the script\n") {
		t.Errorf("after the end of the script comes %q", got)
	}
	s.Compare(t, "response", []byte(answered), true)
	again := Read(t, folder+"/one.txtar")
	again.Compare(t, "response", []byte(answered), false)
	for name, got := range map[string]string{"response": "HTTP/1.1 200 OK\n", "upstream": ""} {
		r := &recorder{TB: t}
		if again.Compare(r, name, []byte(got), false); !r.hasFailed {
			t.Errorf("%s may be %q", name, got)
		}
	}
	if !again.Shows("HTTP/1.1 201 Created\nDate: *\n") || again.Shows("1.1 201 Created\n") {
		t.Error("a scenario shows whole lines of its sections")
	}
	policies := t.TempDir()
	again.WritePolicies(t, policies)
	if files, err := os.ReadDir(policies); err != nil || len(files) != 1 || files[0].Name() != "policy.yaml" {
		t.Errorf("the policies are %v, %v", files, err)
	}
}
