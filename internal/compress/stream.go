package compress

import (
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
)

// An Editor changes the body of an answer while it streams to the client.
type Editor interface {
	HasEvents() bool
	IsHolding() bool
	Rest()
	Append(dst, src []byte, limit int) ([]byte, int, error)
	Close(dst []byte) ([]byte, error)
	Failed(err error) error
	Release()
}

// StreamMemory bounds what the encoder of one stream holds, in bytes.
const StreamMemory = 1 << 20

// An encoder writes to a sink what it is given, encoded.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(w io.Writer)
}

// stream encodes the output of an editor of a body. The result of editing the bytes that have come
// can be decoded at once: an event, and the first items of a list that still comes.
type stream struct {
	Editor
	encoder encoder
	coding  Coding
	sink    sink
	release func() // gives back the memory
}

// sink collects what an encoder writes.
type sink struct{ bytes []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.bytes = append(s.bytes, p...)
	return len(p), nil
}

var (
	gzips   = sync.Pool{New: func() any { return newGzip() }}
	brotlis = sync.Pool{New: func() any { return newBrotli() }}
	zstds   = sync.Pool{New: func() any { return newZstd() }}
	scratch = sync.Pool{New: func() any { return new([]byte) }}
)

func newGzip() encoder {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is good
	}
	return w
}

// newZstd makes an encoder that has no goroutines and a small window.
func newZstd() encoder {
	w, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are good
	}
	return w
}

// newBrotli makes an encoder with a small window.
func newBrotli() encoder {
	w, err := brotli.NewWriterOptions(io.Discard, 2, brotli.WriterOptions{LGWin: 16})
	if err != nil {
		panic(err) // the options are good
	}
	return w
}

// NewEditor returns an editor whose body is encoded. It holds StreamMemory until release is called.
func NewEditor(e Editor, c Coding, release func()) Editor {
	s := &stream{Editor: e, coding: c, release: release}
	s.encoder = poolOf(c).Get().(encoder)
	s.encoder.Reset(&s.sink)
	return s
}

func poolOf(c Coding) *sync.Pool {
	switch c {
	case Zstd:
		return &zstds
	case Brotli:
		return &brotlis
	}
	return &gzips
}

// Append implements Editor.
func (s *stream) Append(dst, src []byte, limit int) (_ []byte, used int, err error) {
	dst, encodeErr := s.encode(dst, func(plain []byte) []byte {
		plain, used, err = s.Editor.Append(plain, src, limit)
		return plain
	})
	if err == nil {
		err = encodeErr
	}
	return dst, used, err
}

// Close implements Editor.
func (s *stream) Close(dst []byte) (_ []byte, err error) {
	dst, encodeErr := s.encode(dst, func(plain []byte) []byte {
		plain, err = s.Editor.Close(plain)
		return plain
	})
	if err != nil || encodeErr != nil {
		return dst, firstOf(err, encodeErr)
	}
	s.sink.bytes = dst
	err = s.encoder.Close()
	return s.take(), err
}

// CloseEarly ends the coding of a stream of events after the last one that is complete.
func (s *stream) CloseEarly(dst []byte) ([]byte, error) {
	s.sink.bytes = dst
	err := s.encoder.Close()
	return s.take(), err
}

func firstOf(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// encode appends what an edit makes, encoded.
func (s *stream) encode(dst []byte, edit func(plain []byte) []byte) ([]byte, error) {
	memory := scratch.Get().(*[]byte)
	defer scratch.Put(memory)
	plain := edit((*memory)[:0])
	if cap(plain) <= maxScratch {
		*memory = plain
	}
	if len(plain) == 0 {
		return dst, nil
	}
	s.sink.bytes = dst
	_, err := s.encoder.Write(plain)
	if err == nil {
		err = s.encoder.Flush()
	}
	return s.take(), err
}

// maxScratch is up to which size memory for edits is kept, in bytes.
const maxScratch = 128 << 10

// take takes what was encoded.
func (s *stream) take() []byte {
	encoded := s.sink.bytes
	s.sink.bytes = nil
	return encoded
}

// Release implements Editor.
func (s *stream) Release() {
	s.Editor.Release()
	s.encoder.Reset(io.Discard)
	poolOf(s.coding).Put(s.encoder)
	s.encoder = nil
	s.release()
}
