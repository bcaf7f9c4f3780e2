package story

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed story.html
var page string

var pages = template.Must(template.New("story").Funcs(template.FuncMap{
	"text": func(raw []byte) string { return string(raw) },
	"next": func(i int) int { return i + 1 },
}).Parse(page))

// WriteHTML writes a story as a page of its own. It has no scripts, and asks nothing of any server.
func WriteHTML(w io.Writer, s *Story) error { return pages.Execute(w, s) }
