package apis

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readers are servers that answer with the path as they read it.
var readers = map[string]func(t *testing.T) *program{
	"nginx": func(t *testing.T) *program {
		return startReadingNginx(t, `location / { return 200 "$uri"; }`)
	},
	"nginx before nginx": func(t *testing.T) *program { // which sends on the path as it read it
		behind := startReadingNginx(t, `location / { return 200 "$uri"; }`)
		return startReadingNginx(t, "location / { proxy_pass "+behind.url()+"/; }")
	},
	"Node, URL": func(t *testing.T) *program { return startReadingNode(t, "new URL(r.url, 'http://x').pathname") },
	"Node, URL decoded": func(t *testing.T) *program {
		return startReadingNode(t, "decodeURIComponent(new URL(r.url, 'http://x').pathname)")
	},
	"Node, files": func(t *testing.T) *program {
		return startReadingNode(t, "path.posix.normalize(decodeURIComponent(r.url))")
	},
	"Node, files on Windows": func(t *testing.T) *program {
		return startReadingNode(t, `path.win32.normalize(decodeURIComponent(r.url)).replaceAll('\\', '/')`)
	},
}

func startReadingNginx(t *testing.T, location string) *program {
	dir, nginx := t.TempDir(), debian(t, "nginx")
	return start(t, "", func(address string) *exec.Cmd {
		write(t, filepath.Join(dir, "nginx.conf"), "daemon off;\nmaster_process off;\npid "+dir+
			"/pid;\nerror_log stderr;\nevents {}\nhttp {\n  access_log off;\n"+
			"  client_body_temp_path "+dir+"/body;\n  proxy_temp_path "+dir+"/proxy;\n  fastcgi_temp_path "+dir+
			"/f;\n  uwsgi_temp_path "+dir+"/u;\n  scgi_temp_path "+dir+"/s;\n"+
			"  default_type text/plain;\n  server { listen "+address+"; "+location+" }\n}\n")
		return exec.Command(nginx, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf"))
	})
}

func startReadingNode(t *testing.T, reading string) *program {
	node := debian(t, "node")
	return start(t, "", func(address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		return exec.Command(node, "-e", `const path = require('path');
require('http').createServer((r, a) => { try { a.end(`+reading+`) } catch { a.statusCode = 400; a.end() } }).listen(`+port+`, '127.0.0.1')`)
	})
}

// misspell inserts, at one place of a path, what servers read in different ways.
func misspell(r *rand.Rand, p string) string {
	at := 1 + r.IntN(len(p))
	what := []string{
		"/", "//", `\`, "%2F", "%5C", "%252f", "/.", "/..", "/x/..", "/%2e%2E", "/./", "/..;/", ";", ";a=b", "%3B",
		"%00", "%0A", "%3F", "%23", "#x", "%20", ".", "/../", "%2e%2e/", "..%2f", "..%5c",
	}[r.IntN(26)]
	if at < len(p) && r.IntN(3) == 0 { // or encodes a byte
		return p[:at] + fmt.Sprintf([]string{"%%%02x", "%%25%02X"}[r.IntN(2)], p[at]) + p[at+1:]
	}
	return p[:at] + what + p[at:]
}

// askRaw asks for a path as it is spelled, on a connection of its own.
func askRaw(t *testing.T, address, path string) (code int, body string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must(t, err)
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
	must(t, err)
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(t, err)
	text, _ := io.ReadAll(a.Body)
	_ = a.Body.Close()
	return a.StatusCode, string(text)
}

// TestReadings: whatever the spelling of a path, a server gets it only if it reads it as one of the route by which it
// came.
func TestReadings(t *testing.T) {
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) {
			server := reader(t)
			config := filepath.Join(t.TempDir(), "gateway.yaml")
			write(t, config, "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nshutdownDeadlineSeconds: 1\n"+
				"upstreams: [{name: api, endpoints: ['"+server.url()+
				"'], dialect: Plain}]\nroutes: [{pathPrefix: /pub, upstream: api}]\n")
			gateway := start(t, "", func(address string) *exec.Cmd {
				return exec.Command(gatewayProgram, "serve", "--listen", address, "--admin", "127.0.0.1:0", "--config",
					config)
			})
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			passed, escaped := 0, 0
			for range 2500 {
				path := []string{"/pub/x", "/pub", "/pub/a/b", "/pub/../admin", "/admin"}[r.IntN(5)]
				for range 1 + r.IntN(3) {
					path = misspell(r, path)
				}
				isBelow := func(read string) bool { return read == "/pub" || strings.HasPrefix(read, "/pub/") }
				if code, read := askRaw(t, server.address, path); code == http.StatusOK &&
					strings.HasPrefix(path, "/pub/") && !isBelow(read) {
					escaped++
				}
				switch code, read := askRaw(t, gateway.address, path); {
				case code == http.StatusOK && !isBelow(read):
					t.Fatalf("%s is routed by /pub, and read as %q; seed %d", path, read, seed)
				case code == http.StatusOK:
					passed++
				case code != http.StatusBadRequest && code != http.StatusNotFound && code < 500:
					t.Fatalf("%s is answered %d %s", path, code, read)
				}
			}
			if passed < 100 || escaped < 20 {
				t.Errorf("%d paths passed, and %d lead out of /pub by the server alone", passed, escaped)
			}
		})
	}
}
