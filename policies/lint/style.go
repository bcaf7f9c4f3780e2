package lint

import (
	"regexp"
	"strings"
)

// An ordinary API has conventions of its own. What the API conventions ask of names alone, it is asked to do in one way
// throughout its document.

// A style is a way to write names.
type style struct {
	name, separator string
	form            *regexp.Regexp
}

// camelCase is the style of Kubernetes.
var camelCase = style{"camelCase", "", regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)}

// styles are the styles in which names of several words differ.
var styles = []style{
	camelCase,
	{"snake_case", "_", regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)},
	{"PascalCase", "", regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)},
	{"kebab-case", "-", regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)},
}

var oneWord = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// notWords are names that are written in no style: codes such as EUR, and what has no letters.
var notWords = regexp.MustCompile(`^([A-Z0-9]+|[^A-Za-z]+)$`)

// fits reports whether a name is written in the style. An underscore before it says that the member is about the
// others, as in HAL, what stands between dots is written by itself, and keys with spaces or slashes are data.
func (s style) fits(name string) bool {
	if strings.ContainsAny(name, " /:") && name == strings.TrimSpace(name) {
		return true
	}
	for _, part := range strings.Split(strings.TrimLeft(name, "_"), ".") {
		if !s.form.MatchString(part) && !notWords.MatchString(part) {
			return false
		}
	}
	return true
}

// with is a name with a further word behind it.
func (s style) with(name, word string) string {
	if s.separator == "" {
		return name + strings.ToUpper(word[:1]) + word[1:]
	}
	return name + s.separator + word
}

// usage is how the names in a definition are written.
type usage struct {
	names map[string]int // of several words, by the style
	// capitals are the acronyms that stand in capitals behind the first word of some name.
	capitals map[string]bool
}

func (u *usage) count(s *node) {
	if s.part == member && isName(s.name) {
		for _, style := range styles {
			if style.form.MatchString(s.name) && !oneWord.MatchString(s.name) {
				u.names[style.name]++
			}
		}
		for i, w := range wordsOf(s.name) {
			if i > 0 && w == strings.ToUpper(w) {
				u.capitals[strings.ToLower(w)] = true
			}
		}
	}
	for _, m := range s.members {
		u.count(m)
	}
	for _, m := range []*node{s.item, s.value} {
		if m != nil {
			u.count(m)
		}
	}
}

// usageOf returns how the names of an ordinary API are written, and the style of most of them.
func usageOf(d *definition) (*usage, style) {
	u := &usage{names: map[string]int{}, capitals: map[string]bool{}}
	for _, s := range d.schemas {
		u.count(s)
	}
	most := styles[0]
	for _, s := range styles[1:] {
		if u.names[s.name] > u.names[most.name] {
			most = s
		}
	}
	return u, most
}

// isName reports whether a member is named by the API's author, and not by the form of the document.
func isName(name string) bool {
	return name != "" && !strings.HasPrefix(name, "x-") && !strings.HasPrefix(name, "$")
}
