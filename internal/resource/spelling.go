package resource

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/admission-gateway/gateway/internal/readings"
)

// spellings finds out whether a path can be read as one that is described, whatever server reads it.
//
// Servers differ in how they read a path: they decode it once, twice or in part, fold case, merge slashes,
// take '\' for '/', resolve dots, cut segments at ';', drop blanks at the end of a segment or an extension at
// the end of the path. A path that is not described must not become a described one behind the gateway, so
// all of these readings are tried. The trie has the described paths with their plain segments folded.
type spellings struct {
	root    spelling
	any     bool
	walkers sync.Pool // of *walker
}

// A spelling is a node of the trie, one level per segment.
type spelling struct {
	plain    []spelledEdge
	variable *spelling
	dotted   *spelling // by any group whose name has a dot
	end      MethodSet // the methods that are described for a path that ends here
	others   []string  // those of them that no verb has
	below    bool      // whatever is below is described
	isEnd    bool      // a file has a path that ends here, described or not
}

type spelledEdge struct {
	segment string // folded
	to      *spelling
}

// add describes methods of a path. Each segment that has a brace matches any.
func (s *spellings) add(template string, methods MethodSet) {
	s.lead(template).end |= methods
}

// describe describes a method of a path, which need have no verb.
func (s *spellings) describe(template, method string) {
	s.add(template, NewMethodSet(method))
	if methodOf(method) == methodOther {
		n := s.lead(template)
		n.others = append(n.others, method)
	}
}

// addBelow describes every path below another.
func (s *spellings) addBelow(template string) {
	s.lead(template).below = true
}

// lead returns the node at the end of a path that is described.
func (s *spellings) lead(template string) *spelling {
	s.any = true
	return s.note(template)
}

// note keeps a path that a file has, described or not, and returns the node at its end.
func (s *spellings) note(template string) *spelling {
	n := &s.root
	if template != "/" {
		for segment := range strings.SplitSeq(strings.Trim(template, "/"), "/") {
			n = n.step(segment)
		}
	}
	n.isEnd = true
	return n
}

func (n *spelling) step(segment string) *spelling {
	if segment == dottedGroup {
		if n.dotted == nil {
			n.dotted = &spelling{}
		}
		return n.dotted
	}
	if strings.Contains(segment, "{") {
		if n.variable == nil {
			n.variable = &spelling{}
		}
		return n.variable
	}
	folded := fold(segment)
	for i := range n.plain {
		if n.plain[i].segment == folded {
			return n.plain[i].to
		}
	}
	n.plain = append(n.plain, spelledEdge{folded, &spelling{}})
	return n.plain[len(n.plain)-1].to
}

// maxDecodings is how often a path is decoded at most. What is encoded more often than that counts as
// described.
const maxDecodings = 4

// anyOther stands for all methods that no verb has.
const anyOther = "*"

