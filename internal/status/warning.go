package status

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWarnings is the sum of all warnings' runes in one answer above which each is cut, as kube-apiserver does.
	maxWarnings = 4096
	// maxCutWarning is the length in runes to which warnings are then cut.
	maxCutWarning = 256
)

// WarningHeaders gives the values of the Warning headers for the texts: `299 - "text"`, each text once, empty ones left
// out (ERR-6). Over 4096 runes in all, each text is cut to 256 runes, and what is beyond 4096 runes even so is left
// out.
func WarningHeaders(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	once := make([]string, 0, len(texts))
	seen := make(map[string]struct{}, len(texts))
	total := 0
	for _, t := range texts {
		if _, twice := seen[t]; twice || t == "" {
			continue
		}
		seen[t] = struct{}{}
		once = append(once, t)
		total += utf8.RuneCountInString(t)
	}
	headers := make([]string, 0, len(once))
	spent := 0
	for _, t := range once {
		if total > maxWarnings {
			t = cutRunes(t, maxCutWarning)
			if spent >= maxWarnings {
				break
			}
			spent += utf8.RuneCountInString(t)
		}
		headers = append(headers, warningHeader(t))
	}
	return headers
}

// warningHeader quotes a text. What a header may not hold (control characters, invalid UTF-8) is
// replaced. apimachinery's NewWarningHeader would refuse the text: a warning that is hard to read
// is better than none.
func warningHeader(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(`299 - ""`))
	b.WriteString(`299 - "`)
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
		case unicode.IsControl(r):
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}

// cutRunes shortens a text to at most n runes.
func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
