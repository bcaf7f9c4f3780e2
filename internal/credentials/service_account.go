package credentials

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// ServiceAccount is the identity of the gateway at a server: how it verifies the server, and the
// credentials it shows. It says and shows what a client of Kubernetes with the same settings would,
// for client-go's own library makes it. Its methods are safe for concurrent use.
type ServiceAccount struct {
	tls   *Value[clientTLS]
	token *Value[string] // nil if it is in no file

	// programme gets a credential from an exec plugin, each time anew; nil without one. The header lines of all else
	// are known from the beginning.
	programme http.RoundTripper
	lines     []byte

	certificate bool
}

// clientTLS is how connections are made by TLS.
type clientTLS struct {
	// nobody shows no certificate; own shows the account's.
	nobody, own *tls.Config
}

// WatchServiceAccount reads the files of an account and keeps what they make up to date. The name
// says in logs whose account it is. A plugin that is to be asked for credentials is asked when they
// are needed first.
func WatchServiceAccount(w *Watcher, name string, c *rest.Config) (*ServiceAccount, error) {
	c = rest.CopyConfig(c)
	c.NextProtos = []string{"http/1.1"}
	if c.ExecProvider != nil {
		c.ExecProvider.StdinUnavailable = true
		c.ExecProvider.StdinUnavailableMessage = "the gateway has nobody to ask"
	}
	tokenFile := c.BearerTokenFile
	if tokenFile != "" {
		c.BearerToken, c.BearerTokenFile = "", ""
	}
	t, err := c.TransportConfig()
	if err != nil {
		return nil, err
	}
	a := &ServiceAccount{certificate: t.HasCertAuth() || t.HasCertCallback()}
	if a.tls, err = watchTLS(w, name, t); err != nil {
		return nil, err
	}
	if tokenFile != "" {
		if a.token, err = Watch(w, name, []string{tokenFile}, readToken(tokenFile)); err != nil {
			return nil, err
		}
	}
	ask, err := transport.HTTPWrappersForConfig(t, written{})
	if err != nil {
		return nil, err
	}
	if c.ExecProvider != nil && a.token == nil {
		a.programme = ask
		return a, nil
	}
	a.lines, err = askFor(ask, http.StatusOK)
	return a, err
}

// watchTLS makes what t says of TLS. What t holds itself counts before what is in files, as for client-go.
func watchTLS(w *Watcher, name string, t *transport.Config) (*Value[clientTLS], error) {
	inline := [][]byte{t.TLS.CAData, t.TLS.CertData, t.TLS.KeyData}
	files := []string{t.TLS.CAFile, t.TLS.CertFile, t.TLS.KeyFile}
	for i := range files {
		if len(inline[i]) > 0 {
			files[i] = ""
		}
	}
	places := make([]string, len(files)) // for messages
	for i, f := range files {
		if places[i] = "'" + f + "'"; f == "" {
			places[i] = "the kubeconfig"
		}
	}
	return Watch(w, name, files, func(contents [][]byte) (made clientTLS, err error) {
		for i := range contents {
			if len(inline[i]) > 0 {
				contents[i] = inline[i]
			}
		}
		nobody := &transport.Config{TLS: transport.TLSConfig{Insecure: t.TLS.Insecure, ServerName: t.TLS.ServerName,
			NextProtos: t.TLS.NextProtos}}
		if made.nobody, err = transport.TLSConfigFor(nobody); err != nil {
			return made, err
		}
		made.nobody.DynamicRecordSizingDisabled = true // as on listeners
		if len(contents[0]) > 0 || files[0] != "" {
			if made.nobody.RootCAs, err = ParsePool(contents[0]); err != nil {
				return made, fmt.Errorf("the authorities in %s cannot be used: %w", places[0], err)
			}
		}
		if !t.HasCertAuth() && !t.HasCertCallback() {
			made.own = made.nobody
			return made, nil
		}
		own := &transport.Config{TLS: nobody.TLS}
		own.TLS.CertData, own.TLS.KeyData, own.TLS.GetCertHolder = contents[1], contents[2], t.TLS.GetCertHolder
		if made.own, err = transport.TLSConfigFor(own); err != nil {
			return made, fmt.Errorf("the certificate in %s and the key in %s cannot be used: %w", places[1], places[2],
				err)
		}
		made.own.RootCAs, made.own.DynamicRecordSizingDisabled = made.nobody.RootCAs, true
		return made, nil
	})
}

