package upstream

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/h2conn"
)

// FuzzHTTP2Frames takes any frames of a backend behind its settings. Nothing breaks, and an answer is whole only if its
// stream ended, by the library's reading of the frames.
func FuzzHTTP2Frames(f *testing.F) {
	frames := func(write func(f *far)) []byte {
		var b bytes.Buffer
		one := &far{Framer: http2.NewFramer(&b, nil)}
		one.AllowIllegalWrites = true
		one.encoder = hpack.NewEncoder(&one.block)
		write(one)
		return b.Bytes()
	}
	f.Add(frames(func(f *far) { f.ok(1) }))
	f.Add(frames(func(f *far) { f.head(1, false, ":status", "200"); _ = f.WriteData(1, false, []byte("half")) }))
	f.Add(frames(func(f *far) {
		f.head(1, false, ":status", "103", "link", "a")
		f.head(1, false, ":status", "200")
		_ = f.WriteDataPadded(1, false, []byte("one"), make([]byte, 5))
		_ = f.WritePing(false, [8]byte{})
		f.head(1, true, "grpc-status", "0")
	}))
	f.Add(frames(func(f *far) {
		f.head(1, false, ":status", "200")
		_ = f.WriteGoAway(1, http2.ErrCodeNo, nil)
		_ = f.WriteRSTStream(1, http2.ErrCodeNo)
	}))
	f.Add(frames(func(f *far) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0},
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
		_ = f.WriteWindowUpdate(1, 1<<31-1)
		f.ok(1)
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, end := net.Pipe()
		defer func() { _ = near.Close() }()
		go func() { _, _ = io.Copy(io.Discard, end) }()
		go func() {
			_ = http2.NewFramer(end, nil).WriteSettings()
			_, _ = end.Write(b)
			_ = end.Close()
		}()
		c, err := h2conn.New(near, h2conn.Config{HeadBytes: 16 << 10, Ping: time.Minute, PingTimeout: time.Minute,
			Write: time.Minute, Memory: &h2conn.Memory{}}, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			c.Run(h2conn.Events{Streams: func(int) {}, Last: func() {}})
			close(ended)
		}()
		s, err := c.Open([]byte{0x82, 0x86, 0x84}, true)
		if err != nil {
			return // it had ended
		}
		var body []byte
		head, err := s.Head()
		if err == nil {
			head = bytes.Clone(head)
			part := make([]byte, 1<<10)
			for err == nil {
				var n int
				n, err = s.Read(part, true, time.Time{})
				body = append(body, part[:n]...)
			}
		}
		trailers := s.Trailers()
		s.Close()
		<-ended
		if err != io.EOF {
			return
		}
		if !isWhole(b, len(body)) {
			t.Errorf("%x: the answer %q with %d bytes and %d trailers is taken for a whole one", b, head, len(body),
				len(trailers))
		}
	})
}

// isWhole reports whether frames hold an answer on the first stream with a body of that length and an end.
func isWhole(b []byte, length int) bool {
	f := http2.NewFramer(io.Discard, bytes.NewReader(b))
	f.ReadMetaHeaders = nil
	isEnd, heads := false, 0
	for !isEnd {
		frame, err := f.ReadFrame()
		if _, isOne := err.(http2.StreamError); isOne {
			continue
		}
		if err != nil {
			return false
		}
		switch one := frame.(type) {
		case *http2.HeadersFrame:
			if one.StreamID == 1 {
				heads++
				isEnd = one.StreamEnded()
			}
		case *http2.DataFrame:
			if one.StreamID == 1 {
				length -= len(one.Data())
				isEnd = one.StreamEnded()
			}
		}
	}
	return heads > 0 && length == 0
}

