package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

// introduce reads by the PROXY protocol for whom a trusted peer has made the connection, before anything else is read of it.
// It returns false if that ends the connection. Whatever another peer sends is its first request, or a handshake: a header of
// that protocol is neither.
func (c *conn) introduce() bool {
	if !isIn(c.at.Proxies(), c.peer.Addr) {
		return true
	}
	if !c.rest() {
		return false
	}
	o := c.server.settings.Load()
	under := c.socket.Conn
	_ = under.SetReadDeadline(time.Now().Add(o.HeadTimeout))
	from, err := readIntroduction(under)
	_ = under.SetReadDeadline(time.Time{})
	switch isAwake := c.life.wake(); {
	case errors.Is(err, errSilent): // a peer that looks whether the port is open
		return false
	case err != nil:
		o.NotIntroduced()
		o.Log.Warn("a peer did not begin its connection by the PROXY protocol, as it has to", "peer", c.peer.IP, "address", c.at.Address(), "cause", err)
		return false
	case !isAwake:
		return false
	}
	if from.IsValid() {
		c.peer.is(from)
		c.adopt(c.adopted)
	}
	return true
}

// isIn reports whether an address is in one of the blocks.
func isIn(blocks []netip.Prefix, addr netip.Addr) bool {
	for _, b := range blocks {
		if b.Contains(addr) {
			return true
		}
	}
	return false
}

// errSilent is the error of a peer that ends its connection without having sent anything.
var errSilent = errors.New("the peer sent nothing")

// Bounds of an introduction.
const (
	// mostLine is the longest line of version 1.
	mostLine = 107
	// mostFollowing is how many bytes may follow the fixed part of version 2: addresses, and what the gateway does not read.
	mostFollowing = 4096
)

// readIntroduction reads a header of the PROXY protocol and not a byte beyond it. It returns the address of the client; the
// zero value says that the peer speaks for itself.
func readIntroduction(r io.Reader) (netip.Addr, error) {
	head := make([]byte, 16, mostLine)
	if n, err := io.ReadFull(r, head[:12]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return netip.Addr{}, errSilent
		}
		return netip.Addr{}, err
	}
	var err error
	switch {
	case bytes.Equal(head[:12], proxyproto.SIGV2):
		head, err = readBinary(r, head)
	case bytes.HasPrefix(head, []byte("PROXY ")):
		head, err = readLine(r, head[:12])
	default:
		err = proxyproto.ErrNoProxyProtocol
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return clientOf(head)
}

// readBinary reads the rest of a header of version 2, of which the first 12 bytes are read.
func readBinary(r io.Reader, head []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, head[12:16]); err != nil {
		return nil, err
	}
	following := int(binary.BigEndian.Uint16(head[14:16]))
	if following > mostFollowing {
		return nil, fmt.Errorf("the header has %d bytes after its fixed part, which are more than %d", following, mostFollowing)
	}
	head = append(head, make([]byte, following)...)
	_, err := io.ReadFull(r, head[16:])
	return head, err
}

// readLine reads the rest of a header of version 1. Its end is not known before it comes, so that each byte is read alone.
func readLine(r io.Reader, head []byte) ([]byte, error) {
	for head[len(head)-1] != '\n' {
		if len(head) == mostLine {
			return nil, proxyproto.ErrVersion1HeaderTooLong
		}
		head = head[:len(head)+1]
		if _, err := io.ReadFull(r, head[len(head)-1:]); err != nil {
			return nil, err
		}
	}
	return head, nil
}

// unspecified is the start of a header of version 2 about a client without an address, such as that of a socket of Unix. The
// library takes it for none that it knows; the protocol has the peer stand for the client.
const unspecified = "\r\n\r\n\x00\r\nQUIT\n\x21\x00"

// clientOf returns the address of the client in a header.
func clientOf(header []byte) (netip.Addr, error) {
	if bytes.HasPrefix(header, []byte(unspecified)) {
		return netip.Addr{}, nil
	}
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(header), len(header)))
	if err != nil || h.Command == proxyproto.LOCAL {
		return netip.Addr{}, err
	}
	source, isTCP := h.SourceAddr.(*net.TCPAddr)
	if !isTCP || !h.TransportProtocol.IsStream() {
		return netip.Addr{}, errors.New("the header names a client of another protocol than TCP")
	}
	return source.AddrPort().Addr(), nil
}
