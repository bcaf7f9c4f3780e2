// Package markup writes HTML pages. It has what the gateway needs of html/template: the markup is the program's, and
// every value is shown as text. Templates look methods up by name, and a program that does so keeps all exported methods
// of all types that it has: they made the gateway a quarter larger.
package markup

import (
	"fmt"
	"strings"
)

// A Page is an HTML page that is being written. The zero value is an empty page.
type Page struct{ text strings.Builder }

// fixed is markup. Other packages cannot name the type, so that they can pass constants only: what comes from elsewhere
// is never markup.
type fixed string

// Add writes markup with values in the place of each {}, in their order. A value may stand in the text of an element or
// within the double quotes of an attribute that has no meaning of its own, such as value, class or width. It must not
// stand in a script, a style or a URL.
func (p *Page) Add(markup fixed, values ...any) {
	rest := string(markup)
	for _, v := range values {
		before, after, found := strings.Cut(rest, "{}")
		if !found {
			panic(fmt.Sprintf("markup: more values than places for them in %q", string(markup)))
		}
		p.text.WriteString(before)
		escape(&p.text, fmt.Sprint(v))
		rest = after
	}
	if strings.Contains(rest, "{}") {
		panic(fmt.Sprintf("markup: more places than values in %q", string(markup)))
	}
	p.text.WriteString(rest)
}

// AddIf writes markup with a value, unless it is "" or 0.
func (p *Page) AddIf(markup fixed, value any) {
	switch value {
	case "", 0, int64(0):
	default:
		p.Add(markup, value)
	}
}

// String returns the page.
func (p *Page) String() string { return p.text.String() }

// escapes are those of html/template. They do for text and for attributes in quotes, and in any encoding that a browser
// may guess.
var escapes = strings.NewReplacer(
	"\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;",
)

func escape(to *strings.Builder, value string) {
	_, _ = escapes.WriteString(to, value) // into memory
}
