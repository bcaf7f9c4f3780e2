package config

import (
	"path/filepath"
	"reflect"
	"testing"
)

func TestTLS(t *testing.T) {
	const content = head + `
tls: {certFile: tls.crt, keyFile: /etc/tls/tls.key, clientCAFile: ca.crt}
admin: {listen: '127.0.0.1:0', tls: {certFile: a, keyFile: b, minVersion: VersionTLS13}, tokenFile: token, profiling: true}
upstreams:
- name: a
  endpoints: [https://a]
  tls: {caFile: ca.crt, certFile: /etc/own.crt, keyFile: own.key, serverName: a.internal}
- {name: b, endpoints: [https://b], tls: {insecureSkipTLSVerify: true}}
routes: [{upstream: a}]
`
	c, problem, dir := load(t, content, Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, one := range []struct{ got, want any }{
		{c.TLS, &ListenerTLS{CertFile: in("tls.crt"), KeyFile: "/etc/tls/tls.key", ClientCAFile: in("ca.crt"),
			ClientCertificates: RequestCertificates, MinVersion: VersionTLS12}},
		{c.Admin.TLS, &ListenerTLS{CertFile: in("a"), KeyFile: in("b"), ClientCertificates: IgnoreCertificates,
			MinVersion: VersionTLS13}},
		{c.Admin.TokenFile, in("token")},
		{c.Admin.Profiling, true},
		{c.Upstreams[0].TLS, &UpstreamTLS{CAFile: in("ca.crt"), CertFile: "/etc/own.crt", KeyFile: in("own.key"),
			ServerName: "a.internal"}},
		{c.Upstreams[1].TLS, &UpstreamTLS{InsecureSkipTLSVerify: true}},
	} {
		if !reflect.DeepEqual(one.got, one.want) {
			t.Errorf("got %+v, want %+v", one.got, one.want)
		}
	}
}

func TestTLSProblems(t *testing.T) {
	const upstream = "upstreams: [{name: a, endpoints: [http://a]}]\n"
	const kube = "upstreams:\n- name: a\n  kubeconfig: none\n"
	for _, test := range []struct{ name, content, want string }{
		{"no files", "tls: {}\n" + upstream, "gateway.yaml:3: tls.certFile: Required value\ngateway.yaml:3: tls.keyFile: Required value"},
		{"no key", "admin: {tls: {certFile: a}}\n" + upstream, "gateway.yaml:3: admin.tls.keyFile: Required value"},
		{"no authorities", "tls: {certFile: a, keyFile: b, clientCertificates: Require}\n" + upstream, "gateway.yaml:3: tls.clientCAFile: Required value: must name the authorities where `tls.clientCertificates` is 'Require'"},
		{"authorities for nothing", "tls: {certFile: a, keyFile: b, clientCAFile: c, clientCertificates: Ignore}\n" + upstream, "gateway.yaml:3: tls.clientCAFile: must not be set where `tls.clientCertificates` is 'Ignore'"},
		{"values", "tls: {certFile: a, keyFile: b, clientCertificates: request, minVersion: TLS11}\n" + upstream, "" +
			"gateway.yaml:3: tls.clientCertificates: must be 'Ignore', 'Request' or 'Require', not 'request'\n" +
			"gateway.yaml:3: tls.minVersion: must be 'VersionTLS12' or 'VersionTLS13', not 'TLS11'"},
		{"a field that there is not", "tls: {certFile: a, keyfile: b}\n" + upstream,
			"gateway.yaml:3: tls.keyfile: unknown field; did you mean `keyFile`?"},
		{"an upstream without TLS", "upstreams: [{name: a, endpoints: [http://a], tls: {caFile: a}}]\n", "gateway.yaml:3: upstreams[0].tls: must not be set where the endpoints have the scheme 'http'"},
		{"half a pair", "upstreams:\n- {name: a, endpoints: [https://a], tls: {certFile: a}}\n- {name: b, endpoints: [https://b], tls: {keyFile: a}}\nroutes: [{upstream: a}]\n", "" +
			"gateway.yaml:4: upstreams[0].tls.keyFile: Required value: must name the key of `upstreams[0].tls.certFile`\n" +
			"gateway.yaml:5: upstreams[1].tls.certFile: Required value: must name the certificate of `upstreams[1].tls.keyFile`"},
		{"both ways to know a server", "upstreams: [{name: a, endpoints: [https://a], tls: {caFile: a, insecureSkipTLSVerify: true}}]\n", "gateway.yaml:3: upstreams[0].tls.caFile: must not be set where `upstreams[0].tls.insecureSkipTLSVerify` is true"},
		{"a server's name", "upstreams: [{name: a, endpoints: [https://a], tls: {serverName: 'a:443'}}]\n", "gateway.yaml:3: upstreams[0].tls.serverName: must be a host name in lower case without a port, not 'a:443'"},
		{"a context of nothing", "upstreams: [{name: a, endpoints: [https://a], kubeconfigContext: a}]\n", "gateway.yaml:3: upstreams[0].kubeconfigContext: must not be set without `upstreams[0].kubeconfig`"},
		{"said twice", kube + "  endpoints: [https://a]\n  tls: {}\n  tokenFile: a\n", "" +
			"gateway.yaml:6: upstreams[0].endpoints: must not be set where `upstreams[0].kubeconfig` is, which says it\n" +
			"gateway.yaml:7: upstreams[0].tls: must not be set where `upstreams[0].kubeconfig` is, which says it\n" +
			"gateway.yaml:8: upstreams[0].tokenFile: must not be set where `upstreams[0].kubeconfig` is, which says it"},
		{"no kubeconfig", kube, "gateway.yaml:5: upstreams[0].kubeconfig: may not be read: no such file or directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, got, _ := load(t, head+test.content, Flags{}); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Two listeners on ports that are chosen for them are no conflict.
func TestChosenPorts(t *testing.T) {
	if _, problem, _ := load(t, "",
		Flags{Upstream: "http://a", Listen: "127.0.0.1:0", Admin: "127.0.0.1:0"}); problem != "" {
		t.Error(problem)
	}
}
