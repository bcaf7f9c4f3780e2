package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestUpgradeOverTLS carries bytes between two ends that both speak TLS: in bulk and a few at a time, an end that
// finishes after the other, and one that leaves.
func TestUpgradeOverTLS(t *testing.T) {
	files := newTLS(t, credentials.ServerFiles{})
	pair, err := tls.LoadX509KeyPair(files.Files.Cert, files.Files.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca := credentialstest.WriteFile(t, files.Dir, "servers.crt", files.Authority.PEM)
	ended := make(chan int, 1)
	g, address := upgradeGateway(t, func(c *config.Configuration) {
		c.TLS = &config.ListenerTLS{CertFile: files.Files.Cert, KeyFile: files.Files.Key,
			ClientCertificates: config.IgnoreCertificates, MinVersion: config.VersionTLS12}
		c.Upstreams[0].Endpoints[0] = strings.Replace(c.Upstreams[0].Endpoints[0], "http:", "https:", 1)
		c.Upstreams[0].TLS = &config.UpstreamTLS{CAFile: ca}
	}, "", func(c net.Conn) {
		secure := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		r := bufio.NewReader(secure)
		if _, err := readHead(r); err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(secure, agree("websocket")+"early;")
		n, _ := io.Copy(secure, r)
		_, _ = io.WriteString(secure, "done")
		_ = secure.CloseWrite()
		ended <- int(n)
	})
	connect := func() (*tls.Conn, *bufio.Reader) {
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: files.Authority.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(testutil.Patience))
		send(t, c, askUpgrade("GET", execPath, "websocket")+"first;")
		r := bufio.NewReader(c)
		if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
			t.Fatalf("the client got %q, %v", head, err)
		}
		expect(t, r, "early;first;")
		return c, r
	}
	c, r := connect()
	for _, size := range []int{1, 1023, 16 << 10, 16<<10 + 1, 64 << 10, 3 << 20} {
		sent := bytes.Repeat([]byte{'x'}, size)
		go func() { _, _ = c.Write(sent) }()
		expect(t, r, string(sent))
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "done" {
		t.Errorf("the client got %q at last, %v", rest, err)
	}
	<-ended
	c, _ = connect()
	_ = c.Close()
	if n := <-ended; n != len("first;") {
		t.Errorf("the backend got %d bytes", n)
	}
	testutil.Eventually(t, "both ends to be closed", func() bool {
		open, _ := g.routes.backends[0].client.Conns()
		return open == 0 && g.server.Open() == 0
	})
}

// TestWatchOverTLS lets a watch's client by TLS send its next request ahead, which is served when the watch is over,
// and ends a watch whose client leaves.
func TestWatchOverTLS(t *testing.T) {
	files := newTLS(t, credentials.ServerFiles{})
	left := make(chan struct{}, 1)
	_, address := upgradeGateway(t, func(c *config.Configuration) {
		c.TLS = &config.ListenerTLS{CertFile: files.Files.Cert, KeyFile: files.Files.Key,
			ClientCertificates: config.IgnoreCertificates, MinVersion: config.VersionTLS12}
	}, "", func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			head, err := readHead(r)
			if err != nil {
				left <- struct{}{}
				return
			}
			if !strings.Contains(head, "watch=true") {
				_, _ = io.WriteString(c, smallReply)
				continue
			}
			_, _ = io.WriteString(c, chunkedHead+"2\r\n{}\r\n")
			if strings.Contains(head, "timeoutSeconds=1") {
				time.Sleep(100 * time.Millisecond)
				_, _ = io.WriteString(c, "0\r\n\r\n")
			}
		}
	})
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: files.Authority.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(testutil.Patience))
	r := bufio.NewReader(c)
	const target = "/apis/example.com/v1/widgets"
	for range 3 {
		send(t, c, "GET "+target+"?watch=true&timeoutSeconds=1 HTTP/1.1\r\nHost: gateway\r\n\r\n")
		if _, err := r.Peek(1); err != nil {
			t.Fatal(err)
		}
		send(t, c, "GET "+target+" HTTP/1.1\r\nHost: gateway\r\n\r\n")
		for _, want := range []string{"{}", "{}"} {
			if got, _ := readAnswer(t, r, false); string(got.Content) != want {
				t.Errorf("got %q, want %q", got.Content, want)
			}
		}
	}
	send(t, c, "GET "+target+"?watch=true HTTP/1.1\r\nHost: gateway\r\n\r\n")
	if _, err := r.Peek(1); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	<-left
}
