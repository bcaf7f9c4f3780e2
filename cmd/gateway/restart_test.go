package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const execTarget = "/api/v1/namespaces/team-a/pods/web/exec?command=sh"

// startPods is a backend on which every request to exec becomes a connection that neither end
// closes, and every log is one that does not end. What else is asked is answered at once.
func startPods(t *testing.T) (address string, streams <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	opened := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go servePods(c, opened)
		}
	}()
	return l.Addr().String(), opened
}

func servePods(c net.Conn, opened chan<- net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/exec"):
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
			opened <- c
			return
		case strings.HasSuffix(r.URL.Path, "/log"):
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			opened <- c
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	}
}

// openExec opens an exec through the gateway and returns both ends.
func openExec(t *testing.T, p *process, streams <-chan net.Conn) (client, backend net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", p.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(testutil.Patience)); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(c, "POST "+execTarget+
		" HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	head, one := "", make([]byte, 1)
	for !strings.HasSuffix(head, "\r\n\r\n") {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatalf("read %q, %v", head, err)
		}
		head += string(one)
	}
	if !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("answered %q", head)
	}
	backend = <-streams
	t.Cleanup(func() { _ = backend.Close() })
	return c, backend
}

func mustCarry(t *testing.T, to, from net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v", got, err)
	}
}

func restartConfiguration(t *testing.T, backend, more string) string {
	return write(t, "gateway.yaml", `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams: [{name: cluster, endpoints: ['http://`+backend+`'], dialect: Kubernetes}]
routes: [{pathPrefix: /, upstream: cluster}]
`+more)
}

// startOn runs a gateway on the addresses of another one, and waits until it serves.
func startOn(t *testing.T, p *process, configuration string) *process {
	t.Helper()
	next := startProcess(t, p.listen, p.admin, "--config", configuration)
	testutil.Eventually(t, "serving", func() bool { return strings.Contains(next.log.String(), "msg=serving") })
	return next
}

// An exec, or a log that a client follows, delays no restart: both are ended when the time to drain
// is over, long before requests are cut, and the process ends. The next one has its address.
func TestRestartWithExecOpen(t *testing.T) {
	backend, streams := startPods(t)
	configuration := restartConfiguration(t, backend, "drainSeconds: 0\nshutdownDeadlineSeconds: 86400\n")
	p := startUnready(t, "", "--config", configuration)
	testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
	client, far := openExec(t, p, streams)
	mustCarry(t, client, far, "input")
	log, err := http.Get("http://" + p.listen + "/api/v1/namespaces/team-a/pods/web/log?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Body.Close() }()
	if got := make([]byte, 5); true {
		if _, err := io.ReadFull(log.Body, got); err != nil {
			t.Fatal(err)
		}
	}
	<-streams
	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
	if rest, err := io.ReadAll(client); len(rest) > 0 || err != nil {
		t.Errorf("the client's end of the exec reads %q, %v", rest, err)
	}
	if rest, err := io.ReadAll(log.Body); len(rest) > 0 || err != io.ErrUnexpectedEOF {
		t.Errorf("the log goes on with %q, %v; want that it breaks off", rest, err)
	}
	if !strings.Contains(p.log.String(), `msg="upgraded connections and followed logs are ended" count=2`) {
		t.Errorf("the log does not say what was ended:\n%s", p.log)
	}
	startOn(t, p, configuration)
	if got := fetch("http://" + p.listen + "/api/v1/namespaces/team-a/configmaps/a"); got.code != 200 {
		t.Errorf("the next gateway answers %+v", got)
	}
}

// While an exec goes on after SIGTERM the gateway refuses no client. Another gateway can take its
// addresses over at any time, and the exec does not notice.
func TestRestartRefusesNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("an address is handed over on Linux alone")
	}
	backend, streams := startPods(t)
	port := strconv.Itoa(testutil.FreePort(t))
	further := []string{"127.0.0.1:" + port, "127.0.0.2:" + port}
	configuration := restartConfiguration(t, backend,
		"drainSeconds: 0\nupgradeDrainSeconds: 86400\nshutdownDeadlineSeconds: 86400\n"+
			"listeners: [{name: one, listen: '"+further[0]+"'}, {name: two, listen: '"+further[1]+"'}]\n")
	p := startUnready(t, "", "--config", configuration)
	testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
	client, far := openExec(t, p, streams)
	mustBeServed := func(when string) {
		t.Helper()
		addresses := append(further, p.listen)
		for i := range 60 { // of two processes either may answer
			// A connection of its own: the old gateway says goodbye.
			r, err := http.NewRequest(http.MethodGet, "http://"+addresses[i%len(addresses)]+
				"/api/v1/namespaces/team-a/configmaps/a", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Close = true
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != 200 {
				t.Fatalf("%s: answered %s", when, answer.Status)
			}
		}
	}
	if early := startProcess(t, p.listen, testutil.FreeAddress(t), "--config", configuration); early.Wait() == nil ||
		!strings.Contains(early.log.String(), "another program does already") {
		t.Errorf("a second gateway on the address of one that serves says %s", early.log)
	}
	p.signal(t, syscall.SIGTERM)
	testutil.Eventually(t, "finishing", func() bool { return strings.Contains(p.log.String(), "msg=finishing") })
	mustBeServed("while the exec goes on")
	next := startOn(t, p, configuration)
	mustBeServed("by two gateways")
	mustCarry(t, client, far, "input")
	mustCarry(t, far, client, "output")
	_ = client.Close()
	_ = far.Close() // one that is half closed may stay for a minute
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
	mustBeServed("by the next gateway")
	if got := next.get("/readyz"); got.code != 200 {
		t.Errorf("the next gateway is not ready: %+v", got)
	}
}
