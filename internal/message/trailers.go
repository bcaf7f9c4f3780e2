package message

import "bytes"

// ParseTrailers reads fields that came behind a body: lines, and an empty line at the end. A field
// that the gateway looks at in a head, or that a server could take for one, is left out: it came too
// late to be judged. The trailers are copies.
func ParseTrailers(text []byte) ([]Header, error) {
	text = bytes.Clone(text)
	var trailers []Header
	for {
		if line, _ := cutLine(text); len(line) == 0 {
			return trailers, nil
		}
		var l Header
		size, underscore, problem := scanHeader(text, &l)
		if problem != "" {
			return nil, badRequest("the request %s behind its body", problem)
		}
		text = text[size:]
		if l.Field != FieldOther && l.Field != FieldDigest || underscore {
			continue
		}
		trailers = append(trailers, l)
	}
}
