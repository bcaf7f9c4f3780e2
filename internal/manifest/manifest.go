// Package manifest reads the files that people write for the gateway: YAML and JSON with any number of objects.
//
// It is strict about what two readers of the same file could read differently: duplicate keys, keys
// that are not strings, unknown tags, aliases that explode, invalid UTF-8 and trailing junk are
// refused, each with its line. Plain scalars mean what they mean to kubectl (YAML 1.1, as
// sigs.k8s.io/yaml reads it), save that no number is ever rounded.
package manifest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/file"
)

// Error is a reason why a file, or a part of it, cannot be read, or a warning about it.
type Error struct {
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Column counts the characters of the line from 1; 0 means the line as a whole.
	Column int
	// Path is the path of the value within its object, empty for the object itself.
	Path string
	// Msg is a sentence without a final full stop.
	Msg string
	// Warning says that the file was read all the same, though perhaps not as its author means it.
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
	data, _, err := file.Read(name, MaxBytes)
	if err != nil {
		return nil, []*Error{{File: name, Msg: err.Error()}}
	}
	return Read(name, data)
}

// Read reads the objects in data, which is YAML, or JSON if the name ends in ".json" or as far as the content is.
// Documents that are empty are left out; a `kind: List` is replaced by its items.
//
// Objects without an error of their own are returned beside the errors of others. The name is used in messages only.
func Read(name string, data []byte) ([]*Object, []*Error) { return ReadWithin(name, data, nil) }

// ReadWithin is Read for a file whose memory is asked for before it is taken; nil means no bound.
// The caller gives back what the objects take.
func ReadWithin(name string, data []byte, memory document.Memory) ([]*Object, []*Error) {
	r := &reader{file: name, held: memoryClaim{memory: memory}}
	r.read(name, data)
	return r.objects, r.errs
}

