package peek

import "syscall"

// A Probe looks at one socket, and takes nothing from it.
type Probe struct {
	Socket syscall.RawConn
	// ServesHalf is set if an end in the other direction alone is none: the other side may still read.
	ServesHalf bool
	// Reads asks whether there is something to read, too.
	Reads bool

	// HasEnded is set if the other side has closed the connection, or it broke, IsReadable if there is something to
	// read.
	HasEnded, IsReadable bool
}
