package credentials

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// text is a value that is the content of a file, which may not be empty or begin with "bad".
func text(w *Watcher, file string) (*Value[string], error) {
	return Watch(w, "the text", []string{file}, func(contents [][]byte) (string, error) {
		if s := string(contents[0]); s != "" && !strings.HasPrefix(s, "bad") {
			return s, nil
		}
		return "", errors.New("must be good")
	})
}

// What was good stays in use, and everything is said once.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := credentialstest.WriteFile(t, dir, "a", []byte("one"))
	said := ""
	w := NewWatcher(Options{Reloaded: func(ok bool) {
		if said += "-"; ok {
			said += "+"
		}
	}})
	v, err := text(w, file)
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	v.OnChange(func() { changes++ })
	for _, step := range []struct {
		name, content, want, said string
		changes                   int
	}{
		{"the same", "one", "one", "", 0},
		{"another", "two", "two", "-+", 1},
		{"a bad one", "bad", "two", "-", 1},
		{"the bad one again", "bad", "two", "", 1},
		{"another bad one", "bad too", "two", "-", 1},
		{"gone", "", "two", "-", 1},
		{"still gone", "", "two", "", 1},
		{"the good one back", "two", "two", "-+", 2},
		{"a third", "three", "three", "-+", 3},
		{"gone again", "", "three", "-", 3},
		{"back as it was", "three", "three", "", 3},
		{"too large", strings.Repeat("a", maxFile+1), "three", "-", 3},
	} {
		if said = ""; step.content == "" {
			_ = os.Remove(file)
		} else {
			credentialstest.WriteFile(t, dir, "a", []byte(step.content))
		}
		w.Reload()
		if got := v.Get(); got != step.want || said != step.said || changes != step.changes {
			t.Errorf("%s: %q, said '%s', %d changes; want %q, '%s', %d", step.name, got, said, changes, step.want,
				step.said, step.changes)
		}
	}
	if _, err := text(w, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := text(w, credentialstest.WriteFile(t, dir, "b", []byte("bad"))); err == nil ||
		err.Error() != "must be good" {
		t.Errorf("got %v", err)
	}
}

// A change is seen without a request: of a file that is written or replaced, and of a mounted
// Secret, whose files are links by way of a link that is swapped.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	data := func(version, content string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		credentialstest.WriteFile(t, filepath.Join(dir, version), "token", []byte(content))
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	data("..1", "mounted 1")
	if err := os.Symlink("..data/token", filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	credentialstest.WriteFile(t, other, "a", []byte("written 1"))
	w := NewWatcher(Options{Poll: time.Hour, Quiet: time.Millisecond})
	mounted, err := text(w, filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := text(w, filepath.Join(other, "a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	wait := func(v *Value[string], want string) {
		t.Helper()
		testutil.Becomes(t, want, v.Get)
	}
	data("..2", "mounted 2")
	wait(mounted, "mounted 2")
	credentialstest.WriteFile(t, other, "a", []byte("written 2"))
	wait(written, "written 2")
	if err := os.Rename(credentialstest.WriteFile(t, other, "b", []byte("replaced")),
		filepath.Join(other, "a")); err != nil {
		t.Fatal(err)
	}
	wait(written, "replaced")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	data("..3", "mounted 3")
	wait(mounted, "mounted 3")
	stop()
	running.Wait()
}

// If changes go unnoticed they are found by polling.
func TestPoll(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	credentialstest.WriteFile(t, filepath.Join(dir, "one"), "a", []byte("one"))
	if err := os.Symlink("one", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(Options{Poll: time.Millisecond})
	v, err := text(w, filepath.Join(dir, "current", "a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go w.Run(ctx)
	if err := os.Mkdir(filepath.Join(dir, "two"), 0o700); err != nil {
		t.Fatal(err)
	}
	credentialstest.WriteFile(t, filepath.Join(dir, "two"), "a", []byte("two"))
	if err := os.Symlink("two", filepath.Join(dir, "next")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	testutil.Becomes(t, "two", v.Get)
}

// A pool has every authority of its file, or is not used.
func TestParsePool(t *testing.T) {
	a, b := credentialstest.NewAuthority(t, "a"), credentialstest.NewAuthority(t, "b")
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"two, with words between", "# a\n" + string(a.PEM) + "\n# b\n" + string(b.PEM), ""},
		{"a key among them", string(a.PEM) + string(a.Server(t, nil).Key), ""},
		{"nothing", "", "must hold at least one certificate in PEM"},
		{"a key alone", string(a.Server(t, nil).Key), "must hold at least one certificate in PEM"},
		{"a good one and a bad one", string(a.PEM) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
			"certificate 2: x509: malformed certificate"},
	} {
		pool, err := ParsePool([]byte(c.text))
		if c.want == "" && (err != nil || pool == nil) || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNewServer: certificates that are in no files are shown, and forgotten with the part that has them.
func TestNewServer(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "a")
	pair := authority.Server(t, []string{"a.example"})
	w := NewWatcher(Options{})
	part := w.Part()
	v, err := NewServer(part, "the listener",
		&ServerPEM{Certificates: []CertPEM{{pair.Cert, pair.Key}}, ClientCAs: authority.PEM})
	if err != nil {
		t.Fatal(err)
	}
	w.Reload()
	if s := v.Get(); s.ClientCAs == nil || s.Config.ClientCAs == nil || w.Expiries()["the listener"].IsZero() {
		t.Errorf("the server is %+v, and what expires %v", s, w.Expiries())
	}
	part.Close()
	if left := w.Expiries(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	for _, c := range []struct {
		held ServerPEM
		want string
	}{
		{ServerPEM{}, "there is no certificate"},
		{ServerPEM{Certificates: []CertPEM{{pair.Cert, pair.Key}, {pair.Cert, []byte("x")}}},
			"certificate 2 and its key cannot be used: "},
		{ServerPEM{Certificates: []CertPEM{{pair.Cert, pair.Key}}, ClientCAs: []byte("x")}, "the authorities of clients cannot be used: must hold at least one certificate in PEM"},
	} {
		if _, err := NewServer(w.Part(), "the listener", &c.held); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
