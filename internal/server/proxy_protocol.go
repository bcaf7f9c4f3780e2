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

// readProxyProtocol reads the header of the PROXY protocol that a trusted peer sends first: it names the client for
// whom the peer has made the connection. It returns false if that ends the connection. From a peer that is not trusted
// the server expects a request or a TLS handshake, and a header of the PROXY protocol is neither.
func (c *conn) readProxyProtocol() bool {
	if !isIn(c.at.Proxies(), c.peer.Addr) {
		return true
	}
	if !c.rest() {
		return false
	}
	o := c.server.settings.Load()
	under := c.socket.Conn
	_ = under.SetReadDeadline(time.Now().Add(o.HeadTimeout))
	from, err := readProxyHeader(under)
	_ = under.SetReadDeadline(time.Time{})
	switch isAwake := c.state.wake(); {
	case errors.Is(err, errSilent): // a peer that looks whether the port is open
		return false
	case err != nil:
		o.BadProxyHeader()
		o.Log.Warn("a peer did not begin its connection by the PROXY protocol, as it has to", "peer", c.peer.IP,
			"address", c.at.Address(), "cause", err)
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

// Bounds of a header.
const (
	// maxHeaderV1 is the longest header of version 1, in bytes.
	maxHeaderV1 = 107
	// maxHeaderV2 is how many bytes may follow the fixed part of version 2: addresses, and what the gateway does not
	// read.
	maxHeaderV2 = 4096
)

// readProxyHeader reads a header of the PROXY protocol and not a byte beyond it. It returns the address of the client;
// the zero value says that the peer is the client.
func readProxyHeader(r io.Reader) (netip.Addr, error) {
	head := make([]byte, 16, maxHeaderV1)
	if n, err := io.ReadFull(r, head[:12]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return netip.Addr{}, errSilent
		}
		return netip.Addr{}, err
	}
	var err error
	switch {
	case bytes.Equal(head[:12], proxyproto.SIGV2):
		head, err = readHeaderV2(r, head)
	case bytes.HasPrefix(head, []byte("PROXY ")):
		head, err = readHeaderV1(r, head[:12])
	default:
		err = proxyproto.ErrNoProxyProtocol
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return clientOfHeader(head)
}

// readHeaderV2 reads the rest of a header of version 2, of which the first 12 bytes are read.
func readHeaderV2(r io.Reader, head []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, head[12:16]); err != nil {
		return nil, err
	}
	following := int(binary.BigEndian.Uint16(head[14:16]))
	if following > maxHeaderV2 {
		return nil, fmt.Errorf("the header has %d bytes after its fixed part, which are more than %d", following,
			maxHeaderV2)
	}
	head = append(head, make([]byte, following)...)
	_, err := io.ReadFull(r, head[16:])
	return head, err
}

// readHeaderV1 reads the rest of a header of version 1. Its end is not known before it comes, so that each byte is read
// alone.
func readHeaderV1(r io.Reader, head []byte) ([]byte, error) {
	for head[len(head)-1] != '\n' {
		if len(head) == maxHeaderV1 {
			return nil, proxyproto.ErrVersion1HeaderTooLong
		}
		head = head[:len(head)+1]
		if _, err := io.ReadFull(r, head[len(head)-1:]); err != nil {
			return nil, err
		}
	}
	return head, nil
}

// unspecifiedHeader is the start of a header of version 2 for a client without an address, such as one on a Unix
// socket. The library does not know it; by the protocol the peer counts as the client.
const unspecifiedHeader = "\r\n\r\n\x00\r\nQUIT\n\x21\x00"

// clientOfHeader returns the address of the client in a header.
func clientOfHeader(header []byte) (netip.Addr, error) {
	if bytes.HasPrefix(header, []byte(unspecifiedHeader)) {
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