// FuzzHTTP2Twin gives the same answer by HTTP/1.1 and by HTTP/2, with the same result. A field that HTTP/2 alone
// refuses is written as it has to be.
func FuzzHTTP2Twin(f *testing.F) {
	f.Add(uint16(200), "content-length: 2", "ok", true)
	f.Add(uint16(404), "a: b\nset-cookie: c", "no", true)
	f.Add(uint16(204), "content-length: 0", "", true)
	f.Add(uint16(304), "etag: \"1\"\ncontent-length: 7", "", true)
	f.Add(uint16(200), "content-length: 3", "ok", true)
	f.Add(uint16(200), "content-length: +2", "ok", true)
	f.Add(uint16(200), "content-length: 2\ncontent-length: 2", "ok", true)
	f.Add(uint16(200), "content-length: 1", "ok", true)
	f.Add(uint16(200), "", "half", false)
	f.Add(uint16(99), "", "ok", true)
	f.Add(uint16(101), "", "", true)
	f.Add(uint16(600), "", "", true)
	f.Add(uint16(200), "content-encoding: gzip\ncontent-encoding: br", "ok", true)
	f.Add(uint16(200), "keep-alive: 5\ntrailer: x\nproxy-authenticate: y", "ok", true)
	f.Fuzz(func(t *testing.T, status uint16, lines, body string, isWhole bool) {
		code := strconv.Itoa(int(status))
		if len(code) != 3 || len(lines) > 1<<12 || len(body) > 1<<12 || code[0] == '1' && code != "101" {
			return
		}
		fields := []string{":status", code}
		text := "HTTP/1.1 " + code + " x\r\n"
		hasLength, hasBody := false, code != "101" && code != "204" && code != "304"
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			name, value = strings.ToLower(name), strings.Trim(value, " \t")
			switch name {
			case "connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection", "http2-settings":
				continue // which HTTP/2 does not have
			case "content-length":
				hasLength = true
			}
			if strings.HasPrefix(name, ":") || strings.ContainsAny(name+value, "\r\n") || name == "" {
				continue // which the text of HTTP/1.1 cannot say
			}
			fields = append(fields, name, value)
			text += name + ": " + value + "\r\n"
		}
		if hasLength || !hasBody {
			text += "\r\n" + body
		} else {
			text += "Transfer-Encoding: chunked\r\n\r\n"
			if body != "" {
				text += strconv.FormatInt(int64(len(body)), 16) + "\r\n" + body + "\r\n"
			}
			if isWhole {
				text += "0\r\n\r\n"
			}
		}
		first := verdictOf(t, newScripted(t, text+cut), Config{})
		second := verdictOf(t, nil, newFar(t, func(f *far, _ int) {
			id := f.request()
			f.head(id, isWhole && body == "", fields...)
			if body != "" {
				_ = f.WriteData(id, isWhole, []byte(body))
			}
			if !isWhole {
				_ = f.WriteRSTStream(id, http2.ErrCodeInternal)
			}
			_, _ = io.Copy(io.Discard, f)
		}))
		// By HTTP/1.1 a length ends the body, and what is wrong behind it is not the answer's.
		isLoose := (hasLength || !hasBody) && (!isWhole || body != "")
		if first != second && !isLoose {
			t.Errorf("%s %q %q %v: by HTTP/1.1 %q, by HTTP/2 %q", code, fields, body, isWhole, first, second)
		}
	})
}

// verdictOf makes a request, and returns that it failed, or the status, the fields and the body. An answer that is
// shorter than it says is broken by HTTP/1.1, and malformed by HTTP/2.
func verdictOf(t *testing.T, s *scripted, c Config) string {
	t.Helper()
	if s != nil {
		c.Endpoints = []string{"http://" + s.Addr().String()}
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var resp message.Response
	req := request("POST", "/a", "")
	refused := func(err error) string { return strings.Replace(kindOf(err), "Broken", "Malformed", 1) }
	if err := client.Do(req, &resp); err != nil {
		return refused(err)
	}
	defer resp.Close()
	var body []byte
	if resp.IsStream() {
		if body, err = io.ReadAll(resp.Stream()); err != nil {
			return refused(err)
		}
	} else {
		body = resp.Body()
	}
	resp.Remove("Transfer-Encoding")
	_, head, _ := strings.Cut(string(resp.Head()), "\r\n")
	return strconv.Itoa(resp.Status()) + " " + head + string(body)
}
