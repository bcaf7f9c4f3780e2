package markup

import (
	"html/template"
	"strings"
	"testing"
)

// A value has the same escapes as in html/template, wherever a page may have one.
func FuzzAdd(f *testing.F) {
	oracle := template.Must(template.New("").Parse(`<title>{{.}}</title><p class="a {{.}}">{{.}}</p><td><input value="{{.}}"></td><svg width="{{.}}" aria-label="{{.}}"><text>{{.}}</text></svg><pre>{{.}}</pre>`))
	for _, value := range []string{
		"", "a", "a b", `" onmouseover="alert(1)`, "' x='", "</title><script>alert(1)</script>", "<!--", "&lt;", "&", "+ADw-", "\x00", "\x80\xff", "\r\n\t", "javascript:alert(1)",
		"\u2028", "{}", "{{.}}", "]]>", "`", "é",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var want strings.Builder
		if err := oracle.Execute(&want, value); err != nil {
			t.Skip(err)
		}
		p := Page{}
		p.Add("<title>{}</title>", value)
		p.Add(`<p class="a {}">{}</p>`, value, value)
		p.Add(`<td><input value="{}"></td>`, value)
		p.Add(`<svg width="{}" aria-label="{}"><text>{}</text></svg><pre>{}</pre>`, value, value, value, value)
		if p.String() != want.String() {
			t.Errorf("%q:\n%s\nhtml/template writes\n%s", value, p.String(), want.String())
		}
	})
}

// Values of other types are written as html/template writes them.
func TestAddValues(t *testing.T) {
	type word string
	values := []any{word("<b>"), 0, -1, int64(1 << 40), uint64(1) << 63, true}
	oracle := template.Must(template.New("").Parse(`{{range .}}<p>{{.}}</p>{{end}}`))
	var want strings.Builder
	if err := oracle.Execute(&want, values); err != nil {
		t.Fatal(err)
	}
	p := Page{}
	for _, v := range values {
		p.Add("<p>{}</p>", v)
	}
	if p.String() != want.String() {
		t.Errorf("%s, want %s", p.String(), want.String())
	}
}

func TestAddIf(t *testing.T) {
	p := Page{}
	for _, v := range []any{"", 0, int64(0), "0", 1, int64(2), " "} {
		p.AddIf("[{}]", v)
	}
	if want := "[0][1][2][ ]"; p.String() != want {
		t.Errorf("%s, want %s", p.String(), want)
	}
}

// A place without a value, or a value without a place, is a fault of the program.
func TestAddCounts(t *testing.T) {
	for _, add := range []func(*Page){
		func(p *Page) { p.Add("<p>{}</p>") },
		func(p *Page) { p.Add("<p></p>", 1) },
		func(p *Page) { p.Add("{}{}", 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the page was written")
				}
			}()
			add(&Page{})
		}()
	}
}
