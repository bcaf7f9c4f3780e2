package openapi

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/admission-gateway/gateway/internal/document"
)

// name gives the resources their groups, versions, plurals and kinds. What the author says goes
// first. A plural is the last plain segment of the path, a kind the name of the schema; if two
// resources have the same, the one with the longer path gets a name of more segments, or a number.
func (d *Document) name(all []*Resource) {
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b *Resource) int { return len(a.static()) - len(b.static()) })
	rank := func(r *Resource) int { // of what the author says, before what is made up
		n := 0
		if r.IsMadePlural() {
			n++
		}
		if r.IsMadeKind() {
			n++
		}
		return n
	}
	slices.SortStableFunc(ordered, func(a, b *Resource) int { return rank(a) - rank(b) })
	type key struct{ group, version, name string }
	plurals, kinds := map[key]bool{}, map[key]bool{}
	for _, r := range ordered { // no made-up name takes one that an author gives
		if len(r.Paths) > 0 {
			r.Group, r.Version = r.setting("group"), d.versionOf(r)
		}
		if plural := r.setting("names", "plural"); plural != "" && len(r.Paths) > 0 {
			r.Plural = plural
		}
		if kind := r.setting("names", "kind"); kind != "" {
			r.Kind = kind
		}
		if !r.IsMadePlural() {
			plurals[key{r.Group, r.Version, r.Plural}] = true
		}
		if !r.IsMadeKind() {
			kinds[key{r.Group, r.Version, r.Kind}] = true
		}
	}
	d.renamed = 0
	for _, r := range ordered {
		static := r.static()
		last := func(n int) string { return strings.Join(static[max(len(static)-n, 0):], "-") }
		if r.IsMadePlural() {
			isTaken := func(name string) bool { return plurals[key{r.Group, r.Version, name}] }
			short := label(last(1))
			if r.Plural = firstFree(len(static), isTaken, func(n int) string { return label(last(n)) },
				func(name string, n int) string {
					return name + "-" + strconv.Itoa(n)
				}); r.Plural != short {
				because := "has the shorter name"
				if strings.HasPrefix(r.Plural, short+"-") {
					because = "has the name '" + short + "'"
				}
				d.renamed++
				d.mild.warn(r.at, "is the resource '%s', because another path %s: policies match it by that; "+
					"`%s` may give it another one", r.Plural, because, Extension+".names.plural")
			}
			plurals[key{r.Group, r.Version, r.Plural}] = true
		}
		if r.IsMadeKind() {
			isTaken := func(name string) bool { return kinds[key{r.Group, r.Version, name}] }
			own := r.Kind
			if isTaken(own) {
				r.Kind = firstFree(len(static), isTaken, r.pathKind, func(name string, n int) string {
					return name + strconv.Itoa(n)
				})
				d.mild.warn(r.at, "has the kind '%s', because another resource has the kind '%s'; `%s` may give it another one", r.Kind, own, Extension+".names.kind")
			}
			kinds[key{r.Group, r.Version, r.Kind}] = true
		}
	}
}

// Renamed is how many resources have a longer name than the last segment of their path, because others have the shorter
// one. It counts when Resources has returned.
func (d *Document) Renamed() int { return d.renamed }

// firstFree returns the first name that is not taken, of ever more segments, and then with ever greater numbers.
func firstFree(segments int, isTaken func(string) bool, of func(segments int) string,
	numbered func(name string, n int) string) string {
	name := of(1)
	for n := 2; n <= segments && isTaken(name); n++ {
		name = of(n)
	}
	whole := name
	for n := 2; isTaken(name); n++ {
		name = numbered(whole, n)
	}
	return name
}

// IsMadePlural reports whether the plural name is made up, and IsMadeKind whether the kind is.
func (r *Resource) IsMadePlural() bool {
	return len(r.Paths) > 0 && r.setting("names", "plural") == ""
}

// IsMadeKind reports whether the kind is made up.
func (r *Resource) IsMadeKind() bool { return len(r.Paths) > 0 && r.setting("names", "kind") == "" }

