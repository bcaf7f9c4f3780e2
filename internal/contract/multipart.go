package contract

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReadParts makes JSON of a form in parts (RFC 7578). A file becomes its name. The form is read strictly: what two
// servers could read in two ways is an error.
func (f *Form) ReadParts(body []byte, boundary string) (json []byte, failures field.ErrorList, err error) {
	r := readers.Get().(*reader)
	defer r.release()
	r.parameters, r.isDecoded = f.Fields, true
	pairs := pairs{form: f}
	parts, err := newParts(body, boundary)
	if err != nil {
		return nil, nil, err
	}
	for {
		p, more, err := parts.next()
		if err != nil {
			return nil, nil, err
		}
		if !more {
			return r.form(&pairs)
		}
		f.take(r, &pairs, &p)
		if len(r.found)+len(pairs.all) > maxFields {
			return nil, nil, errFields
		}
	}
}

// take takes a part as a field.
func (f *Form) take(r *reader, others *pairs, p *part) {
	text := str(p.content)
	for k := range f.Fields {
		of := &f.Parts[k]
		if f.Fields[k].Name != p.name || f.Fields[k].isScattered() {
			continue
		}
		if of.IsFile && p.file == "" && len(p.content) == 0 {
			return // what browsers send if no file was chosen
		}
		if why := of.refuses(p); why != "" {
			at := spot{&f.Fields[k], "", -1}
			if of.IsFile {
				r.fail(at, p.file, why)
			} else {
				r.fail(at, "", why)
			}
			return
		}
		if of.IsFile {
			text = p.file
		}
		break
	}
	if !r.find(InBody, p.name, text) {
		if p.isFile {
			text = p.file
		}
		others.add(r, p.name, text)
	}
}

// refuses says what is wrong with a part; "" if nothing is.
func (of *Part) refuses(p *part) string {
	switch {
	case !of.IsFile && p.isFile:
		return "must be a value, and not a file"
	case of.IsFile && int64(len(p.content)) < of.MinBytes:
		return "must be larger: the file has too few bytes"
	case of.IsFile && of.MaxBytes > 0 && int64(len(p.content)) > of.MaxBytes:
		return "must be smaller: the file has too many bytes"
	case len(of.Media) > 0 && p.media != "" || of.IsFile && len(of.Media) > 0:
		for _, media := range of.Media {
			if covers(media, p.media) {
				return ""
			}
		}
		return "must have one of the media types " + strings.Join(of.Media, ", ")
	}
	return ""
}

// A part is one of a form.
type part struct {
	name, file, media string
	isFile            bool
	content           []byte
}

// parts reads the parts of a form one after the other.
type parts struct {
	rest      []byte // behind a boundary
	delimiter []byte
}

// What is wrong with a form as a whole.
var (
	errBoundary  = errors.New("the Content-Type must have a boundary of at most 70 letters, digits and signs, in the parameter 'boundary' alone")
	errDelimited = errors.New("the parts must begin and end with the boundary on lines of their own, with nothing before and behind them")
	errHeader    = errors.New("each part must have its headers on lines of their own, each once, and an empty line behind them")
	errPart      = errors.New("each part must have a header 'Content-Disposition: form-data; name=\"…\"', of whose parameters each stands once and in quotes, without '\\'")
	errEncoded   = errors.New("no part may have a Content-Transfer-Encoding other than 8bit and binary, or a charset other than UTF-8")
)

func newParts(body []byte, boundary string) (*parts, error) {
	if !isBoundary(boundary) {
		return nil, errBoundary
	}
	p := &parts{delimiter: []byte("\r\n--" + boundary)}
	if !bytes.HasPrefix(body, p.delimiter[2:]) {
		return nil, errDelimited
	}
	p.rest = body[len(p.delimiter)-2:]
	return p, nil
}

func isBoundary(text string) bool {
	for i := range len(text) {
		if c := text[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("'()+_,-./:=?", c) >= 0) {
			return false
		}
	}
	return text != "" && len(text) <= 70
}

