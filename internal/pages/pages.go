// Package pages has the HTML pages of the gateway, as templates of html/template: the status page and the playground of
// the admin listener, explanations of requests, and reports of scans.
package pages

import (
	"embed"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/quote"
)

//go:embed *.html *.css playground.js
var files embed.FS

// A Page is a kind of pages. Its templates are parsed when the first is written.
type Page struct{ templates func() *template.Template }

// The pages. Each file says which data it shows.
var (
	Status      = newPage("status.html")
	Playground  = newPage("playground.html")
	Explanation = newPage("explanation.html")
	Scan        = newPage("scan.html")
)

func newPage(file string) *Page {
	return &Page{sync.OnceValue(func() *template.Template {
		layout := template.New("layout.html").Funcs(template.FuncMap{
			"at":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
			"count":  quote.Count,
			"css":    func(names ...string) template.CSS { return template.CSS(Style(names...)) },
			"join":   func(list []string) string { return strings.Join(list, ", ") },
			"script": func() template.JS { return template.JS(Script()) },
			"since":  func(seconds int64) string { return (time.Duration(seconds) * time.Second).String() },
		})
		return template.Must(layout.ParseFS(files, "layout.html", file))
	})}
}

// Write writes the page that shows the data.
func (p *Page) Write(w io.Writer, data any) error { return p.templates().Execute(w, data) }

// WritePart writes what one template of the page makes of the data.
func (p *Page) WritePart(w io.Writer, name string, data any) error {
	return p.templates().ExecuteTemplate(w, name, data)
}

// Style returns style sheets, by their names without ".css".
func Style(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		all.WriteString(text(name + ".css"))
	}
	return all.String()
}

// Script returns the script of the playground.
func Script() string { return text("playground.js") }

func text(file string) string {
	content, err := files.ReadFile(file)
	if err != nil {
		panic("pages: " + err.Error()) // a template names a file that is not embedded
	}
	return string(content)
}
