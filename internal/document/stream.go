package document

import "errors"

// A Stream reads a JSON text that comes in pieces of any size, hands the items in it to an editor,
// each parsed as a Document, and passes everything else byte for byte. The text as a whole is never
// kept; one item at a time may be. An item leaves when its last byte has come, and one that the
// editor leaves alone leaves byte for byte too.
//
// The text is read as strictly as Parse reads one, with the exception that outside of items only those keys are known
// to be duplicates that lead to the items or are the names of Members. The zero Stream is ready for Reset. It belongs
// to one goroutine.
type Stream struct {
	o      StreamOptions
	editor ItemEditor
	total  int // bytes that were read by earlier calls

	streamPosition

	token openToken
	ends  *skipper // of items that are there as a whole; nil before the first one
}

// StreamOptions say where the items are and how else to process the text.
type StreamOptions struct {
	// Place is the place of the items.
	Place ItemLayout
	// Path leads from the root to the list of items, by names of members; the empty path is a root that is the list.
	Path []string
	// Limits bound each item: its bytes, its depth, its values. What stands outside of items may be as deep, and each
	// string and number there as long.
	Limits Limits
	// Members are added at the end of a root object that lacks them, if the place is List. There
	// may be 64 of them.
	Members []StreamMember
	// Wrap makes an object of a root that is an array though Path is one key: the array becomes the member with that
	// key, and the Members follow it.
	Wrap bool
	// ItemsOnly leaves out everything but the items. The items of a list stand with a comma between
	// them, the items of a sequence each on a line. There are no Members then.
	ItemsOnly bool
}

// ErrOmit is the answer of an ItemEditor to an item that is to be left out. It may be given only
// with ItemsOnly.
var ErrOmit = errors.New("the item is left out")

// ItemLayout says where the items of a text are.
type ItemLayout uint8

// The places of items. What is no object is no item, wherever it stands.
const (
	// Single is a text that is one item.
	Single ItemLayout = iota
	// Sequence is a text of any number of items, one behind the other.
	Sequence
	// List is a text with the items in a list.
	List
)

// StreamMember is a member of an object: its name, and its value as JSON.
type StreamMember struct {
	Name  string
	Value []byte
}

// An ItemEditor is given the items of a Stream.
type ItemEditor interface {
	// EditItem may edit the item, which is released when the item has left. An error ends the Stream, but for ErrOmit.
	EditItem(item *Document) error
	// ItemMemory returns memory for at least so many bytes of an item that comes in parts. The
	// bytes that came already are in kept, and have to be at its beginning. What was returned
	// before is no longer used. An error ends the Stream.
	ItemMemory(kept []byte, least int) ([]byte, error)
}

// ownMemory is the size in bytes up to which a Stream keeps an item in its own memory, which it
// reuses for the next text.
const ownMemory = 16 << 10

// Reset makes the Stream ready for a text.
func (s *Stream) Reset(o StreamOptions, editor ItemEditor) {
	o.Limits = o.Limits.withDefaults()
	*s = Stream{o: o, editor: editor, streamPosition: streamPosition{stack: s.stack[:0]},
		token: openToken{room: s.token.room}, ends: s.ends}
	if o.Place == Sequence {
		s.state = wantEnd
	}
	s.token.kept = s.token.room[:0]
}

// Holding reports whether an item, or a string or number outside of items, has come in part.
func (s *Stream) Holding() bool { return s.token.kind != noToken }

// Listed reports whether a list of items has come: an array at the Path, or null, or a root object
// without any member.
func (s *Stream) Listed() bool { return s.list.found }

// Append reads src and appends to dst what is to be sent for it. It stops early if that has become
// most bytes long, and returns how many bytes of src it has read. What it has read of an item that
// goes on in the next part of the text is kept. An error, which is an [*Error] or the editor's,
// ends the Stream; what is in dst then is still good.
func (s *Stream) Append(dst, src []byte, most int) (out []byte, used int, err error) {
	if s.ends != nil {
		s.ends.forget()
	}
	if s.o.ItemsOnly {
		return s.appendItems(dst, src, most)
	}
	var (
		i    = 0 // the next byte
		from = 0 // src[from:i] passes and is not in dst yet
	)
	for i < len(src) && len(dst)+i-from < most {
		if s.token.kind == noToken {
			if i = skipBlank(src, i); i == len(src) {
				break
			}
			event, failure := s.step(src, i)
			if failure != nil {
				return append(dst, src[from:i]...), i, shifted(failure, s.total)
			}
			switch event {
			case tokenBegins:
				s.token.begin = s.total + i
				continue
			case rootOpens:
				dst = append(dst, src[from:i]...)
				dst = append(AppendString(append(dst, '{'), s.o.Path[0]), ':')
				from = i
			case rootCloses:
				if s.root != rootWrapped {
					dst, from = append(dst, src[from:i]...), i
					dst = s.appendMembers(dst)
					break
				}
				dst, from = append(dst, src[from:i+1]...), i+1
				dst = append(s.appendMembers(dst), '}')
			}
			i++
			continue
		}
		end, whole := s.tokenEnd(src, i)
		inPlace := whole && len(s.token.kept) == 0
		raw := src[i:end]
		if !inPlace {
			dst, from = append(dst, src[from:i]...), end
			if raw, err = s.keep(raw); err != nil {
				return dst, end, err
			}
		}
		if whole {
			item, err := s.take(raw)
			if err != nil {
				return append(dst, src[from:max(i, from)]...), end, err
			}
			switch {
			case item != nil:
				if inPlace {
					dst, from = append(dst, src[from:i]...), end
				}
				dst = item.AppendTo(dst)
				item.Release()
			case !inPlace:
				dst = append(dst, raw...)
			}
			s.token.ends()
		}
		i = end
	}
	s.total += i
	return append(dst, src[from:i]...), i, nil
}

