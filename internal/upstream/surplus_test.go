package upstream

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/message"
)

// together is a connection that sends in one piece what is written between two reads, so that TLS reads ahead.
type together struct {
	net.Conn
	corked []byte
}

func (c *together) Write(p []byte) (int, error) {
	c.corked = append(c.corked, p...)
	return len(p), nil
}

// SetWriteDeadline does nothing: everything corked is sent after TLS has set one.
func (c *together) SetWriteDeadline(time.Time) error { return nil }

func (c *together) Read(p []byte) (int, error) {
	if len(c.corked) > 0 {
		if _, err := c.Conn.Write(c.corked); err != nil {
			return 0, err
		}
		c.corked = nil
	}
	return c.Conn.Read(p)
}

// Bytes behind an answer never become the next answer, even if TLS has them already: in the record in which the answer
// ends, or in one of their own right behind it.
func TestSurplusInTLS(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "a")
	settings := authority.Server(t, []string{"127.0.0.1"}).Config(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	const surplus = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	answers := map[string]string{"/good": okReply, "/bye": okReply} // after the latter the connection ends
	for _, size := range []int{0, 10, 5_000, 20_000, SmallBody, SmallBody + 5_000} {
		body := strings.Repeat("x", size)
		answers["/length/"+strconv.Itoa(size)] = "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(size) +
			"\r\n\r\n" + body + surplus
		answers["/chunked/"+strconv.Itoa(size)] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n" + strconv.FormatInt(int64(size+1), 16) + "\r\n" + body + "x\r\n0\r\n\r\n" + surplus
	}
	go func() {
		for {
			socket, err := ln.Accept()
			if err != nil {
				return
			}
			nc := tls.Server(&together{Conn: socket}, settings)
			go func() {
				defer func() { _ = nc.Close() }()
				for br := bufio.NewReader(nc); ; {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					answer := answers[r.URL.Path]
					if r.URL.RawQuery != "" { // in two records
						at := strings.LastIndex(answer, surplus)
						if _, err := io.WriteString(nc, answer[:at]); err != nil {
							return
						}
						answer = answer[at:]
					}
					if _, err := io.WriteString(nc, answer); err != nil {
						return
					}
					if r.URL.Path == "/bye" {
						_ = nc.CloseWrite()
					}
				}
			}()
		}
	}()
	client, err := New(Config{Endpoints: []string{"https://" + ln.Addr().(*net.TCPAddr).String()},
		TLS: func() *tls.Config { return &tls.Config{RootCAs: authority.Pool()} }})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for target := range answers {
		for _, query := range []string{"", "?apart"} {
			good := target == "/good" || target == "/bye"
			if good {
				query = ""
			}
			var resp message.Response
			if err := client.Do(request("GET", target+query, ""), &resp); err == nil && resp.IsStream() {
				_, _ = io.Copy(io.Discard, resp.Stream())
				resp.Close()
			} else if (err == nil) != good {
				t.Errorf("%s: %v", target+query, err)
			}
			resp.Reset(0)
			if err := client.Do(request("GET", "/good", ""), &resp); err != nil || string(resp.Body()) != "ok" {
				t.Errorf("after %s the next answer is %.50q, %v", target+query, resp.Body(), err)
			}
		}
	}
	if n := client.Dialled(); n > uint64(2*len(answers)) {
		t.Errorf("%d connections were made: good ones are not used again", n)
	}
}
