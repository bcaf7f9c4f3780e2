package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/loader/filter"
)

// An entry is a file of an archive.
type entry struct {
	name string // as it stands in the archive: signatures name it so
	path string // from the bundle's root
	text []byte
}

// unpack returns the files of an archive, within the bounds and the memory that there is. An
// archive with anything else than files and folders below its root is refused whole: its contents
// would not be what comes into force.
func unpack(archive []byte, o *Options) ([]entry, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("must be an archive that gzip compressed: %w", err)
	}
	bounded := &counter{from: unpacked, left: o.MaxBytes + int64(o.MaxFiles+2)*overhead}
	files := tar.NewReader(bounded)
	var all []entry
	var size int64
	known := map[string]bool{}
	for n := 0; ; n++ {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, bounded.problem(err, o.MaxBytes)
		}
		if n == o.MaxFiles {
			return nil, fmt.Errorf("must hold at most %d files", o.MaxFiles)
		}
		if size += header.Size; size > o.MaxBytes || size < 0 {
			return nil, tooLarge(o.MaxBytes)
		}
		path, err := pathOf(header)
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if known[path] {
			return nil, fmt.Errorf("must not hold '%s' twice", path)
		}
		known[path] = true
		if !o.take(int(header.Size) + entryBytes) {
			return nil, errNoMemory
		}
		text := make([]byte, header.Size)
		if _, err := io.ReadFull(files, text); err != nil {
			return nil, bounded.problem(err, o.MaxBytes)
		}
		all = append(all, entry{header.Name, path, text})
	}
	// The checksum of gzip stands at its end.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return nil, bounded.problem(err, o.MaxBytes)
	}
	return all, nil
}

// entryBytes is roughly what a file takes besides its content and its name.
const entryBytes = 1 << 10

// pathOf returns the path of a file or folder from the bundle's root. OPA writes it with a leading
// slash, tar with a dot and a slash.
func pathOf(header *tar.Header) (string, error) {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		return "", nil // a comment of `git archive`
	default:
		return "", fmt.Errorf("must hold nothing but files and folders: '%s' is %s", header.Name,
			kindOf(header.Typeflag))
	}
	path := header.Name
	if header.Typeflag == tar.TypeDir {
		path = strings.TrimSuffix(path, "/")
	}
	if path == "" || path == "." {
		return "", nil // the root
	}
	if trimmed, isRooted := strings.CutPrefix(path, "/"); isRooted {
		path = trimmed
	} else {
		path = strings.TrimPrefix(path, "./")
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "..":
			return "", fmt.Errorf("must hold nothing outside of its root, such as '%s'", header.Name)
		case part == "" || part == "." || strings.ContainsAny(part, "\\\x00"):
			return "", fmt.Errorf("must name each file by its path from the root, with single slashes, not '%s'",
				header.Name)
		}
	}
	return path, nil
}

// kindOf is what an entry is that is neither a file nor a folder.
func kindOf(flag byte) string {
	switch flag {
	case tar.TypeSymlink:
		return "a symbolic link"
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeFifo:
		return "a named pipe"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	}
	return fmt.Sprintf("of the type %q", flag)
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

// loader gives OPA's reader the files that were unpacked.
type loader struct{ left []entry }

// NextFile implements opa.DirectoryLoader.
func (l *loader) NextFile() (*opa.Descriptor, error) {
	if len(l.left) == 0 {
		return nil, io.EOF
	}
	e := l.left[0]
	l.left = l.left[1:]
	return opa.NewDescriptor(e.name, e.name, bytes.NewBuffer(e.text)), nil
}

// WithFilter implements opa.DirectoryLoader, as all that follow do. None of them is asked for.
func (l *loader) WithFilter(filter.LoaderFilter) opa.DirectoryLoader { return l }

func (l *loader) WithPathFormat(opa.PathFormat) opa.DirectoryLoader { return l }

func (l *loader) WithSizeLimitBytes(int64) opa.DirectoryLoader { return l }

func (l *loader) WithFollowSymlinks(bool) opa.DirectoryLoader { return l }