// read reads a file.
func (r *reader) read(name string, data []byte) {
	if len(data) > MaxBytes {
		r.fail(position{}, "", "must be at most %d bytes", MaxBytes)
		return
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if line, ok := invalidUTF8(data); !ok {
		r.fail(position{line: line}, "", "must be valid UTF-8")
		return
	}
	if weight := Weight(data); !r.held.grow(weight) {
		r.fail(position{}, "", "takes more memory to read, about %d bytes, than is left of `limits.bodiesInFlightBytes`: split it, or give the gateway more memory", weight)
		return
	}
	defer r.held.releaseUnused()
	switch {
	case strings.EqualFold(filepath.Ext(name), ".json"):
		r.readJSON(data)
	case looksLikeJSON(data):
		r.readByContent(data)
	default:
		r.readYAML(data)
	}
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

// ReadFragment reads a file that an OpenAPI document refers to: one document, which may be any object or list and is
// read as OpenAPI documents are. It has no kind. The name and the memory are those of [ReadWithin].
func ReadFragment(name string, data []byte, memory document.Memory) (*Object, []*Error) {
	r := &reader{file: name, held: memoryClaim{memory: memory}, isFragment: true}
	if r.read(name, data); r.failed == 0 && len(r.objects) != 1 {
		r.fail(position{}, "", "must hold one document, since another file refers to it")
	}
	if r.failed > 0 {
		return nil, r.errs
	}
	return r.objects[0], r.errs
}

// reader collects what a file holds.
type reader struct {
	isFragment bool
	file       string
	objects    []*Object
	errs       []*Error
	failed     int // the errors that are not warnings
	expanded   int // bytes of JSON so far
	held       memoryClaim
}

func (r *reader) fail(at position, path, format string, args ...any) {
	r.failed++
	r.errs = append(r.errs, &Error{File: r.file, Line: at.line, Column: at.column, Path: path,
		Msg: fmt.Sprintf(format, args...)})
}

func (r *reader) warn(at position, path, format string, args ...any) {
	r.errs = append(r.errs, &Error{File: r.file, Line: at.line, Column: at.column, Path: path,
		Msg: fmt.Sprintf(format, args...), Warning: true})
}

// notReadable is the message about what is too odd for the strict reader of JSON, such as an exponent of ten digits.
const notReadable = "must be an object that can be read in one way only: %v"

// limitsOf are the limits of a text that was read and bounded already.
func limitsOf(json []byte) document.Limits {
	return document.Limits{Bytes: len(json), Nodes: len(json), Depth: maxDepth + 1}
}

// add takes a document's value; failed says that errors were found inside it.
func (r *reader) add(t *text, failed bool) {
	if failed {
		return
	}
	t.fit()
	if r.isFragment && len(t.json) > 0 && (t.json[0] == '{' || t.json[0] == '[') {
		r.addFragment(t)
		return
	}
	if len(t.json) == 0 || t.json[0] != '{' {
		r.fail(t.position(0), "", "must be an object with `apiVersion` and `kind`")
		return
	}
	if r.expanded += len(t.json); r.expanded > maxExpandedBytes {
		r.fail(t.position(0), "", "must mean at most %d bytes of JSON in all, its aliases replaced", maxExpandedBytes)
		return
	}
	r.addObject(t, "", 0)
}

// addFragment takes the document of a fragment.
func (r *reader) addFragment(t *text) {
	p, _, err := parse(t.json)
	switch {
	case err != nil:
		r.fail(t.position(0), "", notReadable, err)
	case !r.held.keep(objectWeight(t.json)):
		r.fail(t.position(0), "", "takes more memory than is left of `limits.bodiesInFlightBytes`: split the file, or give the gateway more memory")
	default:
		p.keep()
		r.objects = append(r.objects, &Object{File: r.file, Kind: "fragment", JSON: t.json, parsed: p,
			places: &t.positionTable})
	}
}

func (r *reader) addObject(t *text, path string, depth int) {
	if !r.held.keep(objectWeight(t.json)) {
		r.fail(t.position(0), path, "takes more memory than is left of `limits.bodiesInFlightBytes`: split the file, or give the gateway more memory")
		return
	}
	p, d, err := parse(t.json)
	if err != nil {
		r.fail(t.position(0), path, notReadable, err)
		return
	}
	o := &Object{File: r.file, JSON: t.json, parsed: p, places: &t.positionTable}
	root := d.Root()
	if depth == 0 && isOpenAPI(root) {
		r.addOpenAPI(o)
		return
	}
	if depth == 0 && isOverlay(root) {
		r.addOverlay(o)
		return
	}
	o.APIVersion = r.requiredString(o, path, "apiVersion")
	o.Kind = r.requiredString(o, path, "kind")
	if o.APIVersion == "" || o.Kind == "" {
		return
	}
	if items, kind, ok := listItems(root, o); ok {
		if depth > 0 {
			r.fail(t.position(0), path, "must not be a list inside a list")
			return
		}
		r.addItems(t, items, o.APIVersion, kind)
		d.Release()
		return
	}
	metadata, _ := root.Get("metadata")
	o.Name = stringMember(metadata, "name")
	o.Namespace = stringMember(metadata, "namespace")
	_, hasAnnotations := metadata.Get("annotations")
	_, hasLabels := metadata.Get("labels")
	o.IsAnnotated = hasAnnotations || hasLabels
	r.objects = append(r.objects, o)
}

// addItems takes the items of a list, with the kind that the list gives them, if any.
func (r *reader) addItems(t *text, items document.Node, apiVersion, kind string) {
	i := 0
	for item := items.First(); item.Valid(); item = item.Next() {
		path := fmt.Sprintf("items[%d]", i)
		i++
		start, _ := item.Offset()
		if item.Kind() != document.Object {
			r.fail(t.position(start), path, "must be an object with `apiVersion` and `kind`")
			continue
		}
		one := t.part(start, start+len(item.Raw()))
		if kind != "" {
			one = one.withType(item, apiVersion, kind)
		}
		r.addObject(one, path, 1)
	}
}

// requiredString returns a member of an object; its strings are kept, and with them the object's JSON.
func (r *reader) requiredString(o *Object, path, key string) string {
	at := key
	if path != "" {
		at = path + "." + key
	}
	m, ok := o.Document().Root().Get(key)
	switch {
	case !ok:
		r.fail(o.position(o.Document().Root()), at, "Required value")
	case m.Kind() != document.String:
		r.fail(o.position(m), at, "must be a string")
	case m.Is(""):
		r.fail(o.position(m), at, "may not be empty")
	default:
		return m.Str()
	}
	return ""
}

// stringMember returns a member that is a string, or "".
func stringMember(n document.Node, key string) string {
	m, _ := n.Get(key)
	return m.Str()
}

// listItems reports whether root is a list of objects, as `kubectl get -o yaml` and `kubectl get
// --raw` print them, and returns its items. The latter name their kind only once, for the whole
// list: the items get theirs from it.
func listItems(root document.Node, o *Object) (items document.Node, kind string, ok bool) {
	items, ok = root.Get("items")
	if !ok || items.Kind() != document.Array {
		return items, "", false
	}
	if o.APIVersion == "v1" && o.Kind == "List" {
		return items, "", true
	}
	kind, ok = strings.CutSuffix(o.Kind, "List")
	if _, hasSpec := root.Get("spec"); !ok || kind == "" || hasSpec {
		return items, "", false
	}
	for item := items.First(); item.Valid(); item = item.Next() {
		if _, ok := item.Get("metadata"); !ok {
			return items, "", false
		}
	}
	return items, kind, true
}
