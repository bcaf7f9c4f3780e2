package proxy

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/identity/identitytest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

const benchLimit = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: per-user}
spec:
  match: {}
  key: User
  requests: 1000000000
  periodSeconds: 1
`

// BenchmarkIdentity is a GET that passes through, with a JWT of a usual size: unread, and as the
// user's identity, with a limit for each user, and with the user named to the backend by the
// gateway. Beside the time it shows the CPU time of the process, the client and the backend
// included.
func BenchmarkIdentity(b *testing.B) {
	issuer := identitytest.NewIssuer(b)
	token := issuer.Token(map[string]any{"sub": "kim", "teams": []string{"team-a", "team-b"},
		"email": "kim@example.com", "name": strings.Repeat("k", 300)})
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
	get := "GET /apis/bench.example.com/v1/namespaces/team-a/workloads/w1 HTTP/1.1\r\nHost: gw\r\nUser-Agent: bench\r\nAccept: application/json\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	jwt := &config.Identity{Anonymous: config.DenyAnonymous,
		Authenticators: []config.Authenticator{{JWT: &config.JWT{JWTAuthenticator: v1.JWTAuthenticator{
			Issuer: v1.Issuer{URL: issuer.URL, CertificateAuthority: issuer.CA, Audiences: []string{"gateway"}},
			ClaimMappings: v1.ClaimMappings{Username: v1.PrefixedClaimOrExpression{Expression: "claims.sub"},
				Groups: v1.PrefixedClaimOrExpression{Expression: "claims.teams"}},
		}}}}}
	for _, c := range []struct {
		name        string
		identity    *config.Identity
		limit       bool
		credentials config.Credentials
	}{
		{"unread", nil, false, config.PassCredentials},
		{"identity", jwt, false, config.PassCredentials},
		{"identity-and-limit", jwt, true, config.PassCredentials},
		{"identity-and-limit,front-proxy", jwt, true, config.FrontProxyCredentials},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			if c.limit {
				testutil.WriteFile(b, filepath.Join(dir, "limit.yaml"), benchLimit)
			}
			f, err := config.Load("", config.Flags{Upstream: h1test.Replying(b, ok), Dialect: "Kubernetes"})
			if err != nil {
				b.Fatal(err)
			}
			f.Identity, f.Upstreams[0].Credentials = c.identity, c.credentials
			set := policiestest.LoadFiles(b, dir)
			address := startGateway(b, newTestGateway(b, f, func() *policies.Set { return set }))
			nc, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			out, in := []byte(get), make([]byte, 4<<10)
			once := func() (code byte) {
				if _, err := nc.Write(out); err != nil {
					b.Fatal(err)
				}
				n := 0
				for n < len(ok) {
					m, err := nc.Read(in[n:])
					if err != nil && err != io.EOF {
						b.Fatal(err)
					}
					n += m
				}
				return in[9]
			}
			testutil.Becomes(b, '2', once)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if once() != '2' {
					b.Fatalf("answered %s", in)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns the time that the process has taken.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
