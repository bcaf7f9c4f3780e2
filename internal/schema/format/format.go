// Package format checks the formats of strings that Kubernetes checks: common spellings by a glance that allocates
// nothing, all others by Kubernetes' own functions.
package format

import (
	"net/netip"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// A Format is a format of strings that Kubernetes checks.
type Format struct {
	Name   string
	Quick  func(string) bool // says yes to common spellings only, without allocating; may be nil
	Decide func(string) bool // Kubernetes' own function
}

func (f *Format) Matches(s string) bool {
	return f.Quick != nil && f.Quick(s) || f.Decide(s)
}

// Of is the format with this name, or nil if Kubernetes' registry has none. Dashes in names do not
// count.
func Of(name string) *Format {
	if name == "" || !strfmt.Default.ContainsName(name) {
		return nil
	}
	f := &Format{Name: name}
	switch strings.ReplaceAll(name, "-", "") {
	case "datetime":
		f.Quick, f.Decide = QuickDateTime, strfmt.IsDateTime
	case "date":
		f.Quick, f.Decide = quickDate, strfmt.IsDate
	case "duration":
		f.Quick, f.Decide = quickDuration, strfmt.IsDuration
	case "uuid":
		f.Quick, f.Decide = quickUUID, strfmt.IsUUID
	case "uuid3":
		f.Decide = strfmt.IsUUID3
	case "uuid4":
		f.Decide = strfmt.IsUUID4
	case "uuid5":
		f.Decide = strfmt.IsUUID5
	case "hostname":
		f.Quick, f.Decide = quickHostname, strfmt.IsHostname
	case "email":
		f.Quick, f.Decide = quickEmail, strfmt.IsEmail
	case "bsonobjectid":
		f.Decide = strfmt.IsBSONObjectID
	case "k8sshortname":
		f.Decide = strfmt.IsShortName
	case "k8slongname":
		f.Decide = strfmt.IsLongName
	case "password":
		f.Decide = func(string) bool { return true }
	case "ipv4":
		f.Quick, f.Decide = quickIPv4, registered(name)
	case "ipv6":
		f.Quick, f.Decide = quickIPv6, registered(name)
	case "cidr":
		f.Quick, f.Decide = quickCIDR, registered(name)
	case "mac":
		f.Quick, f.Decide = quickMAC, registered(name)
	case "byte":
		f.Quick, f.Decide = quickBase64, registered(name)
	case "uri":
		f.Quick, f.Decide = quickURI, registered(name)
	default:
		f.Decide = registered(name)
	}
	return f
}

// registered asks the registry, which is the only way to the functions that kube-openapi keeps to itself. It holds a
// lock while it answers, so that whatever is common should be found by a quick check before.
func registered(name string) func(string) bool {
	return func(s string) bool { return strfmt.Default.Validates(name, s) }
}

func digit(c byte) bool    { return '0' <= c && c <= '9' }
func letter(c byte) bool   { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func alnum(c byte) bool    { return digit(c) || letter(c) }
func hexDigit(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// quickDate accepts 2006-01-02 with days up to 28, which every month has.
func quickDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if !digit(s[i]) {
			return false
		}
	}
	month, day := two(s[5:]), two(s[8:])
	return 1 <= month && month <= 12 && 1 <= day && day <= 28
}

func two(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

// QuickDateTime accepts 2006-01-02T15:04:05Z, with a fraction or without.
func QuickDateTime(s string) bool {
	if len(s) < 20 || !quickDate(s[:10]) || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[len(s)-1] != 'Z' {
		return false
	}
	for _, i := range [...]int{11, 12, 14, 15, 17, 18} {
		if !digit(s[i]) {
			return false
		}
	}
	fraction := s[19 : len(s)-1]
	if fraction != "" {
		if fraction[0] != '.' || len(fraction) == 1 {
			return false
		}
		for i := 1; i < len(fraction); i++ {
			if !digit(fraction[i]) {
				return false
			}
		}
	}
	return two(s[11:]) <= 23 && two(s[14:]) <= 59 && two(s[17:]) <= 59
}

// quickDuration accepts up to nine digits and one of the units of Go.
func quickDuration(s string) bool {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	if i == 0 || i > 9 {
		return false
	}
	switch s[i:] {
	case "ns", "us", "ms", "s", "m":
		return true
	case "h":
		return i <= 6
	}
	return false
}

func quickUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !hexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

// quickHostname accepts ASCII names of at least two labels of at most 62 bytes; the last label has letters only.
func quickHostname(s string) bool {
	if len(s) > 255 {
		return false
	}
	label, labels, letters := 0, 1, true
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if label == 0 || label > 62 || s[i-1] == '-' {
				return false
			}
			label, letters = 0, true
			labels++
		case c == '-':
			if label == 0 {
				return false
			}
			letters = false
			label++
		case alnum(c):
			letters = letters && letter(c)
			label++
		default:
			return false
		}
	}
	return labels > 1 && letters && 2 <= label && label <= 62
}

// quickEmail accepts plain addresses such as a.b+c@example.com.
func quickEmail(s string) bool {
	at := strings.IndexByte(s, '@')
	return at > 0 && atoms(s[:at]) && atoms(s[at+1:])
}

// atoms reports whether s is letters, digits and '-_+', in parts that single dots separate.
func atoms(s string) bool {
	previous := byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.':
			if previous == '.' {
				return false
			}
		case alnum(c), c == '-', c == '_', c == '+':
		default:
			return false
		}
		previous = c
	}
	return previous != '.'
}

func quickIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func quickIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func quickCIDR(s string) bool {
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// quickMAC accepts six pairs of hexadecimal digits with colons between them.
func quickMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range len(s) {
		if i%3 == 2 {
			if s[i] != ':' {
				return false
			}
		} else if !hexDigit(s[i]) {
			return false
		}
	}
	return true
}

func quickBase64(s string) bool {
	if len(s) == 0 || len(s)%4 != 0 {
		return false
	}
	body := s
	for range 2 {
		body = strings.TrimSuffix(body, "=")
	}
	for i := range len(body) {
		if c := body[i]; !alnum(c) && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

// quickURI accepts http and https addresses of plain characters.
func quickURI(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	if !ok {
		return false
	}
	i := 0
	for i < len(rest) && (alnum(rest[i]) || rest[i] == '.' || rest[i] == '-') {
		i++
	}
	if i == 0 {
		return false
	}
	if i < len(rest) && rest[i] == ':' {
		for i++; i < len(rest) && digit(rest[i]); i++ {
		}
	}
	if i < len(rest) && rest[i] != '/' {
		return false
	}
	for ; i < len(rest); i++ {
		switch c := rest[i]; {
		case alnum(c), strings.IndexByte("/-._~?=&", c) >= 0:
		default:
			return false
		}
	}
	return true
}
