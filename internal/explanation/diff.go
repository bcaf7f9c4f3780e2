package explanation

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxValue is how long a value in an edit may be, in bytes.
	maxValue = 512
	// maxEdits is how many edits of a step are listed.
	maxEdits = 200
)

// A Tree is a JSON value as edits are found in it.
type Tree any

// Parse reads a JSON text. What is not a value has no tree.
func Parse(text []byte) Tree {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// Diff returns how one value became another, field by field in the order of their names.
func Diff(before, after Tree) []Edit {
	d := differ{}
	d.compare("", before, after, before != nil, after != nil)
	return d.edits
}

type differ struct{ edits []Edit }

func (d *differ) compare(path string, before, after any, was, is bool) {
	if len(d.edits) >= maxEdits {
		return
	}
	b, wasObject := before.(map[string]any)
	a, isObject := after.(map[string]any)
	if wasObject && isObject {
		for _, key := range Keys(b, a) {
			old, was := b[key]
			value, is := a[key]
			d.compare(Child(path, key), old, value, was, is)
		}
		return
	}
	bl, wasList := before.([]any)
	al, isList := after.([]any)
	if wasList && isList {
		for i := range max(len(bl), len(al)) {
			var old, value any
			if i < len(bl) {
				old = bl[i]
			}
			if i < len(al) {
				value = al[i]
			}
			d.compare(path+"["+strconv.Itoa(i)+"]", old, value, i < len(bl), i < len(al))
		}
		return
	}
	old, value := "", ""
	if was {
		old = textOf(before)
	}
	if is {
		value = textOf(after)
	}
	if old != value {
		d.edits = append(d.edits, Edit{Path: path, Old: Cut(old, maxValue), New: Cut(value, maxValue)})
	}
}

// Child returns the path of a member.
func Child(path, key string) string {
	if key == "" || strings.ContainsAny(key, `.[]"' `) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Keys returns the keys that one of two objects has, sorted.
func Keys(a, b map[string]any) []string {
	all := make(map[string]any, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// textOf writes a value as JSON, without the escapes that are for HTML.
func textOf(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Cut shortens a text to so many bytes.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Replace returns the tree with the values at which hide says so replaced by texts, and whether there
// are such. The tree itself stays as it is.
func Replace(t Tree, hide func(path string, value any) (text string, hidden bool)) (Tree, bool) {
	return replace("", t, hide)
}

func replace(path string, t any, hide func(string, any) (string, bool)) (any, bool) {
	if text, hidden := hide(path, t); hidden {
		return text, true
	}
	some := false
	switch t := t.(type) {
	case map[string]any:
		made := make(map[string]any, len(t))
		for key, value := range t {
			replaced, hidden := replace(Child(path, key), value, hide)
			made[key], some = replaced, some || hidden
		}
		return made, some
	case []any:
		made := make([]any, len(t))
		for i, value := range t {
			replaced, hidden := replace(path+"["+strconv.Itoa(i)+"]", value, hide)
			made[i], some = replaced, some || hidden
		}
		return made, some
	}
	return t, false
}

// Encode writes a tree as JSON.
func Encode(t Tree) string { return textOf(t) }
