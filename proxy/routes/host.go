package routes

import (
	"bytes"
	"unsafe"
)

func withoutPort(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return host
}

// lower returns a host in lower case; itself if it is so already.
func lower(host []byte) []byte {
	for _, c := range host {
		if 'A' <= c && c <= 'Z' || c >= 0x80 {
			return bytes.ToLower(host)
		}
	}
	return host
}

// str is the string of bytes that live as long as the request.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
