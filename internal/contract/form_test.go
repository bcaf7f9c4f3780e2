package contract

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// anyForm takes fields of any name: 'a' is a text, 'b' a list of texts, 'file' a file.
func anyForm() *Form {
	text := []Type{String}
	return &Form{
		Fields: []Parameter{
			{In: InBody, Name: "a", Types: text}, {In: InBody, Name: "b", Types: text, Shape: List},
			{In: InBody, Name: "file", Types: text, Shape: List},
		},
		Parts:  []Part{{}, {}, {IsFile: true}},
		Others: &Parameter{In: InBody, Types: text, Shape: List},
	}
}

// textsIn reads the object of a form: the texts of each field.
func textsIn(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	all := map[string][]string{}
	for name, value := range object {
		if one, isText := value.(string); isText {
			all[name] = []string{one}
			continue
		}
		for _, one := range value.([]any) {
			all[name] = append(all[name], one.(string))
		}
	}
	return all
}

func isSame(a, b map[string][]string) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// FuzzFields: a form is read as net/url reads it.
func FuzzFields(f *testing.F) {
	for _, body := range []string{"a=b", "a=%20+&b=1&b=2&c", "a=1&a=2", "&&=x", "a=%zz", "a;b", "a=%ff", "\x00=1",
		"b%5B%5D=1"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text, failures, err := anyForm().ReadFields([]byte(body))
		want, wrong := url.ParseQuery(body)
		if err != nil {
			if wrong == nil && !strings.Contains(body, ";") {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if wrong != nil {
			t.Fatalf("%q: is read, and net/url says: %v", body, wrong)
		}
		for name, values := range want {
			if !utf8.ValidString(name + strings.Join(values, "")) {
				return
			}
		}
		if got := textsIn(t, text); len(failures) == 0 && !isSame(got, want) {
			t.Errorf("%q: read %q, want %q", body, got, want)
		}
		if len(failures) > 0 && len(want["a"]) < 2 {
			t.Errorf("%q: %v", body, failures)
		}
	})
}

// FuzzParts: a form in parts is read as mime/multipart reads it.
func FuzzParts(f *testing.F) {
	const head = "--b\r\nContent-Disposition: form-data; name="
	for _, body := range []string{
		head + "\"a\"\r\n\r\nx\r\n--b--\r\n",
		head + "\"file\"; filename=\"f\"\r\nContent-Type: image/png\r\n\r\n\x00\r\n--b\r\n" + head[5:] +
			"\"b\"\r\n\r\n\r\n--b--",
		head + "a\r\n\r\nx\r\n--b--\r\n", head + "\"a\"\r\n x\r\n\r\n\r\n--b--\r\n",
		head + "\"a\"\r\n\r\nx\n--b\n\r\n--b--\r\n", "--b--\r\n", "--b\r\n\r\n--b--\r\n",
		head + "\"a\"; filename*=utf-8''x\r\n\r\n\r\n--b--\r\n", head + "\"a\\\"\"\r\n\r\n\r\n--b--\r\n",
		head + "\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n--b--\r\n",
		head + "\"a\"\r\n\r\nx\r\n--b \r\n", head + "\"a\"\r\n\r\nx\r\n--bb\r\n\r\n--b--\r\n",
		head + "\"a\"\r\n\r\nx\r\n--b--\r\nmore",
	} {
		f.Add(body, "b")
	}
	f.Fuzz(func(t *testing.T, body, boundary string) {
		text, failures, err := anyForm().ReadParts([]byte(body), boundary)
		if err != nil {
			return
		}
		want := map[string][]string{}
		for r := multipart.NewReader(strings.NewReader(body), boundary); ; {
			p, err := r.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: is read, and mime/multipart says: %v", body, err)
			}
			content, err := io.ReadAll(p)
			if err != nil {
				t.Fatalf("%q: is read, and mime/multipart says: %v", body, err)
			}
			value := string(content)
			if strings.Contains(p.Header.Get("Content-Disposition"), "filename") {
				// FileName leaves folders out, which a server may not.
				_, value, _ = strings.Cut(strings.ToLower(p.Header.Get("Content-Disposition")), "filename=\"")
				value, _, _ = strings.Cut(value, `"`)
			} else if p.FormName() == "file" {
				value = ""
			}
			if p.FormName() == "file" && value == "" && len(content) == 0 {
				continue
			}
			want[p.FormName()] = append(want[p.FormName()], value)
		}
		for name, values := range want {
			if !utf8.ValidString(name + strings.Join(values, "")) {
				return
			}
		}
		if len(failures) > 0 {
			return // a field twice, or a file that should be a text
		}
		got := textsIn(t, text)
		for name, values := range got { // as they were lowered above
			for i, one := range values {
				if i < len(want[name]) && strings.EqualFold(want[name][i], one) {
					values[i] = want[name][i]
				}
			}
		}
		if !isSame(got, want) {
			t.Errorf("%q: read %q, want %q", body, got, want)
		}
	})
}
