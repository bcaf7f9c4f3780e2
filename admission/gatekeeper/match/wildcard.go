package match

import "strings"

const anyName = "*"

// A Wildcard is a name that may begin and end with "*", which stands for any text.
type Wildcard string

// parts takes the stars off.
func (w Wildcard) parts() (text string, before, after bool) {
	text, before = strings.CutPrefix(string(w), anyName)
	if before && text == "" {
		return "", true, true
	}
	text, after = strings.CutSuffix(text, anyName)
	return text, before, after
}

// Matches reports whether the wildcard stands for the name.
func (w Wildcard) Matches(name string) bool {
	text, before, after := w.parts()
	switch {
	case before && after:
		return strings.Contains(name, text)
	case before:
		return strings.HasSuffix(name, text)
	case after:
		return strings.HasPrefix(name, text)
	}
	return name == text
}

// MatchesGenerated reports whether the wildcard matches every name that is generated from the
// beginning, or matches the beginning itself.
func (w Wildcard) MatchesGenerated(beginning string) bool {
	text, before, after := w.parts()
	switch {
	case before && after:
		return strings.Contains(beginning, text)
	case after:
		return strings.HasPrefix(beginning, text)
	}
	return false
}

// Any reports whether one of the wildcards stands for the name.
func Any(wildcards []Wildcard, name string) bool {
	for _, w := range wildcards {
		if w.Matches(name) {
			return true
		}
	}
	return false
}
