package server

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// binaryHeader is a header of version 2.
func binaryHeader(command, family byte, length int, following string) string {
	b := append(bytes.Clone(proxyproto.SIGV2), command, family)
	return string(binary.BigEndian.AppendUint16(b, uint16(length))) + following
}

const (
	fourAddresses = "\x0a\x01\x02\x03\x0a\x00\x00\x01\xc0\x00\x01\xbb"
	sixAddresses  = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08" + "\xc0\x00\x01\xbb"
)

// proxyHeaders are headers of the PROXY protocol, and the client that they name: "-" is the peer itself, "" that the
// header is refused.
var proxyHeaders = []struct{ name, header, client string }{
	{"1, TCP4", "PROXY TCP4 10.1.2.3 10.0.0.1 49152 443\r\n", "10.1.2.3"},
	{"1, TCP6", "PROXY TCP6 2001:db8::7 2001:db8::8 49152 443\r\n", "2001:db8::7"},
	{"1, UNKNOWN", "PROXY UNKNOWN\r\n", "-"},
	{"1, UNKNOWN with addresses", "PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", "-"},
	{"1, the longest", "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", "-"},
	{"1, one byte too long", "PROXY UNKNOWN fffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", ""},
	{"1, without an end", "PROXY TCP4 10.1.2.3 10.0.0.1 49152 443" + strings.Repeat(" ", 200), ""},
	{"1, LF alone", "PROXY TCP4 10.1.2.3 10.0.0.1 49152 443\n", ""},
	{"1, CR alone", "PROXY TCP4 10.1.2.3 10.0.0.1 49152 443\rGET / HTTP/1.1\r\n", ""},
	{"1, truncated", "PROXY TCP4 10.1.2.3 10.0.", ""},
	{"1, the signature alone", "PROXY ", ""},
	{"1, small letters", "proxy TCP4 10.1.2.3 10.0.0.1 49152 443\r\n", ""},
	{"1, no space", "PROXYTCP4 10.1.2.3 10.0.0.1 49152 443\r\n", ""},
	{"1, two spaces", "PROXY  TCP4 10.1.2.3 10.0.0.1 49152 443\r\n", ""},
	{"1, a tab", "PROXY\tTCP4 10.1.2.3 10.0.0.1 49152 443\r\n", ""},
	{"1, a space at the end", "PROXY TCP4 10.1.2.3 10.0.0.1 49152 443 \r\n", ""},
	{"1, a port too few", "PROXY TCP4 10.1.2.3 10.0.0.1 49152\r\n", ""},
	{"1, a port that is too large", "PROXY TCP4 10.1.2.3 10.0.0.1 65536 443\r\n", ""},
	{"1, a port with a sign", "PROXY TCP4 10.1.2.3 10.0.0.1 +1 443\r\n", ""},
	{"1, a port with a zero before it", "PROXY TCP4 10.1.2.3 10.0.0.1 01 443\r\n", ""},
	{"1, an address with a zero before it", "PROXY TCP4 10.1.2.03 10.0.0.1 1 443\r\n", ""},
	{"1, an address with a zone", "PROXY TCP6 fe80::1%eth0 fe80::2 1 443\r\n", ""},
	{"1, TCP4 with an address of the other family", "PROXY TCP4 2001:db8::7 10.0.0.1 49152 443\r\n", ""},
	{"1, TCP6 with an address of the other family", "PROXY TCP6 10.1.2.3 2001:db8::8 49152 443\r\n", ""},
	{"1, a mixture", "PROXY TCP4 10.1.2.3 2001:db8::8 49152 443\r\n", ""},
	{"1, UDP", "PROXY UDP4 10.1.2.3 10.0.0.1 49152 443\r\n", ""},
	{"2, TCP4", binaryHeader(0x21, 0x11, 12, fourAddresses), "10.1.2.3"},
	{"2, TCP6", binaryHeader(0x21, 0x21, 36, sixAddresses), "2001:db8::7"},
	{"2, TCP4 and what follows", binaryHeader(0x21, 0x11, 12+7, fourAddresses+"\x04\x00\x04abcd"), "10.1.2.3"},
	{"2, the longest", binaryHeader(0x21, 0x11, maxHeaderV2, fourAddresses+"\x04"+
		string([]byte{byte((maxHeaderV2 - 15) >> 8), (maxHeaderV2 - 15) & 0xff})+strings.Repeat("x", maxHeaderV2-15)),
		"10.1.2.3"},
	{"2, LOCAL", binaryHeader(0x20, 0x00, 0, ""), "-"},
	{"2, LOCAL with addresses", binaryHeader(0x20, 0x11, 12, fourAddresses), "-"},
	{"2, UNSPEC", binaryHeader(0x21, 0x00, 0, ""), "-"},
	{"2, one byte too long", binaryHeader(0x21, 0x11, maxHeaderV2+1, fourAddresses+strings.Repeat("x", maxHeaderV2-11)),
		""},
	{"2, as long as can be", binaryHeader(0x21, 0x11, 0xffff, fourAddresses), ""},
	{"2, addresses that are too short", binaryHeader(0x21, 0x11, 11, fourAddresses[:11]), ""},
	{"2, addresses of the shorter family", binaryHeader(0x21, 0x21, 12, fourAddresses), ""},
	{"2, truncated", binaryHeader(0x21, 0x11, 12, fourAddresses[:5]), ""},
	{"2, the signature alone", string(proxyproto.SIGV2), ""},
	{"2, UDP", binaryHeader(0x21, 0x12, 12, fourAddresses), ""},
	{"2, a socket of Unix", binaryHeader(0x21, 0x31, 216, strings.Repeat("/", 216)), ""},
	{"2, another version", binaryHeader(0x11, 0x11, 12, fourAddresses), ""},
	{"2, another command", binaryHeader(0x22, 0x11, 12, fourAddresses), ""},
	{"2, another family", binaryHeader(0x21, 0x41, 12, fourAddresses), ""},
	{"none", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"a handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 500), ""},
	{"short", "GET /", ""},
}

// TestReadProxyHeader: a header is read as a whole and no byte of what follows it, in whatever pieces it comes.
func TestReadProxyHeader(t *testing.T) {
	const request = "GET / HTTP/1.1\r\n"
	for _, c := range proxyHeaders {
		for _, in := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader,
			iotest.HalfReader} {
			left := strings.NewReader(c.header)
			isWhole := c.client != ""
			if isWhole {
				left = strings.NewReader(c.header + request)
			}
			got, err := readProxyHeader(in(left))
			switch rest, _ := io.ReadAll(left); {
			case !isWhole && err == nil:
				t.Errorf("%s: is taken as %v", c.name, got)
			case isWhole && err != nil:
				t.Errorf("%s: %v", c.name, err)
			case isWhole && string(rest) != request:
				t.Errorf("%s: %q is left", c.name, rest)
			case c.client == "-" && got.IsValid() || isWhole && c.client != "-" && got.String() != c.client:
				t.Errorf("%s: the client is %v, want %s", c.name, got, c.client)
			}
		}
	}
}

