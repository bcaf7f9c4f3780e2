package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const head = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"

func load(t *testing.T, content string, flags Flags) (*Configuration, string, string) {
	t.Helper()
	dir := t.TempDir()
	file := ""
	if content != "" {
		file = filepath.Join(dir, "gateway.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(file, flags)
	if err == nil {
		if file != "" {
			takes(t, judge(t), file)
		}
		return c, "", dir
	}
	return nil, strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), dir
}

func TestDefaults(t *testing.T) {
	c, problem, _ := load(t, "", Flags{Upstream: "http://127.0.0.1:9000"})
	if problem != "" {
		t.Fatal(problem)
	}
	want := Default()
	want.Limits.derive()
	u := defaultUpstream()
	u.Name, u.Endpoints = "default", []string{"http://127.0.0.1:9000"}
	u.assumeDialect()
	want.Upstreams = []UpstreamSpec{u}
	want.Routes = []Route{{PathPrefix: "/", Upstream: "default"}}
	want.hash, want.stated = c.hash, c.stated // TestHash, TestReload
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
	if c.Listen != "127.0.0.1:8080" || c.Limits.BodyBytes != 3<<20 || u.Dialect != Plain || !u.AssumesDialect() {
		t.Errorf("the documented defaults are different: %+v", c)
	}
}

func TestWholeFile(t *testing.T) {
	const content = head + `
listen: ":8443"
admin: {listen: "[::1]:9090"}
upstreams:
- name: orders
  endpoints: [http://10.0.0.1:9000, http://10.0.0.2:9000]
  dialect: Plain
  responseTimeoutSeconds: 5
  maxConnections: 64
  tokenFile: token
- name: cluster
  endpoints: [https://kubernetes.default.svc]
routes:
- {host: orders.example.com, pathPrefix: /v2, upstream: orders}
- {upstream: cluster}
policies: [policies, /etc/gateway/more.yaml]
limits: {bodyBytes: 1048576, jsonDepth: 32}
timeouts: {headerDeadlineSeconds: 5}
drainSeconds: 0
underscoreHeaders: Drop
trustedProxies: [10.0.0.0/8, "::1"]
unregisteredResources: {protectStatus: true, checkNames: true}
`
	c, problem, dir := load(t, content, Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	want := Default()
	want.Limits.derive()
	want.Listen, want.Admin.Listen = ":8443", "[::1]:9090"
	orders, cluster := defaultUpstream(), defaultUpstream()
	orders.Name, orders.Endpoints, orders.Dialect = "orders", []string{"http://10.0.0.1:9000", "http://10.0.0.2:9000"},
		Plain
	orders.ResponseTimeoutSeconds, orders.MaxConnections = 5, 64
	orders.TokenFile = filepath.Join(dir, "token")
	cluster.Name, cluster.Endpoints = "cluster", []string{"https://kubernetes.default.svc"}
	cluster.assumeDialect()
	want.Upstreams = []UpstreamSpec{orders, cluster}
	want.Routes = []Route{{Host: "orders.example.com", PathPrefix: "/v2", Upstream: "orders"},
		{PathPrefix: "/", Upstream: "cluster"}}
	want.Policies.Paths = PolicyPaths(filepath.Join(dir, "policies"), "/etc/gateway/more.yaml")
	want.Limits.BodyBytes, want.Limits.JSONDepth = 1<<20, 32
	want.Timeouts.HeaderDeadlineSeconds = 5
	want.DrainSeconds, want.UnderscoreHeaders = 0, Drop
	want.TrustedProxies = []Prefix{{netip.MustParsePrefix("10.0.0.0/8")}, {netip.MustParsePrefix("::1/128")}}
	want.UnregisteredResources = UnregisteredResources{ProtectStatus: true, CheckNames: true}
	want.hash, want.stated = c.hash, c.stated // TestHash, TestReload
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
}

func TestFlagsOverride(t *testing.T) {
	const content = head + "listen: :1\nupstreams: [{name: a, endpoints: [http://a]}, {name: b, endpoints: [http://b]}]\nroutes: [{upstream: b}]\npolicies: [x]\n"
	c, problem, _ := load(t, content, Flags{Listen: ":2", Admin: ":3", Upstream: "http://c", Dialect: "plain",
		Policies: []string{"y", "z"}})
	if problem != "" {
		t.Fatal(problem)
	}
	want := Default()
	want.Limits.derive()
	want.Listen, want.Admin.Listen = ":2", ":3"
	u := defaultUpstream()
	u.Name, u.Endpoints, u.Dialect = "default", []string{"http://c"}, Plain
	want.Upstreams, want.Routes, want.Policies.Paths = []UpstreamSpec{u},
		[]Route{{PathPrefix: "/", Upstream: "default"}}, PolicyPaths("y", "z")
	want.hash, want.stated = c.hash, c.stated // TestHash, TestReload
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
	c, problem, _ = load(t, head+"upstreams: [{name: a, endpoints: [http://a]}]\n", Flags{Dialect: "PLAIN"})
	if problem != "" || c.Upstreams[0].Dialect != Plain { // LINT-5
		t.Errorf("got %v, %s", c, problem)
	}
}

func TestProblems(t *testing.T) {
	const upstream = "upstreams: [{name: a, endpoints: [http://a]}]\n"
	tests := []struct {
		name, content string
		flags         Flags
		want          string
	}{
		{"nothing at all", "", Flags{}, "--upstream: Required value: name the backend's URL, a file with --kubeconfig, or one with --config"},
		{"an empty file", " ", Flags{}, "gateway.yaml: must have one object, not 0"},
		{"two objects", head + "---\n" + head, Flags{}, "gateway.yaml: must have one object, not 2"},
		{"another kind", "apiVersion: admission-gateway.io/v1alpha1\nkind: Gateway\n", Flags{},
			"gateway.yaml:2: kind: must be 'GatewayConfiguration', not 'Gateway'"},
		{"another version", "apiVersion: v1\nkind: GatewayConfiguration\n", Flags{},
			"gateway.yaml:1: apiVersion: must be 'admission-gateway.io/v1alpha1', not 'v1'"},
		{"no upstream", head, Flags{}, "gateway.yaml: upstreams: Required value: name at least one backend here or with --upstream"},
		{"several upstreams without routes", head + "upstreams: [{name: a, endpoints: [http://a]}, {name: b, endpoints: [http://b]}]\n", Flags{}, "gateway.yaml: routes: Required value: must say which requests go to which of the `upstreams`"},
		{"unknown and duplicate keys", head + upstream + "lisen: :1\nlimits:\n  bodyByte: 1\n", Flags{}, "gateway.yaml:4: lisen: unknown field; did you mean `listen`?\ngateway.yaml:6: limits.bodyByte: unknown field; did you mean `bodyBytes`?"},
		{"a key of listeners", head + upstream + "hsts: {}\n", Flags{}, "gateway.yaml:4: hsts: unknown field: it belongs to one of the `listeners`, which may take the place of `listen` and `tls`"},
		{"a duplicate key", head + upstream + "listen: :1\nlisten: :1\n", Flags{},
			"gateway.yaml:5: listen: must not be set twice; it is set on line 4 already"},
		{"a wrong type in an upstream",
			head + "upstreams:\n- name: a\n  endpoints: [http://a]\n  maxConnections: many\n", Flags{},
			"gateway.yaml:6: upstreams[0].maxConnections: must be an integer, not a string"},
		{"not YAML", head + "a: [\n", Flags{},
			"gateway.yaml:4: must be valid YAML: did not find expected node content"},
		{"addresses", head + upstream + "listen: 8080\nadmin: {listen: 'x:y'}\n", Flags{},
			"gateway.yaml:4: listen: must be a string, not the number 8080"},
		{"addresses that are strings", head + upstream + "listen: '8080'\nadmin: {listen: 'x:y'}\n", Flags{}, "gateway.yaml:4: listen: must be a host and a port such as '127.0.0.1:8080', not '8080'\ngateway.yaml:5: admin.listen: must end with a port between 0 and 65535, not 'y'"},
		{"hosts of the admin listener", head + upstream +
			"admin:\n  hosts: [gateway-admin.team-a.svc, '', 'Gateway:8081']\n", Flags{},
			"gateway.yaml:5: admin.hosts[1]: must name a host\n" +
				"gateway.yaml:5: admin.hosts[2]: must be a host name in lower case without a port, not 'Gateway:8081'"},
		{"a host that is none", head + upstream + "listen: 'a b:1'\n", Flags{}, "gateway.yaml:4: listen: must begin with a host name or an IP address, not 'a b'"},
		{"one address twice", head + upstream + "admin: {listen: '127.0.0.1:8080'}\n", Flags{}, "gateway.yaml:4: admin.listen: the address '127.0.0.1:8080' must not be both the public and the admin listener's"},
		{"upstreams", head + "upstreams:\n- {}\n- name: A_b\n  endpoints: [ftp://a, http://u:p@a, http://a/x, 'http://a:0', http://a]\n- name: c\n  dialect: plain\n  endpoints: [http://a, https://a, http://a]\n- {name: c, endpoints: [http://c]}\nroutes: [{upstream: c}]\n", Flags{}, "" +
			"gateway.yaml:4: upstreams[0].name: Required value\n" +
			"gateway.yaml:4: upstreams[0].endpoints: Required value: must have at least one URL\n" +
			"gateway.yaml:5: upstreams[1].name: must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not 'A_b'\n" +
			"gateway.yaml:6: upstreams[1].endpoints[0]: must be a URL such as 'http://127.0.0.1:9000', not 'ftp://a'\n" +
			"gateway.yaml:6: upstreams[1].endpoints[1]: must not hold a user name or password\n" +
			"gateway.yaml:6: upstreams[1].endpoints[3]: must have a port between 1 and 65535, not '0'\n" +
			"gateway.yaml:9: upstreams[2].endpoints[1]: must have the scheme 'http' of `upstreams[2].endpoints[0]`\n" +
			"gateway.yaml:9: upstreams[2].endpoints[2]: must be unique; 'http://a' is listed twice\n" +
			"gateway.yaml:8: upstreams[2].dialect: must be 'Kubernetes' or 'Plain', not 'plain'\n" +
			"gateway.yaml:10: upstreams[3].name: must be unique; `upstreams[2]` is 'c' too"},
		{"routes", head + upstream + "routes:\n- {pathPrefix: v2}\n- {upstream: b, pathPrefix: /v2/}\n- {upstream: a, pathPrefix: '/a//b', host: Example.com}\n- {upstream: a, pathPrefix: '/a%2Fb', host: 'example.com:80'}\n- {upstream: a}\n- {upstream: a, pathPrefix: /}\n", Flags{}, "" +
			"gateway.yaml:5: routes[0].pathPrefix: must begin with '/', not 'v2'\n" +
			"gateway.yaml:5: routes[0].upstream: Required value\n" +
			"gateway.yaml:6: routes[1].pathPrefix: must not end with '/': a prefix counts whole segments, so '/v2' is all of '/v2/…'\n" +
			"gateway.yaml:6: routes[1].upstream: must be the name of one of the `upstreams`, not 'b'\n" +
			"gateway.yaml:7: routes[2].host: must be a host name in lower case without a port, not 'Example.com'\n" +
			"gateway.yaml:7: routes[2].pathPrefix: must not have empty segments, '.' or '..'\n" +
			"gateway.yaml:8: routes[3].host: must be a host name in lower case without a port, not 'example.com:80'\n" +
			"gateway.yaml:8: routes[3].pathPrefix: must have only letters, digits and '-', '.', '_', '~' in its segments\n" +
			"gateway.yaml:10: routes[5]: must not have the host and path prefix of `routes[4]`"},
		{"numbers", head + upstream + "limits: {bodyBytes: 0, bodiesInFlightBytes: 1, headerBytes: 1, jsonDepth: 0}\ntimeouts: {idleTimeoutSeconds: 0}\ndrainSeconds: -1\n", Flags{}, "" +
			"gateway.yaml:4: limits.bodyBytes: must be between 1 and 1073741824, inclusive, not 0\n" +
			"gateway.yaml:4: limits.headerBytes: must be between 1024 and 1048576, inclusive, not 1\n" +
			"gateway.yaml:4: limits.jsonDepth: must be between 1 and 10000, inclusive, not 0\n" +
			"gateway.yaml:5: timeouts.idleTimeoutSeconds: must be between 1 and 86400, inclusive, not 0\n" +
			"gateway.yaml:6: drainSeconds: must be between 0 and 86400, inclusive, not -1"},
		{"a budget below one body", head + upstream + "limits: {bodiesInFlightBytes: 1000}\n", Flags{}, "gateway.yaml:4: limits.bodiesInFlightBytes: must be greater than or equal to `limits.bodyBytes`, which is 3145728"},
		{"the rest", head + upstream + "underscoreHeaders: pass\ntrustedProxies: [10.0.0.1/8]\npolicies: ['']\n", Flags{}, "gateway.yaml:5: trustedProxies[0]: must be a block without bits beyond its length: '10.0.0.0/8', not '10.0.0.1/8'"},
		{"the rest, decodable", head + upstream + "underscoreHeaders: pass\npolicies: ['']\n", Flags{}, "gateway.yaml:5: policies[0]: must name a file or directory\ngateway.yaml:4: underscoreHeaders: must be 'Refuse', 'Drop' or 'Pass', not 'pass'"},
		{"a header of proxies that is none", head + upstream + "forwardedHeader: forwarded\ntrustedProxies: [10.0.0.0/8]\n", Flags{}, "gateway.yaml:4: forwardedHeader: must be 'XForwardedFor' or 'Forwarded', not 'forwarded'"},
		{"a header of no proxies", head + upstream + "forwardedHeader: Forwarded\n", Flags{}, "gateway.yaml:4: forwardedHeader: must not be 'Forwarded' without `trustedProxies`: no peer would be believed"},
		{"a proxy that is none", head + upstream + "trustedProxies: [proxy]\n", Flags{}, "gateway.yaml:4: trustedProxies[0]: must be an address or a CIDR block such as '10.0.0.0/8', not 'proxy'"},
		{"flags", "", Flags{Listen: "x", Admin: ":70000", Upstream: "127.0.0.1:9000", Dialect: "k8s",
			Policies: []string{""}}, "" +
			"--listen: must be a host and a port such as '127.0.0.1:8080', not 'x'\n" +
			"--admin: must end with a port between 0 and 65535, not '70000'\n" +
			"--upstream: must be a URL such as 'http://127.0.0.1:9000', not '127.0.0.1:9000'\n" +
			"--dialect: must be 'Kubernetes' or 'Plain', not 'k8s'\n" +
			"--policies: must name a file or directory"},
		{"a dialect for nothing", head, Flags{Dialect: "plain"}, "--dialect: must not be given where the file has several `upstreams` or none, each with a dialect of its own, unless --upstream is given too"},
		{"file and flags", head + "listen: x\n", Flags{Upstream: "x"}, "gateway.yaml:3: listen: must be a host and a port such as '127.0.0.1:8080', not 'x'\n--upstream: must be a URL such as 'http://127.0.0.1:9000', not 'x'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, got, _ := load(t, test.content, test.flags); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), Flags{})
	if err == nil || !strings.HasSuffix(err.Error(), "none.yaml: may not be read: no such file or directory") {
		t.Errorf("got %v", err)
	}
}

func TestAllowedHosts(t *testing.T) {
	for _, tt := range []struct {
		listen string
		want   []string
	}{
		{"admin.internal:8081", []string{"a", "admin.internal"}},
		{"127.0.0.1:8081", []string{"a", "127.0.0.1"}},
		{":8081", []string{"a"}},
	} {
		a := Admin{Listen: tt.listen, Hosts: []string{"a"}}
		if got := a.AllowedHosts(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.listen, got, tt.want)
		}
	}
}
