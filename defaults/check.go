package defaults

import (
	"fmt"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/schema"
)

// CheckLiteral checks a JSON value for the field that the path names in objects of the type and,
// unless that is nil, of the schema. The error says what is wrong first.
func (p *Path) CheckLiteral(t *merge.Type, s *schema.Schema, value []byte) error {
	field, err := p.In(t)
	if err != nil {
		return err
	}
	if p.NamesItem() {
		value = p.lastItem(t, value)
	}
	d, err := document.Parse(value, document.Limits{})
	if err != nil {
		return fmt.Errorf("must be a value that can be read in one way only: %w", err)
	}
	defer d.Release()
	if s != nil {
		if problems := s.CheckLiteral(p.shape(s), d.Root()); len(problems) > 0 {
			first := problems[0]
			if first.Field == "" || first.Field == "<nil>" {
				return fmt.Errorf("%s", first.ErrorBody())
			}
			return first
		}
	}
	return field.Check(d.Root())
}

// lastItem completes the value of an item by the keys that the path gives.
func (p *Path) lastItem(t *merge.Type, value []byte) []byte {
	last := len(p.steps) - 1
	for i := range p.steps[:last] {
		t = p.steps[i].typeWithin(t)
	}
	if t == nil || t.List == nil {
		t = merge.Deduced()
	}
	return p.steps[last].appendItem(nil, t.List, value)
}

// shape is the field's, nil if nothing is known of it.
func (p *Path) shape(s *schema.Schema) *schema.Shape {
	at := s.Root()
	for i := range p.steps {
		if at == nil {
			return nil
		}
		step := &p.steps[i]
		switch {
		case step.kind == toItem, step.kind == toEach && at.Items() != nil:
			at = at.Items()
		case step.kind == toEach:
			at = at.Additional()
		default:
			if property := at.Property(step.name); property != nil {
				at = property.Shape
			} else {
				at = at.Additional()
			}
		}
	}
	return at
}