// appendItems is Append for the items alone.
func (s *Stream) appendItems(dst, src []byte, most int) (out []byte, used int, err error) {
	i := 0
	for i < len(src) && len(dst) < most {
		if s.token.kind == noToken {
			if i = skipBlank(src, i); i == len(src) {
				break
			}
			event, failure := s.step(src, i)
			if failure != nil {
				return dst, i, shifted(failure, s.total)
			}
			if event == tokenBegins {
				s.token.begin = s.total + i
			} else {
				i++
			}
			continue
		}
		end, whole := s.tokenEnd(src, i)
		raw := src[i:end]
		if !whole || len(s.token.kept) > 0 {
			if raw, err = s.keep(raw); err != nil {
				return dst, end, err
			}
		}
		if whole {
			if dst, err = s.appendItem(dst, raw); err != nil {
				return dst, end, err
			}
			s.token.ends()
		}
		i = end
	}
	s.total += i
	return dst, i, nil
}

// appendItem appends a token that is an item.
func (s *Stream) appendItem(dst, raw []byte) ([]byte, error) {
	isItem := s.token.kind == itemToken
	item, err := s.take(raw)
	switch {
	case err == ErrOmit:
		return dst, nil
	case err != nil || !isItem:
		return dst, err
	}
	if s.o.Place == List && s.sent {
		dst = append(dst, ',')
	}
	s.sent = true
	if item != nil {
		dst = item.AppendTo(dst)
		item.Release()
	} else {
		dst = append(dst, raw...)
	}
	if s.o.Place == Sequence {
		dst = append(dst, '\n')
	}
	return dst, nil
}

// Close ends the text. It appends to dst what was kept of a number at the end, and fails with an
// [*Error] if the text is not complete.
func (s *Stream) Close(dst []byte) ([]byte, error) {
	if s.token.kind == bareToken {
		if _, err := s.take(s.token.kept); err != nil {
			return dst, err
		}
		if !s.o.ItemsOnly {
			dst = append(dst, s.token.kept...)
		}
		s.token.ends()
	}
	if s.token.kind == noToken && s.state == wantEnd {
		return dst, nil
	}
	return dst, &Error{Offset: s.total, Msg: "unexpected end of the document"}
}

// keep keeps a part of a token and returns all of it so far.
func (s *Stream) keep(part []byte) ([]byte, error) {
	n := len(s.token.kept) + len(part)
	if n > s.o.Limits.Bytes {
		return nil, &Error{Offset: s.token.begin + s.o.Limits.Bytes, Path: s.itemPath(), Code: TooLarge,
			Msg: msgTooLarge(s.o.Limits.Bytes)}
	}
	switch {
	case n <= cap(s.token.kept):
	case n <= ownMemory:
		s.token.room = make([]byte, 0, min(2*n, ownMemory))
		s.token.kept = append(s.token.room, s.token.kept...)
	default:
		memory, err := s.editor.ItemMemory(s.token.kept, n)
		if err != nil {
			return nil, err
		}
		s.token.kept = memory[:len(s.token.kept):len(memory)]
	}
	s.token.kept = append(s.token.kept, part...)
	return s.token.kept, nil
}

// take is given a whole token. The Document is an item that was edited.
func (s *Stream) take(raw []byte) (*Document, error) {
	if s.token.kind != itemToken {
		if failure := s.check(raw); failure != nil {
			return nil, failure
		}
		return nil, nil
	}
	d, err := Parse(raw, s.o.Limits)
	if err != nil {
		if failure, is := errors.AsType[*Error](err); is {
			failure.Path = joinPath(s.itemPath(), failure.Path)
		}
		return nil, shifted(err, s.token.begin)
	}
	s.valueEnds()
	err = s.editor.EditItem(d)
	if err == nil {
		err = d.Err() // no part of an edit leaves
	}
	if err != nil || !d.Edited() {
		d.Release()
		return nil, err
	}
	return d, nil
}

// shifted moves the offset of an error by what came before the part of the text that it points into.
func shifted(err error, by int) error {
	if failure, is := errors.AsType[*Error](err); is {
		failure.Offset += by
	}
	return err
}

// joinPath puts the path of an item before a path within it.
func joinPath(item, within string) string {
	if item == "" || within == "" || within[0] == '[' {
		return item + within
	}
	return item + "." + within
}
