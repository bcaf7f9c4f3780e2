package document

// scanLiteral returns the offset after the literal at src[i] and its kind, 0
// if there is none.
func scanLiteral(src []byte, i int) (int, uint32) {
	switch rest := src[i:]; {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		return i + 4, uint32(Bool)
	case len(rest) >= 5 && string(rest[:5]) == "false":
		return i + 5, uint32(Bool)
	case len(rest) >= 4 && string(rest[:4]) == "null":
		return i + 4, uint32(Null)
	}
	return i, 0
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
