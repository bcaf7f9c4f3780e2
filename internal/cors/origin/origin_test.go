package origin

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestParse: only what a browser writes is an origin.
func TestParse(t *testing.T) {
	for text, want := range map[string]Origin{
		"https://shop.example.com":       {"https", "shop.example.com", 0},
		"http://localhost:8080":          {"http", "localhost", 8080},
		"https://example.com.":           {"https", "example.com.", 0},
		"https://xn--bcher-kva.example":  {"https", "xn--bcher-kva.example", 0},
		"https://a_b.example:80":         {"https", "a_b.example", 80},
		"http://127.0.0.1":               {"http", "127.0.0.1", 0},
		"http://[::1]:3000":              {"http", "[::1]", 3000},
		"http://[::ffff:c000:201]":       {"http", "[::ffff:c000:201]", 0},
		"chrome-extension://abcdefghijk": {"chrome-extension", "abcdefghijk", 0},
		"capacitor://localhost":          {"capacitor", "localhost", 0},
	} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%s: read %+v, %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "null", "*", "https", "https:", "https://", "//a.example", "a.example", "https:a.example",
		"https:/a.example", "https:///a.example",
		"HTTPS://a.example", "https://A.example", "1https://a", "ht tps://a", "https://a.example/",
		"https://a.example?", "https://a.example#",
		"https://u@a.example", "https://u:p@a.example", "https://a.example:", "https://a.example:443",
		"http://a.example:80", "https://a.example:0443",
		"https://a.example:0", "https://a.example:65536", "https://a.example:+1", "https://a.example:1:2",
		"https://.example", "https://a..example",
		"https://a.example..", "https://.", "https://*.example", "https://a%2e.example", "https://bücher.example",
		"https://a.example\t", " https://a.example",
		"https://1.2.3", "https://1.2.3.4.", "https://127.1", "https://0x7f.1", "https://01.2.3.4", "https://256.1.1.1",
		"https://a.0x1", "https://[::1",
		"https://[::1]a", "https://[0:0:0:0:0:0:0:1]", "https://[::FFFF:1:2]", "https://[::ffff:192.0.2.1]",
		"https://[fe80::1%eth0]", "https://[127.0.0.1]",
		"https://[]", "https://::1", "https://" + strings.Repeat("a", 64) + ".example",
		"https://" + strings.Repeat("a.", 127) + "example",
	} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// TestMatches: a pattern matches whole labels below its host, by the same scheme and port.
func TestMatches(t *testing.T) {
	hosts := map[string]bool{
		"https://shop.example.net": true, "https://a.b.example.net": true, "https://a_b.example.net": true,
		"https://example.net": false, "https://.example.net": false, "https://evilexample.net": false,
		"http://shop.example.net":       false,
		"https://shop.example.net:8443": false, "https://shop.example.net.": false,
		"https://shop.example.net.evil.com": false,
		"https://SHOP.example.net":          false, "https://evil.com/.example.net": false,
		"https://evil.com:1.example.net": false, "https://evil.com@a.example.net": false,
	}
	// Between the host of a stranger and the suffix, whatever some reader of URLs ends a host at.
	for _, end := range []string{"#", "?", `\`, "`", "^", "|", "<", ">", " ", "[", "]", "%23", "%2f", "%00", "/", ":",
		"@", ";", ",", "'", `"`, "{", "}", "(", "*", "!", "$", "&", "=", "~", "+", "\t", "é", "。"} {
		hosts["https://evil.com"+end+".example.net"] = false
		hosts["https://evil.com"+end+"a.example.net"] = false
	}
	p, ok := ParsePattern("https://*.example.net")
	if !ok {
		t.Fatal("a pattern is none")
	}
	for text, want := range hosts {
		o, ok := Parse(text)
		if got := ok && p.Matches(o); got != want {
			t.Errorf("%q: matches %t, want %t", text, got, want)
		}
	}
	if p, ok := ParsePattern("http://*.example.net:8080"); !ok || !p.Matches(Origin{"http", "a.example.net", 8080}) ||
		p.Matches(Origin{"http", "a.example.net", 0}) {
		t.Error("a pattern with a port")
	}
}

