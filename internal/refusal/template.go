// Package refusal writes what the gateway itself refuses in the form of the API in front of which it stands: by a
// template in CEL that its author gives.
package refusal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A Spec is a template as its author writes it.
type Spec struct {
	// MediaType is the Content-Type of the answers.
	MediaType string `json:"mediaType"`
	// StatusCode is an expression for the code of the answer; empty leaves the refusal's own.
	StatusCode string `json:"statusCode"`
	// Body is an expression for the body: any value that can be written as JSON, or text for a media type that is not
	// JSON.
	Body string `json:"body"`
}

// A Template is a compiled Spec. It is immutable and safe for concurrent use.
type Template struct {
	name, mediaType string
	isText          bool
	code, body      *cel.JSONExpression // code may be nil
}

// Compile checks and compiles what the author of a template wrote. With findings the Template is nil.
func Compile(name string, s *Spec, path *field.Path) (*Template, field.ErrorList) {
	t := &Template{name: name, mediaType: s.MediaType}
	var errs field.ErrorList
	media, _, err := mime.ParseMediaType(s.MediaType)
	if err != nil || !strings.Contains(media, "/") || strings.ContainsAny(s.MediaType, "\r\n") {
		errs = append(errs, field.Invalid(path.Child("mediaType"), s.MediaType,
			"must be a media type, such as 'application/json'"))
	}
	t.isText = media != "application/json" && !strings.HasSuffix(media, "+json")
	compiler, err := cel.NewJSONCompiler(refusalSchema)
	if err != nil {
		return nil, append(errs, field.InternalError(path, err))
	}
	compile := func(name, expression string, made *structuralschema.Structural) *cel.JSONExpression {
		e, err := compiler.Compile(expression, made)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child(name), expression, err.Error()))
		}
		return e
	}
	if s.StatusCode != "" {
		t.code = compile("statusCode", s.StatusCode, integer)
	}
	var made *structuralschema.Structural
	if t.isText {
		made = text
	}
	t.body = compile("body", s.Body, made)
	if len(errs) > 0 {
		return nil, errs
	}
	return t, nil
}

// Name is the name of the template.
func (t *Template) Name() string { return t.name }

// MediaType is the Content-Type of its answers.
func (t *Template) MediaType() string { return t.mediaType }

// Programs are the expressions of the template.
func (t *Template) Programs() []*cel.Program {
	if t.code == nil {
		return []*cel.Program{t.body.Program()}
	}
	return []*cel.Program{t.code.Program(), t.body.Program()}
}

// budget bounds the work for one answer, in units of the cost of CEL: a tenth of what one expression of a policy may
// take.
const budget = cel.ExpressionLimit / 10

// maxBody bounds an answer, in bytes.
const maxBody = 1 << 20

// Write returns the code and the body of the answer to a refused request. An error is the template's: the refusal has
// no other form than its Status then.
func (t *Template) Write(r *Refusal) (code int, body []byte, err error) {
	d, err := document.Parse(r.appendJSON(nil), document.Limits{})
	if err != nil {
		return 0, nil, fmt.Errorf("what is known of the refusal cannot be read: %w", err)
	}
	defer d.Release()
	// The request's own deadline may be over, which is then what the answer says. The budget bounds the time.
	f := cel.NewFrame(context.Background())
	defer f.Release()
	f.SetBudget(budget)
	code = int(r.Status.Code)
	if t.code != nil {
		made, err := t.code.Eval(f, d.Root(), nil)
		if err == nil {
			err = json.Unmarshal(made, &code)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("statusCode: %w", worded(err))
		}
		if code < http.StatusBadRequest || code > 599 {
			return 0, nil, fmt.Errorf("statusCode: must be from 400 to 599, not %d", code)
		}
	}
	if body, err = t.body.Eval(f, d.Root(), nil); err != nil {
		return 0, nil, fmt.Errorf("body: %w", worded(err))
	}
	if t.isText {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return 0, nil, errors.New("body: must be text for a media type that is not JSON")
		}
		body = []byte(text)
	}
	if len(body) > maxBody {
		return 0, nil, fmt.Errorf("body: must be at most %d bytes long, not %d", maxBody, len(body))
	}
	return code, body, nil
}

// errCost says that a template takes more than its budget, which the words about policies do not fit.
var errCost = errors.New("the template takes too much work")

// worded returns the error of an expression in words about a template.
func worded(err error) error {
	if e, is := errors.AsType[*cel.Error](err); is && (e.Cause == value.OverBudget || e.Cause == value.OverLimit) {
		return errCost
	}
	return err
}
