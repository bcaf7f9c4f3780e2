// Package manifest reads the files that people write for the gateway: YAML and JSON with any number of objects.
//
// It is strict where two readers of the same file could disagree: duplicate keys, keys that are not strings,
// unknown tags, aliases that explode, invalid UTF-8 and trailing junk are refused, each with its line. Plain
// scalars mean what they mean to kubectl (YAML 1.1, as sigs.k8s.io/yaml reads it), save that no number is ever
// rounded.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of a file. They are far above what people write by hand; the Gateway API's CRDs, among the largest of the
// ecosystem, have 1.2 MB in all, and the largest OpenAPI documents that are published about 12 MB.
const (
	// MaxBytes is the size a file may have.
	MaxBytes = 16 << 20
	// maxExpandedBytes bounds the JSON made of one file. Aliases repeat what they point to, so a small file can
	// mean a very large one.
	maxExpandedBytes = 32 << 20
	// maxDepth bounds the nesting of objects and lists.
	maxDepth = 256
)

// Object is one object of a file.
type Object struct {
	// File is the name by which the file was read.
	File string
	// OpenAPI tells that the object is an OpenAPI document, whose APIVersion is the version of the specification that it
	// follows, its Kind 'OpenAPI' and its Name its title.
	OpenAPI bool
	// APIVersion and Kind are never empty.
	APIVersion, Kind string
	// Namespace and Name come from metadata and are empty where it has none.
	Namespace, Name string
	// JSON is the object as compact JSON, members in the file's order, numbers unrounded.
	JSON []byte

	line int
	root *value
}

// GroupVersion splits the object's apiVersion; the group of "v1" is empty.
func (o *Object) GroupVersion() (group, version string) {
	if group, version, found := strings.Cut(o.APIVersion, "/"); found {
		return group, version
	}
	return "", o.APIVersion
}

// Error is a reason why a file, or a part of it, cannot be read, or a warning about it.
type Error struct {
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Path is the path of the value within its object, empty for the object itself.
	Path string
	// Msg is a sentence without a final full stop.
	Msg string
	// Warning tells that the file was read all the same, though perhaps not as its author means it.
	Warning bool
}

// Error formats e as `file:line: path: message`.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// ReadFile reads the objects of the file with the given name. See Read.
func ReadFile(name string) ([]*Object, []*Error) {
	data, err := ReadBytes(name)
	if err != nil {
		return nil, []*Error{{File: name, Msg: err.Error()}}
	}
	return Read(name, data)
}

// ReadBytes returns a file's bytes, at most one more than MaxBytes so that Read can tell that there are too many. The
// error is a sentence without the file's name.
func ReadBytes(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("may not be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("may not be read: %w", err)
	}
	if info.IsDir() {
		return nil, errors.New("must be a file, not a directory")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("may not be read: %w", err)
	}
	return data, nil
}

// Read reads the objects in data, which is YAML, or JSON when the name ends in ".json" or the content begins like
// JSON and is. Documents that are empty are left out; a `kind: List` is replaced by its items.
//
// Objects without an error of their own are returned beside the errors of others. The name is used in messages only.
func Read(name string, data []byte) ([]*Object, []*Error) {
	r := &reader{file: name}
	if len(data) > MaxBytes {
		r.fail(0, "", "must be at most %d bytes", MaxBytes)
		return nil, r.errs
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if line, ok := invalidUTF8(data); !ok {
		r.fail(line, "", "must be valid UTF-8")
		return nil, r.errs
	}
	switch {
	case strings.EqualFold(filepath.Ext(name), ".json"):
		r.readJSON(data)
	case looksLikeJSON(data):
		// JSON may hold what YAML's scanner does not take (surrogate pairs, very long keys), and YAML in braces is
		// not JSON: the content decides.
		asJSON := &reader{file: name}
		if asJSON.readJSON(data); len(asJSON.errs) == 0 {
			return asJSON.objects, nil
		}
		r.readYAML(data)
	default:
		r.readYAML(data)
	}
	return r.objects, r.errs
}

func looksLikeJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '{'
}

