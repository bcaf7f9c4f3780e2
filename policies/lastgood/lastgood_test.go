package lastgood

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/policies/source"
)

const (
	key    = "0123456789abcdef0123456789abcdef\n"
	secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {token: very-secret}\n"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func options(t *testing.T) Options {
	dir := t.TempDir()
	return Options{
		Path: filepath.Join(dir, "last"), KeyFile: write(t, filepath.Join(dir, "key"), key),
		MaxAge: time.Hour, Configuration: "c1",
	}
}

func files() *source.Source {
	return source.Of([]source.File{
		{Name: "p/a.yaml", Data: []byte("a: 1\n"), Root: "p"},
		{Name: "p/b.rego", Data: []byte("package b\n"), Root: "p", Role: source.Module, IsOutside: true},
		{Name: "p/secret.yaml", Data: []byte(secret), Root: "p"},
	})
}

// parts are the files of one folder.
func parts(files *source.Source, at time.Time) []Part { return []Part{{"p", files, at}} }

// TestRestore: files come back as they were kept, and for none but whom they are meant.
func TestRestore(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, o *Options)
		now    *source.Source
		after  time.Duration
		err    error
	}{
		"as kept":            {now: files(), after: time.Hour},
		"older than its age": {now: files(), after: time.Hour + time.Second, err: ErrOld},
		"of the future":      {now: files(), after: -time.Hour - time.Second, err: ErrOld},
		"of other configuration": {now: files(), change: func(_ *testing.T, o *Options) { o.Configuration = "c2" },
			err: ErrForeign},
		"with another key": {now: files(), err: ErrForged, change: func(t *testing.T, o *Options) {
			write(t, o.KeyFile, strings.ToUpper(key))
		}},
		"changed": {now: files(), err: ErrForged, change: func(t *testing.T, o *Options) {
			data, err := os.ReadFile(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, o.Path, strings.Replace(string(data), `"c1"`, `"c2"`, 1))
		}},
		"cut off": {now: files(), err: ErrForged, change: func(t *testing.T, o *Options) {
			if err := os.Truncate(o.Path, 100); err != nil {
				t.Fatal(err)
			}
		}},
		"empty": {now: files(), err: ErrForged, change: func(t *testing.T, o *Options) { write(t, o.Path, "") }},
		"gone":  {now: files(), err: os.ErrNotExist, change: func(_ *testing.T, o *Options) { o.Path += "x" }},
		"secrets changed": {err: ErrChanged, now: source.Of([]source.File{
			{Name: "p/secret.yaml", Data: []byte(secret + "# new\n"), Root: "p"},
		})},
		"secrets gone": {err: ErrChanged, now: source.Of(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Keep(parts(files(), at)); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, &o)
			}
			later, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			got, when, err := later.Restore("p", c.now, at.Add(c.after))
			if c.err != nil {
				if got != nil || !errors.Is(err, c.err) && !strings.Contains(err.Error(), "no such file") {
					t.Errorf("got %v, %v, want %v", got, err, c.err)
				}
				return
			}
			if err != nil || !when.Equal(at) || !reflect.DeepEqual(got.Files, files().Files) ||
				got.Fingerprint() != files().Fingerprint() {
				t.Errorf("got %+v of %v, %v", got, when, err)
			}
		})
	}
}

// TestKeep: the file has no contents of Secrets, others may not read it, and it is written again if the files have
// changed or have been there for a while.
func TestKeep(t *testing.T) {
	o := options(t)
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	text := func() []byte {
		t.Helper()
		data, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	keep := func(files *source.Source, after time.Duration) []byte {
		t.Helper()
		if err := s.Keep(parts(files, at.Add(after))); err != nil {
			t.Fatal(err)
		}
		return text()
	}
	first := keep(files(), 0)
	if info, err := os.Stat(o.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, form := range []string{"very-secret", "dmVyeS1zZWNyZXQ"} {
		if bytes.Contains(first, []byte(form)) {
			t.Errorf("the file has %s", form)
		}
	}
	if again := keep(files(), 2*time.Minute); !bytes.Equal(again, first) {
		t.Error("the file is written again at once")
	}
	if again := keep(files(), 4*time.Minute); bytes.Equal(again, first) {
		t.Error("the file is not written again after a while")
	}
	changed := source.Of([]source.File{{Name: "p/a.yaml", Data: []byte("a: 2\n"), Root: "p"}})
	if before, after := text(), keep(changed, 4*time.Minute); bytes.Equal(before, after) {
		t.Error("files that changed are not written")
	}
	entries, err := os.ReadDir(filepath.Dir(o.Path))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	s.options.Path = filepath.Join(o.Path, "below-a-file")
	if err := s.Keep(parts(files(), at)); err == nil {
		t.Error("no error for a folder that is none")
	}
}

// TestSecrets: files that have a Secret, in whatever spelling, are those whose contents are not kept.
func TestSecrets(t *testing.T) {
	for text, want := range map[string]bool{
		secret: true,
		"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n":      false,
		"kind: ConfigMap\napiVersion: v1\nmetadata: {name: Secret}\n": false,
		"a: 1\n---\n" + secret: true,
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n":                  true,
		"apiVersion: v1\nkind: \"\\x53ecret\"\nmetadata: {name: a}\n":                                                  true,
		`{"apiVersion":"v1","kind":"\u0053ecret","metadata":{"name":"a"}}`:                                             true,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n  broken: [":                                               true,
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: no-Secrets}\n": false,
	} {
		if got := hasSecrets(&source.File{Name: "a.yaml", Data: []byte(text)}); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// TestKey: a key that is short or missing is an error at start.
func TestKey(t *testing.T) {
	o := options(t)
	write(t, o.KeyFile, " "+key[:31]+"\n")
	if _, err := New(o); err == nil || err.Error() != "the key in "+o.KeyFile+" must have at least 32 bytes" {
		t.Errorf("got %v", err)
	}
	o.KeyFile += "x"
	if _, err := New(o); err == nil {
		t.Error("no error without a key")
	}
}