var versionSegment = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// versionOf returns the author's version, else a version in the path, else the first number of the document's version.
func (d *Document) versionOf(r *Resource) string {
	if v := r.setting("version"); v != "" {
		return v
	}
	for _, s := range strings.Split(r.Paths[0], "/") {
		if versionSegment.MatchString(s) {
			return s
		}
	}
	info, _ := d.root.Get("info")
	major, _, _ := strings.Cut(strings.TrimPrefix(text(info, "version"), "v"), ".")
	if major != "" && len(major) < 6 && strings.Trim(major, "0123456789") == "" && major != "0" {
		return "v" + major
	}
	return "v1"
}

// affixes are endings that names of schemas have behind the name of their kind.
var affixes = []string{"Request", "Response", "Input", "Output", "Dto", "DTO", "Payload", "Body", "Representation",
	"Resource", "Model", "Schema"}

// generated are names that programs which write documents give to schemas, and that no reader of the API knows.
var generated = regexp.MustCompile(`(?i)^((def|schema|model|inline|body|request|response|object|type|payload|anonymous|unnamed)+[0-9]*)+$`)

// kindOf is the name of the objects' schema, or the path's last segment in the singular.
func (d *Document) kindOf(r *Resource, schemas ...document.Node) string {
	for _, n := range schemas {
		name := strings.ReplaceAll(text(n, "$ref"), "~1", "/")
		for _, end := range []string{".yaml", ".yml", ".json"} { // of a schema that is a whole file
			name = strings.TrimSuffix(name, end)
		}
		name = camel(name[strings.LastIndexAny(name, "./")+1:])
		for _, a := range affixes {
			if rest, found := strings.CutSuffix(name, a); found && rest != "" {
				name = rest
			}
		}
		if name != "" && !generated.MatchString(name) {
			return name
		}
	}
	return r.pathKind(1)
}

// pathKind is a kind made of the last segments of the path: of so many, or of as many as it takes to have a letter.
func (r *Resource) pathKind(segments int) string {
	static := r.static()
	for n := segments; n <= len(static); n++ {
		if kind := camel(singular(strings.Join(static[len(static)-n:], "-"))); kind != "" {
			return kind
		}
	}
	return "Object"
}

// singular is the word for one; of compounds the last word counts.
func singular(plural string) string {
	for _, end := range []struct{ many, one string }{{"ies", "y"}, {"sses", "ss"}, {"xes", "x"}, {"ches", "ch"},
		{"shes", "sh"}, {"ss", "ss"}, {"us", "us"}, {"is", "is"}, {"s", ""}} {
		if stem, found := strings.CutSuffix(plural, end.many); found && stem != "" {
			return stem + end.one
		}
	}
	return plural
}

// letters are the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, name)
}

// maxName is how long a name may be.
const maxName = 63

// maxNumber is how many digits a number behind a name may have.
const maxNumber = 6

// label makes a DNS label of a name: 'line_items' becomes 'line-items', 'lineItems' too.
func label(name string) string {
	var b strings.Builder
	lower := false
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			if lower {
				b.WriteByte('-')
			}
			b.WriteRune(c + 'a' - 'A')
			lower = false
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
			lower = true
		default:
			b.WriteByte('-')
			lower = false
		}
	}
	s := strings.Trim(b.String(), "-")
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = strings.Trim("r-"+s, "-")
	}
	if len(s) > maxName-maxNumber {
		s = strings.Trim(s[len(s)-maxName+maxNumber:], "-0123456789")
	}
	return s
}

// camel makes a kind of a name: 'line_item' becomes 'LineItem'.
func camel(name string) string {
	var b strings.Builder
	upper := true
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z' && upper:
			b.WriteRune(c - 'a' + 'A')
			upper = false
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' && b.Len() > 0:
			b.WriteRune(c)
			upper = false
		default:
			upper = true
		}
	}
	s := b.String()
	if len(s) > maxName-maxNumber {
		s = s[:maxName-maxNumber]
	}
	return s
}
