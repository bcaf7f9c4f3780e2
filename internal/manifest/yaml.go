package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// readYAML reads the documents of a YAML stream up to the first that does not parse.
func (r *reader) readYAML(data []byte) {
	if items(data) > MaxValues {
		r.fail(position{}, "", "%s", tooMany)
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	lines := splitLines(data)
	for {
		doc, err := nextDocument(decoder)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, msg := syntaxError(err, lines)
			r.fail(beginning(lines, line), "", "must be valid YAML: %s", msg)
			return
		}
		before := r.failed
		t := &translator{reader: r, text: &text{}, lines: lines}
		if r.isFragment || documentsOpenAPI(doc) {
			t.dialect = coreYAML
		}
		if t.document(doc) {
			r.add(t.text, r.failed > before)
		}
	}
}

// nextDocument turns the parser's panics, which mean a defect of its own, into errors: a file may not end the process.
func nextDocument(decoder *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser fails on it: %v", p)
		}
	}()
	doc = &yaml.Node{}
	return doc, decoder.Decode(doc)
}

// beginning returns the position of the first letter of a line, for the parser does not say the column.
func beginning(lines [][]byte, line int) position {
	at := position{line: line}
	if line >= 1 && line <= len(lines) {
		at.column = len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " ")) + 1
	}
	return at
}

// syntaxError splits the parser's "yaml: line 3: message". The parser leaves out the first line,
// counts from 0 in the messages of its grammar (the messages of its scanner count from 1), and does
// not say where an unknown anchor is used.
func syntaxError(err error, lines [][]byte) (line int, msg string) {
	line = 1
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if number, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, msg = n, text
				if isGrammarMessage(msg) {
					line++
				}
			}
		}
	}
	if msg == "found character that cannot start any token" && line <= len(lines) &&
		bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t")) {
		msg = "lines must be indented by spaces, not by tabs"
	}
	if rest, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		for i, text := range lines {
			if bytes.Contains(text, []byte("*"+name)) {
				return i + 1, msg
			}
		}
	}
	return line, msg
}

func isGrammarMessage(msg string) bool {
	switch msg {
	case "did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected key",
		"did not find expected '-' indicator", "did not find expected node content",
		"did not find expected <document start>", "found undefined tag handle", "found incompatible YAML document",
		"found duplicate %YAML directive", "found duplicate %TAG directive":
		return true
	}
	return false
}

// translator writes the JSON of one document's nodes.
type translator struct {
	*reader
	*text            // what is written to
	lines   [][]byte // of the whole file
	dialect dialect

	// size is how long the JSON would be that is written, and written is how much was written in
	// all. Nothing is written beyond a bound, behind which an error is certain.
	size, written int
	spent         bool // that too much was written is recorded

	// rest is the part of a line from a column on: nodes are asked about in their order.
	line, column int
	rest         []byte

	// anchors has an entry for each anchored node met so far.
	anchors map[*yaml.Node]anchor
}

// dialect says how a text is read.
type dialect uint8

const (
	fileYAML dialect = iota // as Kubernetes' tools read files: words mean what they mean in YAML 1.1
	coreYAML                // an OpenAPI document, whose words mean what they mean in YAML 1.2
	bodyYAML                // the body of a request, in which anchors and aliases are refused
)

// anchor holds what is known of an anchored node.
type anchor struct {
	open       bool // its value is still being written
	ok         bool // it has a value, at from.json[start:end]
	from       *text
	start, end int
	size       int
}

