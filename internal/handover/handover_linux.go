package handover

import (
	"context"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeOver listens on an address that another process offers; nil if none does. Two sockets share an address if both
// have SO_REUSEPORT. Once they do, the kernel lets any further one of the same user in, without asking whether the
// first ones still have it. So there is a claim beside it, of which there is one at a time.
func (c *Claims) takeOver(address string) (*net.TCPListener, io.Closer) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil
	}
	// Names of this kind belong to the network namespace, as ports do, and end with their process.
	claim, err := c.hold(port,
		func() (io.Closer, error) { return net.ListenPacket("unixgram", "@admission-gateway/listen/"+port) })
	if err != nil {
		return nil, nil
	}
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return setShared(c) }}
	l, err := sharing.Listen(context.Background(), "tcp", address)
	if err != nil {
		_ = claim.Close()
		return nil, nil
	}
	return l.(*net.TCPListener), claim
}

// share lets another socket have the address too.
func share(l *net.TCPListener) error {
	c, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return setShared(c)
}

func setShared(c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	if failed != nil {
		return failed
	}
	return err
}
