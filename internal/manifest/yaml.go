package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// readYAML reads the documents of a YAML stream up to the first that does not parse.
func (r *reader) readYAML(data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	lines := splitLines(data)
	for {
		doc, err := nextDocument(decoder)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, msg := syntaxError(err, lines)
			r.fail(line, "", "must be valid YAML: %s", msg)
			return
		}
		before := r.failed
		t := &translator{reader: r, lines: lines, anchors: map[*yaml.Node]anchor{}, core: documentsOpenAPI(doc)}
		v := t.document(doc)
		r.add(v, r.failed > before)
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

// syntaxError splits the parser's "yaml: line 3: message". The parser leaves out the first line, counts from 0 in the
// messages of its grammar (those of its scanner count from 1), and does not say where an unknown anchor is used.
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
	if msg == "found character that cannot start any token" && line <= len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t")) {
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

// translator turns one document's nodes into values.
type translator struct {
	*reader
	lines [][]byte // of the whole file
	core  bool     // words mean what they mean in YAML 1.2
	plain bool     // anchors and aliases are refused

	// rest is what of a line stands from a column on: nodes are asked about in their order.
	line, column int
	rest         []byte

	// anchors has an entry for each anchored node met so far.
	anchors map[*yaml.Node]anchor
}

// anchor is what is known of an anchored node.
type anchor struct {
	open  bool   // its value is still being built
	value *value // nil while it is open and after an error
}

func (t *translator) document(doc *yaml.Node) *value {
	if len(doc.Content) != 1 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 {
		return nil // nothing but comments
	}
	return t.value(root, "", 0)
}

// value translates a node; it returns nil after an error, which is recorded.
func (t *translator) value(n *yaml.Node, path string, depth int) (v *value) {
	if depth > maxDepth {
		t.fail(n.Line, path, "must be nested at most %d levels deep", maxDepth)
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return t.alias(n, path)
	}
	if n.Anchor != "" && t.plain {
		t.fail(n.Line, path, "must not use anchors, such as '&%s'", n.Anchor)
		return nil
	}
	if n.Anchor != "" {
		t.anchors[n] = anchor{open: true}
		defer func() { t.anchors[n] = anchor{value: v} }()
	}
	v = &value{line: n.Line}
	ok := false
	switch n.Kind {
	case yaml.ScalarNode:
		ok = t.scalar(v, n, path)
	case yaml.SequenceNode:
		v.kind = array
		ok = t.collectionTag(n, "!!seq", path) && t.sequence(v, n, path, depth)
	case yaml.MappingNode:
		v.kind = object
		ok = t.collectionTag(n, "!!map", path) && t.mapping(v, n, path, depth)
	default:
		t.fail(n.Line, path, "must be valid YAML: a node of an unknown kind")
	}
	if !ok {
		return nil
	}
	v.measure()
	if v.size > maxExpandedBytes {
		t.fail(n.Line, path, "must mean at most %d bytes of JSON, its aliases replaced", maxExpandedBytes)
		return nil
	}
	return v
}

// alias returns the value that the alias names. Only anchors of the same document count: the parser would also take
// those of an earlier one, which other readers do not know.
func (t *translator) alias(n *yaml.Node, path string) *value {
	a, met := t.anchors[n.Alias]
	switch {
	case !met:
		t.fail(n.Line, path, "must not use the alias '*%s', which no anchor of this document defines", n.Value)
	case a.open:
		t.fail(n.Line, path, "must not use the alias '*%s' inside the value it stands for", n.Value)
	}
	return a.value // nil as well after an error inside the anchored value, which is recorded already
}

func (t *translator) collectionTag(n *yaml.Node, want, path string) bool {
	if n.Tag == want {
		return true
	}
	t.fail(n.Line, path, "must not have the tag '%s'", n.Tag)
	return false
}

func (t *translator) sequence(v *value, n *yaml.Node, path string, depth int) bool {
	ok := true
	v.members = make([]member, 0, len(n.Content))
	for i, item := range n.Content {
		itemValue := t.value(item, path+"["+strconv.Itoa(i)+"]", depth+1)
		if itemValue == nil {
			ok = false
			continue
		}
		v.members = append(v.members, member{line: item.Line, value: itemValue})
	}
	return ok
}

func (t *translator) mapping(v *value, n *yaml.Node, path string, depth int) bool {
	ok := true
	v.members = make([]member, 0, len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2) // key → line
	var merge *value
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode := n.Content[i]
		if isMerge(keyNode) {
			if merge != nil {
				t.fail(keyNode.Line, path, "must not have the merge key '<<' twice")
				ok = false
				continue
			}
			if merge = t.mergeValue(n.Content[i+1], path, depth+1); merge == nil {
				ok = false
			} else {
				ok = t.mergeConflicts(merge, v, keyNode.Line, path) && ok
			}
			continue
		}
		key, isKey := t.key(keyNode, path)
		if !isKey {
			ok = false
			continue
		}
		memberPath := childPath(path, key)
		if line, twice := seen[key]; twice {
			t.fail(keyNode.Line, memberPath, "must not be set twice; it is set on line %d already", line)
			ok = false
			continue
		}
		seen[key] = keyNode.Line
		memberValue := t.value(n.Content[i+1], memberPath, depth+1)
		if memberValue == nil {
			ok = false
			continue
		}
		v.members = append(v.members, member{key: key, line: keyNode.Line, value: memberValue})
	}
	if ok && merge != nil {
		for _, m := range merge.members {
			if _, set := seen[m.key]; !set {
				v.members = append(v.members, m)
			}
		}
	}
	return ok
}