// document writes a document's value; false if there is none, or an error was recorded.
func (t *translator) document(doc *yaml.Node) bool {
	if len(doc.Content) != 1 {
		return false
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 {
		return false // nothing but comments
	}
	t.mark(positionOf(root))
	return t.value(root, "", 0)
}

// take reports whether some bytes of JSON may be written, and counts them.
func (t *translator) take(size int) bool {
	t.size += size
	if t.size > maxExpandedBytes || t.written > maxWritten {
		return false
	}
	t.written += size
	return true
}

func (t *translator) raw(s string) {
	if t.take(len(s)) {
		t.json = append(t.json, s...)
	}
}

func (t *translator) string(s string) {
	before := len(t.json)
	if t.take(len(s) + 2) {
		t.json = document.AppendString(t.json, s)
		escapes := len(t.json) - before - len(s) - 2
		t.size, t.written = t.size+escapes, t.written+escapes
	}
}

// value writes a node's value; it returns false after an error, which is recorded, and may leave
// part of the value.
func (t *translator) value(n *yaml.Node, path string, depth int) (ok bool) {
	if depth > maxDepth {
		t.fail(positionOf(n), path, "must be nested at most %d levels deep", maxDepth)
		return false
	}
	if n.Kind == yaml.AliasNode {
		return t.alias(n, path)
	}
	if n.Anchor != "" && t.dialect == bodyYAML {
		t.fail(positionOf(n), path, "must not use anchors, such as '&%s'", n.Anchor)
		return false
	}
	size := t.size
	if n.Anchor != "" {
		from, start := t.text, len(t.json)
		t.anchored(n, anchor{open: true})
		defer func() {
			t.anchored(n, anchor{ok: ok, from: from, start: start, end: len(from.json), size: t.size - size})
		}()
	}
	switch n.Kind {
	case yaml.ScalarNode:
		ok = t.scalarValue(n, path)
	case yaml.SequenceNode:
		ok = t.collectionTag(n, "!!seq", path) && t.sequence(n, path, depth)
	case yaml.MappingNode:
		ok = t.collectionTag(n, "!!map", path) && t.mapping(n, path, depth)
	default:
		t.fail(positionOf(n), path, "must be valid YAML: a node of an unknown kind")
	}
	switch {
	case !ok:
		return false
	case t.size-size > maxExpandedBytes, t.written > maxWritten && !t.spent:
		t.fail(positionOf(n), path, "must mean at most %d bytes of JSON, its aliases replaced", maxExpandedBytes)
		t.spent = t.written > maxWritten
		return false
	}
	return !t.spent
}

func (t *translator) anchored(n *yaml.Node, a anchor) {
	if t.anchors == nil {
		t.anchors = map[*yaml.Node]anchor{}
	}
	t.anchors[n] = a
}

func (t *translator) scalarValue(n *yaml.Node, path string) bool {
	s, ok := t.scalar(n, path)
	switch {
	case !ok:
		return false
	case s.isString:
		t.string(s.text)
	default:
		if s.letter != 0 && !t.bare {
			t.letters = append(t.letters, letter{offset: uint32(len(t.json)), char: s.letter})
		}
		t.raw(s.text)
	}
	return true
}

// alias writes the value that the alias names. Only anchors of the same document count: the parser
// would also take the anchors of an earlier document, which other readers do not know.
func (t *translator) alias(n *yaml.Node, path string) bool {
	a, met := t.anchors[n.Alias]
	switch {
	case !met:
		t.fail(positionOf(n), path, "must not use the alias '*%s', which no anchor of this document defines", n.Value)
	case a.open:
		t.fail(positionOf(n), path, "must not use the alias '*%s' inside the value it stands for", n.Value)
	}
	if !a.ok {
		return false // as well after an error inside the anchored value, which is recorded already
	}
	if t.take(a.size) && a.end-a.start == a.size { // else not all of it was written, for an error that is certain
		t.appendValue(a.from, a.start, a.end)
	}
	return true
}

func (t *translator) collectionTag(n *yaml.Node, want, path string) bool {
	if n.Tag == want {
		return true
	}
	t.fail(positionOf(n), path, "must not have the tag '%s'", n.Tag)
	return false
}

func (t *translator) sequence(n *yaml.Node, path string, depth int) bool {
	ok := true
	t.raw("[")
	for i, item := range n.Content {
		if i > 0 {
			t.raw(",")
		}
		t.mark(positionOf(item))
		ok = t.value(item, path+"["+strconv.Itoa(i)+"]", depth+1) && ok
	}
	t.raw("]")
	return ok
}

func (t *translator) mapping(n *yaml.Node, path string, depth int) bool {
	ok := true
	var set keys
	var brought []merged
	hasMerge := false
	t.raw("{")
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode := n.Content[i]
		if isMerge(keyNode) {
			if hasMerge {
				t.fail(positionOf(keyNode), path, "must not have the merge key '<<' twice")
				ok = false
				continue
			}
			var isMerged bool
			if brought, isMerged = t.merge(n.Content[i+1], path, depth+1); !isMerged {
				ok = false
				continue
			}
			hasMerge = true
			ok = t.mergeConflicts(brought, &set, positionOf(keyNode), path) && ok
			continue
		}
		key, isKey := t.key(keyNode, path)
		if !isKey {
			ok = false
			continue
		}
		memberPath := childPath(path, key)
		if line, twice := set.line(key); twice {
			t.fail(positionOf(keyNode), memberPath, "must not be set twice; it is set on line %d already", line)
			ok = false
			continue
		}
		t.member(key, positionOf(keyNode), len(set.list) > 0)
		set.add(key, keyNode.Line)
		ok = t.value(n.Content[i+1], memberPath, depth+1) && ok
	}
	for _, m := range brought {
		if _, own := set.line(m.key); !own {
			t.member(m.key, m.at, len(set.list) > 0)
			set.add(m.key, m.at.line)
			if t.take(m.end - m.start) {
				t.appendValue(m.from, m.start, m.end)
			}
		}
	}
	t.raw("}")
	return ok
}

