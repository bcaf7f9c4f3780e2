package format

import (
	"regexp"
	"strings"
	"time"
)

// Standard is the format with this name as JSON Schema defines it, which refers to RFCs: Kubernetes reads some names in
// its own way. It takes 'A <a@b.c>' for an email and '/a' for a URI, and refuses 'a.b1' as a hostname. The format is
// nil if JSON Schema has none of the name, or if it is not checked.
func Standard(name string) *Format {
	f := &Format{Name: name}
	switch name {
	case "date":
		f.Quick, f.Decide = quickDate, isDate
	case "date-time":
		f.Quick, f.Decide = QuickDateTime, isDateTime
	case "email":
		f.Decide = isEmail
	case "hostname":
		f.Decide = isHostname
	case "ipv4":
		f.Decide = quickIPv4
	case "ipv6":
		f.Decide = quickIPv6
	case "uri":
		f.Quick, f.Decide = quickURI, isURI
	case "uri-reference":
		f.Quick, f.Decide = quickURI, isURIReference
	case "iri":
		f.Quick, f.Decide = quickURI, isIRI
	case "iri-reference":
		f.Quick, f.Decide = quickURI, isIRIReference
	case "uri-template":
		f.Decide = uriTemplate.MatchString
	case "idn-email":
		f.Decide = isIDNEmail
	case "idn-hostname":
		f.Decide = isIDNHostname
	case "time":
		f.Decide = isTime
	case "duration":
		f.Decide = isDuration
	case "json-pointer":
		f.Decide = jsonPointer.MatchString
	case "relative-json-pointer":
		f.Decide = relativePointer.MatchString
	case "uuid":
		f.Decide = quickUUID
	default:
		return nil
	}
	return f
}

// The pointers of RFC 6901 (3) and of the draft about relative ones, and the templates of RFC 6570 (2).
var (
	jsonPointer     = regexp.MustCompile(`^(?:/(?:[^~/]|~[01])*)*$`)
	relativePointer = regexp.MustCompile(`^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$`)
	uriTemplate     = regexp.MustCompile(`^(?:[^\x00-\x20"<>%\\^` + "`" + `{|}\x7f]|%[0-9A-Fa-f]{2}|\{[+#./;?&=,!@|]?` +
		variable + `(?:,` + variable + `)*\})*$`)
)

// variable is a variable of a template, with how much of it counts.
const variable = `(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?`

// isEmail reports whether s is a mailbox as RFC 5321 (4.1.2) has it, without escapes in the local part.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if address, isLiteral := strings.CutPrefix(domain, "["); isLiteral {
		address, isClosed := strings.CutSuffix(address, "]")
		if v6, isV6 := strings.CutPrefix(address, "IPv6:"); isV6 {
			return isClosed && isLocal(local) && quickIPv6(v6)
		}
		return isClosed && isLocal(local) && quickIPv4(address)
	}
	return isLocal(local) && isHostname(domain)
}

// isLocal reports whether s is words with single dots between them, or a quoted text.
func isLocal(s string) bool {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		for i := 1; i < len(s)-1; i++ {
			if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
				return false
			}
		}
		return true
	}
	previous := byte('.')
	for i := range len(s) {
		c := s[i]
		if c == '.' && previous == '.' || c != '.' && !alnum(c) && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) < 0 {
			return false
		}
		previous = c
	}
	return previous != '.'
}

// isHostname reports whether s is a name as RFC 1123 (2.1) has it, perhaps with a dot at its end.
func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	label, previous := 0, byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.':
			if label == 0 || previous == '-' {
				return false
			}
			label = -1
		case c == '-':
			if label == 0 {
				return false
			}
		case !alnum(c):
			return false
		}
		if label++; label > 63 {
			return false
		}
		previous = c
	}
	return label > 0 && previous != '-' && len(s) <= 253
}

// isDate reports whether s is a full-date of RFC 3339.
func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isDateTime reports whether s is a date-time of RFC 3339, leap seconds included.
func isDateTime(s string) bool {
	if len(s) < len("2006-01-02T15:04:05Z") || s[10]|0x20 != 't' || !quickDate(s[:10]) && !isDate(s[:10]) {
		return false
	}
	return isTime(s[11:])
}

// isTime reports whether s is a full-time of RFC 3339, which has an offset.
func isTime(s string) bool {
	minutes, seconds, zone, ok := clock(s)
	if !ok {
		return false
	}
	offset := 0
	if zone != "z" && zone != "Z" {
		if len(zone) != 6 || zone[0] != '+' && zone[0] != '-' || !isTwoAndTwo(zone[1:]) || two(zone[1:]) > 23 ||
			two(zone[4:]) > 59 {
			return false
		}
		if offset = two(zone[1:])*60 + two(zone[4:]); zone[0] == '-' {
			offset = -offset
		}
	}
	const day = 24 * 60
	return seconds < 60 || (minutes-offset+day)%day == day-1 // a leap second is the last one of a day in UTC
}

// clock reads the time of a day, and returns what follows it.
func clock(s string) (minutes, seconds int, rest string, ok bool) {
	if len(s) < 8 || !isTwoAndTwo(s[:5]) || s[5] != ':' || !digit(s[6]) || !digit(s[7]) {
		return 0, 0, "", false
	}
	hour, minute, seconds, rest := two(s), two(s[3:]), two(s[6:]), s[8:]
	if fraction, found := strings.CutPrefix(rest, "."); found {
		rest = strings.TrimLeft(fraction, "0123456789")
		if len(rest) == len(fraction) {
			return 0, 0, "", false
		}
	}
	return hour*60 + minute, seconds, rest, hour <= 23 && minute <= 59 && seconds <= 60
}

// isTwoAndTwo reports whether s is two digits, a colon and two digits.
func isTwoAndTwo(s string) bool {
	return len(s) == 5 && digit(s[0]) && digit(s[1]) && s[2] == ':' && digit(s[3]) && digit(s[4])
}

// isDuration reports whether s is a duration of RFC 3339 (A). As other validators do, it lets units be left out between
// two others.
func isDuration(s string) bool {
	rest, found := strings.CutPrefix(s, "P")
	if !found || rest == "" {
		return false
	}
	if weeks, found := strings.CutSuffix(rest, "W"); found {
		return weeks != "" && strings.Trim(weeks, "0123456789") == ""
	}
	days, hours, found := strings.Cut(rest, "T")
	return inOrder(days, "YMD") && inOrder(hours, "HMS") && found == (hours != "")
}

// inOrder reports whether s is numbers with units, of which each stands once and in its order.
func inOrder(s, units string) bool {
	for s != "" {
		rest := strings.TrimLeft(s, "0123456789")
		if rest == "" || len(rest) == len(s) {
			return false
		}
		at := strings.IndexByte(units, rest[0])
		if at < 0 {
			return false
		}
		units, s = units[at+1:], rest[1:]
	}
	return true
}
