package scan

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// endings are of the files that are read in folders.
var endings = []string{".json", ".ndjson", ".jsonl", ".yaml", ".yml"}

// expand returns the files that paths name; a folder means its files in the order of their names.
func expand(paths []string) (files []string, err error) {
	for _, path := range paths {
		if path == "-" {
			files = append(files, path)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, usage("%v", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && slices.Contains(endings, strings.ToLower(filepath.Ext(name))) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, usage("%v", err)
		}
	}
	if len(files) == 0 && len(paths) > 0 {
		return nil, usage("there is no file to read: a folder must have files that end in %s",
			strings.Join(endings, ", "))
	}
	return files, nil
}

// A fileSource reads a file. It implements source.
type fileSource struct {
	path  string
	input io.Reader // of the path "-"
	shape shape
	about *subject
	// list leads to the items of a file that is one object; empty for objects of their own, or a list of Kubernetes.
	list []string
	// done and size say how much of all files was read.
	done, size int64
	limits     document.Limits
}

// name implements source.
func (f *fileSource) name() string {
	if f.path == "-" {
		return "standard input"
	}
	return f.path
}

// headBytes is how much of a file decides how it is read.
const headBytes = 64 << 10

// read implements source.
func (f *fileSource) read(_ context.Context, _ position, to *emitter) error {
	in := f.input
	if f.path != "-" {
		file, err := os.Open(f.path)
		if err != nil {
			return usage("%v", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	c := &counted{in: in, of: f, to: to}
	r := bufio.NewReaderSize(c, headBytes)
	head, err := r.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", f.name(), err)
	}
	switch first := firstByte(head); {
	case first == 0 && len(head) < headBytes:
		return nil
	case first == '[':
		err = f.readList(r, nil, to)
	case first != '{':
		err = f.readYAML(r, to)
	case len(f.list) > 0:
		err = f.readList(r, f.list, to)
	case isList(head):
		err = f.readList(r, []string{"items"}, to)
	case hasLines(head):
		err = f.readLines(r, to)
	default:
		err = f.readSequence(r, to)
	}
	return err
}

// counted counts what is read of a file.
type counted struct {
	in io.Reader
	of *fileSource
	to *emitter
	n  int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	if c.to.part = -1; c.of.size > 0 {
		c.to.part = float64(c.of.done+c.n) / float64(c.of.size)
	}
	return n, err
}

func firstByte(head []byte) byte {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(head) == 0 {
		return 0
	}
	return head[0]
}

// isList reports whether a text begins as an object in Kubernetes' form whose items are objects of their own.
func isList(head []byte) bool {
	p := peek(head)
	kind, hasItems := p["kind"], p["items"] == "["
	return hasItems && (kind == "" && p["apiVersion"] != "" || strings.HasSuffix(kind, "List"))
}

// hasLines reports whether each line of a text is a value of its own, as far as its first line
// shows.
func hasLines(head []byte) bool {
	end := bytes.IndexByte(head, '\n')
	if end < 0 {
		return len(head) < headBytes
	}
	d, err := document.Parse(bytes.TrimSpace(head[:end]), document.Limits{})
	if err != nil {
		return false
	}
	d.Release()
	return true
}

// readLines reads a file with one value in each line.
func (f *fileSource) readLines(r *bufio.Reader, to *emitter) error {
	most := f.limits.Bytes + 2
	var long []byte
	for line := int64(1); ; line++ {
		text, err := r.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) <= most { // what is longer is refused by its length
				long = append(long, text...)
			}
			text, err = r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", f.name(), err)
		}
		if len(long) > 0 {
			text = append(long, text[:min(len(text), max(most-len(long), 0))]...)
			long = text[:0]
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if failed := to.item(item{shape: f.shape, about: f.about, line: line, place: f.name()},
				text); failed != nil {
				return failed
			}
		}
		if cap(long) > keptBytes {
			long = nil
		}
		if err != nil {
			return nil
		}
	}
}

// readList reads a file that is one list, or has one.
func (f *fileSource) readList(r io.Reader, path []string, to *emitter) error {
	return f.readStream(r, document.StreamOptions{Place: document.List, Path: path}, to)
}

// readSequence reads values that stand one behind the other.
func (f *fileSource) readSequence(r io.Reader, to *emitter) error {
	return f.readStream(r, document.StreamOptions{Place: document.Sequence}, to)
}

func (f *fileSource) readStream(r io.Reader, o document.StreamOptions, to *emitter) error {
	o.ItemsOnly, o.Limits = true, f.limits
	if err := stream(r, o, func(d *document.Document) error {
		return to.item(item{shape: f.shape, about: f.about, line: 0, place: f.name()}, d.Root().Raw())
	}); err != nil {
		if to.ctx.Err() != nil {
			return to.ctx.Err()
		}
		return fmt.Errorf("%s: %w", f.name(), err)
	}
	return nil
}

// stream hands the items of a text to a function.
func stream(r io.Reader, o document.StreamOptions, take func(*document.Document) error) error {
	var s document.Stream
	s.Reset(o, taker(take))
	buffer, out := make([]byte, 128<<10), make([]byte, 0, 1<<10)
	for {
		n, err := r.Read(buffer)
		for src := buffer[:n]; len(src) > 0; {
			var used int
			var failed error
			if out, used, failed = s.Append(out[:0], src, 1<<20); failed != nil {
				return failed
			}
			src = src[used:]
		}
		if errors.Is(err, io.EOF) {
			_, err = s.Close(out[:0])
			return err
		}
		if err != nil {
			return err
		}
	}
}

// taker takes items out of a stream. It implements document.ItemEditor.
type taker func(*document.Document) error

// EditItem implements document.ItemEditor.
func (t taker) EditItem(d *document.Document) error {
	if err := t(d); err != nil {
		return err
	}
	return document.ErrOmit
}

// ItemMemory implements document.ItemEditor.
func (taker) ItemMemory(kept []byte, least int) ([]byte, error) {
	more := make([]byte, max(2*len(kept), least))
	copy(more, kept)
	return more, nil
}

// readYAML reads documents of YAML.
func (f *fileSource) readYAML(r *bufio.Reader, to *emitter) error {
	var text []byte
	line, begin := int64(0), int64(1)
	flush := func() error {
		defer func() { text = text[:0] }()
		if isBlank(text) {
			return nil
		}
		json, err := manifest.ReadBody(text)
		if err != nil {
			return fmt.Errorf("%s: the document from line %d on: %w", f.name(), begin, err)
		}
		at := item{shape: f.shape, about: f.about, line: begin, place: f.name()}
		if !isList(json) {
			return to.item(at, json)
		}
		return stream(bytes.NewReader(json), document.StreamOptions{Place: document.List, Path: []string{"items"},
			ItemsOnly: true, Limits: f.limits}, func(d *document.Document) error {
			return to.item(at, d.Root().Raw())
		})
	}
	for {
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%s: %w", f.name(), err)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			line++
		}
		if isSeparator(part) {
			if failed := flush(); failed != nil {
				return failed
			}
			begin = line + 1
		} else {
			text = append(text, part...)
		}
		if len(text) > maxYAML {
			return fmt.Errorf("%s: the document from line %d on must be at most %d bytes; write large lists as JSON", f.name(), begin, maxYAML)
		}
		if errors.Is(err, io.EOF) {
			return flush()
		}
	}
}

// maxYAML is how large a document of YAML may be, in bytes: it is read as a whole.
const maxYAML = 8 << 20

func isSeparator(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	return found && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' &&
		bytes.HasPrefix(bytes.TrimSpace(rest), []byte("#")))
}

// isBlank reports whether a text has comments and blank lines alone.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
