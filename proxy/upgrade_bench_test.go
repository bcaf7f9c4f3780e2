package proxy

import (
	"bufio"
	"io"
	"net"
	"testing"
)

// BenchmarkUpgraded carries bytes through an upgraded connection: parts that go there and back before the next one, and
// as many as it takes one way.
func BenchmarkUpgraded(b *testing.B) {
	_, address := upgradeGateway(b, nil, "", func(c net.Conn) {
		r := bufio.NewReader(c)
		head, err := readHead(r)
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, agree("websocket"))
		if headerOf(head, "X-Way") == "one" {
			_, _ = io.Copy(io.Discard, c)
			_, _ = c.Write([]byte("."))
			return
		}
		_, _ = io.Copy(c, c)
	})
	open := func(b *testing.B, way string) (*net.TCPConn, *bufio.Reader) {
		c, r := dialTCP(b, address)
		send(b, c, askUpgrade("GET", execPath, "websocket", "X-Way: "+way))
		if _, err := readHead(r); err != nil {
			b.Fatal(err)
		}
		return c, r
	}
	b.Run("keystrokes", func(b *testing.B) {
		c, r := open(b, "both")
		key := []byte("x")
		for b.Loop() {
			if _, err := c.Write(key); err != nil {
				b.Fatal(err)
			}
			if _, err := r.ReadByte(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bulk", func(b *testing.B) {
		c, r := open(b, "one")
		part := make([]byte, 1<<20)
		b.SetBytes(int64(len(part)))
		for b.Loop() {
			if _, err := c.Write(part); err != nil {
				b.Fatal(err)
			}
		}
		_ = c.CloseWrite()
		if _, err := r.ReadByte(); err != nil {
			b.Fatal(err)
		}
	})
}
