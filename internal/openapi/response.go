package openapi

import (
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
)

// AnswersKey is the member of the extension that says what becomes of answers which are not what the document declares.
const AnswersKey = "responses"

// The values of AnswersKey.
const (
	AnswersIgnored = "Ignore"
	AnswersWarned  = "Warn"
)

// Response is an answer that a document declares, as [contract.Answer] has it.
type Response struct {
	Code     int
	Contents []Content
	Headers  []contract.Parameter
	Values   *Schema
}

// Content is a media type of an answer, as [contract.Content] has it.
type Content struct {
	Media string
	// Schema is nil if JSON may be anything.
	Schema *Schema
}

// WatchesAnswers reports whether the author wants answers to be checked against the document.
func (r *Resource) WatchesAnswers() bool { return r.setting(AnswersKey) == AnswersWarned }

// answersOf returns the answers that an operation declares.
func answersOf(d *Document, operation document.Node) (all []Response) {
	d.watched[operation.Index()] = true
	responses, _ := operation.Get("responses")
	members(responses, func(m document.Node) {
		code, isCode := codeOf(m.Key())
		if !isCode {
			return // which is found of all operations
		}
		response := d.follow(m)
		if !response.Valid() {
			return
		}
		a := Response{Code: code}
		content, _ := response.Get("content")
		members(content, func(m document.Node) { a.Contents = append(a.Contents, contentOf(d, m)) })
		a.Headers, a.Values = headersOf(d, response)
		all = append(all, a)
	})
	return all
}

// codeOf reads the name of an answer: a status code, a range of them, or 0 for all others.
func codeOf(name string) (code int, ok bool) {
	switch {
	case name == "default":
		return 0, true
	case len(name) == 3 && strings.EqualFold(name[1:], "XX") && name[0] >= '1' && name[0] <= '5':
		return int(name[0] - '0'), true
	}
	code, err := strconv.Atoi(name)
	return code, err == nil && len(name) == 3 && code >= 100 && code <= 599
}

// contentOf returns a media type of an answer.
func contentOf(d *Document, m document.Node) Content {
	c := Content{Media: mediaName(m)}
	if value, found := d.follow(m).Get("schema"); found && (isJSONType(c.Media) || strings.Contains(c.Media, "*")) {
		c.Schema = d.schemaOf(value, translation{of: ofResponses})
	}
	return c
}

// headersOf returns the headers of an answer, and the schema of their values.
func headersOf(d *Document, response document.Node) ([]contract.Parameter, *Schema) {
	var all []placedParameter
	headers, _ := response.Get("headers")
	members(headers, func(m document.Node) {
		name := strings.Clone(m.Key())
		if n := d.follow(m); n.Valid() && !strings.EqualFold(name, "Content-Type") {
			all = append(all,
				placedParameter{contract.Parameter{In: contract.InHeader, Name: name, IsRequired: truth(n, "required")},
					n})
		}
	})
	return valuesOf(d, all, response)
}