// FuzzProxyHeader: what is taken is what the library takes of the same bytes, and the library writes it in the same way
// again.
func FuzzProxyHeader(f *testing.F) {
	for _, c := range proxyHeaders {
		f.Add([]byte(c.header))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		left := bytes.NewReader(in)
		client, err := readProxyHeader(iotest.OneByteReader(left))
		if err != nil {
			return
		}
		used := in[:len(in)-left.Len()]
		if len(used) > 16+maxHeaderV2 {
			t.Fatalf("%d bytes are read", len(used))
		}
		again, err := clientOfHeader(used)
		if err != nil || again != client {
			t.Fatalf("%q: %v, then %v %v", used, client, again, err)
		}
		if !client.IsValid() {
			return
		}
		// What is written anew for the same client is read as the same one.
		to := netip.AddrPortFrom(client, 1)
		written, err := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(to),
			net.TCPAddrFromAddrPort(to)).Format()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readProxyHeader(bytes.NewReader(written)); err != nil || got.Unmap() != client.Unmap() {
			t.Fatalf("%q: written as %q, which is %v, %v", used, written, got, err)
		}
	})
}

// proxyListeners are listeners on which a peer has to begin by the PROXY protocol.
func proxyListeners(from string, with *credentials.Value[*credentials.Server]) *listeners.Set {
	s, _ := listeners.New([]*listeners.Listener{{Name: "a", Addresses: []string{""}, TLS: with,
		Proxies: []netip.Prefix{netip.MustParsePrefix(from)}}})
	return s
}

