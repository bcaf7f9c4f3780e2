package h2

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/message"
)

// decoded reads a block by the library.
func decoded(t *testing.T, block []byte) (fields []hpack.HeaderField) {
	t.Helper()
	d := hpack.NewDecoder(HeaderTable, func(f hpack.HeaderField) { fields = append(fields, f) })
	if _, err := d.Write(block); err != nil {
		t.Fatalf("block %x: %v", block, err)
	}
	if err := d.Close(); err != nil {
		t.Fatalf("block %x: %v", block, err)
	}
	return fields
}

// TestStaticNames compares the numbers of names with the library's table.
func TestStaticNames(t *testing.T) {
	for i := 1; i <= 61; i++ {
		fields := decoded(t, []byte{0x80 | byte(i)})
		name := fields[0].Name
		got, _ := staticIndex([]byte(name))
		first := got
		if got > 0 {
			first = 0
			for k := 1; k <= 61 && first == 0; k++ {
				if decoded(t, []byte{0x80 | byte(k)})[0].Name == name {
					first = k
				}
			}
		}
		if name != ":status" && (got == 0 || got != first && !strings.HasPrefix(name, ":")) || got > 0 && first == 0 {
			if name != "strict-transport-security" && name != "transfer-encoding" {
				t.Errorf("%s: number %d, want %d", name, got, first)
			}
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add([]byte("Content-Type"), []byte("application/json"))
	f.Add([]byte("x-a"), []byte(""))
	f.Add([]byte("Authorization"), bytes.Repeat([]byte("a"), 200))
	f.Add(bytes.Repeat([]byte("N"), 300), bytes.Repeat([]byte("v"), 40_000))
	f.Fuzz(func(t *testing.T, name, value []byte) {
		for _, c := range name {
			if !message.IsInToken(c) {
				return
			}
		}
		if len(name) == 0 {
			return
		}
		fields := decoded(t, AppendField(AppendStatus([]byte{BlockStart}, []byte("200")), name, value))
		want := []hpack.HeaderField{{Name: ":status", Value: "200"},
			{Name: strings.ToLower(string(name)), Value: string(value)}}
		secret := map[string]bool{"authorization": true, "proxy-authorization": true, "cookie": true,
			"set-cookie": true}[want[1].Name]
		want[1].Sensitive = secret
		if len(fields) != 2 || fields[0] != want[0] || fields[1] != want[1] {
			t.Errorf("%q: %q is decoded as %v", name, value, fields)
		}
	})
}

func TestAnswer(t *testing.T) {
	for _, code := range []string{"100", "200", "204", "206", "304", "400", "404", "409", "422", "500", "599"} {
		if got := decoded(t, AppendStatus(nil, []byte(code))); got[0].Name != ":status" || got[0].Value != code {
			t.Errorf("status %s is decoded as %v", code, got)
		}
	}
	head := "HTTP/1.1 201 Created\r\nDate: now\r\nSet-Cookie: a=b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nKeep-Alive: 5\r\nX-Empty:\r\n" +
		"ETag: \t\"a\" \r\nUpgrade: h2c\r\n\r\n"
	var got []string
	for _, f := range decoded(t, AppendAnswer(nil, []byte(head))) {
		got = append(got, f.Name+"="+f.Value)
	}
	want := `:status=201 date=now set-cookie=a=b x-empty= etag="a"`
	if strings.Join(got, " ") != want {
		t.Errorf("the answer is %s, want %s", strings.Join(got, " "), want)
	}
	trailers, err := message.ParseTrailers(
		[]byte("grpc-status: 0\r\ncontent-digest: a\r\nauthorization: b\r\nx_a: c\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, f := range decoded(t, AppendTrailers(nil, trailers)) {
		got = append(got, f.Name+"="+f.Value)
	}
	if strings.Join(got, " ") != "grpc-status=0 content-digest=a" {
		t.Errorf("the trailers are %s", strings.Join(got, " "))
	}
}
