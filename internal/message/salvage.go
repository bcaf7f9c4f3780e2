package message

import "bytes"

// Salvage reads of a head that was refused, or of its beginning, what lets a script in a browser read the refusal:
// the target, and the lines Host and Origin if there is one of each. It is good for nothing that decides about
// the request.
func (h *Head) Salvage(received []byte) {
	method, unserved := h.Method, h.Unserved
	h.Reset()
	line, rest, _ := bytes.Cut(received, []byte("\n"))
	if parts := bytes.Fields(line); len(parts) == 3 && len(parts[1]) > 0 && parts[1][0] == '/' {
		h.Target = parts[1]
	}
	h.Method, h.Unserved = method, unserved
	var seen FieldSet
	for {
		var isWhole bool
		line, rest, isWhole = bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if !isWhole || len(line) == 0 {
			return
		}
		var l Header
		if _, _, problem := scanHeader(append(bytes.Clone(line), "\r\n"...), &l); problem != "" ||
			l.Field != FieldHost && l.Field != FieldOrigin {
			continue
		}
		if seen.Has(l.Field) {
			h.Drop(Fields(l.Field))
			continue
		}
		seen |= 1 << l.Field
		h.seen |= 1 << l.Field
		h.headers = append(h.headers, l)
		if l.Field == FieldHost && validHost(l.Value) {
			h.Host = l.Value
		}
	}
}
