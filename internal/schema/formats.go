package schema

import (
	"net/netip"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// A format is a format of strings that Kubernetes checks.
type format struct {
	name   string
	quick  func(string) bool // says yes to common spellings only, without allocating; may be nil
	decide func(string) bool // Kubernetes' own function
}

func (f *format) matches(s string) bool {
	return f.quick != nil && f.quick(s) || f.decide(s)
}

// Format is the name of the format that a string must have; "" where there is none that Kubernetes checks.
func (s *Shape) Format() string {
	if s == nil || s.text == nil || s.text.format == nil {
		return ""
	}
	return s.text.format.name
}

// formatOf is the format with this name, or nil where Kubernetes' registry knows none. Dashes in names do not count.
func formatOf(name string) *format {
	if name == "" || !strfmt.Default.ContainsName(name) {
		return nil
	}
	f := &format{name: name}
	switch strings.ReplaceAll(name, "-", "") {
	case "datetime":
		f.quick, f.decide = quickDateTime, strfmt.IsDateTime
	case "date":
		f.quick, f.decide = quickDate, strfmt.IsDate
	case "duration":
		f.quick, f.decide = quickDuration, strfmt.IsDuration
	case "uuid":
		f.quick, f.decide = quickUUID, strfmt.IsUUID
	case "uuid3":
		f.decide = strfmt.IsUUID3
	case "uuid4":
		f.decide = strfmt.IsUUID4
	case "uuid5":
		f.decide = strfmt.IsUUID5
	case "hostname":
		f.quick, f.decide = quickHostname, strfmt.IsHostname
	case "email":
		f.quick, f.decide = quickEmail, strfmt.IsEmail
	case "bsonobjectid":
		f.decide = strfmt.IsBSONObjectID
	case "k8sshortname":
		f.decide = strfmt.IsShortName
	case "k8slongname":
		f.decide = strfmt.IsLongName
	case "password":
		f.decide = func(string) bool { return true }
	case "ipv4":
		f.quick, f.decide = quickIPv4, registered(name)
	case "ipv6":
		f.quick, f.decide = quickIPv6, registered(name)
	case "cidr":
		f.quick, f.decide = quickCIDR, registered(name)
	case "mac":
		f.quick, f.decide = quickMAC, registered(name)
	case "byte":
		f.quick, f.decide = quickBase64, registered(name)
	case "uri":
		f.quick, f.decide = quickURI, registered(name)
	default:
		f.decide = registered(name)
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

// quickDateTime accepts 2006-01-02T15:04:05Z, with a fraction or without.
func quickDateTime(s string) bool {
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

// quickHostname accepts ASCII names of at least two labels of at most 62 bytes, the last of which has letters only.
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

// atoms tells whether s is letters, digits and '-_+', in parts that single dots separate.
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
