// Command createfiles lists the files of proxy and internal/storage that run in one create, for a
// backend of each dialect. Another create has warmed the gateway up before. It counts its own
// statements, and so it must be built with counters:
//
//	cd bench && go run -cover -covermode=atomic \
//		-coverpkg=github.com/admission-gateway/gateway/proxy/...,github.com/admission-gateway/gateway/internal/storage/...,./createfiles ./createfiles
package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/library"
	"github.com/admission-gateway/gateway/proxy"
)

func main() {
	for _, dialect := range []config.Dialect{config.Kubernetes, config.Plain} {
		files, err := filesOf(dialect)
		if err != nil {
			fmt.Fprintln(os.Stderr, "createfiles:", err)
			os.Exit(1)
		}
		fmt.Print(listed(dialect, files))
	}
}

// maxWidth is how long a line of names may be.
const maxWidth = 90

// listed is the list of the files of a dialect, a paragraph for each folder.
func listed(dialect config.Dialect, files []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d files\n", dialect, len(files))
	for len(files) > 0 {
		folder := path.Dir(files[0])
		fmt.Fprintf(&b, "  %s/", folder)
		width := maxWidth
		for len(files) > 0 && path.Dir(files[0]) == folder {
			name := strings.TrimSuffix(path.Base(files[0]), ".go")
			if width += 1 + len(name); width > maxWidth {
				b.WriteString("\n   ")
				width = len(name)
			}
			b.WriteString(" " + name)
			files = files[1:]
		}
		b.WriteString("\n")
	}
	return b.String()
}

// filesOf runs the demo's backend, and a gateway in front of it with the demo's policies.
func filesOf(dialect config.Dialect) ([]string, error) {
	dir, err := os.MkdirTemp("", "createfiles-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears what is left
	api := backend.New(backend.Options{})
	upstream, err := api.Start()
	if err != nil {
		return nil, err
	}
	defer func() { _ = api.Close() }()
	demo, err := library.Demo()
	if err != nil {
		return nil, err
	}
	flags := config.Flags{Upstream: "http://" + upstream, Dialect: string(dialect),
		Policies: []string{filepath.Join(dir, "policies")}}
	gateway, err := newGateway(flags, demo)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- gateway.Serve(listener) }()
	files, err := measure(listener.Addr().String(), filepath.Join(dir, "counts"))
	if err != nil {
		return nil, err
	}
	if err := gateway.Shutdown(context.Background()); err != nil {
		return nil, err
	}
	return files, <-ended
}

// newGateway makes a gateway with policies, which it writes to the folder that the flags name.
func newGateway(flags config.Flags, files fs.FS) (*proxy.Gateway, error) {
	if err := os.CopyFS(flags.Policies[0], files); err != nil {
		return nil, err
	}
	c, err := config.Load("", flags)
	if err != nil {
		return nil, err
	}
	set, findings := policies.Load(c.Policies.Names())
	if set == nil {
		return nil, fmt.Errorf("the policies cannot be used: %v", findings)
	}
	metrics, err := telemetry.New(telemetry.Options{})
	if err != nil {
		return nil, err
	}
	states, err := state.NewManager(state.Options{})
	if err != nil {
		return nil, err
	}
	return proxy.New(proxy.Options{
		Config: c, Policies: func() *policies.Set { return set }, Limiter: ratelimit.New(0), States: states,
		Metrics: metrics,
		Log:     slog.New(slog.DiscardHandler),
	})
}

// measure creates two objects, and returns the files that ran in the second create.
func measure(gateway, dir string) ([]string, error) {
	if err := create(gateway, "first"); err != nil {
		return nil, err
	}
	if err := coverage.ClearCounters(); err != nil {
		return nil, fmt.Errorf("the command must be built with -cover -covermode=atomic: %w", err)
	}
	if err := create(gateway, "second"); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return nil, err
	}
	if err := coverage.WriteCountersDir(dir); err != nil {
		return nil, err
	}
	return filesRun(dir)
}

// create creates a queue. It returns when the connection ends, and so after everything that the
// gateway does for the request.
func create(gateway, name string) error {
	conn, err := net.Dial("tcp", gateway)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	body := `{"metadata":{"name":"` + name + `"},"spec":{"owner":"team-billing"}}`
	if _, err := fmt.Fprintf(conn, "POST /apis/messaging.example.com/v1/namespaces/team-a/queues HTTP/1.1\r\nHost: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", gateway, len(body), body); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 201 ")) {
		err = fmt.Errorf("the create is answered %s", answer)
	}
	return err
}

// filesRun returns the files of proxy and internal/storage with a statement that was counted.
func filesRun(counts string) ([]string, error) {
	profile := filepath.Join(counts, "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counts,
		"-o="+profile).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		// module/file.go:line.column,line.column statements count
		file, rest, _ := strings.Cut(strings.TrimPrefix(line, "github.com/admission-gateway/gateway/"), ":")
		isOurs := strings.HasPrefix(file, "proxy/") || strings.HasPrefix(file, "internal/storage/")
		if isOurs && !strings.HasSuffix(strings.TrimSpace(rest), " 0") {
			files = append(files, file)
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		return cmp.Or(strings.Compare(path.Dir(a), path.Dir(b)), strings.Compare(a, b))
	})
	return slices.Compact(files), nil
}