// HasCertificate reports whether the account may show a certificate, by which the server knows it
// for all requests of a connection.
func (a *ServiceAccount) HasCertificate() bool { return a.certificate }

// Anonymous reports whether the account shows nothing of itself, so that it is anonymous to a
// server.
func (a *ServiceAccount) Anonymous() bool {
	return !a.certificate && a.token == nil && a.programme == nil && len(a.lines) == 0
}

// NobodyTLS is for connections that carry the requests of others: it knows the server, and shows no certificate.
func (a *ServiceAccount) NobodyTLS() *tls.Config { return a.tls.Get().nobody }

// OwnTLS is for connections that carry the account's own requests.
func (a *ServiceAccount) OwnTLS() *tls.Config { return a.tls.Get().own }

// OnChange has f called when connections should be made anew: the certificate of the account, or the authorities that
// the server is known by, are others. It must be called before the Watcher runs.
func (a *ServiceAccount) OnChange(f func()) { a.tls.OnChange(f) }

// AppendAuthorization appends the header lines that identify the account, if it uses header lines.
func (a *ServiceAccount) AppendAuthorization(head []byte) ([]byte, error) {
	if a.programme != nil {
		lines, err := askFor(a.programme, http.StatusOK)
		return append(head, lines...), err
	}
	head = append(head, a.lines...)
	if a.token != nil {
		head = append(append(append(head, "Authorization: Bearer "...), a.token.Get()...), "\r\n"...)
	}
	return head, nil
}

// Authorize adds the header lines by which the account says who it is to a request.
func (a *ServiceAccount) Authorize(r *http.Request) error {
	lines, err := a.AppendAuthorization(nil)
	if err != nil || len(lines) == 0 {
		return err
	}
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(lines, "\r\n"...)))).ReadMIMEHeader()
	maps.Copy(r.Header, header)
	return err
}

// Refused has what a plugin gave asked for anew, and reports whether there is one: the server has refused it (401).
func (a *ServiceAccount) Refused() bool {
	if a.programme == nil {
		return false
	}
	_, _ = askFor(a.programme, http.StatusUnauthorized) // the next caller gets an error
	return true
}

// written answers each request with the code that its URL names, and keeps the headers that were laid around it.
type written struct{}

// RoundTrip implements http.RoundTripper.
func (written) RoundTrip(r *http.Request) (*http.Response, error) {
	code := http.StatusOK
	if r.URL.Path == refused {
		code = http.StatusUnauthorized
	}
	return &http.Response{StatusCode: code, Header: r.Header, Body: io.NopCloser(strings.NewReader("")), Request: r},
		nil
}

const refused = "/refused"

// askFor returns the header lines that a client would add to a request, which is answered with the code.
func askFor(rt http.RoundTripper, code int) ([]byte, error) {
	target := "https://server/"
	if code == http.StatusUnauthorized {
		target = "https://server" + refused
	}
	r, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	answer, err := rt.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var lines []byte
	for _, name := range slices.Sorted(maps.Keys(answer.Header)) {
		if name == "User-Agent" {
			continue
		}
		for _, value := range answer.Header[name] {
			if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				return nil, fmt.Errorf("the value of the header '%s' must not have control characters", name)
			}
			lines = append(append(append(append(lines, name...), ": "...), value...), "\r\n"...)
		}
	}
	return lines, nil
}

// maxToken is how large a token may be, in bytes.
const maxToken = 64 << 10

// WatchToken reads a bearer token from a file and keeps it up to date. The name identifies it in
// logs.
func WatchToken(w *Watcher, name, file string) (*Value[string], error) {
	return Watch(w, name, []string{file}, readToken(file))
}

// readToken reads a bearer token.
func readToken(file string) func([][]byte) (string, error) {
	return func(contents [][]byte) (string, error) {
		value := strings.TrimSpace(string(contents[0]))
		if value == "" || len(value) > maxToken ||
			strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return "", fmt.Errorf("the file '%s' must hold a token: at most %d printable ASCII characters", file,
				maxToken)
		}
		return value, nil
	}
}
