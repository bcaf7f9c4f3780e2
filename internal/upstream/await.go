package upstream

import (
	"io"
	"net"
)

// await waits until there is something to read, an end or an error included, and takes no buffer for the time: a stream may
// be silent for hours. The deadline of reads holds.
func (cn *conn) await() error {
	if _, plain := cn.Conn.(*net.TCPConn); plain && canPeek && cn.raw != nil {
		if cn.arrived == nil {
			cn.arrived = func(fd uintptr) bool {
				cn.peekAt(fd)
				return cn.stirred
			}
		}
		return cn.raw.Read(cn.arrived)
	}
	// Under TLS only decryption tells. One byte is read, ahead of the next Read.
	n, err := cn.Conn.Read(cn.ahead[:])
	cn.isAhead = n > 0
	if cn.isAhead || err == io.EOF {
		return nil
	}
	return err
}

// Read reads what await has read, then from the connection.
func (cn *conn) Read(p []byte) (int, error) {
	if cn.isAhead && len(p) > 0 {
		cn.isAhead = false
		return copy(p, cn.ahead[:]), nil
	}
	return cn.Conn.Read(p)
}