// next reads the next part; more is false at the end.
func (p *parts) next() (one part, more bool, err error) {
	if end := string(p.rest); len(p.rest) <= 4 && (end == "--" || end == "--\r\n") {
		return one, false, nil
	}
	if !bytes.HasPrefix(p.rest, p.delimiter[:2]) {
		return one, false, errDelimited
	}
	p.rest = p.rest[2:]
	for {
		line, rest, found := bytes.Cut(p.rest, p.delimiter[:2])
		if !found {
			return one, false, errHeader
		}
		if p.rest = rest; len(line) == 0 {
			break
		}
		if err := one.header(str(line)); err != nil {
			return one, false, err
		}
	}
	if one.name == "" {
		return one, false, errPart
	}
	at := bytes.Index(p.rest, p.delimiter)
	if at < 0 || bytes.Contains(p.rest[:at], p.delimiter[2:]) {
		return one, false, errDelimited // another reader could find the end of the part elsewhere
	}
	one.content, p.rest = p.rest[:at], p.rest[at+len(p.delimiter):]
	return one, true, nil
}

// header takes a header line of a part.
func (p *part) header(line string) error {
	name, value, found := strings.Cut(line, ":")
	if !found || name == "" || strings.ContainsFunc(name, notInName) || !utf8.ValidString(value) ||
		strings.ContainsFunc(value, isControl) {
		return errHeader
	}
	value = strings.Trim(value, " \t")
	switch {
	case strings.EqualFold(name, "Content-Disposition"):
		if p.name != "" {
			return errHeader
		}
		return p.disposition(value)
	case strings.EqualFold(name, "Content-Type"):
		if p.media != "" {
			return errHeader
		}
		return p.contentType(value)
	case strings.EqualFold(name, "Content-Transfer-Encoding"):
		if !strings.EqualFold(value, "8bit") && !strings.EqualFold(value, "binary") {
			return errEncoded
		}
	case strings.EqualFold(name, "Content-Encoding"):
		return errEncoded
	}
	return nil
}

func notInName(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// disposition reads the name of a part, and of its file. The names stand in quotes, as browsers write them.
func (p *part) disposition(value string) error {
	kind, rest, _ := strings.Cut(value, ";")
	if !strings.EqualFold(strings.Trim(kind, " \t"), "form-data") {
		return errPart
	}
	hasName := false
	for rest = strings.Trim(rest, " \t"); rest != ""; {
		key, after, found := strings.Cut(rest, `="`)
		text, behind, closed := strings.Cut(after, `"`)
		if !found || !closed || strings.Contains(text, `\`) {
			return errPart
		}
		switch {
		case strings.EqualFold(key, "name") && !hasName && text != "":
			p.name, hasName = text, true
		case strings.EqualFold(key, "filename") && !p.isFile:
			p.file, p.isFile = text, true
		default:
			return errPart
		}
		behind = strings.TrimLeft(behind, " \t")
		next, more := strings.CutPrefix(behind, ";")
		if rest = strings.Trim(next, " \t"); behind != "" && (!more || rest == "") {
			return errPart
		}
	}
	if !hasName {
		return errPart
	}
	return nil
}

// contentType reads the media type of a part.
func (p *part) contentType(value string) error {
	media, parameters, _ := strings.Cut(value, ";")
	p.media = strings.ToLower(strings.Trim(media, " \t"))
	if major, minor, found := strings.Cut(p.media, "/"); !found || major == "" || minor == "" ||
		strings.ContainsAny(p.media, " \t,\"*") {
		return errHeader
	}
	for one := range strings.SplitSeq(parameters, ";") {
		key, charset, _ := strings.Cut(strings.Trim(one, " \t"), "=")
		if strings.EqualFold(key, "charset") && !strings.EqualFold(strings.Trim(charset, `"`), "utf-8") && !p.isFile {
			return errEncoded
		}
	}
	return nil
}