func isMerge(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" }

// mergeConflicts refuses a '<<' after a member that it would bring too: some readers let the merge win there, others
// the member.
func (t *translator) mergeConflicts(merge, v *value, line int, path string) bool {
	for _, m := range v.members {
		if _, twice := merge.member(m.key); twice {
			t.fail(line, path, "must have the merge key '<<' before `%s`, which it would bring too", m.key)
			return false
		}
	}
	return true
}

// mergeValue returns the object that a '<<' brings: a mapping, or several of which the earlier ones win.
func (t *translator) mergeValue(n *yaml.Node, path string, depth int) *value {
	v := t.value(n, path, depth)
	if v == nil {
		return nil
	}
	sources := []member{{line: n.Line, value: v}}
	if v.kind == array && n.Kind == yaml.SequenceNode {
		sources = v.members
	}
	merged := &value{kind: object, line: n.Line}
	seen := map[string]bool{}
	for _, source := range sources {
		if source.value.kind != object {
			t.fail(source.line, path, "must merge a mapping or a list of mappings with '<<'")
			return nil
		}
		for _, m := range source.value.members {
			if !seen[m.key] {
				seen[m.key] = true
				merged.members = append(merged.members, m)
			}
		}
	}
	return merged
}

func (t *translator) key(n *yaml.Node, path string) (string, bool) {
	line := n.Line
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		t.fail(line, path, "must have strings as keys, not lists or mappings")
		return "", false
	}
	if n.Anchor != "" && t.plain {
		t.fail(line, path, "must not use anchors, such as '&%s'", n.Anchor)
		return "", false
	}
	v := &value{}
	if !t.scalar(v, n, path) {
		return "", false
	}
	if v.kind != str && t.core {
		v = &value{kind: str, text: n.Value} // a code such as 200
	} else if v.kind != str {
		switch is, text := resolve(n.Value); {
		case is == "!!bool":
			// kubectl takes `on:` for `true:`; so do we, but nobody means it.
			if text != n.Value {
				t.warn(line, path, "the key '%s' is read as '%s', as in YAML 1.1; to mean the word it must be in quotes", n.Value, text)
			}
		case is == "!!int" && text == n.Value:
		case n.Value == "":
			t.fail(line, path, "must not have an empty key")
			return "", false
		default:
			t.fail(line, path, "must have strings as keys; the key '%s' is read as %s and must be in quotes", n.Value, text)
			return "", false
		}
		v = &value{kind: str, text: v.text}
	}
	if n.Anchor != "" {
		v.line = n.Line
		v.measure()
		t.anchors[n] = anchor{value: v}
	}
	return v.text, true
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
