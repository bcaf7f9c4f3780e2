package format

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var standardNames = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer",
	"relative-json-pointer", "time",
	"uri", "uri-reference", "uuid",
}

// TestStandard: formats of documents are as RFCs have them, where Kubernetes reads them in its own way too.
func TestStandard(t *testing.T) {
	for _, test := range []struct {
		name         string
		right, wrong []string
	}{
		{
			"email",
			[]string{"ann@example.com", "a.b+c@ex-ample.org", "o'hara/x@example", "~@a.b1", `"a b"@example.com`,
				"a@[192.0.2.1]", "a@[IPv6:2001:db8::1]"},
			[]string{"", "@example.com", "ann", "ann@", "ann@example.com~x", "ann@ex_ample.com", "a..b@c.d", ".a@b.c",
				"a.@b.c", "a@-b.c", "a@b-.c", "a@b..c", "Ann <ann@example.com>",
				"josé@example.com", "ann@münchen.de", "a@[300.0.0.1]", "a@[IPv6:x]", "a@[192.0.2.1", "a\n@b.c",
				`"a"b"@c.d`, "\"a\n\"@b.c", strings.Repeat("a", 65) + "@b.c", "a@" + strings.Repeat("b.", 130) + "c"},
		},
		{
			"hostname",
			[]string{"example.com", "example.com.", "localhost", "a.b1", "1.2.3.4", "a--b.c", "xn--mnchen-3ya.de",
				strings.Repeat("a", 63) + ".b"},
			[]string{"", ".", "a..b", "-a.b", "a-.b", "a.b-", "a_b.c", "a~b.com", "ü.com", "a b",
				strings.Repeat("a", 64) + ".b", strings.Repeat("a.", 128)},
		},
		{
			"date-time",
			[]string{"2024-02-29T08:30:00Z", "2024-01-01t08:30:00.123z", "2024-01-01T08:30:00+23:59",
				"1998-12-31T23:59:60Z", "1998-12-31T15:59:60.9-08:00"},
			[]string{"", "2023-02-29T08:30:00Z", "2024-01-01 08:30:00Z", "2024-01-01T08:30:00", "2024-01-01T24:00:00Z",
				"2024-01-01T08:30:00+24:00", "2024-01-01T08:30:00+0100", "2024-01-01T08:30:60Z",
				"2024-01-01T08:30:00.Z", "2024-01-01T8:30:00ZZ"},
		},
		{"date", []string{"2024-02-29", "0001-01-31"}, []string{"", "2023-02-29", "2024-1-1", "2024-01-01T00:00:00Z"}},
		{"ipv4", []string{"192.0.2.1"}, []string{"", "192.0.2", "192.0.2.01", "192.0.2.256", "::ffff:192.0.2.1"}},
		{"ipv6", []string{"::", "2001:db8::1", "::ffff:192.0.2.1"},
			[]string{"", "192.0.2.1", "fe80::1%eth0", "1::2::3"}},
		{"uri", []string{"https://example.com/a?b#c", "urn:isbn:1", "mailto:a@b.c", "http://[::1]:80/"},
			[]string{"", "/a", "//a/b", "a", "http://a b/", "http://[x]/", "https://a/%zz"}},
		{"uuid", []string{"5f0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f21", "5F0C6A1E-8A0B-4C53-9A57-3D1C0E6B7F21"},
			[]string{"", "5f0c6a1e8a0b4c539a573d1c0e6b7f21", "5f0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f2g",
				"{5f0c6a1e-8a0b-4c53-9a57-3d1c0e6b7f21}"}},
		{"time", []string{"08:30:00Z", "08:30:00.5z", "23:59:60Z", "15:59:60-08:00", "00:00:00+23:59"},
			[]string{"", "08:30:00", "08:30Z", "8:30:00Z", "24:00:00Z", "08:30:60Z", "08:30:00 Z", "08:30:00+0100"}},
		{"duration", []string{"P1Y2M3DT4H5M6S", "P1D", "PT1H", "P3W", "P1Y2D", "PT1H1S", "P0D"},
			[]string{"", "P", "PT", "P1", "1D", "P1DT", "P1S", "PT1D", "P1D2Y", "P1W2D", "PT1MT1S", "PT0.5S", "P-1D",
				"1h30m", "p1d"}},
		{
			"uri-reference",
			[]string{"", "a", "/a/b", "//example.com/x", "?q=1", "#top", "../a", "a/b:c",
				"https://ann@example.com:80/a%20b?c/d?e#f", "http://[v1.x:y]/", "http://%41.example/",
				"http://example.com:/"},
			[]string{"1:a", "a b", "a\\b", "http://[1::2", "http://[1::2]x/", "http://a:b/", "http://a@b@c/", "a#b#c",
				"ü", "a%4", "a%zz", "{a}", "a\"b", "<a>", "a|b", "a^b", "a`b", "http://[v.x]/", "http://[1.2.3.4]/"},
		},
		{"iri", []string{"http://münchen.example/straße?größe=ü#ä", "urn:日本"},
			[]string{"", "/straße", "http://münchen.example/a b", "http://a/\ufdd0", "http://a/\U0001ffff",
				"http://a/\ue000"}},
		{"iri-reference", []string{"", "straße", "/日本", "?\ue000"}, []string{"\ue000", "a b", "#\U000f0000"}},
		{"uri-template", []string{"", "/users{/id}", "{+path:3,x*}/{?q,r}", "https://a/%20{a.b}", "/ü{var}"},
			[]string{"{", "}", "a{b", "a}b", "{}", "{a,}", "{a b}", "{a:0}", "{a:12345}", "a b", "%2", "{{a}}",
				"{a..b}"}},
		{"json-pointer", []string{"", "/", "/a/0", "/a~1b~0c", "//"}, []string{"a", "#/a", "/a~", "/a~2"}},
		{"relative-json-pointer", []string{"0", "1/a", "0#", "10/b~1"},
			[]string{"", "/a", "01/a", "-1", "+1/a", "1#a", "1a", "0##"}},
		{
			"idn-hostname",
			[]string{"example.com", "münchen.de", "xn--mnchen-3ya.de", "실례.테스트", "l·l", "א׳ב", "カ・タ", "例え。テスト"},
			[]string{"", "a b", "-ü", "ü-", "xn--x", "ü..de", "a·l", "a׳b", "a・b", "♥.example", "〮실례.테스트", "실〮례.테스트",
				"٠۰", "a_ü", strings.Repeat("ü", 64)},
		},
		{"idn-email", []string{"ann@example.com", "josé@münchen.de", "실례@실례.테스트", "ü@[192.0.2.1]"},
			[]string{"", "ü", "@ü", "ü@", "ü ü@a.b", "ü@a b", "ü@♥"}},
	} {
		f := Standard(test.name)
		for _, s := range test.right {
			if !f.Matches(s) {
				t.Errorf("%s: %q must be right", test.name, s)
			}
		}
		for _, s := range test.wrong {
			if f.Matches(s) {
				t.Errorf("%s: %q must be wrong", test.name, s)
			}
		}
	}
	for _, name := range []string{"", "mac", "moon"} {
		if Standard(name) != nil {
			t.Errorf("%s is no format that is checked", name)
		}
	}
}

