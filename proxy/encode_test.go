package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// note is a text that makes an object worth to be encoded.
var note = strings.Repeat("all work and no play ", 100)

// encoding starts a gateway in front of a backend that has one order of some size, and answers an
// If-None-Match.
func encoding(t *testing.T, text, lines string, words ...string) (*recorder, string) {
	t.Helper()
	backend := newRecorder(t)
	backend.Reply = func(_ int, head, _ string) (string, bool) {
		if strings.Contains(head, `If-None-Match: "7"`) {
			return "HTTP/1.1 304 Not Modified\r\nETag: \"7\"\r\n\r\n", true
		}
		body := `{"id":"o1","note":"` + text + `"}`
		if strings.HasPrefix(head, "GET /v2/orders HTTP/1.1") {
			body = `{"items":[` + body + `]}`
		}
		if strings.HasPrefix(head, "HEAD ") {
			body = ""
		}
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"7\"\r\n%sContent-Length: %d\r\n\r\n%s", lines, len(body), body), true
	}
	return backend,
		startGateway(t, gatewayFor(t, t.TempDir(), backend.Addr().String(), append(words, "policies=orders")))
}

// answerTo sends a request and returns the answer's head, as headOf does, and its body.
func answerTo(t *testing.T, address, request string) (head string, body []byte) {
	t.Helper()
	nc, br := dial(t, address)
	defer func() { _ = nc.Close() }()
	send(t, nc, request)
	head = linesOfHead(t, br)
	if _, rest, found := strings.Cut(head, "Content-Length: "); found && !strings.HasPrefix(request, "HEAD ") {
		n := 0
		_, _ = fmt.Sscan(rest, &n)
		body = make([]byte, n)
		if _, err := io.ReadFull(br, body); err != nil {
			t.Fatal(err)
		}
	}
	return head, body
}

func getOrder(lines string) string {
	return "GET /v2/orders/o1 HTTP/1.1\r\nHost: gw\r\n" + lines + "\r\n"
}

var decoders = map[string]func(dst, src []byte) ([]byte, error){
	"gzip": fasthttp.AppendGunzipBytes, "br": fasthttp.AppendUnbrotliBytes, "zstd": fasthttp.AppendUnzstdBytes,
}

// revisionAt returns by what the ETags of edited answers are marked at a gateway.
func revisionAt(t *testing.T, address string) string {
	t.Helper()
	head, _ := answerTo(t, address, getOrder(""))
	mark := regexp.MustCompile(`ETag: "7-gateway-([0-9a-f]{8})"`).FindStringSubmatch(head)
	if mark == nil {
		t.Fatalf("no ETag has a mark:\n%s", head)
	}
	return mark[1]
}

// TestEditedIsEncoded: an answer that the gateway edits is encoded as the client asks, with an ETag of its own.
func TestEditedIsEncoded(t *testing.T) {
	backend, address := encoding(t, note, "")
	revision := revisionAt(t, address)
	for _, target := range []string{"/v2/orders/o1", "/v2/orders"} {
		want := `{"id":"o1","note":"` + note + `","currency":"EUR"}`
		if target == "/v2/orders" {
			want = `{"items":[` + want + `]}`
		}
		request := "GET " + target + " HTTP/1.1\r\nHost: gw\r\n"
		head, body := answerTo(t, address, request+"\r\n")
		expectHead(t, target, head, "HTTP/1.1 200 OK", "Content-Type: application/json", "Vary: Accept-Encoding",
			`ETag: "7-gateway-`+revision+`"`, fmt.Sprint("Content-Length: ", len(want)))
		if string(body) != want {
			t.Errorf("%s: got %s, want %s", target, body, want)
		}
		for coding, decode := range decoders {
			backend.Take()
			head, body := answerTo(t, address, request+"Accept-Encoding: "+coding+"\r\n\r\n")
			expectHead(t, target, head, "HTTP/1.1 200 OK", "Content-Type: application/json", "Vary: Accept-Encoding",
				"Content-Encoding: "+coding,
				`ETag: "7-gateway-`+revision+`-`+coding+`"`, fmt.Sprint("Content-Length: ", len(body)))
			if got, err := decode(nil, body); err != nil || string(got) != want || len(body) > 200 {
				t.Errorf("%s, %s: got %d bytes that are %q, %v", target, coding, len(body), got, err)
			}
			if sent := backend.Take(); strings.Count(sent, "Accept-Encoding: ") != 1 ||
				!strings.Contains(sent, "Accept-Encoding: identity\r\n") {
				t.Errorf("the backend got %q", sent)
			}
		}
	}
}

