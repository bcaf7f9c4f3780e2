package mutate

import (
	"context"
	"fmt"
	"sync"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/status"
)

// Plan implements admission.Mutator.
func (p *Defaulting) Plan(ctx context.Context, a *admission.Attributes, to []admission.Run,
	r *admission.Report) ([]admission.Run, error) {
	if a.Object == nil {
		return to, nil
	}
	as, matches, err := p.Matches(ctx, a, r)
	if !matches {
		return to, err
	}
	return append(to, admission.Run{As: as}), nil
}

// Mutate implements admission.Mutator. Each default sees the values of the previous ones. One that
// fails is a failure of the policy, but the others are set. No policy has to run again for what is
// set before it runs, so the run says nothing.
func (p *Defaulting) Mutate(ctx context.Context, a *admission.Attributes, run *admission.Run,
	r *admission.Report) error {
	s := setters.Get().(*setter)
	defer s.release()
	s.subject = newSubject(a, run, &p.Policy)
	if err := s.bind(ctx, false); err != nil {
		return p.AnswerOr(nil, err, r)
	}
	applies, err := p.MatchesConditions(a.Frame, a.Frame.Vars())
	if err != nil {
		return p.AnswerOr(nil, err, r)
	}
	if !applies {
		return nil
	}
	a.Frame.SetBudget(cel.PolicyBudget)
	stale := p.NeedsNamespace() // the variables
	for i := range p.settings {
		if stale {
			a.Bind()
			if err := s.bind(ctx, true); err != nil {
				return p.AnswerOr(nil, err, r)
			}
		}
		changed, err := s.set(&p.settings[i])
		stale = changed
		if err == nil {
			continue
		}
		if err := p.AnswerOr(nil, err, r); err != nil {
			return err
		}
	}
	return nil
}

// setter sets the defaults of a policy on one object.
type setter struct {
	subject
	typ    *merge.Type // of the object, once it is known
	places []defaults.UnsetField
	values []span
	buffer []byte // the values that expressions made
}

// span is the position of a value in the buffer.
type span struct{ from, to int }

var setters = sync.Pool{New: func() any { return new(setter) }}

// maxKept is how much memory a setter keeps for the next object, in bytes.
const maxKept = 64 << 10

func (s *setter) release() {
	clear(s.places)
	*s = setter{places: s.places[:0], values: s.values[:0], buffer: s.buffer[:0]}
	if cap(s.buffer) > maxKept || cap(s.places) > maxKept/128 {
		return
	}
	setters.Put(s)
}

// set sets a field wherever it is unset: all values are computed before the first is set.
func (s *setter) set(d *Setting) (changed bool, err error) {
	if s.typ == nil {
		s.typ = s.mergeType()
	}
	s.places = d.Path.Unset(s.places[:0], s.target.Root(), s.typ)
	if len(s.places) == 0 {
		return false, nil
	}
	if err := s.evaluate(d); err != nil {
		return false, err
	}
	if len(s.places) == 0 {
		return false, nil
	}
	for i := range s.places {
		value := d.Value
		if value == nil {
			value = s.buffer[s.values[i].from:s.values[i].to]
		}
		s.places[i].Set(s.target, value)
	}
	return true, s.applyTarget()
}

// evaluate computes the values, and leaves the places for which there are such.
func (s *setter) evaluate(d *Setting) error {
	frame, vars := s.attributes.Frame, s.attributes.Frame.Vars()
	kept, size := s.places[:0], s.target.Extent()
	s.values, s.buffer = s.values[:0], s.buffer[:0]
	for _, place := range s.places {
		vars.Set(value.Self, place.Self(), nil)
		if d.when != nil {
			applies, err := d.when.EvalBool(frame, vars)
			if err != nil {
				return fmt.Errorf("%s.when: %w", d.path, err)
			}
			if !applies {
				continue
			}
		}
		length := len(d.Value)
		if d.expression != nil {
			given, err := s.compute(d)
			if err != nil {
				return fmt.Errorf("%s.valueExpression: %w", d.path, err)
			}
			if !given {
				continue
			}
			last := s.values[len(s.values)-1]
			length = last.to - last.from
		}
		kept = append(kept, place)
		if size += length; size > s.most() {
			return tooLarge(s.most())
		}
	}
	clear(s.places[len(kept):])
	s.places = kept
	return nil
}

// compute appends the value of the expression. A null, or an optional without a value, sets
// nothing.
func (s *setter) compute(d *Setting) (given bool, err error) {
	from := len(s.buffer)
	buffer, ok, err := d.expression.EvalJSON(s.attributes.Frame, s.attributes.Frame.Vars(), s.buffer)
	if err != nil {
		return false, err
	}
	value := buffer[from:]
	if !ok || string(value) == "null" {
		return false, nil
	}
	if d.Path.NamesItem() && value[0] != '{' {
		return false, fmt.Errorf("the value of an item must be an object, not %s", kindOf(value).WithArticle())
	}
	s.buffer = buffer
	s.values = append(s.values, span{from, len(buffer)})
	return true, nil
}

// most is how long the object may become, in bytes.
func (s *setter) most() int {
	if most := s.limits().Bytes; most > 0 {
		return most
	}
	return document.DefaultBytes
}

func tooLarge(most int) error {
	return status.RequestEntityTooLarge("the object as policies change it must be at most %d bytes", most)
}
