package compress

import (
	"bytes"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/message"
)

// parsed returns the head of a request with these lines.
func parsed(t *testing.T, lines string) *message.Head {
	t.Helper()
	h := &message.Head{}
	if err := h.Parse([]byte("GET / HTTP/1.1\r\nHost: gw\r\n"+lines+"\r\n"), &message.Options{}); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestNegotiate(t *testing.T) {
	for lines, want := range map[string]Coding{
		"":                             Identity,
		"Accept-Encoding:\r\n":         Identity,
		"Accept-Encoding: gzip\r\n":    Gzip,
		"Accept-Encoding: X-GZip\r\n":  Gzip,
		"Accept-Encoding: deflate\r\n": Identity,
		"Accept-Encoding: gzip, deflate, br, zstd\r\n":                 Zstd,
		"Accept-Encoding: gzip, deflate, br\r\n":                       Brotli,
		"Accept-Encoding: br;q=0.5, gzip;q=0.8\r\n":                    Gzip,
		"Accept-Encoding: br ; Q=1.0 ,gzip;q=0.8\r\n":                  Brotli,
		"Accept-Encoding: gzip;q=0\r\n":                                Identity,
		"Accept-Encoding: *\r\n":                                       Zstd,
		"Accept-Encoding: *;q=0.5, gzip\r\n":                           Gzip,
		"Accept-Encoding: *, zstd;q=0\r\n":                             Brotli,
		"Accept-Encoding: *;q=0\r\n":                                   Identity,
		"Accept-Encoding: identity, gzip;q=0.5\r\n":                    Identity,
		"Accept-Encoding: identity;q=0.5, gzip\r\n":                    Gzip,
		"Accept-Encoding: gzip;q=2\r\n":                                Identity,
		"Accept-Encoding: gzip;q=NaN\r\n":                              Identity,
		"Accept-Encoding: gzip;level=9\r\n":                            Identity,
		"Accept-Encoding: br;q=0.1\r\nAccept-Encoding: gzip;q=0.2\r\n": Gzip,
	} {
		if got := Negotiate(parsed(t, lines), ForBodies); got != want {
			t.Errorf("%q: %s, want %s", lines, got, want)
		}
	}
}

const revision = "0123abcd"

// TestMarks: an ETag that a client names again is the backend's, in a head that is parsed again, too.
func TestMarks(t *testing.T) {
	for etag, want := range map[string]string{`"a"`: `"a-gateway-br"`, `""`: `"-gateway-br"`, `W/"a"`: `W/"a"`,
		`a`: `a`, `"`: `"`} {
		if got := string(Mark([]byte(etag), Variant{Coding: Brotli})); got != want {
			t.Errorf("%s is marked as %s, want %s", etag, got, want)
		}
	}
	for v, want := range map[Variant]string{
		{}: `"a"`, {Revision: revision}: `"a-gateway-0123abcd"`,
		{Revision: revision, Coding: Gzip}: `"a-gateway-0123abcd-gzip"`,
	} {
		if got := string(Mark([]byte(`"a"`), v)); got != want {
			t.Errorf("%v is marked as %s, want %s", v, got, want)
		}
	}
	for _, test := range []struct {
		name, value, want string
		variant           Variant
	}{
		{"If-None-Match", `"a-gateway-gzip"`, `"a"`, Variant{"", Gzip}},
		{"If-None-Match", `"a-gateway-gzip", W/"b", "c-gateway-gzip" , "-gateway-gzip"`, `"a", W/"b", "c" , ""`,
			Variant{"", Gzip}},
		{"If-None-Match", `"a-gateway-zstd","b"`, `"a","b"`, Variant{"", Zstd}},
		{"If-None-Match", `"a-gzip", "a-gateway-lz4"`, `"a-gzip", "a-gateway-lz4"`, Variant{}},
		{"If-None-Match", `"a-gateway-0123abcd"`, `"a"`, Variant{revision, Identity}},
		{"If-None-Match", `"a-gateway-gateway-0123abcd-br"`, `"a-gateway"`, Variant{revision, Brotli}},
		{"If-None-Match", `"a-gateway-ffff0000-br", "b-gateway-ffff0000"`,
			`"a-gateway-ffff0000-br", "b-gateway-ffff0000"`, Variant{}},
		{"If-None-Match", `"a-gateway-0123abcdbr", "a-gateway-0123abcd-", "a-gateway-`,
			`"a-gateway-0123abcdbr", "a-gateway-0123abcd-", "a-gateway-`, Variant{}},
		{"If-None-Match", `*`, `*`, Variant{}},
		{"If-Match", `"a-gateway-br"`, `"a"`, Variant{}},
		{"If-Match", `"a-gateway-ffff0000-br", "b-gateway-0123abcd"`, `"a", "b"`, Variant{}},
		{"If-Range", `"a-gateway-br"`, `"a-gateway-br"`, Variant{}},
	} {
		bytes := []byte("GET / HTTP/1.1\r\nHost: gw\r\n" + test.name + ": " + test.value + "\r\nX-After: 1\r\n\r\n")
		var h message.Head
		if err := h.Parse(bytes, &message.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := Unmark(&h, revision); got != test.variant {
			t.Errorf("%s: %s names %v, want %v", test.name, test.value, got, test.variant)
		}
		for range 2 {
			after, _ := h.Lookup("X-After")
			if got, _ := h.Lookup(test.name); string(got) != test.want || string(after) != "1" {
				t.Errorf("%s: %s became %s, want %s", test.name, test.value, got, test.want)
			}
			if err := h.Parse(bytes, &message.Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAppend: what saves nothing is not encoded.
func TestAppend(t *testing.T) {
	large := bytes.Repeat([]byte(`{"a":1},`), 1000)
	decoders := map[Coding]func(dst, src []byte) ([]byte, error){
		Gzip: fasthttp.AppendGunzipBytes, Brotli: fasthttp.AppendUnbrotliBytes, Zstd: fasthttp.AppendUnzstdBytes,
	}
	for _, c := range ForBodies {
		got, isEncoded := Append([]byte("before"), large, c)
		if !isEncoded || !bytes.HasPrefix(got, []byte("before")) || len(got) > 200 {
			t.Errorf("%s: %d bytes, %t", c, len(got), isEncoded)
			continue
		}
		if plain, err := decoders[c](nil, got[len("before"):]); err != nil || !bytes.Equal(plain, large) {
			t.Errorf("%s: decoded %d bytes, %v", c, len(plain), err)
		}
		if got, isEncoded := Append(nil, []byte("abc"), c); isEncoded {
			t.Errorf("%s: three bytes are encoded as %d", c, len(got))
		}
	}
}
