package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// measure refuses archives that would unpack to more than so many bytes or files, before anything
// of them is kept.
func measure(archive []byte, maxBytes int64, maxFiles int) error {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("must be an archive that gzip compressed: %w", err)
	}
	bounded := &counter{from: unpacked, left: maxBytes + int64(maxFiles+2)*overhead}
	files := tar.NewReader(bounded)
	var size int64
	for n := 0; ; n++ {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bounded.problem(err, maxBytes)
		}
		if n == maxFiles {
			return fmt.Errorf("must hold at most %d files", maxFiles)
		}
		if size += header.Size; size > maxBytes || size < 0 {
			return tooLarge(maxBytes)
		}
	}
	// The checksum of gzip stands at its end.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return bounded.problem(err, maxBytes)
	}
	return nil
}

// overhead is how much of an archive a file takes beside its content: its head, extended heads, and
// what fills up blocks.
const overhead = 4 << 10

// errTooLarge ends the unpacking.
var errTooLarge = errors.New("too large")

func tooLarge(maxBytes int64) error {
	return fmt.Errorf("must unpack to at most %d bytes", maxBytes)
}

// counter reads at most so many bytes.
type counter struct {
	from io.Reader
	left int64
}

func (c *counter) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.from.Read(p)
	c.left -= int64(n)
	return n, err
}

func (c *counter) problem(err error, maxBytes int64) error {
	if errors.Is(err, errTooLarge) {
		return tooLarge(maxBytes)
	}
	return fmt.Errorf("must be a whole archive: %w", err)
}
