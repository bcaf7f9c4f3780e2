package file

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Only regular files are read; whatever else has the name is refused at once, also by way of a link, and without a
// writer that a named pipe would wait for.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("regular"), []byte("content"), 0o600))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	socket, err := net.Listen("unix", at("socket"))
	must(err)
	defer func() { _ = socket.Close() }()
	for _, name := range []string{"regular", "pipe", "socket", "none", "loop"} {
		must(os.Symlink(name, at("link-to-"+name)))
	}
	must(os.Symlink("loop", at("loop")))
	must(os.Symlink("/dev/zero", at("link-to-device")))

	const pipe, sock, device = "must be a regular file, or a link to one, not a named pipe",
		"must be a regular file, or a link to one, not a socket",
		"must be a regular file, or a link to one, not a device"
	for name, want := range map[string]string{
		at("regular"): "", at("link-to-regular"): "",
		at("pipe"): pipe, at("link-to-pipe"): pipe,
		at("socket"): sock, at("link-to-socket"): sock,
		"/dev/null": device, at("link-to-device"): device,
		dir:                "must be a file, not a directory",
		at("none"):         "may not be read: no such file or directory",
		at("link-to-none"): "may not be read: no such file or directory",
		at("link-to-loop"): "may not be read: too many levels of symbolic links",
	} {
		data, info, err := Read(name, 100)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || (err == nil) != (string(data) == "content") || (err == nil) != (info != nil) {
			t.Errorf("%s: %q, %v, %q; want the error %q", name, data, info, got, want)
		}
		if checked := Check(name); (checked == nil) != (err == nil) || checked != nil && checked.Error() != want {
			t.Errorf("%s: checked, %v; want the error %q", name, checked, want)
		}
	}
	for limit, want := range map[int64]string{7: "<nil>", 6: "must be at most 6 bytes"} {
		if _, _, err := Read(at("regular"), limit); fmt.Sprint(err) != want {
			t.Errorf("at most %d bytes: %v, want %s", limit, err, want)
		}
	}
	if err := Check(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}