var (
	wholeLabels = regexp.MustCompile(`^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$`)
	plainScheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
)

// judge is Parse by net/url, and by equality with what it writes again.
func judge(text string) (Origin, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || !plainScheme.MatchString(u.Scheme) {
		return Origin{}, false
	}
	o := Origin{Scheme: u.Scheme, Host: u.Hostname()}
	again := u.Scheme + "://" + u.Hostname()
	if a, err := netip.ParseAddr(u.Hostname()); strings.Contains(u.Hostname(), ":") {
		if err != nil || a.Zone() != "" {
			return Origin{}, false
		}
		o.Host = "[" + a.String() + "]"
		if a.Is4In6() {
			b := a.As16()
			o.Host = fmt.Sprintf("[::ffff:%x:%x]", int(b[12])*256+int(b[13]), int(b[14])*256+int(b[15]))
		}
		again = u.Scheme + "://" + o.Host
	} else if err == nil {
		again = u.Scheme + "://" + a.String()
	} else if name := strings.TrimSuffix(o.Host, "."); !wholeLabels.MatchString(name) || len(name) > 253 {
		return Origin{}, false
	} else if last := name[strings.LastIndex(name, ".")+1:]; regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`).MatchString(
		last) {
		return Origin{}, false // an address that is not one of four bytes
	}
	if u.Port() != "" {
		n, err := strconv.Atoi(u.Port())
		own := map[string]int{"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}[u.Scheme]
		if err != nil || n < 1 || n > 65535 || n == own {
			return Origin{}, false
		}
		o.Port = uint16(n)
		again += ":" + strconv.Itoa(n)
	}
	return o, again == text
}

// FuzzOrigin compares Parse and Matches with net/url, and checks that writing an origin gives the
// same again.
func FuzzOrigin(f *testing.F) {
	for _, seed := range [][2]string{
		{"https://shop.example.com", "https://*.example.com"},
		{"https://evil.com#.example.net", "https://*.example.net"}, {"http://[::1]:3000", "http://[::1]:3000"},
		{"https://a.1.2.3.4", "https://*.1.2.3.4"}, {"http://127.0.0.1:80", "http://127.0.0.1"},
		{"https://a`.example.net", "https://*.example.net"},
		{"https://a.example.net:443", "https://*.example.net:443"}, {"x+y.z-1://a.b.", "x+y.z-1://*.b."},
		{"http://[::ffff:1.2.3.4]", "http://[::ffff:102:304]"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, pattern string) {
		got, ok := Parse(text)
		want, wantOK := judge(text)
		if ok != wantOK || ok && got != want {
			t.Fatalf("%q is read as %+v, %t, want %+v, %t", text, got, ok, want, wantOK)
		}
		p, isPattern := ParsePattern(pattern)
		bare := strings.Replace(pattern, "://*.", "://", 1)
		of, isOrigin := judge(bare)
		below := bare != pattern
		_, err := netip.ParseAddr(strings.Trim(of.Host, "[]"))
		if wantPattern := isOrigin && (!below || err != nil); isPattern != wantPattern {
			t.Fatalf("%q is a pattern: %t, want %t", pattern, isPattern, wantPattern)
		}
		if !ok || !isPattern {
			return
		}
		matches := text == pattern
		if below {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			above, isBelow := strings.CutSuffix(u.Hostname(), "."+of.Host)
			matches = isBelow && wholeLabels.MatchString(above) && u.Scheme == of.Scheme && got.Port == of.Port
		}
		if p.Matches(got) != matches {
			t.Fatalf("%q matches %q: %t, want %t", pattern, text, p.Matches(got), matches)
		}
	})
}