// FuzzStandard compares the formats with a library of JSON Schema, but for what that one has wrong.
func FuzzStandard(f *testing.F) {
	for _, s := range formatSamples {
		f.Add(s)
	}
	for _, s := range []string{"a@[IPv6:::1]", "1998-12-31T23:59:60Z", "2024-01-01T15:59:60-08:00",
		"2024-01-01T00:29:60+00:30", "http://[::1%25x]/", "a://::", "a.b1.", "~@a"} {
		f.Add(s)
	}
	theirs := map[string]*jsonschema.Schema{}
	for _, name := range standardNames {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		if err := c.AddResource("schema", map[string]any{"format": name}); err != nil {
			f.Fatal(err)
		}
		theirs[name] = c.MustCompile("schema")
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range standardNames {
			got, want := Standard(name).Matches(s), theirs[name].Validate(s) == nil
			if got != want && !(want && isLax(name, s)) {
				t.Errorf("%s: %q: %t, the library says %t", name, s, got, want)
			}
		}
	})
}

// isLax reports whether the library may take a text that is wrong: an email without a local part or with any character
// in a quoted one, numbers with a sign in times and addresses, units of durations without one, characters that URIs do
// not have, and characters of IRIs in URIs.
func isLax(name, s string) bool {
	switch name {
	case "email":
		return s[0] == '@' || s[0] == '"'
	case "date-time", "time", "ipv4":
		return strings.ContainsAny(s, "+-")
	case "duration":
		return strings.HasSuffix(s, "T")
	case "uri", "uri-reference", "iri", "iri-reference":
		return true
	}
	return false
}
