package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestReloadListeners: listeners come and go with the configuration file. One that cannot be opened leaves all as it
// is.
func TestReloadListeners(t *testing.T) {
	t.Parallel()
	_, api := startBackend(t)
	dir := t.TempDir()
	c := &configured{file: filepath.Join(dir, "gateway.yaml")}
	first, second := testutil.FreeAddress(t), testutil.FreeAddress(t)
	put := func(listeners string) {
		c.put(t, fmt.Sprintf("drainSeconds: 0\nlisteners: [%s]\nupstreams: [{name: notes, endpoints: ['http://%s'], dialect: Plain}]\n", listeners, api))
	}
	one := func(name, address string) string { return fmt.Sprintf("{name: %s, listen: '%s'}", name, address) }
	isOpen := func(address string) bool {
		nc, err := net.Dial("tcp", address)
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	}
	put(one("a", first))
	c.process = startProcess(t, testutil.FreeAddress(t), testutil.FreeAddress(t), "--config", c.file)
	testutil.Eventually(t, "ready", func() bool { return c.get("/readyz").code == 200 })
	for _, at := range []string{c.listen, first} {
		if got := fetch("http://" + at + "/v2/notes").code; got != 200 {
			t.Errorf("%s: answered %d", at, got)
		}
	}

	put(one("b", second))
	testutil.Eventually(t, "the second listener", func() bool { return isOpen(second) })
	testutil.Eventually(t, "the first listener to be closed", func() bool { return !isOpen(first) })
	for _, at := range []string{c.listen, second} {
		if got := fetch("http://" + at + "/v2/notes").code; got != 200 {
			t.Errorf("%s: answered %d", at, got)
		}
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(second)
	for _, no := range []struct{ listeners, why string }{
		{one("a", first) + ", " + one("c", taken.Addr().String()), "cannot listen on " + taken.Addr().String() +
			": another program does already; choose another address with `listeners`"},
		{one("a", first) + ", " + one("c", ":"+port), "cannot listen on :" + port + " while the gateway listens on " +
			second + "; a restart brings it into force"},
	} {
		put(no.listeners)
		testutil.Eventually(t, "refused",
			func() bool { f := c.shown(t).LastFailure; return f != nil && strings.Join(f.Findings, "\n") == no.why })
		if isOpen(first) || !isOpen(second) || fetch("http://"+second+"/v2/notes").code != 200 {
			t.Errorf("%s: the listeners have changed", no.why)
		}
	}

	put(one("b", second) + ", " + one("a", first))
	testutil.Eventually(t, "both", func() bool { return isOpen(first) && isOpen(second) })
	testutil.Eventually(t, "shown", func() bool { return c.shown(t).LastFailure == nil })
	c.signal(t, os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if isOpen(first) || isOpen(second) {
		t.Error("a listener is left")
	}
}