// TestMarkedETag: who names the ETag of an encoded answer names the backend's.
func TestMarkedETag(t *testing.T) {
	backend, address := encoding(t, note, "")
	head, _ := answerTo(t, address, getOrder("Accept-Encoding: gzip\r\nIf-None-Match: \"7-gateway-gzip\"\r\n"))
	expectHead(t, "marked", head, "HTTP/1.1 304 Not Modified", "Vary: Accept-Encoding", `ETag: "7-gateway-gzip"`)
	head, _ = answerTo(t, address, getOrder("If-None-Match: \"7\"\r\n"))
	expectHead(t, "not marked", head, "HTTP/1.1 304 Not Modified", `ETag: "7"`, "Vary: Accept-Encoding")
	edited := `"7-gateway-` + revisionAt(t, address) + `-br"`
	head, _ = answerTo(t, address, getOrder("If-None-Match: "+edited+"\r\n"))
	expectHead(t, "edited", head, "HTTP/1.1 304 Not Modified", "Vary: Accept-Encoding", "ETag: "+edited)
	// what other policies made of it
	head, _ = answerTo(t, address, getOrder("If-None-Match: \"7-gateway-00000000\"\r\n"))
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Errorf("a copy that other policies edited is answered\n%s", head)
	}
	backend.Take()
	put := "PUT /v2/orders/o1 HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nIf-Match: \"7-gateway-00000000-br\"\r\nContent-Length: 11\r\n\r\n" + `{"id":"o1"}`
	if head, _ := answerTo(t, address, put); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Errorf("a PUT is answered\n%s", head)
	}
	if sent := backend.Take(); !strings.Contains(sent, "If-Match: \"7\"\r\n") || strings.Contains(sent, "-gateway-") {
		t.Errorf("the backend got %q", sent)
	}
	if head, _ := answerTo(t, address, strings.Replace(put, `"7-`, `"6-`, 1)); !strings.HasPrefix(head, "HTTP/1.1 4") &&
		!strings.Contains(backend.Take(), `If-Match: "6"`) {
		t.Errorf("a PUT of another version is answered\n%s", head)
	}
}

// TestNotEncoded: what is small, what is not edited, what the backend forbids to change, and what there is no memory
// for stays as it is.
func TestNotEncoded(t *testing.T) {
	const asked = "Accept-Encoding: gzip, br, zstd\r\n"
	whole := func(size int) string { return fmt.Sprint("Content-Length: ", size) }
	const plain = len(`{"id":"o1","note":""}`)
	edited := plain + len(`,"currency":"EUR"`)
	t.Run("small", func(t *testing.T) {
		_, address := encoding(t, "small", "")
		head, _ := answerTo(t, address, getOrder(asked))
		expectHead(t, "small", head, "HTTP/1.1 200 OK", "Content-Type: application/json", `ETag: "7-gateway-`+
			revisionAt(t, address)+`"`, whole(edited+len("small")))
	})
	t.Run("not edited", func(t *testing.T) {
		backend, address := encoding(t, note, "")
		head, body := answerTo(t, address, "GET /other HTTP/1.1\r\nHost: gw\r\n"+asked+
			"If-Match: \"1-gateway-gzip\"\r\n\r\n")
		expectHead(t, "not edited", head, "HTTP/1.1 200 OK", "Content-Type: application/json", `ETag: "7"`,
			whole(len(body)))
		if sent := backend.Take(); !strings.Contains(sent, asked) || !strings.Contains(sent, "If-Match: \"1\"") {
			// the mark is the gateway's own
			t.Errorf("the backend got %q", sent)
		}
	})
	t.Run("forbidden", func(t *testing.T) {
		_, address := encoding(t, note, "Cache-Control: no-transform\r\n")
		head, _ := answerTo(t, address, getOrder(asked))
		expectHead(t, "forbidden", head, "HTTP/1.1 200 OK", "Content-Type: application/json",
			"Cache-Control: no-transform",
			`ETag: "7-gateway-`+revisionAt(t, address)+`"`, whole(edited+len(note)))
	})
	t.Run("weak", func(t *testing.T) {
		_, address := encoding(t, note, "Vary: X-A, accept-encoding\r\n")
		head, _ := answerTo(t, address, "HEAD /v2/orders/o1 HTTP/1.1\r\nHost: gw\r\n"+asked+"\r\n")
		expectHead(t, "HEAD", head, "HTTP/1.1 200 OK", "Content-Type: application/json", "Vary: X-A, accept-encoding",
			`ETag: "7-gateway-`+revisionAt(t, address)+`"`, whole(edited+len(note)))
	})
	t.Run("no memory", func(t *testing.T) {
		backend := newRecorder(t)
		body := `{"id":"o1","note":"` + note + `"}`
		backend.Reply = func(int, string, string) (string, bool) {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), true
		}
		g := gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"policies=orders", "memory=4000000"})
		address := startGateway(t, g)
		var other = takeMemory(t, g, 2_000_000)
		head, _ := answerTo(t, address, getOrder(asked))
		expectHead(t, "no memory", unrevised.ReplaceAllString(head, "${1}*"), "HTTP/1.1 200 OK",
			"Content-Type: application/json", "Vary: Accept-Encoding",
			`ETag: "gw-cIDDoohlLzAMQo2WbYZgVpb4GHgoDH_S-gateway-*"`, whole(edited+len(note)))
		other()
		if head, _ := answerTo(t, address, getOrder(asked)); !strings.Contains(head, "Content-Encoding: zstd\n") {
			t.Errorf("with memory again it is answered\n%s", head)
		}
	})
}

