package document

import "unsafe"

// scanLiteral returns the offset after the literal at src[i] and its kind, 0
// if there is none.
func scanLiteral(src []byte, i int) (int, uint32) {
	size, kind := literal(shortWord(unsafe.Pointer(&src[i]), min(len(src)-i, 8)))
	return i + size, kind
}

// literal is the size and the kind of the literal that a word begins with, 0 if there is none.
func literal(word uint64) (size int, kind uint32) {
	switch uint32(word) {
	case 't' | 'r'<<8 | 'u'<<16 | 'e'<<24:
		return 4, uint32(Bool)
	case 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24:
		return 4, uint32(Null)
	case 'f' | 'a'<<8 | 'l'<<16 | 's'<<24:
		if byte(word>>32) == 'e' {
			return 5, uint32(Bool)
		}
	}
	return 0, 0
}

// badValue says why no value begins at src[i].
func badValue(src []byte, i int) (ErrorCode, string) {
	if len(src) >= 2 && i == 0 {
		mark := [2]byte(src)
		if mark == [2]byte{0xfe, 0xff} || mark == [2]byte{0xff, 0xfe} || mark == [2]byte{0xef, 0xbb} {
			return Encoding, "document must not begin with a byte order mark"
		}
		if mark[0] == 0 || mark[1] == 0 {
			return Encoding, "document must be encoded as UTF-8"
		}
	}
	return Syntax, unexpected(src, i, "a value")
}

func wantNext(object bool) string {
	if object {
		return "',' or '}'"
	}
	return "',' or ']'"
}
