// Package assembly makes whole OpenAPI documents of what stands in several files: Overlays change them, and the files
// that they refer to are taken in. The documents know the file and the line of each of their values. Nothing is read
// but the policy files and what is beside them.
package assembly

import (
	"bytes"
	"path"
	"path/filepath"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// An Assembly makes documents whole.
type Assembly struct {
	found  *finding.List
	memory document.Memory
	files  map[string]*source.File
	parts  map[string]*manifest.Object // of the files that were referred to; nil: it cannot be read
}

// New returns an assembly of documents in files. What is wrong is added to the list. The memory is the one that
// the files were read within.
func New(files []source.File, memory document.Memory, found *finding.List) *Assembly {
	a := &Assembly{found: found, memory: memory, files: map[string]*source.File{}, parts: map[string]*manifest.Object{}}
	for i := range files {
		a.files[files[i].Name] = &files[i]
	}
	return a
}

// Objects returns the objects of all files with each document made whole, and without the overlays. What is wrong in
// a document is left out of it, so that all else that is wrong there is found too.
func (a *Assembly) Objects(all []*manifest.Object) []*manifest.Object {
	var documents []*manifest.Object
	changes := map[*manifest.Object][]*overlay{}
	for _, o := range all {
		if o.OpenAPI {
			documents = append(documents, o)
		}
	}
	for _, o := range all {
		if !o.Overlay {
			continue
		}
		if read := a.read(o); read != nil {
			if of := a.extended(read, documents); of != nil {
				changes[of] = append(changes[of], read)
			}
		}
	}
	made := make([]*manifest.Object, 0, len(all))
	for _, o := range all {
		switch {
		case o.Overlay:
		case o.OpenAPI:
			made = append(made, a.document(o, changes[o]))
		default:
			made = append(made, o)
		}
	}
	return made
}

// IsReferred reports whether a document refers to a file, which is no policy file of its own then.
func (a *Assembly) IsReferred(name string) bool {
	_, found := a.parts[name]
	return found
}

// document makes one document whole.
func (a *Assembly) document(o *manifest.Object, overlays []*overlay) *manifest.Object {
	if len(overlays) == 0 && !leadsOut(o.JSON) {
		return o
	}
	draft := o.Draft(o.Document().Root())
	a.apply(draft, o, overlays)
	a.takeIn(draft, o)
	whole, err := o.Assemble(draft)
	if err != nil {
		a.found.At(o, finding.Error, "", "%s", err.Error())
		return o
	}
	return whole
}

// refuse records an error.
func (a *Assembly) refuse(o *manifest.Object, at, format string, args ...any) {
	a.found.At(o, finding.Error, at, format, args...)
}

// refKey begins a reference in compact JSON.
var refKey = []byte(`"$ref":"`)

// leadsOut reports whether compact JSON may have a reference that leads out of its document.
func leadsOut(json []byte) bool {
	for at := bytes.Index(json, refKey); at >= 0; at = bytes.Index(json, refKey) {
		if json = json[at+len(refKey):]; len(json) > 0 && json[0] != '#' {
			return true
		}
	}
	return false
}

// takeIn adds to a document the files that it refers to, and has its references lead there.
func (a *Assembly) takeIn(draft *manifest.Draft, o *manifest.Object) {
	t := taker{Assembly: a, whole: o, drafts: map[string]*manifest.Draft{}}
	t.walk(draft, o.File, false)
	for i := 0; i < len(t.names); i++ {
		t.walk(t.drafts[t.names[i]], t.names[i], false)
	}
	if t.isBroken {
		t.names, t.drafts[nowhere] = append(t.names, nowhere), draft.Empty()
	}
	draft.With(t.names, t.drafts)
}

// maxFiles bounds how many files a document may consist of.
const maxFiles = 1000

// A taker takes in the files of one document.
type taker struct {
	*Assembly
	whole  *manifest.Object
	names  []string // of the files, in the order in which they were found
	drafts map[string]*manifest.Draft
	// isBroken says that a reference has an error. It leads to an empty object, which has no findings.
	isBroken bool
}

// nowhere is the name under which an empty object stands among the files.
const nowhere = "nowhere"

// named are the members whose own members have names that the author chose.
var named = map[string]bool{
	"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true,
	"schemas": true, "responses": true,
	"requestBodies": true, "headers": true, "securitySchemes": true, "securityDefinitions": true, "links": true,
	"callbacks": true, "pathItems": true,
	"paths": true, "webhooks": true, "content": true, "encoding": true, "parameters": true,
}

// values are the members that hold values of an API, and no parts of a document.
var values = map[string]bool{"example": true, "examples": true, "default": true, "enum": true, "const": true}

// walk changes the references in a value that stands in a file. hasNames says that the members of the value are named
// by the author.
func (t *taker) walk(d *manifest.Draft, file string, hasNames bool) {
	if raw, isUnchanged := d.Raw(); isUnchanged && !leadsOut(raw) &&
		(file == t.whole.File || !bytes.Contains(raw, refKey)) {
		return
	}
	switch d.Kind() {
	case document.Array:
		for _, item := range d.Parts() {
			t.walk(item, file, false)
		}
	case document.Object:
		for _, m := range d.Parts() {
			key := m.Key()
			switch {
			case hasNames:
				t.walk(m, file, false)
			case key == "$ref" && m.Kind() == document.String:
				t.reference(m, file)
			case key == "discriminator":
				t.mapping(m, file)
			case !values[key] && !strings.HasPrefix(key, "x-"):
				t.walk(m, file, named[key] && m.Kind() == document.Object)
			}
		}
	}
}

// mapping changes the references of a discriminator.
func (t *taker) mapping(d *manifest.Draft, file string) {
	if mapping := d.Member("mapping"); mapping != nil && mapping.Kind() == document.Object {
		for _, m := range mapping.Parts() {
			if m.Kind() == document.String && source.IsManifest(path.Base(beforeHash(m.Text()))) {
				t.reference(m, file)
			}
		}
	}
}

func beforeHash(ref string) string {
	before, _, _ := strings.Cut(ref, "#")
	return before
}

// reference changes a reference to a file, which is taken in. Other references stay as they are.
func (t *taker) reference(d *manifest.Draft, file string) {
	ref := d.Text()
	before, pointer, _ := strings.Cut(ref, "#")
	if before == "" {
		if file != t.whole.File {
			d.SetText("#" + t.within(file) + pointer)
		}
		return
	}
	name, isFile := source.Referred(file, ref)
	if !isFile {
		return // what leads to no file is an error where it is used
	}
	if name != t.whole.File && !t.take(d, name, ref) {
		d.SetText("#" + t.within(nowhere))
		t.isBroken = true
		return
	}
	if name == t.whole.File {
		d.SetText("#" + pointer)
		return
	}
	d.SetText("#" + t.within(name) + pointer)
}

// within is the pointer to a file in the document.
func (t *taker) within(file string) string {
	escaped := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(file)
	return "/" + manifest.FilesKey + "/" + escaped
}

// wrong records an error about a reference.
func (t *taker) wrong(d *manifest.Draft, format string, args ...any) {
	o, n := d.Place()
	t.refuse(o, n.Path(), format, args...)
}

// take takes in a file.
func (t *taker) take(d *manifest.Draft, name, ref string) bool {
	if t.drafts[name] != nil {
		return true
	}
	root := "."
	if of := t.files[t.whole.File]; of != nil {
		root = of.Root
	}
	f := t.files[name]
	switch {
	case !source.IsWithin(root, name):
		t.wrong(d, "must not lead out of the folder of policy files, as '%.200s' does", ref)
	case !source.IsManifest(name):
		t.wrong(d, "must lead to a file whose name ends in '.yaml', '.yml' or '.json', not to '%.200s'", ref)
	case f == nil:
		t.wrong(d, "must lead to a file that can be read, not to '%.200s': there is no '%s'", ref, name)
	case f.IsOutside:
		t.wrong(d, "must not lead out of the folder of policy files, as the link '%s' does", name)
	case len(t.names) == maxFiles:
		t.wrong(d, "must not lead to more than %d files in all", maxFiles)
	default:
		part, isRead := t.parts[name]
		if !isRead {
			var errs []*manifest.Error
			part, errs = manifest.ReadFragment(name, f.Data, t.memory)
			t.found.Read(errs)
			t.parts[name] = part
		}
		if part == nil {
			return false
		}
		t.names = append(t.names, name)
		t.drafts[name] = part.Draft(part.Document().Root())
		return true
	}
	return false
}

// extended returns the document that an overlay changes; nil if that is not known.
func (a *Assembly) extended(l *overlay, documents []*manifest.Object) *manifest.Object {
	if l.extends == "" {
		switch len(documents) {
		case 1:
			return documents[0]
		case 0:
			a.found.At(l.from, finding.Error, "", "must stand beside the OpenAPI document that it changes: there is none among the policy files")
		default:
			a.found.At(l.from, finding.Error, "",
				"must name the document that it changes by `extends`, since there are %d", len(documents))
		}
		return nil
	}
	var named []*manifest.Object
	file, isFile := source.Referred(l.from.File, l.extends)
	for _, o := range documents {
		if isFile && o.File == file {
			return o
		}
		if path.Base(beforeHash(l.extends)) == filepath.Base(o.File) {
			named = append(named, o)
		}
	}
	switch len(named) {
	case 1:
		return named[0]
	case 0:
		a.found.At(l.from, finding.Error, "extends", "must name an OpenAPI document among the policy files by its path from here or by the name of its file, not '%.200s'", l.extends)
	default:
		a.found.At(l.from, finding.Error, "extends", "must be a path from here: %d documents are in a file '%s'",
			len(named), filepath.Base(named[0].File))
	}
	return nil
}
