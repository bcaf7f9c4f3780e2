package manifest

import (
	"sync"
	"weak"

	"github.com/admission-gateway/gateway/internal/document"
)

// A parsed is the document of a JSON text. It takes several times the memory of the text, and most objects are read
// only while they are loaded: the collector frees the document when it is not in use, and it is parsed again for the
// next reader.
type parsed struct {
	json []byte
	kept *document.Document // if it is never freed

	mu   sync.Mutex
	last weak.Pointer[document.Document]
}

// parse parses a text that was bounded already.
func parse(json []byte) (*parsed, *document.Document, error) {
	p := &parsed{json: json}
	d, err := p.read()
	return p, d, err
}

// read parses the text; p.mu is held, or no one else has p.
func (p *parsed) read() (*document.Document, error) {
	d, err := document.Parse(p.json, limitsOf(p.json))
	if err != nil {
		return nil, err
	}
	d.Compact()
	p.last = weak.Make(d)
	return d, nil
}

// document returns the document, which may be read by several goroutines.
func (p *parsed) document() *document.Document {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.last.Value()
	if d == nil {
		var err error
		if d, err = p.read(); err != nil {
			panic("manifest: a text that was parsed cannot be parsed again: " + err.Error())
		}
	}
	return d
}

// keep has the document stay in memory, for a text that is large.
func (p *parsed) keep() { p.kept = p.document() }
