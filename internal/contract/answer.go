package contract

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// An Answer is an answer that a document declares for an operation.
type Answer struct {
	// Code is the status code; the first digit of it for a range such as '2XX', and 0 for all others.
	Code int
	// Contents are the media types of the body; none if the document says nothing of it.
	Contents []Content
	// Headers are parameters in headers, and Values is the schema of their values, as an [Operation] has it.
	Headers []Parameter
	Values  *schema.Schema
}

// A Content is a media type that a document declares for an answer.
type Content struct {
	// Media is the type in lower case; it may be a range, such as 'image/*'.
	Media string
	// Schema is the schema of JSON bodies; nil if the document has none.
	Schema *schema.Schema
	// Hidden are the members that are writeOnly.
	Hidden *Members
}

// A Departure is something in which an answer is not what the document declares.
type Departure struct {
	Kind Kind
	// Field is a header or a field of the body; it may be empty.
	Field string
	// Detail says what is wrong, without values of the answer.
	Detail string
}

// Kind is the part of an answer that departs from its declaration.
type Kind uint8

// The kinds of departures.
const (
	OfCode Kind = iota
	OfMediaType
	OfHeader
	OfBody
	OfWriteOnly
	kinds
)

// String returns the name that metrics and the log use.
func (k Kind) String() string {
	return [...]string{"Code", "MediaType", "Header", "Body", "WriteOnly"}[k]
}

// Kinds are all kinds of departures.
func Kinds(yield func(Kind) bool) {
	for k := OfCode; k < kinds && yield(k); k++ {
	}
}

// AnswerOf returns what is declared for a status code; nil if nothing is. A code goes before a range, and a range
// before what holds for all others.
func (o *Operation) AnswerOf(code int) (of *Answer) {
	for k := range o.Answers {
		switch a := &o.Answers[k]; {
		case a.Code == code:
			return a
		case a.Code == code/100, a.Code == 0 && of == nil:
			of = a
		}
	}
	return of
}

// Presence says whether an answer has a body.
type Presence uint8

const (
	// NoBody is for answers that never have one: to HEAD, and of some codes.
	NoBody Presence = iota
	// EmptyBody is for other answers without one.
	EmptyBody
	// SomeBody is for answers that have one.
	SomeBody
)

// Check checks the head of an answer against what is declared. lines returns the values of the
// headers of a name. The content declares the body; nil if nothing does.
func (a *Answer) Check(contentType string, lines func(name string) []string,
	body Presence) (found []Departure, of *Content) {
	found = a.checkHeaders(lines)
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	switch {
	case body == NoBody, len(a.Contents) == 0:
		return found, nil
	case body == EmptyBody && media == "":
		return append(found, Departure{OfBody, "", "must not be missing"}), nil
	case media == "":
		return append(found, Departure{OfMediaType, "", "must be named by a Content-Type"}), nil
	}
	for k := range a.Contents {
		if c := &a.Contents[k]; covers(c.Media, media) && (of == nil || rank(c.Media) > rank(of.Media)) {
			of = c
		}
	}
	if of == nil {
		return append(found, Departure{OfMediaType, "", "must be one of " + a.types()}), nil
	}
	return found, of
}

// types returns the media types as messages show them.
func (a *Answer) types() string {
	types := make([]string, len(a.Contents))
	for k := range a.Contents {
		types[k] = "'" + a.Contents[k].Media + "'"
	}
	return strings.Join(types, ", ")
}

// setCookie is the one header that may stand several times and is no list.
const setCookie = "set-cookie"

func (a *Answer) checkHeaders(lines func(name string) []string) []Departure {
	if len(a.Headers) == 0 {
		return nil
	}
	f := cel.NewFrame(context.Background())
	defer f.Release()
	r := readers.Get().(*reader)
	defer r.release()
	r.parameters = a.Headers
	for k := range a.Headers {
		values := lines(a.Headers[k].Name)
		if len(values) > 1 && strings.EqualFold(a.Headers[k].Name, setCookie) {
			values = values[:1]
		}
		for _, value := range values {
			r.found = append(r.found, occurrence{parameter: k, text: strings.TrimSpace(value)})
		}
	}
	return departures(OfHeader, r.check(a.Values, func() *cel.Frame { return f }))
}

// IsRead reports whether bodies of a media type are checked against a schema.
func (c *Content) IsRead(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	return c != nil && c.Schema != nil && IsJSON(strings.TrimSpace(media))
}

// IsJSON reports whether a media type in lower case is JSON, or a format based on it (RFC 6839).
func IsJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "/json")
}

// CheckBody checks JSON against what is declared. Only a text that is too large, or that there is
// no memory for, is an error.
func (c *Content) CheckBody(body []byte, limits document.Limits) ([]Departure, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return []Departure{{OfBody, "", "must not be empty"}}, nil
	}
	d, err := document.Parse(body, limits)
	var why *document.Error
	switch {
	case errors.As(err, &why) && (why.Code == document.NoMemory || why.Code == document.TooLarge):
		return nil, err
	case err != nil:
		return []Departure{{OfBody, "", "must be JSON that can be read in one way only"}}, nil
	}
	defer d.Release()
	var f *cel.Frame
	if c.Schema.HasRules() {
		f = cel.NewFrame(context.Background())
		defer f.Release()
		f.SetBudget(cel.PolicyBudget)
	}
	found := departures(OfBody, c.Schema.Validate(f, d.Root(), document.Node{}).Errors)
	for _, n := range c.Hidden.In(d.Root()) {
		found = append(found, Departure{OfWriteOnly, n.Path(), "must not be shown: it is writeOnly"})
	}
	return found, nil
}

// departures says what is wrong without values.
func departures(kind Kind, errs field.ErrorList) (found []Departure) {
	for _, err := range errs {
		d := Departure{Kind: kind, Field: err.Field, Detail: err.Type.String()}
		if d.Field == (*field.Path)(nil).String() {
			d.Field = ""
		}
		if err.Detail != "" {
			d.Detail += ": " + err.Detail
		}
		found = append(found, d)
	}
	return found
}