// member writes a key and what stands before its value.
func (t *translator) member(key string, at position, another bool) {
	if another {
		t.raw(",")
	}
	t.mark(at)
	t.string(key)
	t.raw(":")
}

func (t *translator) key(n *yaml.Node, path string) (string, bool) {
	at := positionOf(n)
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		t.fail(at, path, "must have strings as keys, not lists or mappings")
		return "", false
	}
	if n.Anchor != "" && t.dialect == bodyYAML {
		t.fail(at, path, "must not use anchors, such as '&%s'", n.Anchor)
		return "", false
	}
	s, ok := t.scalar(n, path)
	if !ok {
		return "", false
	}
	key := s.text
	if !s.isString && t.dialect == coreYAML {
		key = n.Value // a code such as 200
	} else if !s.isString {
		switch is, text := resolve(n.Value); {
		case is == "!!bool":
			// kubectl takes `on:` for `true:`; so do we, but authors never mean it.
			if text != n.Value {
				t.warn(at, path, "the key '%s' is read as '%s', as in YAML 1.1; to mean the word it must be in quotes", n.Value, text)
			}
		case is == "!!int" && text == n.Value:
		case n.Value == "":
			t.fail(at, path, "must not have an empty key")
			return "", false
		default:
			t.fail(at, path, "must have strings as keys; the key '%s' is read as %s and must be in quotes", n.Value,
				text)
			return "", false
		}
	}
	if t.dialect != bodyYAML && strings.Contains(key, "\x00") { // of a body the caller refuses it
		t.fail(at, path, "must not have a key with the character U+0000")
		return "", false
	}
	if n.Anchor != "" {
		from := &text{json: document.AppendString(nil, key)}
		t.anchored(n, anchor{ok: true, from: from, end: len(from.json), size: len(from.json)})
	}
	return key, true
}

// childPath appends a member to a field path; keys that are no plain names are written in brackets.
func childPath(path, key string) string {
	plain := key != "" && !strings.ContainsAny(key, ".[]/ \t\n")
	switch {
	case !plain:
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// splitLines splits where YAML 1.1 does, so that the parser's line numbers are indexes of it.
func splitLines(data []byte) [][]byte {
	var lines [][]byte
	start := 0
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		i += size
		switch c {
		case '\r':
			if i < len(data) && data[i] == '\n' {
				i++
			}
		case '\n', '\u0085', '\u2028', '\u2029':
		default:
			continue
		}
		lines = append(lines, data[start:i])
		start = i
	}
	return append(lines, data[start:])
}
