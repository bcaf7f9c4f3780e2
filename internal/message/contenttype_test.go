package message

import (
	"mime"
	"strings"
	"testing"
)

// contentTypes are values of Content-Type and what is read of them; "" is no type at all.
var contentTypes = []struct {
	value, media string
	charset      bool
}{
	{"application/json", "application/json", false},
	{"Application/JSON", "application/json", false},
	{"application/json ", "application/json", false},
	{"application/json;charset=utf-8", "application/json", true},
	{"application/json; charset=UTF-8", "application/json", true},
	{"application/json \t;\t Charset=\"Utf-8\" ", "application/json", true},
	{"application/merge-patch+json; charset=utf-8", "application/merge-patch+json", true},
	{"", "", false},
	{"application", "", false},
	{"application/", "", false},
	{"/json", "", false},
	{"application/json/x", "", false},
	{"application /json", "", false},
	{"application/json;", "", false},
	{"application/json; ", "", false},
	{"application/json;;charset=utf-8", "", false},
	{"application/json;charset=utf-8;", "", false},
	{"application/json;charset=utf-8;charset=utf-8", "", false},
	{"application/json;charset=utf-8;charset=utf-16", "", false},
	{"application/json;charset=utf-16", "", false},
	{"application/json;charset=utf8", "", false},
	{"application/json;charset", "", false},
	{"application/json;charset=", "", false},
	{"application/json;charset =utf-8", "", false},
	{"application/json;charset= utf-8", "", false},
	{"application/json;charset=\"utf-8", "", false},
	{"application/json;charset=utf-8\"", "", false},
	{"application/json;charset=\"\"utf-8\"\"", "", false},
	{"application/json;charset=\"utf\\-8\"", "", false},
	{"application/json;charset='utf-8'", "", false},
	{"application/json;charset*=utf-8''utf-8", "", false},
	{"application/json;charset*0=utf;charset*1=-8", "", false},
	{"application/json;,x", "", false},
	{"application/json,application/json", "", false},
	{"application/json, text/plain", "", false},
	{"application/json;profile=x", "", false},
	{"application/json;q=1", "", false},
	{"application/j\u017fon", "application/j\u017fon", false},
}

func TestParseContentType(t *testing.T) {
	for _, tt := range contentTypes {
		got := ParseContentType([]byte(tt.value))
		if strings.ContainsFunc(tt.media, func(r rune) bool { return r > 0x7f }) {
			tt.media = ""
		}
		if got.Charset != tt.charset || !got.Is(tt.media) {
			t.Errorf("%q is read as %q, %v", tt.value, got.media, got.Charset)
		}
	}
}

// What is read as a type package mime reads too, as the same type with the same charset: stricter, or equal.
func FuzzParseContentType(f *testing.F) {
	for _, tt := range contentTypes {
		f.Add(tt.value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := ParseContentType([]byte(value))
		if got.media == nil {
			return
		}
		media, parameters, err := mime.ParseMediaType(value)
		if err != nil {
			t.Fatalf("%q is read as %q, by mime not: %v", value, got.media, err)
		}
		want := 0
		if got.Charset {
			want = 1
		}
		if !got.Is(media) || len(parameters) != want || got.Charset &&
			!strings.EqualFold(parameters["charset"], "utf-8") {
			t.Fatalf("%q is read as %q, by mime as %q %v", value, got.media, media, parameters)
		}
	})
}

// FuzzMediaType: ParseMediaType reads what the library reads.
func FuzzMediaType(f *testing.F) {
	for _, c := range contentTypes {
		f.Add(c.value)
	}
	for _, value := range []string{`multipart/form-data; boundary=b`, `Multipart/Form-Data; Boundary="b c"`,
		`a/b; boundary=x; charset=utf-8`, `a/b; x="\"";`, `a/b; x="y"z`, "a/b;x=y;x=z"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := ParseMediaType([]byte(value))
		media, parameters, err := mime.ParseMediaType(value)
		if !ok {
			return
		}
		if err != nil {
			if strings.Contains(err.Error(), "duplicate") || strings.ContainsAny(value, "*\"") {
				return // of such parameters only a boundary is read, and one that stands alone
			}
			t.Fatalf("%q: is read, and the library says: %v", value, err)
		}
		if got.Name != media {
			t.Errorf("%q: %q, want %q", value, got.Name, media)
		}
		if len(parameters) == 1 && got.Boundary != "" && got.Boundary != parameters["boundary"] {
			t.Errorf("%q: boundary %q, want %q", value, got.Boundary, parameters["boundary"])
		}
	})
}
