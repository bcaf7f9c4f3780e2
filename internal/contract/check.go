package contract

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Check checks the parameters of a request against the document, and returns all that is wrong. The
// frame is asked for only if the schema has rules.
func (o *Operation) Check(i *resource.Info, head *message.Head, frame func() *cel.Frame) field.ErrorList {
	if len(o.Parameters) == 0 {
		return nil
	}
	r := readers.Get().(*reader)
	defer r.release()
	r.parameters = o.Parameters
	r.path(i.Path)
	r.query(i.Query)
	r.headers(head)
	return r.check(o.Values, frame)
}

// check holds the values of the texts that were found to their schema.
func (r *reader) check(values *schema.Schema, frame func() *cel.Frame) field.ErrorList {
	r.write()
	if values == nil {
		return r.failures
	}
	d, err := document.Parse(r.json, document.Limits{})
	if err != nil {
		return append(r.failures, field.Invalid(field.NewPath("query"), field.OmitValueType{},
			"must be parameters that can be read in one way only: "+err.Error()))
	}
	defer d.Release()
	var f *cel.Frame
	if values.HasRules() {
		f = frame()
		f.SetBudget(cel.PolicyBudget)
	}
	return Named(r.failures, Renamed(r.parameters, values.Validate(f, d.Root(), document.Node{}).Errors))
}

// Named joins what is wrong with texts and what is wrong with their values: a value that cannot be read is not missing.
func Named(texts, values field.ErrorList) field.ErrorList {
	if len(texts) == 0 {
		return values
	}
	all := texts[:len(texts):len(texts)]
	for _, err := range values {
		isSame := func(other *field.Error) bool { return other.Field == err.Field }
		if err.Type != field.ErrorTypeRequired || !slices.ContainsFunc(texts, isSame) {
			all = append(all, err)
		}
	}
	return all
}

// Renamed names the members of objects as requests do if they are parameters of their own.
func Renamed(parameters []Parameter, failures field.ErrorList) field.ErrorList {
	for k := range parameters {
		p := &parameters[k]
		if p.Shape != Object || p.Keys != KeysSpread {
			continue
		}
		path := p.path().String()
		for _, err := range failures {
			if rest, found := strings.CutPrefix(err.Field, path+"."); found {
				err.Field = strings.TrimSuffix(path, p.Name) + rest
			}
		}
	}
	return failures
}