// invalidUTF8 returns the line of the first byte that is not UTF-8.
func invalidUTF8(data []byte) (line int, ok bool) {
	if utf8.Valid(data) {
		return 0, true
	}
	line = 1
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size == 1 {
			break
		}
		if c == '\n' {
			line++
		}
		data = data[size:]
	}
	return line, false
}

// reader collects what a file holds.
type reader struct {
	file     string
	objects  []*Object
	errs     []*Error
	failed   int // the errors that are not warnings
	expanded int // bytes of JSON so far
}

func (r *reader) fail(line int, path, format string, args ...any) {
	r.failed++
	r.errs = append(r.errs, &Error{File: r.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (r *reader) warn(line int, path, format string, args ...any) {
	r.errs = append(r.errs, &Error{File: r.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...), Warning: true})
}

// add takes a document's value; failed tells that errors were found inside it.
func (r *reader) add(v *value, failed bool) {
	if v == nil || failed {
		return
	}
	if v.kind != object {
		r.fail(v.line, "", "must be an object with `apiVersion` and `kind`")
		return
	}
	if r.expanded += v.size; r.expanded > maxExpandedBytes {
		r.fail(v.line, "", "must mean at most %d bytes of JSON in all, its aliases replaced", maxExpandedBytes)
		return
	}
	r.addObject(v, v.line, "", 0)
}

func (r *reader) addObject(v *value, line int, path string, depth int) {
	o := &Object{File: r.file, line: line, root: v}
	if depth == 0 && isOpenAPI(v) {
		r.addOpenAPI(o)
		return
	}
	o.APIVersion = r.requiredString(v, line, path, "apiVersion")
	o.Kind = r.requiredString(v, line, path, "kind")
	if o.APIVersion == "" || o.Kind == "" {
		return
	}
	if items, ok := listItems(v, o); ok {
		if depth > 0 {
			r.fail(line, path, "must not be a list inside a list")
			return
		}
		for i, item := range items {
			itemPath := fmt.Sprintf("items[%d]", i)
			if item.value.kind != object {
				r.fail(item.line, itemPath, "must be an object with `apiVersion` and `kind`")
				continue
			}
			r.addObject(item.value, item.line, itemPath, depth+1)
		}
		return
	}
	if metadata, ok := v.get("metadata"); ok {
		o.Name = metadata.stringMember("name")
		o.Namespace = metadata.stringMember("namespace")
	}
	o.JSON = v.appendJSON(make([]byte, 0, v.size))
	r.objects = append(r.objects, o)
}

func (r *reader) requiredString(v *value, line int, path, key string) string {
	at := key
	if path != "" {
		at = path + "." + key
	}
	m, ok := v.member(key)
	switch {
	case !ok:
		r.fail(line, at, "Required value")
	case m.value.kind != str:
		r.fail(m.line, at, "must be a string")
	case m.value.text == "":
		r.fail(m.line, at, "may not be empty")
	default:
		return m.value.text
	}
	return ""
}

// listItems tells whether v is a list of objects, as `kubectl get -o yaml` and `kubectl get --raw` print them, and
// returns its items. The latter name their kind only once, for the whole list: the items get theirs from it.
func listItems(v *value, o *Object) ([]member, bool) {
	items, ok := v.member("items")
	if !ok || items.value.kind != array {
		return nil, false
	}
	if o.APIVersion == "v1" && o.Kind == "List" {
		return items.value.members, true
	}
	kind, ok := strings.CutSuffix(o.Kind, "List")
	if _, hasSpec := v.get("spec"); !ok || kind == "" || hasSpec {
		return nil, false
	}
	typed := make([]member, len(items.value.members))
	for i, item := range items.value.members {
		if item.value.kind != object {
			return nil, false
		}
		if _, ok := item.value.get("metadata"); !ok {
			return nil, false
		}
		typed[i] = member{line: item.line, value: item.value.withType(o.APIVersion, kind)}
	}
	return typed, true
}
