// Package h1test has what tests need that speak HTTP/1.1 byte by byte: clients, backends and a
// table of hostile requests.
package h1test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
)

// SecureScheme is before the address of a server that speaks TLS.
const SecureScheme = "tls://"

// OverTLS reports whether a test runs as a part of TestOverTLS, with TLS between the gateway and
// its clients.
func OverTLS(t testing.TB) bool {
	return strings.HasPrefix(t.Name(), "TestOverTLS/listener/") || strings.HasPrefix(t.Name(), "TestOverTLS/both/")
}

// BehindTLS reports whether a test runs as a part of TestOverTLS, with TLS between the gateway and
// its backend.
func BehindTLS(t testing.TB) bool {
	return strings.HasPrefix(t.Name(), "TestOverTLS/backend/") || strings.HasPrefix(t.Name(), "TestOverTLS/both/")
}

// ListenBackend listens for the gateway; by TLS if the test is about that.
func ListenBackend(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if BehindTLS(t) {
		pair := credentialstest.NewAuthority(t, "backends").Server(t, []string{"127.0.0.1"})
		ln = tls.NewListener(ln, pair.Config(t))
	}
	return ln
}

// BackendScheme is the scheme of URLs of the backend.
func BackendScheme(t testing.TB) string {
	if BehindTLS(t) {
		return "https://"
	}
	return "http://"
}

// TLS has what a listener needs whose files a test can change.
type TLS struct {
	Dir       string
	Authority *credentialstest.Authority // of the server's certificates
	Clients   *credentialstest.Authority
	Files     credentials.ServerFiles
	Watcher   *credentials.Watcher
	Server    *credentials.Value[*credentials.Server]
}

// NewTLS makes the files; authorities of clients too if files.ClientAuth asks for certificates.
func NewTLS(t testing.TB, files credentials.ServerFiles) *TLS {
	t.Helper()
	s := &TLS{
		Dir: t.TempDir(), Files: files, Watcher: credentials.NewWatcher(credentials.Options{}),
		Authority: credentialstest.NewAuthority(t, "servers"), Clients: credentialstest.NewAuthority(t, "clients"),
	}
	s.Files.Cert, s.Files.Key = s.Authority.Server(t, []string{"gw.example.com", "127.0.0.1"}).Write(t, s.Dir, "tls")
	if files.MinVersion == 0 {
		s.Files.MinVersion = tls.VersionTLS12
	}
	if files.ClientAuth != tls.NoClientCert {
		s.Files.ClientCA = credentialstest.WriteFile(t, s.Dir, "ca.crt", s.Clients.PEM)
	}
	var err error
	if s.Server, err = credentials.WatchServer(s.Watcher, "the listener", s.Files); err != nil {
		t.Fatal(err)
	}
	return s
}