// match reports whether some server could read a path as one that is described for any of the methods, or for another
// one that no verb has.
func (s *spellings) match(raw string, methods MethodSet, other string) bool {
	if !s.any {
		return false
	}
	w, ok := s.walkers.Get().(*walker)
	if !ok {
		w = &walker{}
	}
	defer func() {
		clear(w.segments) // they are parts of the request
		s.walkers.Put(w)
	}()
	w.steps, w.isOrdinary, w.methods, w.other = maxSteps, isOrdinary(raw), methods, other
	if w.isOrdinary {
		return w.walkAll(&s.root, raw, "/")
	}
	return w.decodings(&s.root, raw, func(s string) string { return s }) ||
		w.decodings(&s.root, raw, readings.WithoutParameters) ||
		w.decodings(&s.root, raw,
			func(s string) string { return readings.WithoutParameters(strings.ReplaceAll(s, `\`, "/")) })
}

// decodings tries the path decoded as often as it can be, each time after something else was done to it.
func (w *walker) decodings(root *spelling, text string, before func(string) string) bool {
	if w.decoded(root, text, before, readings.Everything) {
		return true
	}
	// Most servers know no %uXXXX.
	return strings.ContainsAny(text, "uU") && w.decoded(root, text, before, readings.Bytes)
}

// decoded is decodings by one way to decode.
func (w *walker) decoded(root *spelling, text string, before func(string) string, encodings readings.Encodings) bool {
	for n := 0; ; n++ {
		if w.readings(root, text) {
			return true
		}
		next := readings.Decode(before(text), encodings)
		switch {
		case next == text:
			return false
		case n == maxDecodings:
			return true
		}
		text = next
	}
}

// readings tries the ways to cut a text into segments, and to read its bytes as characters.
func (w *walker) readings(root *spelling, text string) bool {
	texts := []string{text}
	if normal := readings.Decode(text, readings.Unreserved); normal != text {
		texts = append(texts, normal)
	}
	switch {
	case !utf8.ValidString(text):
		texts = append(texts, readings.Overlong(text), latin1(text))
	case !isASCII(text): // which may have slashes that are compatible with '/'
		texts = append(texts, norm.NFKC.String(text))
	}
	for _, t := range texts {
		if behind, isURL := behindHost(t); isURL {
			texts = append(texts, behind)
		}
	}
	for _, t := range texts {
		for _, end := range []string{"\x00", "?", "#", ";", "\r", "\n"} { // what servers take for the end of the path
			if before, _, found := strings.Cut(t, end); found {
				texts = append(texts, before)
			}
		}
	}
	for _, t := range texts {
		// An encoded slash is a slash for servers that decode before they cut, and so may be a backslash.
		if w.walkAll(root, t, "/") || strings.Contains(t, `\`) && w.walkAll(root, t, `/\`) {
			return true
		}
	}
	return false
}

// behindHost returns what follows the host in a path that is a URL without a scheme to some servers, because it begins
// with two slashes or backslashes.
func behindHost(text string) (path string, isURL bool) {
	const separators = `/\`
	if len(text) < 2 || strings.IndexByte(separators, text[1]) < 0 {
		return "", false
	}
	host := strings.TrimLeft(text, separators)
	end := strings.IndexAny(host, separators)
	if end < 0 {
		return "/", true
	}
	return "/" + host[end+1:], true
}

// maxSteps bounds the work on one path. A path that takes more counts as described: such a path is
// only sent to get past a check.
const maxSteps = 1 << 14

// A walker compares one path with the trie.
type walker struct {
	segments []string
	methods  MethodSet
	other    string
	stack    []*spelling // the nodes from the root to the one that the segments so far lead to
	steps    int
	// isOrdinary says that the path ends with its last segment. An extension can stand only there then.
	isOrdinary bool
	dead       *spelling // where segments lead that lead to nothing; nil if nothing leads back
}

// walkAll compares a text that is cut at the separators.
func (w *walker) walkAll(root *spelling, text, separators string) bool {
	w.segments = w.segments[:0]
	for text = text[1:]; ; {
		i := strings.IndexAny(text, separators)
		if i < 0 {
			break
		}
		w.segments, text = append(w.segments, text[:i]), text[i+1:]
	}
	w.segments = append(w.segments, text)
	w.stack = append(w.stack[:0], root)
	if w.dead = nil; !w.isOrdinary && slices.ContainsFunc(w.segments, isParent) {
		w.dead = &spelling{}
	}
	return w.walk(0)
}

// walk reports whether the segments from i on lead to the end of a described path.
func (w *walker) walk(i int) bool {
	if w.steps--; w.steps < 0 {
		return true
	}
	at := w.stack[len(w.stack)-1]
	if i == len(w.segments) {
		return at.end&w.methods != 0 || len(at.others) > 0 &&
			(w.other == anyOther || slices.Contains(at.others, w.other))
	}
	if at.below && !w.isNothing(i) {
		return true
	}
	s, isLast := w.segments[i], !w.isOrdinary || i == len(w.segments)-1
	if (isCut(s) || isLast && isOnlyExtension(s) || len(w.stack) == 1 && isScript(s)) && w.walk(i+1) || isParent(s) &&
		w.walkParent(i) {
		return true
	}
	for k := range at.plain {
		if e := &at.plain[k]; isSpelling(s, e.segment, isLast) && w.descend(e.to, i) {
			return true
		}
	}
	if at.dotted != nil && isDottedSpelling(s) && w.descend(at.dotted, i) {
		return true
	}
	next := at.variable
	if s == "" && i > 0 && i == len(w.segments)-1 {
		next = nil // behind the slash at the end stands no value
	}
	// What leads nowhere may be taken back by '..'.
	return w.descend(cmp.Or(next, w.dead), i)
}

// descend goes on with the next segment at another node, if there is one, and comes back.
func (w *walker) descend(to *spelling, i int) bool {
	if to == nil {
		return false
	}
	w.stack = append(w.stack, to)
	found := w.walk(i + 1)
	w.stack = w.stack[:len(w.stack)-1]
	return found
}

// walkParent goes on with the next segment one node up.
func (w *walker) walkParent(i int) bool {
	if len(w.stack) == 1 {
		return w.walk(i + 1)
	}
	top := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	found := w.walk(i + 1)
	w.stack = append(w.stack, top)
	return found
}

// isOrdinary reports whether a path has nothing but what every server reads in the same way, but for case
// and extensions.
func isOrdinary(raw string) bool {
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '/':
			if raw[i-1] == '/' {
				return false
			}
		case c == '.':
			if raw[i-1] == '/' || i+1 == len(raw) || raw[i+1] == '/' || raw[i+1] == '.' {
				return false
			}
		case !isUnreserved(c):
			return false
		}
	}
	return raw[len(raw)-1] != '/' || len(raw) == 1
}

// isSpelling reports whether a segment of a path can be read as a plain segment of a described one, which is
// folded: with something before or after it that some servers drop.
func isSpelling(s, folded string, isLast bool) bool {
	if isASCII(s) {
		return isSpellingASCII(s, folded, isLast)
	}
	rest, found := strings.CutPrefix(trimJunk(fold(s)), folded)
	return found && isDropped(rest, isLast)
}

func isSpellingASCII(s, folded string, isLast bool) bool {
	if len(s) > len(folded) {
		s = trimJunk(s)
	}
	if len(s) < len(folded) {
		return false
	}
	for i := range len(folded) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != folded[i] {
			return false
		}
	}
	return isDropped(s[len(folded):], isLast)
}

// isDropped reports whether some server drops what comes after a segment.
func isDropped(rest string, isLast bool) bool {
	if rest == "" {
		return true
	}
	switch c := rest[0]; {
	case c < ' ', c == 0x7f, c == ';', c == '?', c == '#', strings.HasPrefix(rest, "::$"):
		return true // parameters, what comes after the end of a string or a line, a query, a stream of a file
	case c == '.' && isLast:
		return true // the extension by which frameworks let clients name a format
	}
	return strings.Trim(rest, ". +") == ""
}

// trimJunk drops blanks and control characters before a segment.
func trimJunk(s string) string {
	for s != "" && (s[0] <= ' ' || s[0] == 0x7f) {
		s = s[1:]
	}
	return s
}

// isCut reports whether a segment is nothing, or '.', for servers that cut it at what isDropped drops.
func isCut(s string) bool {
	s = trimJunk(s)
	return isDropped(s, false) || s[0] == '.' && isDropped(s[1:], false)
}

// isOnlyExtension reports whether a segment is an extension of nothing.
func isOnlyExtension(s string) bool {
	s = trimJunk(s)
	return s != "" && s[0] == '.'
}

// isNothing reports whether some server would drop everything from segment i on.
func (w *walker) isNothing(i int) bool {
	for _, s := range w.segments[i:] {
		if !isCut(s) {
			return false
		}
	}
	return true
}

// isScript reports whether a segment may be the program that serves all paths below it, such as index.php.
func isScript(s string) bool {
	at := strings.LastIndexByte(s, '.')
	if at <= 0 {
		return false
	}
	switch extension, _, _ := strings.Cut(fold(s[at+1:]), ";"); extension {
	case "php", "cgi", "fcgi", "pl", "py", "dll", "do", "aspx", "ashx":
		return true
	}
	return false
}

// isParent reports whether a segment is '..' for some server.
func isParent(s string) bool {
	if len(s) < 2 {
		return false
	}
	rest, found := strings.CutPrefix(trimJunk(fold(s)), "..")
	return found && isDropped(rest, false)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold makes one form of all spellings of a text that servers, languages and file systems hold for equal:
// compatible characters (NFKC), upper and lower case, and characters that are not seen.
func fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Fold().String(norm.NFKC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || r == 0x34f {
			return -1
		}
		return unicode.ToUpper(r)
	}, norm.NFKC.String(s))))
}

// latin1 reads each byte as a character.
func latin1(s string) string {
	runes := make([]rune, 0, len(s))
	for i := range len(s) {
		runes = append(runes, rune(s[i]))
	}
	return string(runes)
}
