package config

import (
	"reflect"
	"strings"
	"testing"
)

const withBundles = head + "upstreams: [{name: api, endpoints: [http://127.0.0.1:9000]}]\nbundles:\n"

func TestBundles(t *testing.T) {
	rest := defaultBundle()
	for _, test := range []struct {
		setting string
		want    func(b *Bundle)
	}{
		{"{name: a, url: 'http://bundles.example.com/a.tar.gz'}",
			func(b *Bundle) { b.URL = "http://bundles.example.com/a.tar.gz" }},
		{"{name: a, url: 'oci://registry.example.com:5000/team/policies-a:v1.0', user: u, tokenFile: /etc/token, tls: {caFile: /etc/ca.crt}}", func(b *Bundle) {
			b.URL, b.User, b.TokenFile, b.TLS = "oci://registry.example.com:5000/team/policies-a:v1.0", "u",
				"/etc/token", &UpstreamTLS{CAFile: "/etc/ca.crt"}
		}},
		{"{name: a, file: /etc/a.tar.gz, maxStalenessSeconds: 600}",
			func(b *Bundle) { b.File, b.MaxStalenessSeconds = "/etc/a.tar.gz", 600 }},
		{"{name: a, url: 'https://bundles.example.com/a?v=1', tokenFile: /etc/token, tls: {caFile: /etc/ca.crt}, minDelaySeconds: 5, maxDelaySeconds: 10, " +
			"longPollingSeconds: 60, timeoutSeconds: 7, maxStalenessSeconds: 300, persistFile: /var/a.tar.gz, regoVersion: V0, maxBytes: 2048, " +
			"maxUnpackedBytes: 4096, maxFiles: 3, signing: {keyID: k, scope: write, excludeFiles: ['*.md'], keys: [{name: k, algorithm: ES256, file: /etc/k.pem, scope: read}]}}",
			func(b *Bundle) {
				*b = Bundle{
					URL: "https://bundles.example.com/a?v=1", TokenFile: "/etc/token",
					TLS: &UpstreamTLS{CAFile: "/etc/ca.crt"}, MinDelaySeconds: 5, MaxDelaySeconds: 10,
					LongPollingSeconds: 60, TimeoutSeconds: 7, MaxStalenessSeconds: 300, PersistFile: "/var/a.tar.gz",
					RegoVersion: RegoV0, MaxBytes: 2048,
					MaxUnpackedBytes: 4096, MaxFiles: 3,
					Signing: &BundleSigning{KeyID: "k", Scope: "write", ExcludeFiles: []string{"*.md"},
						Keys: []BundleKey{{"k", "ES256", "/etc/k.pem", "read"}}},
				}
			}},
	} {
		want := rest
		test.want(&want)
		want.Name = "a"
		c, problem, _ := load(t, withBundles+"- "+test.setting+"\n", Flags{})
		if problem != "" {
			t.Errorf("%s: %s", test.setting, problem)
		} else if !reflect.DeepEqual(c.Bundles, []Bundle{want}) {
			t.Errorf("%s: got %+v, want %+v", test.setting, c.Bundles, want)
		}
	}
}

