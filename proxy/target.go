package proxy

import (
	"bytes"
	"strings"
	"unsafe"
)

// pathOf returns the path of a target.
func pathOf(target []byte) []byte {
	path, _, _ := bytes.Cut(target, []byte("?"))
	return path
}

func equalFold(a []byte, b string) bool { return len(a) == len(b) && strings.EqualFold(str(a), b) }

// str is the string of bytes of the client's head, which live as long as the request is served.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
