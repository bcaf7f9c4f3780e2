package proxy

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the gateway does into the golden files")

// TestGolden plays the files of testdata/way: policies, the client's raw requests, what reached the backend byte for byte,
// and the raw answers. The backend's own answers are in the file too.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/way/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { playGolden(t, file) })
	}
}

// goldenFile is one story. Sections: *.yaml are policy files, config names settings, request.N and backend.N are
// messages with LF line ends, upstream and response what came of them.
type goldenFile struct {
	archive *txtar.Archive
}

func (g *goldenFile) section(name string) []byte {
	for _, f := range g.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func (g *goldenFile) set(name string, data []byte) {
	for i := range g.archive.Files {
		if g.archive.Files[i].Name == name {
			g.archive.Files[i].Data = data
			return
		}
	}
	g.archive.Files = append(g.archive.Files, txtar.File{Name: name, Data: data})
}

func (g *goldenFile) sections(prefix string) [][]byte {
	var all [][]byte
	for _, f := range g.archive.Files {
		if strings.HasPrefix(f.Name, prefix) {
			all = append(all, f.Data)
		}
	}
	return all
}

func playGolden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g := &goldenFile{archive}
	dir := t.TempDir()
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".yaml") {
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	backend := newScriptedBackend(t, g.sections("backend."))
	gateway := gatewayFor(t, dir, backend.address, strings.Fields(string(g.section("config"))))
	waitForStates(t, gateway)
	address := startGateway(t, gateway)
	var answers bytes.Buffer
	for _, request := range g.sections("request.") {
		answers.Write(exchangeRaw(t, address, wireForm(request)))
	}
	got := map[string][]byte{
		"upstream": paperForm(bytes.ReplaceAll(backend.received(), []byte(backend.address), []byte("backend"))),
		"response": paperForm(answers.Bytes()),
	}
	if *update {
		for _, name := range []string{"upstream", "response"} {
			g.set(name, got[name])
		}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"upstream", "response"} {
		if want := g.section(name); string(want) != string(got[name]) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got[name], want)
		}
	}
}

// wireForm turns the LF line ends of a head into CRLF and fixes the length of the body.
func wireForm(paper []byte) []byte {
	head, body, _ := bytes.Cut(paper, []byte("\n\n"))
	body = bytes.TrimSuffix(body, []byte("\n"))
	head = bytes.ReplaceAll(bytes.TrimSuffix(head, []byte("\n")), []byte("\n"), []byte("\r\n"))
	head = bytes.ReplaceAll(head, []byte("Content-Length: *"), []byte("Content-Length: "+itoa(len(body))))
	return append(append(head, "\r\n\r\n"...), body...)
}

// volatile is what differs from run to run: the time of day, uids, and names that begin with 'made-'.
var volatile = regexp.MustCompile(`(?m)(^Date: ).*$|("uid":")[0-9a-f-]{36}|("creationTimestamp":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|("deletionTimestamp":")(?:202[5-9]|20[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ|(made-)[bcdfghjklmnpqrstvwxz2456789]{5}`)

// paperForm is the form of messages in golden files: without CR, each ending in a line end, and without what is volatile.
func paperForm(wire []byte) []byte {
	b := volatile.ReplaceAll(bytes.ReplaceAll(wire, []byte("\r\n"), []byte("\n")), []byte("${1}${2}${3}${4}${5}*"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return b
}

func itoa(n int) string {
	if n == 0 {
		return "0"
	}
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

// exchangeRaw sends one request on a connection of its own and returns the raw answer.
func exchangeRaw(t *testing.T, address string, request []byte) []byte {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	// The gateway may answer and close before it has read all of it.
	go func() { _, _ = c.Write(request) }()
	var raw bytes.Buffer
	method, _, _ := strings.Cut(string(request), " ")
	r, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, &raw)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer to %q: %v", request, err)
	}
	defer func() { _ = r.Body.Close() }()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(raw.Bytes(), []byte("\n")) {
		raw.WriteByte('\n')
	}
	return raw.Bytes()
}

// scriptedBackend answers requests in turn with the messages it was given, and keeps what it received.
type scriptedBackend struct {
	address string
	mu      sync.Mutex
	script  [][]byte
	got     bytes.Buffer
}

func newScriptedBackend(t *testing.T, script [][]byte) *scriptedBackend {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &scriptedBackend{address: ln.Addr().String(), script: script}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go b.serve(c)
		}
	}()
	return b
}

func (b *scriptedBackend) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	var raw bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		answer := b.take(raw.Bytes())
		raw.Reset()
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// take notes a request and gives the answer to it.
func (b *scriptedBackend) take(request []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got.Write(request)
	if !bytes.HasSuffix(request, []byte("\n")) {
		b.got.WriteByte('\n')
	}
	if len(b.script) == 0 {
		return []byte("HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 17\r\n\r\nend of the script")
	}
	answer := wireForm(b.script[0])
	b.script = b.script[1:]
	return answer
}

func (b *scriptedBackend) received() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.got.Bytes())
}
