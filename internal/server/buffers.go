package server

import "sync"

const (
	// readBuffer is the size of the buffer of a connection: a head and a small body fit, so that
	// most requests are read by one system call.
	readBuffer = 16 << 10
	// copyBuffer is how much of a stream is held at once. Two of the system calls that half of it
	// would take cost more than its memory, which a stream holds only while there is something to
	// send.
	copyBuffer = 64 << 10
)

// buffers are the buffers that no connection needs at the moment.
type buffers struct {
	reads  sync.Pool // of *[readBuffer]byte
	copies sync.Pool // of *[copyBuffer]byte
}

func (b *buffers) read() *[readBuffer]byte {
	if buf, ok := b.reads.Get().(*[readBuffer]byte); ok {
		return buf
	}
	return new([readBuffer]byte)
}

func (b *buffers) copy() *[copyBuffer]byte {
	if buf, ok := b.copies.Get().(*[copyBuffer]byte); ok {
		return buf
	}
	return new([copyBuffer]byte)
}

func (b *buffers) putRead(buf *[readBuffer]byte) { b.reads.Put(buf) }

func (b *buffers) putCopy(buf *[copyBuffer]byte) { b.copies.Put(buf) }
