package status

import (
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// maxWarnings is the sum of all warnings' runes in one answer above which each is cut, as kube-apiserver does.
	maxWarnings = 4096
	// maxCutWarning is the length in runes to which warnings are then cut.
	maxCutWarning = 256
)

// WarningHeaders gives the values of the Warning headers for the texts: `299 - "text"`, each once (ERR-6).
func WarningHeaders(texts []string) []string {
	total := 0
	for _, t := range texts {
		total += utf8.RuneCountInString(t)
	}
	headers := make([]string, 0, len(texts))
	seen := make(map[string]struct{}, len(texts))
	spent := 0
	for _, t := range texts {
		if total > maxWarnings {
			t = cut(t, maxCutWarning)
		}
		if _, twice := seen[t]; twice {
			continue
		}
		seen[t] = struct{}{}
		if spent += utf8.RuneCountInString(t); spent > maxWarnings {
			break
		}
		if h, err := utilnet.NewWarningHeader(299, "-", t); err == nil {
			headers = append(headers, h)
		}
	}
	return headers
}

// cut shortens a text to at most n runes.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