func TestBundleProblems(t *testing.T) {
	const at = "gateway.yaml:5: bundles[0]"
	const u = "name: a, url: 'http://b/a'"
	for setting, want := range map[string]string{
		"{url: 'http://b/a'}":                                   ".name: Required value",
		"{name: A, url: 'http://b/a'}":                          ".name: must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not 'A'",
		"{name: a}":                                             ": must have exactly one of `url` and `file`",
		"{" + u + ", file: a}":                                  ": must have exactly one of `url` and `file`",
		"{name: a, url: 'ftp://b/a'}":                           ".url: must be a URL such as 'https://bundles.example.com/payments.tar.gz', without a user and a fragment",
		"{name: a, url: 'http://u:p@b/a'}":                      ".url: must be a URL such as 'https://bundles.example.com/payments.tar.gz', without a user and a fragment",
		"{" + u + ", tls: {}}":                                  ".tls: must not be set unless `bundles[0].url` has the scheme 'https' or 'oci'",
		"{name: a, url: 'https://b/a', tls: {keyFile: k}}":      ".tls.certFile: Required value: must name the certificate of `bundles[0].tls.keyFile`",
		"{name: a, file: a, tokenFile: t}":                      ".tokenFile: must not be set where `bundles[0].file` is",
		"{name: a, file: a, persistFile: t}":                    ".persistFile: must not be set where `bundles[0].file` is",
		"{name: a, url: 'oci://b/a'}":                           ".url: must be a place in a registry such as 'oci://registry.example.com/team/policies:v1', with a tag or a digest",
		"{name: a, url: 'oci://b/A:v1'}":                        ".url: must be a place in a registry such as 'oci://registry.example.com/team/policies:v1', with a tag or a digest",
		"{name: a, url: 'oci://b/a:v1?x=y'}":                    ".url: must be a place in a registry such as 'oci://registry.example.com/team/policies:v1', with a tag or a digest",
		"{name: a, url: 'oci+http://b/a:v1', tls: {}}":          ".tls: must not be set unless `bundles[0].url` has the scheme 'https' or 'oci'",
		"{name: a, url: 'oci://b/a:v1', user: u}":               ".user: must not be set unless `bundles[0].url` is a place in a registry, and `bundles[0].tokenFile` holds the password",
		"{" + u + ", user: u, tokenFile: t}":                    ".user: must not be set unless `bundles[0].url` is a place in a registry, and `bundles[0].tokenFile` holds the password",
		"{name: a, url: 'oci://b/a:v1', longPollingSeconds: 1}": ".longPollingSeconds: must not be set for a registry, which answers at once",
		"{" + u + ", minDelaySeconds: 0}":                       ".minDelaySeconds: must be between 1 and 86400, inclusive, not 0",
		"{" + u + ", maxDelaySeconds: 59}":                      ".maxDelaySeconds: must be greater than or equal to `bundles[0].minDelaySeconds`, which is 60",
		"{" + u + ", maxStalenessSeconds: 120}":                 ".maxStalenessSeconds: must be greater than 120, after which the server is asked again",
		"{" + u + ", regoVersion: V2}":                          ".regoVersion: must be 'V0' or 'V1', not 'V2'",
		"{" + u + ", maxFiles: 0}":                              ".maxFiles: must be between 1 and 1048576, inclusive, not 0",
		"{" + u + ", signing: {}}":                              ".signing.keys: Required value: must have at least one item",
		"{" + u +
			", signing: {keyID: k, keys: [{name: j, algorithm: RS256, file: f}]}}": ".signing.keyID: must be the name of one of `bundles[0].signing.keys`, not 'k'",
		"{" + u + ", signing: {keys: [{name: j, algorithm: none, file: f}]}}": ".signing.keys[0].algorithm: must be 'ES256', 'ES384', 'ES512', 'HS256', 'HS384', 'HS512', " +
			"'PS256', 'PS384', 'PS512', 'RS256', 'RS384' or 'RS512', not 'none'",
		"{" + u + ", signing: {keys: [{name: j, algorithm: RS256}]}}": ".signing.keys[0].file: Required value",
	} {
		_, problem, _ := load(t, withBundles+"- "+setting+"\n", Flags{})
		if problem != at+want {
			t.Errorf("%s: got\n%s\nwant\n%s", setting, problem, at+want)
		}
	}
	_, problem, _ := load(t, withBundles+"- {name: a, url: 'http://b/a', persistFile: p}\n- {name: a, url: 'http://b/b', persistFile: ./p}\n", Flags{})
	for _, want := range []string{
		"gateway.yaml:6: bundles[1].name: must be unique; `bundles[0]` is 'a' too",
		"gateway.yaml:6: bundles[1].persistFile: must be unique; `bundles[0]` has it too",
	} {
		if !strings.Contains(problem, want) {
			t.Errorf("got\n%s\nwant\n%s", problem, want)
		}
	}
}
