package compress

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
)

// Readable are the codings that Decode and NewReader read, as headers list them.
const Readable = "gzip, deflate, br, zstd"

// IsReadable reports whether a Content-Encoding names one of them, and nothing else.
func IsReadable(encoding []byte) bool { return memoryOf(nameOf(encoding)) > 0 }

// nameOf returns the name of a coding in lower case, without its old spelling (RFC 9110, 8.4.1.3).
func nameOf(encoding []byte) string {
	return strings.TrimPrefix(strings.ToLower(string(bytes.TrimSpace(encoding))), "x-")
}

// maxWindow bounds how far back what is encoded may refer, in bytes (RFC 9659).
const maxWindow = 8 << 20

// Memory returns how much memory in bytes a reader of the coding takes at most.
func Memory(encoding []byte) int { return memoryOf(nameOf(encoding)) }

func memoryOf(name string) int {
	switch name {
	case "gzip", "deflate":
		return 64 << 10
	case "br":
		return 2 * maxWindow // the window of a coding that has no larger ones
	case "zstd":
		return maxWindow + 1<<20
	}
	return 0
}

// NewReader returns a reader of what is encoded.
func NewReader(from io.Reader, encoding []byte) (io.ReadCloser, error) {
	switch nameOf(encoding) {
	case "gzip":
		r, err := gzip.NewReader(from)
		if err != nil {
			return nil, err // and no reader, which a nil *gzip.Reader would be
		}
		return r, nil
	case "deflate":
		return zlib.NewReader(from)
	case "br":
		return brotli.NewReader(from), nil
	case "zstd":
		d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, errors.New("the coding is not known")
}

// What is wrong with encoded bytes.
var (
	// ErrMalformed says that they are not what their coding allows.
	ErrMalformed = errors.New("cannot be decoded")
	// ErrTooLarge says that they stand for more than they may.
	ErrTooLarge = errors.New("is too large when it is decoded")
	// ErrMemory says that there is no memory for the decoded bytes.
	ErrMemory = errors.New("there is no memory to decode it")
)

// Decode returns what encoded bytes stand for: at most limit bytes. It asks grow for the memory of what it returns.
func Decode(encoded, encoding []byte, limit int64, grow func(bytes int) bool) ([]byte, error) {
	source := bytes.NewReader(encoded)
	r, err := NewReader(source, encoding)
	if err != nil {
		return nil, ErrMalformed
	}
	defer func() { _ = r.Close() }() // nothing is written
	var out []byte
	for {
		if len(out) == cap(out) {
			more := int(min(max(int64(len(out)), 16<<10), limit+1-int64(len(out))))
			if !grow(more) {
				return nil, ErrMemory
			}
			out = slices.Grow(out, more)
		}
		room := out[len(out):min(int64(cap(out)), limit+1)]
		n, err := r.Read(room)
		switch out = out[:len(out)+n]; {
		case int64(len(out)) > limit:
			return nil, ErrTooLarge
		case err == io.EOF && source.Len() == 0:
			return out, nil
		case err != nil:
			return nil, ErrMalformed
		}
	}
}