// TestProxyProtocol: the client that a peer names counts as the peer, by TLS and without. A peer that names none is cut
// and counted.
func TestProxyProtocol(t *testing.T) {
	for _, overTLS := range []bool{false, true} {
		var badHeaders atomic.Int64
		o := Options{
			Listeners: proxyListeners("127.0.0.0/8", nil), BadProxyHeader: func() { badHeaders.Add(1) },
			HeadTimeout:    testutil.Patience,
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		}
		if overTLS {
			o.Listeners = proxyListeners("127.0.0.0/8", h1test.NewTLS(t, credentials.ServerFiles{}).Server)
		}
		seen := make(chan *Peer, 1)
		_, addr := startServer(t, o, func(r *Request) {
			peer := *r.Peer()
			seen <- &peer
			reply(r, 200)
		})
		addr = strings.TrimPrefix(addr, h1test.SecureScheme)
		for _, c := range proxyHeaders {
			if strings.Contains(c.name, "1, without an end") || strings.Contains(c.name, "truncated") ||
				strings.Contains(c.name, "alone") || c.name == "short" || strings.HasPrefix(c.name, "2, as long") {
				continue // what is not whole is awaited
			}
			before := badHeaders.Load()
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
			h1test.Send(t, nc, c.header)
			if c.client == "" {
				if got, _ := io.ReadAll(nc); len(got) > 0 {
					t.Errorf("%s: answered %q", c.name, got)
				}
				testutil.Eventually(t, c.name+" to be counted", func() bool { return badHeaders.Load() == before+1 })
				_ = nc.Close()
				continue
			}
			end := nc
			if overTLS {
				end = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
			}
			h1test.Send(t, end, h1test.GetHead+"Connection: close\r\n\r\n")
			if got, err := io.ReadAll(end); err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
				t.Fatalf("%s: %q, %v", c.name, got, err)
			}
			want := c.client
			if want == "-" {
				want = "127.0.0.1"
			}
			if peer := <-seen; peer.IP != want || peer.Addr.String() != want ||
				peer.IsTrusted != strings.HasPrefix(want, "10.") || peer.HasTLS() != overTLS {
				t.Errorf("%s: the peer is %+v, want %s", c.name, peer, want)
			}
			_ = nc.Close()
		}
		probe, err := net.Dial("tcp", addr) // looks whether the port is open
		if err != nil {
			t.Fatal(err)
		}
		before := badHeaders.Load()
		_ = probe.(*net.TCPConn).CloseWrite()
		_, _ = io.ReadAll(probe)
		if badHeaders.Load() != before {
			t.Error("a probe of the port is counted")
		}
	}
}

// TestProxyProtocolUntrusted: who is not trusted to name clients is refused with a header that does.
func TestProxyProtocolUntrusted(t *testing.T) {
	_, addr := startServer(t, Options{Listeners: proxyListeners("10.0.0.0/8", nil)}, func(r *Request) {
		code := 200
		if r.Refusal != nil {
			code = int(r.Refusal.ErrStatus.Code)
		}
		reply(r, code)
	})
	addr = strings.TrimPrefix(addr, h1test.SecureScheme)
	for _, c := range proxyHeaders {
		if c.client == "" {
			continue
		}
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, c.header+h1test.GetHead+"\r\n")
		if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 400 || !closes {
			t.Errorf("%s: answered %d", c.name, got.StatusCode)
		}
	}
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("without a header: answered %d", got.StatusCode)
	}
}

// TestProxyProtocolDeadline: a header must come in time, and a shutdown does not wait for it.
func TestProxyProtocolDeadline(t *testing.T) {
	var badHeaders atomic.Int64
	s, addr := startServer(t,
		Options{Listeners: proxyListeners("127.0.0.1/32", nil), HeadTimeout: 50 * time.Millisecond,
			BadProxyHeader: func() { badHeaders.Add(1) }}, nil)
	addr = strings.TrimPrefix(addr, h1test.SecureScheme)
	for _, begun := range []string{"", "PROXY TCP4 10.1.", string(proxyproto.SIGV2)} {
		nc, _ := h1test.Dial(t, addr)
		h1test.Send(t, nc, begun)
		if got, err := io.ReadAll(nc); len(got) > 0 || err != nil {
			t.Errorf("%q: %q, %v", begun, got, err)
		}
	}
	if badHeaders.Load() != 3 {
		t.Errorf("%d are counted", badHeaders.Load())
	}
	o := *s.settings.Load()
	o.HeadTimeout = time.Hour
	s.Configure(o.Options)
	nc, _ := h1test.Dial(t, addr)
	testutil.Eventually(t, "the connection", func() bool { return s.Open() == 1 })
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(nc); len(got) > 0 || err != nil && !h1test.IsReset(err) {
		t.Errorf("%q, %v", got, err)
	}
}