// TestWatchEncoded: each event of an encoded watch can be read when it has come, and its memory comes back.
func TestWatchEncoded(t *testing.T) {
	for coding, decode := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	} {
		t.Run(coding, func(t *testing.T) {
			g, address, conns := filledGateway(t)
			r, backend := ask(t, address, conns, widgetsPath+"?watch=true", "1.1\r\nAccept-Encoding: lz4, "+coding,
				chunkedHead)
			if got := r.Header.Get("Content-Encoding"); got != coding || r.Header.Get("Vary") != "Accept-Encoding" {
				t.Fatalf("encoded as %q: %v", got, r.Header)
			}
			var events *bufio.Reader
			for range 100 {
				send(t, backend, chunk(`{"type":"ADDED","object":`+bareWidget+"}\n"))
				if events == nil {
					decoded, err := decode(r.Body)
					if err != nil {
						t.Fatal(err)
					}
					events = bufio.NewReader(decoded)
				}
				expect(t, events, `{"type":"ADDED","object":`+filledWidget+"}\n")
			}
			if n := g.BodyBytesInFlight(); n < 1<<20 {
				t.Errorf("%d bytes of memory are counted", n)
			}
			send(t, backend, "0\r\n\r\n")
			if rest, err := io.ReadAll(events); len(rest) > 0 || err != nil {
				t.Errorf("then came %q, %v", rest, err)
			}
			testutil.Eventually(t, "the memory to come back", func() bool { return g.BodyBytesInFlight() == 0 })
		})
	}
}

// TestListEncoded: the items of an encoded list leave while the backend makes the next. A list that cannot be read is a
// Status that is not encoded.
func TestListEncoded(t *testing.T) {
	_, address, conns := filledGateway(t)
	r, backend := ask(t, address, conns, widgetsPath, "1.1\r\nAccept-Encoding: gzip",
		strings.Replace(chunkedHead, "\r\n", "\r\nETag: \"9\"\r\n", 1)+chunk(`{"items":[`+bareWidget))
	list, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, list, widgetsHead+filledWidget)
	send(t, backend, chunk(strings.Repeat(","+bareWidget, 20_000)+"]}")+"0\r\n\r\n")
	rest, err := io.ReadAll(list)
	if want := strings.Repeat(","+filledWidget, 20_000) + widgetsFoot; string(rest) != want || err != nil {
		t.Errorf("then came %d bytes, want %d, %v", len(rest), len(want), err)
	}
	if got := r.Header.Get("ETag"); !regexp.MustCompile(`^"9-gateway-[0-9a-f]{8}-gzip"$`).MatchString(got) {
		t.Errorf("the ETag is %s", got)
	}
	_, address, conns = filledGateway(t)
	r, _ = ask(t, address, conns, widgetsPath, "1.1\r\nAccept-Encoding: gzip", chunkedHead+chunk("no JSON")+"0\r\n\r\n")
	body, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusBadGateway || r.Header.Get("Content-Encoding") != "" ||
		!bytes.HasPrefix(body, []byte(`{"kind":"Status"`)) || err != nil {
		t.Errorf("answered %d %v %s, %v", r.StatusCode, r.Header, body, err)
	}
}

// takeMemory takes bytes of the memory for requests until they are given back.
func takeMemory(t *testing.T, g *Gateway, bytes int) (giveBack func()) {
	t.Helper()
	other := &memory.Reservation{}
	other.Open(g.memory.Budget, nil)
	if !other.Grow(bytes) {
		t.Fatal("there is no memory")
	}
	return other.Close
}
