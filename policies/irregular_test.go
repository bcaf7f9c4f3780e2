package policies

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/watch"
	"github.com/admission-gateway/gateway/policies/source"
)

// Whatever is no regular file is an error by its name; nothing waits for it.
func TestIrregularFiles(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgets, "real": widgets})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"pipe.yaml", "openapi.json", "pipe"} {
		if err := syscall.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", at("socket.yml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	for name, target := range map[string]string{"link.yaml": "pipe", "zero.yaml": "/dev/zero"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	const want = `link.yaml: must be a regular file, or a link to one, not a named pipe
openapi.json: must be a regular file, or a link to one, not a named pipe
pipe.yaml: must be a regular file, or a link to one, not a named pipe
socket.yml: must be a regular file, or a link to one, not a socket
zero.yaml: must be a regular file, or a link to one, not a device
`
	if got := text(dir, Check([]string{dir})); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
	if got := text(dir,
		Check(
			[]string{
				at("pipe.yaml")})); got != "pipe.yaml: must be a regular file, or a link to one, not a named pipe\n" {
		t.Errorf("found %s", got)
	}
}

// A named pipe among the files is refused like any bad file: the set in force stays, and what comes after it, or once
// it is gone, is seen.
func TestReloadBesidePipe(t *testing.T) {
	var e events
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	m := manage(t, []string{dir}, e.options())
	pipe := filepath.Join(dir, "f.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the pipe that is refused", func() bool { _, rejected := e.counts(); return rejected > 0 })
	replace(t, filepath.Join(dir, "a.yaml"), widgetsOf(2))
	testutil.Eventually(t, "a change beside it that is refused",
		func() bool { _, rejected := e.counts(); return rejected > 1 })
	if got := m.Current().Generation(); got != 1 {
		t.Errorf("generation %d beside a named pipe, want 1", got)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the change once the pipe is gone",
		func() bool { return defaultSize(t, m.Current()) == "2" })
}

// A reading that takes longer than a minute is reported, with the file at which it is, and so is how it ends, also if
// nothing has changed. One that takes less is not.
func TestOverdueReload(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": widgetsOf(1)})
	file := filepath.Join(dir, "a.yaml")
	slow := file + ": must be readable within 1m0s; until it is read, or gone, no change of the policy files comes into force"
	for _, c := range []struct {
		name  string
		takes time.Duration
		force bool
		hangs string // the file that is being read; empty if it is compiled
		want  []string
	}{
		{"in time", watch.Patience - time.Second, false, file, nil},
		{"too long, and nothing has changed", 10 * watch.Patience, false, file,
			[]string{"1m0s overdue " + slow, "10m0s confirmed"}},
		{"too long when asked for", 2 * watch.Patience, true, file, []string{"1m0s overdue " + slow, "2m0s confirmed"}},
		{"compiled for too long", 3 * watch.Patience, true, "", []string{
			"1m0s overdue " + dir + ": must be loaded within 1m0s; the policies that were read are still being compiled, and are not in force",
			"3m0s confirmed",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var began time.Time
			var said []string
			tell := func(what string) { said = append(said, time.Since(began).String()+" "+what) }
			var log strings.Builder
			m, found := NewManager([]string{dir}, Options{
				Overdue:   func(f Finding) { tell("overdue " + f.String()) },
				Confirmed: func(*Set, time.Time) { tell("confirmed") },
				Log:       slog.New(slog.NewTextHandler(&log, nil)),
			})
			if m == nil {
				t.Fatal(found)
			}
			read := m.read
			m.read = func(p *source.Progress) []*source.Source {
				if c.hangs != "" {
					p.Reading(c.hangs)
				}
				time.Sleep(c.takes)
				return read(p)
			}
			began = time.Now()
			m.refresh(c.force)
			if !slices.Equal(said, c.want) {
				t.Errorf("%s: said\n%s\nwant\n%s", c.name, strings.Join(said, "\n"), strings.Join(c.want, "\n"))
			}
			if got := strings.Contains(log.String(),
				"the policy files take too long to load"); got != (len(c.want) > 0) {
				t.Errorf("%s: the log says\n%s", c.name, &log)
			}
		})
	}
}
