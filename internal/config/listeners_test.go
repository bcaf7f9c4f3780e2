package config

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
)

func TestListeners(t *testing.T) {
	const content = head + `
listen: ":8080"
listeners:
- {name: to-https, listen: ":80", redirectToHTTPS: {}}
- name: https
  listen: ":443"
  hosts: [shop.example.com, "*.shop.example.com", 10.0.0.1]
  tls: {certFile: tls.crt, keyFile: tls.key, certificates: [{certFile: b.crt, keyFile: b.key}], clientCAFile: ca.crt}
  hsts: {preload: true, includeSubDomains: true}
  proxyProtocol: {from: [10.0.0.0/8, "::1"]}
upstreams: [{name: a, endpoints: [http://a]}]
identity: {authenticators: [{clientCertificate: {}}]}
`
	c, problem, dir := load(t, content, Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	want := []Listener{
		{Name: "listen", Listen: ":8080"},
		{Name: "to-https", Listen: ":80", RedirectToHTTPS: &RedirectToHTTPS{Code: 308, Port: 443}},
		{
			Name: "https", Listen: ":443", Hosts: []string{"shop.example.com", "*.shop.example.com", "10.0.0.1"},
			TLS: &ListenerTLS{
				CertFile: in("tls.crt"), KeyFile: in("tls.key"),
				Certificates: []CertificateFiles{{in("b.crt"), in("b.key")}},
				ClientCAFile: in("ca.crt"), ClientCertificates: RequestCertificates, MinVersion: VersionTLS12,
			},
			HSTS: &HSTS{MaxAgeSeconds: 31536000, IncludeSubDomains: true, Preload: true},
			ProxyProtocol: &ProxyProtocol{From: []Prefix{{netip.MustParsePrefix("10.0.0.0/8")},
				{netip.MustParsePrefix("::1/128")}}},
		},
	}
	if got := c.AllListeners(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Listeners[1].HSTS.Value(); got != "max-age=31536000; includeSubDomains; preload" {
		t.Errorf("got %s", got)
	}
	c.Listen = ""
	if got := c.AllListeners(); !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("got %+v, want %+v", got, want[1:])
	}
}

func TestListenerProblems(t *testing.T) {
	const upstream = "upstreams: [{name: a, endpoints: [http://a]}]\n"
	const pair = "tls: {certFile: a, keyFile: b}"
	for _, test := range []struct{ name, content, want string }{
		{"nothing", "listeners: [{}]\n", "gateway.yaml:3: listeners[0].name: Required value\ngateway.yaml:3: listeners[0].listen: must be a host and a port such as '127.0.0.1:8080', not ''"},
		{"no listener at all", "listen: ''\n", "gateway.yaml:3: listen: must be a host and a port such as '127.0.0.1:8080', not ''"},
		{"TLS of none", "listen: ''\n" + pair + "\nlisteners: [{name: a, listen: ':1'}]\n",
			"gateway.yaml:4: tls: must not be set where `listen` is empty"},
		{"names", "listeners: [{name: A, listen: ':1'}, {name: listen, listen: ':2'}, {name: b, listen: ':3'}, {name: b, listen: ':4'}]\n", "" +
			"gateway.yaml:3: listeners[0].name: must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not 'A'\n" +
			"gateway.yaml:3: listeners[1].name: must not be 'listen', which is the listener of `listen` and `tls`\n" +
			"gateway.yaml:3: listeners[3].name: must be unique; another listener is 'b' too"},
		{"hosts", "listeners: [{name: a, listen: ':1', hosts: ['', '*', '*.', 'A.example', 'a.example:80', 'a.*.example', '*.10.0.0.1', '*.a.example']}]\n", "" +
			"gateway.yaml:3: listeners[0].hosts[0]: must name a host\n" +
			"gateway.yaml:3: listeners[0].hosts[1]: must be a host name in lower case without a port, or '*.' before the end of names, not '*'\n" +
			"gateway.yaml:3: listeners[0].hosts[2]: must name a host\n" +
			"gateway.yaml:3: listeners[0].hosts[3]: must be a host name in lower case without a port, or '*.' before the end of names, not 'A.example'\n" +
			"gateway.yaml:3: listeners[0].hosts[4]: must be a host name in lower case without a port, or '*.' before the end of names, not 'a.example:80'\n" +
			"gateway.yaml:3: listeners[0].hosts[5]: must be a host name in lower case without a port, or '*.' before the end of names, not 'a.*.example'\n" +
			"gateway.yaml:3: listeners[0].hosts[6]: must name a host"},
		{"a redirect", "listeners: [{name: a, listen: ':1', " + pair + ", redirectToHTTPS: {code: 302, port: 0}}]\n",
			"" +
				"gateway.yaml:3: listeners[0].redirectToHTTPS: must not be set where `listeners[0].tls` is\n" +
				"gateway.yaml:3: listeners[0].redirectToHTTPS.code: must be 301 or 308, not 302\n" +
				"gateway.yaml:3: listeners[0].redirectToHTTPS.port: must be between 1 and 65535, inclusive, not 0"},
		{"HSTS", "listeners: [{name: a, listen: ':1', hsts: {maxAgeSeconds: -1, preload: true}}]\n", "" +
			"gateway.yaml:3: listeners[0].hsts: must not be set without `listeners[0].tls`: browsers do not believe it by plain HTTP\n" +
			"gateway.yaml:3: listeners[0].hsts.maxAgeSeconds: must be between 0 and 2147483647, inclusive, not -1\n" +
			"gateway.yaml:3: listeners[0].hsts.preload: must not be true unless `listeners[0].hsts.includeSubDomains` is, and `listeners[0].hsts.maxAgeSeconds` is at least 31536000: the list of browsers asks for both"},
		{"the PROXY protocol of nobody", "listeners: [{name: a, listen: ':1', proxyProtocol: {}}]\n", "gateway.yaml:3: listeners[0].proxyProtocol.from: Required value: must name the peers that begin connections with the PROXY protocol"},
		{"one address, TLS and plain", "listen: ':1'\nlisteners: [{name: a, listen: ':1', hosts: [a.example], " + pair + "}]\n", "gateway.yaml:4: listeners[0].tls: must be set, or not, as in the listener 'listen', which has the same address"},
		{"one address, introduced and not", "listen: ':1'\nlisteners: [{name: a, listen: ':1', hosts: [a.example], proxyProtocol: {from: [10.0.0.1]}}]\n", "gateway.yaml:4: listeners[0].proxyProtocol: must be the same as in the listener 'listen', which has the same address"},
		{"half-closed connections", "listeners: [{name: a, listen: ':1', halfClose: serve}]\n", "gateway.yaml:3: listeners[0].halfClose: must be 'Abandon' or 'Serve', not 'serve'"},
		{"one address, half-closed connections served and not", "listeners: [{name: a, listen: ':1', hosts: [a.example], halfClose: Serve}, {name: b, listen: ':1', halfClose: Abandon}, {name: c, listen: ':1', hosts: [c.example]}]\n", "" +
			"gateway.yaml:3: listeners[1].halfClose: must be the same as in the listener 'a', which has the same address\n" +
			"gateway.yaml:3: listeners[2].halfClose: must be the same as in the listener 'a', which has the same address"},
		{"one address, any host twice", "listen: ':1'\nlisteners: [{name: a, listen: ':1'}]\n", "gateway.yaml:4: listeners[0].hosts: Required value: the listener 'listen' takes all other requests to the address"},
		{"one address, a host twice", "listeners: [{name: a, listen: ':1', hosts: [a.example, '*.example']}, {name: b, listen: ':1', hosts: ['*.example']}]\n", "gateway.yaml:3: listeners[1].hosts[0]: must not be '*.example', which the listener 'a' takes on the same address"},
		{"the admin listener's address", "listeners: [{name: a, listen: '127.0.0.1:8081'}]\n", "gateway.yaml:1: admin.listen: the address '127.0.0.1:8081' must not be both the public and the admin listener's"},
		{"certificates of nobody", "listeners: [{name: a, listen: ':1', " + pair + "}]\nidentity: {authenticators: [{clientCertificate: {}}]}\n", "gateway.yaml:4: identity.authenticators[0].clientCertificate: must not be set without `tls.clientCAFile`, which names the authorities"},
	} {
		if _, problem, _ := load(t, head+test.content+upstream, Flags{}); problem != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, problem, test.want)
		}
	}
}
