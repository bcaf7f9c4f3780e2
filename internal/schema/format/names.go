package format

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// international reads names of hosts in all languages as they are registered, and looks for no better spelling of them.
var international = idna.New(idna.ValidateLabels(true), idna.CheckHyphens(true), idna.CheckJoiners(true),
	idna.StrictDomainName(true),
	idna.VerifyDNSLength(true), idna.BidiRule())

// isIDNHostname reports whether s is a name as RFC 5890 (2.3.2.3) has it: each label is one of ASCII, or one of
// letters, marks and digits of any language.
func isIDNHostname(s string) bool {
	if isHostname(s) && !strings.Contains(s, "--") {
		return true
	}
	ascii, err := international.ToASCII(s)
	return err == nil && isHostname(ascii) && hasLettersOnly(s)
}

// hasLettersOnly reports whether s has characters of names alone. IDNA has fewer of them than the standard of Unicode
// that the library knows, which has symbols too: RFC 5892 lists them (2.6), and some of them count beside others alone
// (A.1 to A.9).
func hasLettersOnly(s string) bool {
	var before rune
	for i, r := range s {
		after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		switch {
		case r == '.', r == '-', r == '\u3002', r == '\u200c', r == '\u200d': // the joiners are the library's to judge
		case strings.ContainsRune("\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b", r):
			return false
		case r == '\u00b7': // the middle dot of Catalan
			if before != 'l' || after != 'l' {
				return false
			}
		case r == '\u0375':
			if !unicode.Is(unicode.Greek, after) {
				return false
			}
		case r == '\u05f3', r == '\u05f4':
			if !unicode.Is(unicode.Hebrew, before) {
				return false
			}
		case r == '\u30fb':
			if !strings.ContainsFunc(s,
				func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) }) {
				return false
			}
		case !unicode.In(r, unicode.L, unicode.Mn, unicode.Mc, unicode.Nd):
			return false
		}
		before = r
	}
	// Two ways of writing digits are not mixed.
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= '\u0660' && r <= '\u0669' }) ||
		!strings.ContainsFunc(s, func(r rune) bool { return r >= '\u06f0' && r <= '\u06f9' })
}

// isIDNEmail reports whether s is a mailbox as RFC 6531 (3.3) has it, which allows letters of all languages.
func isIDNEmail(s string) bool {
	if isEmail(s) {
		return true
	}
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 || !utf8.ValidString(s) {
		return false
	}
	ascii := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return 'x'
		}
		return r
	}, s[:at])
	return isLocal(ascii) && (isIDNHostname(s[at+1:]) || isEmail("x"+s[at:]))
}
