package manifest

import (
	"bytes"
	"errors"
	"io"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// bodyName is how errors about the body of a request name it.
const bodyName = "the body"

// ErrLarge is the error of a body that would take too much memory for its size.
var ErrLarge = errors.New("must be shorter, or JSON: YAML of so many items takes too much memory")

// ReadBody makes JSON of the body of a request, which is one document of YAML and any object. It is read as strictly as
// [Read] reads files, and without anchors, so that little of it cannot mean much. Errors are an [*Error], or
// [ErrLarge].
func ReadBody(data []byte) ([]byte, error) {
	r := &reader{file: bodyName}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if line, ok := invalidUTF8(data); !ok {
		return nil, &Error{File: bodyName, Line: line, Msg: "must be valid UTF-8"}
	}
	if items(data) > fewItems+len(data)/bytesPerItem {
		return nil, ErrLarge
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	lines := splitLines(data)
	document, err := nextDocument(decoder)
	if err == nil {
		var next *yaml.Node
		switch next, err = nextDocument(decoder); {
		case errors.Is(err, io.EOF):
			err = nil
		case err == nil:
			return nil, &Error{File: bodyName, Line: next.Line, Msg: "must be one document"}
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, &Error{File: bodyName, Msg: "must not be empty"}
	case err != nil:
		line, msg := syntaxError(err, lines)
		return nil, &Error{File: bodyName, Line: line, Msg: "must be valid YAML: " + msg}
	}
	t := &translator{reader: r, text: &text{json: make([]byte, 0, len(data)), bare: true}, lines: lines,
		dialect: bodyYAML}
	t.document(document)
	for _, e := range r.errs {
		if !e.Warning {
			return nil, e
		}
	}
	if !bytes.HasPrefix(t.json, []byte{'{'}) {
		return nil, &Error{File: bodyName, Line: document.Line, Msg: "must be an object"}
	}
	return t.json, nil
}

const (
	fewItems     = 1024
	bytesPerItem = 6
)
